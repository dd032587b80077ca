"""Demonstrations in batches: shares, schedules, rewards by source, states of their buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.data.demonstrations import Demonstrations, Origin
from ding.data.expert_buffer import ExpertBuffer
from ding.pipeline.assemble import FixedRewards
from ding.pipeline.batches import Mixture
from ding.policy.config import DemonstrationsConfig
from ding.utils.batch import Rows, columns_of
from ding.utils.errors import CheckpointError, ConfigError
from ding.worker import create_buffer

CFG = dict(type="advanced", nstep=1, discount_factor=0.5)


def demonstrations(n: int = 20, first: float = 100.0) -> Demonstrations:
    """Two episodes of n / 2 steps, rewards first, first + 1, ..."""
    obs = np.arange(n + 1, dtype=np.float32)[:, None]
    done = np.arange(n) % (n // 2) == n // 2 - 1
    steps = dict(
        obs=obs[:-1],
        next_obs=obs[1:],
        action=np.zeros(n, np.int64),
        reward=(first + np.arange(n)).astype(np.float32),
        done=done,
        truncated=np.zeros(n, bool),
    )
    return Demonstrations.of_steps(Rows(steps), Origin(name="demo"))


def agent_steps(n: int) -> Rows:
    return Rows(
        dict(
            obs=np.zeros((n, 1), np.float32),
            next_obs=np.zeros((n, 1), np.float32),
            action=np.zeros(n, np.int64),
            reward=np.arange(n, dtype=np.float32),
            done=np.zeros(n, bool),
            truncated=np.zeros(n, bool),
        )
    )


def test_shares_follow_the_schedule_after_pretraining() -> None:
    cfg = DemonstrationsConfig(path="f", share=0.5, share_end=0.1, share_decay=100, pretrain=10)
    assert [cfg.share_at(i) for i in (0, 9, 10, 60, 110, 999)] == pytest.approx(
        [1.0, 1.0, 0.5, 0.3, 0.1, 0.1]
    )


def test_rewards_by_source_reach_the_batch() -> None:
    agent, expert = (
        create_buffer(dict(CFG, replay_buffer_size=50)),
        ExpertBuffer(demonstrations(), CFG),
    )
    mixture = Mixture({"agent": agent, "expert": expert}, {"agent": 0.5, "expert": 0.5})
    mixture.push(agent_steps(30))
    batch = columns_of(mixture.sample(16, 0, relabel=FixedRewards(0.0, 1.0)))
    assert (
        batch["reward"].tolist() == batch["source"].astype(float).tolist() == [0.0] * 8 + [1.0] * 8
    )
    assert (columns_of(mixture.sample(16))["reward"][8:] >= 100).all()  # what is stored stays


def test_sums_over_steps_end_with_the_experts_episodes() -> None:
    buffer = ExpertBuffer(demonstrations(6), dict(CFG, nstep=2, one_step=True))
    batch = columns_of(buffer.sample(6))
    at = batch["obs"][:, 0].astype(int)
    last = np.isin(at, (2, 5))
    assert np.allclose(batch["reward"], np.where(last, 100 + at, 100 + at + 0.5 * (101 + at)))
    assert np.allclose(batch["reward_1"], 100 + at)
    assert np.allclose(batch["discount_1"], np.where(last, 0, 0.5))
    assert (batch["next_obs_1"][:, 0] == at + 1).all()


def test_a_restored_buffer_draws_the_same_and_is_saved_without_its_steps() -> None:
    one, other = ExpertBuffer(demonstrations(), CFG), ExpertBuffer(demonstrations(), CFG)
    ids = columns_of(one.sample(8))["replay_unique_id"]
    one.update({"replay_unique_id": ids, "priority": np.arange(8.0) + 1})
    state = one.state_dict()
    assert "record" not in state["buffer"]["arrays"] and "obs" not in state["buffer"]["arrays"]
    other.load_state_dict(state)
    for name, column in columns_of(one.sample(8)).items():
        assert np.array_equal(column, columns_of_again(other, state)[name]), name


def columns_of_again(buffer: ExpertBuffer, state: dict[str, Any]) -> dict[str, Any]:
    buffer.load_state_dict(state)
    return columns_of(buffer.sample(8))


def test_other_demonstrations_than_those_of_the_run_are_refused() -> None:
    state = ExpertBuffer(demonstrations(), CFG).state_dict()
    with pytest.raises(CheckpointError, match="does not hold the demonstrations"):
        ExpertBuffer(demonstrations(first=7.0), CFG).load_state_dict(state)


def test_too_few_steps_for_a_batch_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'demo' has 20 steps, fewer than .*batch_size = 32"):
        ExpertBuffer(demonstrations(), CFG, at_least=32)


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (dict(path=""), "path is missing"),
        (dict(path="f", share=1.5), "share = 1.5"),
        (dict(path="f", agent_reward=0.0), "set both"),
        (dict(path="f", pretrain=-1), "pretrain = -1"),
    ],
)
def test_bad_settings_are_refused(cfg: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DemonstrationsConfig(**cfg)
