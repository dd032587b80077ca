"""Summary of demonstrations for people: a page of 80 columns, and a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ding.data.demonstrations import Demonstrations
from ding.data.hdf5 import leaves

_WIDTH, _BINS, _MOST_ROWS = 80, 10, 20
_FEW_VALUES = 18


def no_better_than_random(demonstrations: Demonstrations) -> str | None:
    """A warning if the returns are not clearly above those of random actions (two errors)."""
    random = np.array(demonstrations.origin.random_returns)
    if not len(random):
        return None
    returns = demonstrations.returns
    gap = returns.mean() - random.mean()
    error = np.sqrt(returns.var() / len(returns) + random.var() / len(random))
    if gap > 2 * error:
        return None
    return (
        f"no better than random: return {returns.mean():.2f} over {len(returns)} episodes, random "
        f"actions {random.mean():.2f} over {len(random)}"
    )


def summary(demonstrations: Demonstrations) -> str:
    """Env, episodes, returns, lengths, ends and a histogram of actions."""
    origin, columns = demonstrations.origin, demonstrations.columns
    ended = np.cumsum(demonstrations.lengths) - 1
    n_terminated = int(columns["terminated"][ended].sum())
    lines = [
        f"{origin.name}",
        f"env        {origin.env_id or 'not said'}, seed {_or(origin.seed)}",
        f"obs        {_or(origin.obs_space)}",
        f"actions    {_or(origin.action_space)}",
        f"episodes   {demonstrations.n_episode}, {demonstrations.n_step} steps; {n_terminated} "
        f"terminated, {demonstrations.n_episode - n_terminated} truncated",
        f"return     {_spread(demonstrations.returns)}",
        f"length     {_spread(demonstrations.lengths)}",
    ]
    if origin.random_returns:
        lines.append(f"random     {_spread(np.array(origin.random_returns))}")
    warning = no_better_than_random(demonstrations)
    lines += [f"WARNING    {warning}"] if warning else []
    return "\n".join([*map(_wrapped, lines), *_histograms(demonstrations)])


def _wrapped(line: str) -> str:
    """Long spaces take some lines, and then no more."""
    return textwrap.fill(line, _WIDTH, subsequent_indent=" " * 11, max_lines=4)


def _or(value: Any) -> str:
    return "not said" if value is None else str(value).replace("\n", "")


def _spread(values: np.ndarray) -> str:
    return (
        f"mean {values.mean():.2f}, std {values.std():.2f}, min {values.min():.2f}, "
        f"max {values.max():.2f}"
    )


def action_counts(demonstrations: Demonstrations) -> Iterator[tuple[str, list[str], np.ndarray]]:
    """Name, labels and counts of every number that an action has."""
    for path, column in leaves(demonstrations.columns["action"], "action"):
        flat = column.reshape(len(column), -1)
        for i in range(flat.shape[1]):
            name = path if flat.shape[1] == 1 else f"{path}[{i}]"
            yield (name, *_counted(flat[:, i]))


def _counted(values: np.ndarray) -> tuple[list[str], np.ndarray]:
    if values.dtype.kind in "biu":
        kinds, counts = np.unique(values, return_counts=True)
        if len(kinds) <= _FEW_VALUES:
            return [str(kind) for kind in kinds], counts
    counts, edges = np.histogram(values, _BINS)
    labels = [f"{a:.2f}..{b:.2f}" for a, b in pairwise(edges)]
    return labels, counts


def _histograms(demonstrations: Demonstrations) -> Iterator[str]:
    shown = 0
    for name, labels, counts in action_counts(demonstrations):
        if shown + len(labels) > 3 * _MOST_ROWS:
            yield "... and more parts of the action"
            return
        shown += len(labels)
        yield f"{name}:"
        width = max(len(label) for label in labels)
        most = _WIDTH - width - 11
        for label, count in zip(labels, counts, strict=True):
            share = count / counts.sum()
            bar = "#" * round(most * count / counts.max())
            yield f"  {label:>{width}} {share:6.1%} {bar}"


def draw(demonstrations: Demonstrations, path: Path) -> None:
    """Returns, lengths and actions as histograms."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), dpi=120)
    random = np.array(demonstrations.origin.random_returns)
    returns = [demonstrations.returns, *([random] if len(random) else [])]
    axes[0].hist(returns, bins=20, label=["demonstrations", "random actions"][: len(returns)])
    axes[0].set(xlabel="return", ylabel="episodes")
    axes[0].legend()
    axes[1].hist(demonstrations.lengths, bins=20)
    axes[1].set(xlabel="length", ylabel="episodes")
    for name, labels, counts in list(action_counts(demonstrations))[:6]:
        axes[2].plot(labels, counts / counts.sum(), marker="o", label=name)
    axes[2].set(xlabel="action", ylabel="share of the steps", ylim=(0, 1))
    axes[2].tick_params(axis="x", rotation=45)
    axes[2].legend()
    figure.suptitle(f"{demonstrations.origin.env_id or ''} {demonstrations.n_episode} episodes")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
