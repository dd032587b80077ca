"""`ding.train`: envs of every kind, overrides, and what comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import ding
from ding.envs import DingEnvWrapper
from ding.utils.errors import ConfigError, DingError
from dizoo.classic_control.cartpole.envs import CartPoleEnv

SMALL: dict[str, Any] = {
    "random_collect_size": 0,
    "learn.batch_size": 4,
    "collect.n_sample": 8,
    "env.collector_env_num": 2,
    "env.evaluator_env_num": 2,
    "env.n_evaluator_episode": 2,
}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)


class Count(gym.Env[Any, Any]):
    """The reward is how near the action is to 3."""

    observation_space = spaces.Box(-1, 1, (2,), dtype=np.float32)
    action_space = spaces.Box(0.0, 4.0, (1,), dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.n += 1
        return np.zeros(2, np.float32), -abs(float(action[0]) - 3), False, self.n == 4, {}


def test_a_gymnasium_class_trains_loads_and_plays() -> None:
    run = ding.train(Count, "sac", steps=32, seed=1, **SMALL)
    assert run.directory == Path("Count_sac_seed1") and run.result["env_step"] == 32
    assert run.best == max(point["reward_mean"] for point in run.history)
    agent = ding.load(run.directory)
    assert agent.evaluate(Count(), 2).tolist() == run.evaluate(2).tolist()
    near = agent.act(np.zeros(2, np.float32))
    assert agent.evaluate(Count(), 1)[0] == pytest.approx(-4 * abs(near.item() - 3), abs=1e-5)
    with pytest.raises(DingError, match="pass the env"):
        agent.evaluate()


def test_an_id_a_function_a_config_and_a_registered_class(tmp_path: Path) -> None:
    runs = [
        ding.train("CartPole-v1", "dqn", steps=16, **SMALL),
        ding.train(lambda: gym.make("CartPole-v1"), "ppo", steps=16, **SMALL),
        ding.train(CartPoleEnv, "dqn", steps=16, exp_name="named", **SMALL),
        ding.train("CartPole-v1_dqn_seed0/total_config.py", steps=16, exp_name="again"),
    ]
    for run in runs:
        assert run.result["env_step"] >= 16
        assert run.evaluate(1)[0] >= 8.0
    names = [str(run.directory) for run in runs]
    assert names == ["CartPole-v1_dqn_seed0", "lambda_ppo_seed0", "named", "again"]


def test_overrides_are_relative_to_the_policy_or_absolute() -> None:
    given = {**SMALL, "policy.discount_factor": 0.5, "nstep": 2, "learn.batch_size": 3}
    run = ding.train("CartPole-v1", "dqn", steps=16, **given)
    cfg = run.policy.cfg
    assert (cfg.discount_factor, cfg.nstep, cfg.learn.batch_size) == (0.5, 2, 3)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"learn.batchsize": 3}, r"'policy\.learn\.batchsize' \(= 3\); did you mean 'batch_size'"),
        ({"env.colector_env_num": 3}, "did you mean 'collector_env_num'"),
        ({"lern.batch_size": 3}, "did you mean 'learn'"),
        ({"discount": 0.9}, r"'policy\.discount'.*did you mean 'discount_factor'"),
    ],
)
def test_unknown_overrides_name_the_nearest(overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ding.train("CartPole-v1", "dqn", steps=16, **overrides)
    assert not list(Path().iterdir())


class Nameless(DingEnvWrapper):
    pass


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("CartPole-v1",), "which policy"),
        (("CartPole-v9", "dqn"), "CartPole-v1"),
        (("CartPole-v1", "dqm"), "did you mean 'dqn'"),
        ((3, "dqn"), "takes no int"),
        ((DingEnvWrapper(Count()), "sac"), "pass the class"),
        ((dict, "sac"), "it made dict"),
        ((Nameless, "sac"), "ENV_REGISTRY.register"),
        (([{}, {"policy": {"type": "dqn"}}], "ppo"), "the config is for 'dqn'"),
        (("Pendulum-v1", "sac"), "how long"),
    ],
)
def test_what_cannot_be_trained_says_why(args: tuple[Any, ...], words: str) -> None:
    steps = None if words == "how long" else 16
    with pytest.raises(DingError, match=words):
        ding.train(*args, steps=steps)


def test_the_curve_is_drawn_where_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ding.train("CartPole-v1", "dqn", steps=16, **SMALL)
    monkeypatch.undo()
    assert run.plot(tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert (
        json.loads((tmp_path / run.directory / "result.json").read_text())["curve"] == run.history
    )
