"""What several seeds say together: the interquartile mean and how sure it is.

Agarwal et al. 2021, https://arxiv.org/abs/2108.13264
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ledger.outcome import Outcome

_RESAMPLES = 10_000


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Mean of the middle half along the last axis; a quarter of a value counts as a quarter."""
    ordered = np.sort(values, axis=-1)
    n = ordered.shape[-1]
    # How much of each value's 1/n share of the whole lies between the quartiles.
    edges = np.arange(n + 1) / n
    share = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return (ordered * share).sum(axis=-1) / share.sum()


def interval(outcomes: Sequence[Outcome]) -> tuple[float, float, float]:
    """Interquartile mean of the seeds' fresh returns, and its 95 % interval.

    Drawn anew are the seeds and, by its standard error, the mean of each seed's episodes. One seed
    alone says nothing of others: its interval is that of its episodes.
    """
    means, errors = (np.array([getattr(o, name) for o in outcomes]) for name in ("mean", "error"))
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(means), size=(_RESAMPLES, len(means)))
    values = means[drawn] + errors[drawn] * rng.standard_normal(drawn.shape)
    low, high = np.percentile(interquartile_mean(values), [2.5, 97.5])
    return float(interquartile_mean(means)), float(low), float(high)
