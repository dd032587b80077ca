"""What `reset` and `step` of an env may give: the same under every manager."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ding.envs import (
    BaseEnvManager,
    BaseEnvTimestep,
    DingEnvWrapper,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
)
from ding.envs.manager.columns import RowError
from ding.envs.manager.env_results import checked_step
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.utils.batch import ByEnv
from ding.utils.errors import EnvError

from ..counting import CountingEnv

CFG = {"flight_dir": None, "retry_waiting_time": 0, "wait_num": 2, "reset_inplace": True}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "base": (BaseEnvManager, {}),
    "shared": (SyncSubprocessEnvManager, {"envs_per_worker": 2}),
    "pickled": (SyncSubprocessEnvManager, {"shared_memory": False, "envs_per_worker": 1}),
    "thread": (ThreadEnvManager, {}),
}
OBS = np.zeros(2, dtype=np.float32)
TIMESTEP = r"BaseEnvTimestep\(obs, reward, done, info\), not "
STEPS: dict[str, tuple[Any, str]] = {
    "None": (None, TIMESTEP + "NoneType"),
    "three": ((OBS, 1.0, False), TIMESTEP + "a tuple of 3"),
    "gymnasium's": ((OBS, 1.0, False, False, {}), TIMESTEP + "a tuple of 5"),
    "list": ([OBS, 1.0, False, {}], TIMESTEP + "list"),
    "done of agents": ((OBS, 1.0, np.zeros(3, dtype=bool), {}), "done is an array of shape .3,."),
    "done in lists": ((OBS, 1.0, [[True], [True, False]], {}), "done is list "),
    "no done": ((OBS, 1.0, None, {}), "done is None, expected one bool for the whole env"),
    "done in words": ((OBS, 1.0, "no", {}), "done is str 'no', expected one bool"),
    "inf": ((OBS, np.inf, False, {}), "reward is inf, expected a finite number"),
    "-inf": ((OBS, np.float32(-np.inf), False, {}), "reward is inf, expected a finite number"),
    "NaN": ((OBS, np.nan, False, {}), "reward is NaN"),
    "no reward": ((OBS, None, False, {}), "reward is None, expected a number"),
    "words": ((OBS, "much", False, {}), "rewards .'much'.* are no numbers"),
    "info": ((OBS, 1.0, False, [1]), r"info is list \[1\], expected a dict"),
    "no obs": ((None, 1.0, False, {}), r"obs is None, but .* declares \(2,\) and float32"),
}
RESETS: dict[str, tuple[Any, str]] = {
    "None": (None, r"obs is None, but .* declares \(2,\) and float32"),
    "gymnasium's": ((OBS, {}), r"obs is a tuple of 2, but .* declares \(2,\) and float32"),
}


class GivesEnv(CountingEnv):
    """Gives what it is told to, in its first step or reset."""

    def __init__(self, step: Any = None, reset: Any = None) -> None:
        super().__init__()
        self.step_gives, self.reset_gives = step, reset

    def reset(self, **kwargs: Any) -> Any:
        obs = super().reset(**kwargs)
        return obs if self.reset_gives is None or self.episode else self.reset_gives[0]

    def step(self, action: Any) -> Any:
        timestep = super().step(action)
        return timestep if self.step_gives is None or self.episode else self.step_gives[0]


def launched(kind: str, max_retry: int = 1, **gives: Any) -> Any:
    """Env 1 of two gives the odd things."""
    cls, own = KINDS[kind]
    fns = [CountingEnv, partial(GivesEnv, **gives)]
    manager = cls(fns, {**CFG, **own, "max_retry": max_retry})
    manager.launch()
    return manager


def step_all(manager: Any) -> Any:
    ids = manager.ready_obs.ids
    return manager.step(ByEnv(ids, np.ones(len(ids), dtype=np.int64))).stacked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_cannot_be_used(kind: str, name: str) -> None:
    given, text = STEPS[name]
    if isinstance(given, tuple) and len(given) == 4:
        given = BaseEnvTimestep(*given)
    manager = launched(kind, step=(given,))
    with pytest.raises(EnvError, match=f"Env 1 step failed: .*{text}"):
        step_all(manager)
    manager.close()


@pytest.mark.parametrize("kind", KINDS)
def test_such_steps_drop_an_episode_within_the_retries(kind: str) -> None:
    with launched(kind, max_retry=2, step=((OBS, 1.0, np.zeros(3, dtype=bool), {}),)) as manager:
        step = step_all(manager)
        order = np.argsort(step.env_id)
        assert step.abnormal[order].tolist() == [False, True]
        assert step.reward[order].tolist() == [1, 0]
        assert manager.faults == {"shape": 1}
        assert not step_all(manager).abnormal.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RESETS)
def test_a_reset_that_cannot_be_used(kind: str, name: str) -> None:
    given, text = RESETS[name]
    with pytest.raises(EnvError, match=f"Env 1 reset has exceeded .*{text}"):
        launched(kind, reset=(given,))


class FormlessEnv(GivesEnv):
    _observation_space = gym.spaces.Text(3)


@pytest.mark.parametrize("kind", KINDS)
def test_no_observation_where_any_is_allowed(kind: str) -> None:
    cls, own = KINDS[kind]
    fns = [partial(FormlessEnv, reset=(None,))]
    with pytest.raises(EnvError, match=r"Env 0 reset .*obs is None"):
        cls(fns, {**CFG, **own, "wait_num": 1}).launch()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("reward", "done", "info"),
    [
        (2, np.bool_(True), None),
        (np.float64(2), np.array([True]), {}),
        (np.array([2.0]), 1, {"a": 1}),
        (np.float32(2), np.array(True), {}),
    ],
)
def test_other_forms_of_the_same_step(kind: str, reward: Any, done: Any, info: Any) -> None:
    with launched(kind, step=((OBS, reward, done, info),)) as manager:
        step = step_all(manager)
        order = np.argsort(step.env_id)
        assert step.reward[order].tolist() == [1, 2]
        assert step.done[order].tolist() == [False, True]
        assert [step.info[k] for k in order] == [{}, info or {}]


def test_rewards_fit_their_declared_shape() -> None:
    for reward in (1.5, np.float64(1.5), np.array([1.5])):
        assert checked_step((OBS, reward, False, {}), ()).reward == 1.5
    with pytest.raises(RowError, match=r"reward has shape \(2,\), but .* declares \(\)"):
        checked_step((OBS, np.zeros(2), False, {}), ())
    with pytest.raises(RowError, match="reward is inf"):
        checked_step((OBS, np.array([1.0, np.inf]), False, {}), (2,))


class GivesVector(VectorEnv[Any, Any, Any]):
    """Two envs; `gives` replaces parts of the answer."""

    def __init__(self, num_envs: int, step: Any = None, reset: Any = None) -> None:
        self.num_envs, self.step_gives, self.reset_gives = num_envs, step, reset
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = gym.spaces.Box(0, 1, (2,), dtype=np.float32)
        self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.obs, self.no = np.stack([OBS, OBS]), np.zeros(2, dtype=bool)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return (self.obs, {}) if self.reset_gives is None else self.reset_gives[0]

    def step(self, actions: Any) -> Any:
        parts = (self.obs, np.ones(2), self.no, self.no, {})
        return parts if self.step_gives is None else self.step_gives(*parts)


@pytest.fixture(autouse=True)
def _gives_id() -> Iterator[None]:
    gym.register("Gives-v0", vector_entry_point=GivesVector)  # type: ignore[arg-type]
    yield
    del gym.registry["Gives-v0"]


def vector(**gives: Any) -> Any:
    cfg = {"env_id": "Gives-v0", "env_kwargs": gives}
    manager = GymVectorEnvManager([partial(DingEnvWrapper, cfg=cfg)] * 2, {"max_retry": 1})
    manager.launch()
    return manager


@pytest.mark.parametrize(
    ("gives", "text"),
    [
        (lambda *_: None, r"step gave None, expected \(obs, reward, terminated, truncated, info\)"),
        (lambda *parts: parts[1:], r"step gave a tuple of 4, expected \(obs, reward, terminated"),
        (
            lambda o, r, d, t, i: (o, r, np.zeros((2, 3), dtype=bool), t, i),
            r"terminated has shape \(2, 3\) .* expected one bool for each of 2 envs",
        ),
        (
            lambda o, r, d, t, i: (o, r, d, None, i),
            "truncated has shape .* expected one bool for each of 2 envs",
        ),
        (
            lambda o, r, d, t, i: (o, np.array([1, -np.inf]), d, t, i),
            r"envs \[1\]: reward is inf, expected a finite number",
        ),
        (
            lambda o, r, d, t, i: (o, np.array([np.nan, 1]), d, t, i),
            r"envs \[0\]: reward is NaN",
        ),
        (
            lambda o, r, d, t, i: (np.array([[0, np.nan], OBS], np.float32), r, d, t, i),
            r"envs \[0\]: obs is NaN",
        ),
    ],
)
def test_a_step_of_a_vector_env_that_cannot_be_used(gives: Any, text: str) -> None:
    manager = vector(step=gives)
    with pytest.raises(EnvError, match=f"vector env step failed: .*{text}"):
        step_all(manager)


@pytest.mark.parametrize(
    ("given", "text"),
    [(None, r"reset gave None, expected \(obs, info\)"), ((OBS, OBS), r"obs of 2 envs has shape")],
)
def test_a_reset_of_a_vector_env_that_cannot_be_used(given: Any, text: str) -> None:
    with pytest.raises(EnvError, match=f"vector env's reset has exceeded .*{text}"):
        vector(reset=(given,))
