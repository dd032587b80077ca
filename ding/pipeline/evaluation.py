"""Evaluation of a run: one result for the serial run and the parallel one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ding.worker.episode_returns import WIN_RATE


@dataclass(frozen=True)
class Evaluated:
    """Result of the last evaluation; empty before the first."""

    stop: bool = False
    """The run has reached its goal."""
    returns: list[float] = field(default_factory=list)
    """Returns of its episodes."""
    state: dict[str, Any] = field(default_factory=lambda: {"history": [], "best": float("-inf")})
    """State of the evaluator, from which another one can go on."""

    @property
    def history(self) -> list[dict[str, float]]:
        """All evaluations of the run."""
        return self.state["history"]

    @property
    def best(self) -> float:
        return self.state["best"]

    @property
    def mean(self) -> float:
        return fmean(self.returns)

    @property
    def is_best(self) -> bool:
        return self.mean >= self.best

    @property
    def win_rate(self) -> float | None:
        return self.history[-1].get(WIN_RATE)

    def is_of(self, train_iter: int) -> bool:
        """Whether it judged the policy as so many updates left it."""
        return bool(self.history) and self.history[-1]["train_iter"] == train_iter


def evaluate(
    evaluator: Any, save: Callable[[str], Any], train_iter: int, envstep: int
) -> Evaluated:
    """Play the episodes; `save` writes the policy under a name if it is the best so far."""
    result = evaluator.eval(save, train_iter, envstep)
    return Evaluated(result.stop, list(result.reward), evaluator.state_dict())
