"""Ledger of a parallel run: every chunk of samples is accounted for, no counter runs back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any


@dataclass
class Chunks:
    """Chunks of samples that collectors were asked for, by what became of them."""

    asked: int = 0
    stored: int = 0
    lost: int = 0
    """With a service that died, before they were stored."""
    stale: int = 0
    """Of weights that were the newest no more: on-policy they are of no use."""

    @property
    def open(self) -> int:
        """Still under way."""
        return self.asked - self.stored - self.lost - self.stale


@dataclass
class Lag:
    """Updates between the weights that chunks were collected with and the newest ones."""

    last: int = 0
    most: int = 0

    def note(self, lag: int) -> int:
        self.last, self.most = lag, max(self.most, lag)
        return lag


@dataclass
class Ledger:
    env_steps: int = 0
    """Of chunks that were stored, as the following two."""
    samples: int = 0
    dropped_steps: int = 0
    updates: int = 0
    """Made in all, those included that were lost with a learner."""
    version: int = 0
    """Of the weights: how often they were published."""
    chunks: Chunks = field(default_factory=Chunks)
    lag: Lag = field(default_factory=Lag)
    restarts: dict[str, int] = field(default_factory=dict)
    """Services that were replaced, by role."""

    def store(self, told: Mapping[str, Any]) -> None:
        """A chunk is where it can be learned from; `told` is what its collector said of it."""
        self.chunks.stored += 1
        self.env_steps += told["env_steps"]
        self.samples += told["samples"]
        self.dropped_steps += told["dropped_steps"]

    def restarted(self, role: str) -> None:
        """A service of this role was replaced."""
        self.restarts[role] = self.restarts.get(role, 0) + 1

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Ledger:
        """What was under way when it was saved is lost."""
        chunks = Chunks(**plain["chunks"])
        chunks.lost += chunks.open
        own = {"chunks": chunks, "lag": Lag(**plain["lag"]), "restarts": dict(plain["restarts"])}
        return cls(**{**plain, **own})


class Balance:
    """Keeps the updates and the samples of a run in the proportion that its config asks for."""

    def __init__(self, updates: int, samples: int, exempt: int = 0, pretrain: int = 0) -> None:
        """So many updates for so many samples, but none for the first `exempt` ones.

        `pretrain`: updates that are due before there are samples.
        """
        self._rate = Fraction(updates, samples)
        self._exempt = exempt - pretrain / self._rate

    def updates_due(self, ledger: Ledger) -> int:
        return max(int((ledger.samples - self._exempt) * self._rate) - ledger.updates, 0)

    def may_collect(self, ledger: Ledger, under_way: int, ahead: int) -> bool:
        """Whether fewer than `ahead` samples are early."""
        early = ledger.samples + under_way - self._exempt - ledger.updates / self._rate
        return early < ahead

    def forgive(self, ledger: Ledger) -> None:
        """There is nothing to learn from: what is due by now need not be made up for later."""
        self._exempt = max(self._exempt, ledger.samples - ledger.updates / self._rate)
