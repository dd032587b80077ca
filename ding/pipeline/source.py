"""Source: samples of the policy from one collector, and random ones to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ding.policy import CollectMode, Statistics, get_random_policy

_WARM_UP_CHUNK = 256
"""Random samples that are collected at once: memory for them is a constant."""


@dataclass(frozen=True)
class Collected:
    """Samples of one collect, and what they took."""

    samples: Sequence[Any]
    env_steps: int
    dropped_steps: int
    statistics: Statistics
    """For the normalisers of the policy."""
    returns: Sequence[float]
    """Of the episodes that ended, of the last 100 at most."""


class CollectorSource:
    def __init__(self, collector: Any, mode: CollectMode) -> None:
        self._collector, self._policy_mode = collector, mode
        self._mode = mode

    def next(
        self, train_iter: int = 0, settings: Mapping[str, Any] | None = None, **amount: int
    ) -> Collected:
        """Samples of the policy; `amount` (n_sample or n_episode), or what the config says."""
        if self._mode is not self._policy_mode:
            self._use(self._policy_mode)
        return self._collect(train_iter=train_iter, policy_kwargs=settings, **amount)

    def next_random(self, n_sample: int) -> Collected:
        """Samples of random actions, which carry on where the last ones stopped."""
        self._use(self._random_mode)
        return self._collect(n_sample=n_sample, random_collect=True)

    def warm_up(self, n_sample: int) -> Iterator[Collected]:
        """So many random samples, in chunks."""
        while n_sample > 0:
            chunk = min(n_sample, _WARM_UP_CHUNK)
            yield self.next_random(chunk)
            n_sample -= chunk
        self._use(self._policy_mode)

    @cached_property
    def _random_mode(self) -> CollectMode:
        return get_random_policy(self._policy_mode, self._collector.action_space)

    def _use(self, mode: CollectMode) -> None:
        if mode is not self._mode:
            self._collector.reset_policy(mode)
            self._mode = mode

    def _collect(self, **kwargs: Any) -> Collected:
        collector = self._collector
        steps, dropped = collector.envstep, collector.dropped_steps
        episodes = collector.episode_count
        samples = collector.collect(**kwargs)
        return Collected(
            samples,
            collector.envstep - steps,
            collector.dropped_steps - dropped,
            collector.take_statistics(),
            collector.last_returns(collector.episode_count - episodes),
        )
