"""Learning: updates on batches, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ding.policy import Statistics


def train_on(
    learner: Any,
    batches: Iterable[Sequence[Any]],
    envstep: int,
    statistics: Iterable[Statistics],
    *,
    on_policy: bool,
) -> Iterator[dict[str, Any]]:
    """Update on each batch; yields the new priorities of its samples, empty if there are none.

    On-policy samples are learned from with the statistics that they were acted with; those that
    came with them count from the next collect on. Off-policy ones are of many times anyway.
    """
    if not on_policy:
        _merge(learner, statistics)
    for batch in batches:
        learner.train(batch, envstep)
        yield learner.priority_info
    if on_policy:
        _merge(learner, statistics)


def _merge(learner: Any, statistics: Iterable[Statistics]) -> None:
    for gathered in statistics:
        learner.merge_statistics(gathered)
