"""Whether a second set of runs is worse than the first by more than chance explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ledger.outcome import Outcome
from ledger.tasks import Task

LEVEL = 0.05
"""Chance of a false alarm, over all tests of one check together."""
_MOST_SPLITS = 20_000


@dataclass(frozen=True)
class Finding:
    task: str
    what: str
    before: float
    after: float
    p: float
    """Chance of `after` this much worse if nothing but the seeds differs."""


def permutation_p(before: Sequence[float], after: Sequence[float]) -> float:
    """One-sided p-value of the mean of `after` being lower than that of `before`.

    Exact for the seeds of a ledger; drawn at random where the splits are too many to count.
    """
    pool = np.array([*before, *after], dtype=float)
    n, k = len(pool), len(after)
    observed = float(np.sum(after)) + 1e-9 * max(1.0, float(np.abs(pool).max()))
    if math.comb(n, k) <= _MOST_SPLITS:
        sums = pool[np.array(list(combinations(range(n), k)))].sum(axis=1)
        return float(np.mean(sums <= observed))
    order = np.random.default_rng(0).random((_MOST_SPLITS, n)).argsort(axis=1)[:, :k]
    return float((np.sum(pool[order].sum(axis=1) <= observed) + 1) / (_MOST_SPLITS + 1))


def compare(task: Task, before: Sequence[Outcome], after: Sequence[Outcome]) -> list[Finding]:
    """Steps to the stop value (a seed that misses it counts with the limit) and fresh return."""
    steps = [[float(_steps(o, task)) for o in side] for side in (before, after)]
    means = [[o.mean for o in side] for side in (before, after)]
    slower = permutation_p([-s for s in steps[0]], [-s for s in steps[1]])
    lower = permutation_p(means[0], means[1])
    return [
        Finding(task.name, "env steps", _mean(steps[0]), _mean(steps[1]), slower),
        Finding(task.name, "return", _mean(means[0]), _mean(means[1]), lower),
    ]


def alarms(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that chance does not explain, by Holm's correction for their number."""
    found = []
    for i, finding in enumerate(sorted(findings, key=lambda f: f.p)):
        if finding.p > LEVEL / (len(findings) - i):
            break
        found.append(finding)
    return found


def _steps(outcome: Outcome, task: Task) -> int:
    return task.limit if outcome.steps is None else outcome.steps


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
