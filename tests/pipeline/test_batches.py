"""Batches: draws, relabelling and mixtures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ding.pipeline.batches import CollectedBatches, Mixture, ReplayBatches
from ding.utils.batch import Rows, columns_of
from ding.utils.errors import ConfigError
from ding.worker import AdvancedReplayBuffer, NaiveReplayBuffer


def steps(first: int, n: int) -> Rows:
    number = np.arange(first, first + n)
    return Rows({"obs": number, "reward": number.astype(np.float32), "done": number < 0})


def drawn(batches: ReplayBatches, samples: Any, train_iter: int = 0) -> list[dict[str, Any]]:
    return [
        columns_of(batch)
        for batch in batches.after(samples, 0, SimpleNamespace(train_iter=train_iter))
    ]


def test_replay_draws_as_many_batches_as_there_are_updates() -> None:
    batches = ReplayBatches(NaiveReplayBuffer(dict(replay_buffer_size=100)), 8, updates=3)
    assert drawn(batches, steps(0, 4)) == []  # not enough yet
    found = drawn(batches, steps(4, 8))
    assert [len(batch["obs"]) for batch in found] == [8, 8, 8]
    assert set(np.concatenate([batch["obs"] for batch in found]).tolist()) <= set(range(12))


def test_on_policy_all_that_came_is_learned_from_once() -> None:
    samples = steps(0, 5)
    assert list(CollectedBatches().after(samples, 0, SimpleNamespace(train_iter=0))) == [samples]


def test_relabelling_is_a_chain() -> None:
    def double(batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "reward": 2 * batch["reward"]}

    def plus_one(batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "reward": batch["reward"] + 1}

    buffer = NaiveReplayBuffer(dict(replay_buffer_size=10))
    (batch,) = drawn(ReplayBatches(buffer, 6, relabel=[double, plus_one]), steps(0, 10))
    assert batch["reward"].tolist() == (2.0 * batch["obs"] + 1).tolist()
    stored = columns_of(buffer.sample(10))  # type: ignore[arg-type]
    assert sorted(stored["reward"].tolist()) == list(range(10))  # what is stored stays


def test_priorities_go_back_only_where_they_count() -> None:
    for prioritised in (True, False):
        buffer = AdvancedReplayBuffer(dict(replay_buffer_size=4))
        batches = ReplayBatches(buffer, 4, prioritised=prioritised)
        (batch,) = drawn(batches, steps(0, 4))
        ids = batch["replay_unique_id"]
        batches.feed_back({"replay_unique_id": ids, "priority": np.full(4, 9.0)})
        batches.feed_back({})
        again = columns_of(buffer.sample(4))  # type: ignore[arg-type]
        assert (9 in again["priority"].round(3)) is prioritised


def mixture(**shares: float) -> Mixture:
    agent = NaiveReplayBuffer(dict(replay_buffer_size=100))
    expert = AdvancedReplayBuffer(dict(replay_buffer_size=100))
    expert.push(steps(1000, 50))
    return Mixture({"agent": agent, "expert": expert}, shares)


def test_mixtures_have_their_shares() -> None:
    mixed = mixture(agent=0.75, expert=0.25)
    batches = ReplayBatches(mixed, 10, updates=4)
    assert drawn(batches, steps(0, 5)) == []  # the agent has too few for its share
    for batch in drawn(batches, steps(5, 20)):
        from_expert = batch["obs"] >= 1000
        assert from_expert.sum() in (2, 3)  # 2.5, by the largest remainder
        assert np.array_equal(batch["source"], from_expert.astype(np.int64))
        assert set(batch) == {"obs", "reward", "done", "source"}


def test_a_share_of_nothing_draws_nothing() -> None:
    (batch,) = drawn(ReplayBatches(mixture(agent=0.0, expert=1.0), 8), steps(0, 1))
    assert (batch["obs"] >= 1000).all()
    assert "replay_unique_id" in batch


def test_priorities_of_a_mixture_find_their_buffer() -> None:
    first, second = (AdvancedReplayBuffer(dict(replay_buffer_size=8)) for _ in range(2))
    second.push(steps(100, 8))
    batches = ReplayBatches(
        Mixture({"a": first, "b": second}, {"a": 0.5, "b": 0.5}), 8, prioritised=True
    )
    (batch,) = drawn(batches, steps(0, 8))
    priority = np.where(batch["source"] == 0, 3.0, 7.0)
    ids = {name: batch[name] for name in ("replay_unique_id", "source")}
    batches.feed_back({**ids, "priority": priority})
    for buffer, value in ((first, 3.0), (second, 7.0)):
        drawn_again = columns_of(buffer.sample(8))  # type: ignore[arg-type]
        found = set(drawn_again["priority"].round(3).tolist())
        assert value in found and not found & {3.0, 7.0} - {value}


@pytest.mark.parametrize(
    "shares", [dict(agent=0.5), dict(agent=0.9, expert=0.2), dict(agent=1.5, expert=-0.5)]
)
def test_shares_that_make_no_sense_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="mixture"):
        mixture(**shares)
