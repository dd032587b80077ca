"""Envs of every kind of space train, load and act from their id and a policy's name alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from torch import nn

import ding
from ding.entry import serial_pipeline
from ding.entry.predefined import predefined_config
from ding.envs import DingEnvWrapper
from ding.envs.given import OLD_GYM
from ding.utils.errors import ConfigError

SMALL: dict[str, Any] = {
    "random_collect_size": 8,
    "learn.batch_size": 4,
    "collect.n_sample": 8,
    "env.collector_env_num": 2,
    "env.evaluator_env_num": 2,
    "env.n_evaluator_episode": 2,
    "env.max_episode_steps": 6,
}
ON_POLICY = {key: value for key, value in SMALL.items() if key != "random_collect_size"}
_UNIT = spaces.Box(-2, 2, (2,), dtype=np.float32)


def _image(*shape: int) -> spaces.Box:
    return spaces.Box(0, 255, shape, dtype=np.uint8)


_OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "Car": _image(96, 96, 3),
    "Frames": _image(84, 84, 3),
    "Grey": _image(20, 24, 1),
    "Tiny": _image(5, 5, 3),
    "Scalar": spaces.Box(-1, 1, (), dtype=np.float64),
    "Bits": spaces.MultiBinary([2, 3]),
    "Numbers": spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 1], [1, 1]]),
    "Mixed": spaces.Dict(
        eye=_image(40, 40, 3),
        body=spaces.Dict(arm=_UNIT, grip=spaces.Discrete(3, start=-1)),
        pair=spaces.Tuple([_UNIT, spaces.MultiBinary(2)]),
        told=spaces.Text(5),
    ),
    "Vector": _UNIT,
}
_ACTIONS: dict[str, spaces.Space[Any]] = {
    "Square": spaces.Box(-2, 2, (2, 2), dtype=np.float32),
    "Knob": spaces.Box(0, 1, (), dtype=np.float64),
    "Switches": spaces.MultiBinary([2, 2]),
    "Levels": spaces.Box(-1, 1, (2,), dtype=np.int64),
    "Buttons": spaces.Tuple([spaces.Discrete(2, start=5), spaces.MultiDiscrete([2, 3])]),
    "Limbs": spaces.Dict(leg=_UNIT, arm=spaces.Tuple([_UNIT, _UNIT])),
    "Tool": spaces.Tuple([_UNIT, spaces.Discrete(3)]),
    "Go": spaces.Discrete(3),
}


class AnySpace(gym.Env[Any, Any]):
    """Refuses what is no action of it; nothing else matters."""

    def __init__(self, obs: str = "Vector", action: str = "Go") -> None:
        self.observation_space, self.action_space = _OBSERVATIONS[obs], _ACTIONS[action]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.left = 9
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"{action!r} is no action of {self.action_space}")
        self.left -= 1
        return self.observation_space.sample(), 1.0, self.left == 0, False, {}


@pytest.fixture(autouse=True)
def _ids(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    ids = [f"Seen{name}-v0" for name in _OBSERVATIONS]
    for name in _OBSERVATIONS:
        gym.register(f"Seen{name}-v0", AnySpace, max_episode_steps=6, kwargs={"obs": name})
    for name in _ACTIONS:
        ids.append(f"Done{name}-v0")
        gym.register(ids[-1], AnySpace, max_episode_steps=6, kwargs={"action": name})
    yield
    for name in ids:
        gym.registry.pop(name)


def small(policy: str) -> dict[str, Any]:
    return dict(ON_POLICY if policy == "ppo" else SMALL)


CASES = [
    ("FrozenLake-v1", "dqn"),
    ("FrozenLake-v1", "ppo"),
    ("Taxi-v4", "dqn"),
    ("CliffWalking-v1", "dqn"),
    ("Blackjack-v1", "dqn"),
    ("Blackjack-v1", "ppo"),
    ("MiniGrid-Empty-5x5-v0", "dqn"),
    ("SeenCar-v0", "ppo"),
    ("SeenFrames-v0", "dqn"),
    ("SeenGrey-v0", "dqn"),
    ("SeenTiny-v0", "ppo"),
    ("SeenScalar-v0", "dqn"),
    ("SeenBits-v0", "ppo"),
    ("SeenNumbers-v0", "dqn"),
    ("SeenMixed-v0", "dqn"),
    ("SeenMixed-v0", "ppo"),
    ("SeenMixed-v0", "discrete_sac"),
    ("DoneSquare-v0", "sac"),
    ("DoneSquare-v0", "td3"),
    ("DoneSquare-v0", "ppo"),
    ("DoneKnob-v0", "td3"),
    ("DoneSwitches-v0", "ppo"),
    ("DoneLevels-v0", "ppo"),
    ("DoneButtons-v0", "ppo"),
    ("DoneLimbs-v0", "sac"),
    ("DoneTool-v0", "ppo"),
]


@pytest.mark.parametrize(("env_id", "policy"), CASES)
def test_trains_from_its_id_and_the_agent_acts_in_it(env_id: str, policy: str) -> None:
    run = ding.train(env_id, policy, steps=24, seed=1, **small(policy))
    assert run.result["env_step"] >= 24 and run.result["train_iter"] >= 1
    env = gym.make(env_id)
    obs, _ = env.reset(seed=3)
    agent = run.agent()
    assert env.action_space.contains(
        np.asarray(agent.act(obs)) if _is_array(env) else agent.act(obs)
    )
    assert agent.evaluate(episodes=1).shape == (1,)
    agent.save("agent.ding")
    again = ding.load("agent.ding")
    np.testing.assert_array_equal(_flat(again.act(obs)), _flat(agent.act(obs)))


def _is_array(env: gym.Env[Any, Any]) -> bool:
    return isinstance(env.action_space, (spaces.Box, spaces.MultiBinary))


def _flat(action: Any) -> np.ndarray:
    if isinstance(action, dict):
        action = tuple(action.values())
    if isinstance(action, tuple):
        return np.concatenate([_flat(part) for part in action])
    return np.ravel(action)


class OldStyle:
    """Old Gym's interface: no seed, no info, one 'done'."""

    observation_space = spaces.Box(-1, 1, (2,), dtype=np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 3) -> None:
        self.length = length

    def seed(self, seed: int) -> None:
        self.seeded = seed

    def reset(self) -> np.ndarray:
        self.n = 0
        return np.zeros(2, np.float32)

    def step(self, action: int) -> tuple[Any, float, bool, dict[str, Any]]:
        self.n += 1
        over = self.n == self.length
        return np.ones(2, np.float32), 2.0, over, {"TimeLimit.truncated": over and action == 1}


class OldSubclass(OldStyle, gym.Env[Any, Any]):  # type: ignore[misc]
    pass


def test_old_gym_is_adapted() -> None:
    env = DingEnvWrapper(cfg={"env_id": OldStyle, "env_kwargs": {"length": 2}})
    env.seed(4, dynamic_seed=False)
    assert env.reset().tolist() == [0, 0] and env.unwrapped.old.seeded == 4
    assert not env.step(0).done
    last = env.step(1)
    assert last.done and last.info["truncated"] and last.info["eval_episode_return"] == 4.0
    assert env.notes == (OLD_GYM,)
    env.reset()
    env.step(0)
    assert "truncated" not in env.step(0).info
    gym.register("OldStyle-v0", OldSubclass, max_episode_steps=2)
    limited = DingEnvWrapper(cfg={"env_id": "OldStyle-v0", "env_wrapper": ["clip_reward"]})
    limited.reset()
    del gym.registry["OldStyle-v0"]
    assert [limited.step(0).reward for _ in range(2)] == [1.0, 1.0]


@pytest.mark.parametrize("given", [OldStyle, OldSubclass, AnySpace, AnySpace(), AnySpace.__name__])
def test_classes_and_envs_go_where_an_id_goes(given: Any) -> None:
    if isinstance(given, str):
        given = f"{AnySpace.__module__}:{given}"
    limits = {**SMALL, "env.max_episode_steps": 3}
    run = ding.train(given, "dqn", steps=16, seed=1, **limits)
    assert run.result["env_step"] == 16
    assert run.evaluate(2).shape == (2,)


def test_a_plain_network_trains_and_is_loaded_again() -> None:
    def net() -> nn.Module:
        return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))

    main, create = predefined_config("FrozenLake-v1", "dqn", 24)
    main["env"] |= {"collector_env_num": 2, "evaluator_env_num": 2, "n_evaluator_episode": 2}
    main["policy"]["learn"]["batch_size"] = 4
    serial_pipeline([main, create], seed=1, model=net(), max_env_step=24)
    assert ding.load("FrozenLake-v1_dqn_seed1", model=net()).act(3) in range(4)
    with pytest.raises(ConfigError, match=r"the network Linear must have .*but it is \(2, 7\)"):
        serial_pipeline([main, create], seed=1, model=nn.Linear(16, 7), max_env_step=24)
