from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ding
from ding.entry.cli import main
from ding.pipeline.budget import budget_advice, check_budget, no_update
from ding.utils.errors import ConfigError, DingError
from ding.utils.limits import Limits

SMALL: dict[str, Any] = {"env.collector_env_num": 2, "env.evaluator_env_num": 2}


def off_policy(**top: Any) -> dict[str, Any]:
    return {
        "on_policy": False,
        "random_collect_size": 0,
        "nstep": 1,
        "learn": {"update_per_collect": 4, "batch_size": 32},
        "collect": {"n_sample": 8, "unroll_len": 1},
        "other": {"replay_buffer": {"replay_buffer_size": 1000}},
        **top,
    }


def test_random_steps_leave_something_of_the_budget() -> None:
    check_budget(off_policy(random_collect_size=99), Limits(env_step=100))
    with pytest.raises(ConfigError, match=r"random_collect_size = 100: .* budget of 100 .* to 10,"):
        check_budget(off_policy(random_collect_size=100), Limits(env_step=100))
    with pytest.raises(ConfigError, match=r"lose the first of them .*replay_buffer_size = 1000"):
        check_budget(off_policy(random_collect_size=1001), Limits())


def test_few_updates_are_said() -> None:
    assert budget_advice(off_policy(), Limits(env_step=200), None) == []  # 200 / 8 * 4 = 100
    (line,) = budget_advice(off_policy(), Limits(env_step=198), None)
    assert line.startswith("198 env steps give about 99 updates")
    assert budget_advice(off_policy(), Limits(), None) == []
    on_policy = {
        "on_policy": True,
        "learn": {"epoch_per_collect": 10, "batch_size": 64},
        "collect": {"n_sample": 128},
    }
    (line,) = budget_advice(on_policy, Limits(env_step=500), None)
    assert "about 80 updates" in line  # 4 collects of 10 epochs of 2 batches


def test_returns_over_more_steps_than_an_episode_has_are_said() -> None:
    (line,) = budget_advice(off_policy(nstep=501), Limits(), 500)
    assert line.startswith("policy.nstep = 501 is longer than an episode, which has at most 500")
    assert budget_advice(off_policy(nstep=500), Limits(), 500) == []


def test_reasons_for_no_update() -> None:
    assert "has 5 samples, and a batch takes 32" in str(no_update(off_policy(), 5, 5))
    assert "policy.nstep = 9 takes more steps" in str(no_update(off_policy(nstep=9), 50, 40))


def test_a_run_without_an_update_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DingError, match="has 16 samples, and a batch takes 32"):
        ding.train("CartPole-v1", "dqn", steps=16, **SMALL, **{"learn.batch_size": 32})
    asked = ["-m", "serial", "-e", "Pendulum-v1", "-p", "sac", "--env-step", "64"]
    assert main(asked) == 1
    assert "policy.random_collect_size = 64" in capsys.readouterr().err
