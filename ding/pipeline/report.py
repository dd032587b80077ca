"""Report of a run: its result and its learning curve."""

from __future__ import annotations

import json
import pickle
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from ding import __version__
from ding.pipeline.evaluation import Evaluated
from ding.worker.episode_returns import WIN_RATE, agent_means, besides_return


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run has come to."""

    directory: Path
    seed: int
    found: Evaluated
    interrupted: bool
    env_step: int
    train_iter: int
    stop_value: float
    seconds: float
    dropped_steps: int

    @property
    def history(self) -> list[dict[str, float]]:
        return self.found.history

    def conclude(
        self, tell: Callable[[str], None], extra: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Write result and picture, tell in a line what was reached; returns the result."""
        result = {
            "exp_name": str(self.directory),
            "seed": self.seed,
            "stop": self.found.stop,
            "interrupted": self.interrupted,
            "env_step": self.env_step,
            "train_iter": self.train_iter,
            "eval_value": self.history[-1]["reward_mean"] if self.history else None,
            "eval_value_raw": self.found.returns,
            **self._besides_return(),
            "best_value": self.found.best,
            "stop_value": self.stop_value,
            "seconds": round(self.seconds, 3),
            "dropped_steps": self.dropped_steps,
            **(extra or {}),
            "curve": self.history,
        }
        write_result(self.directory, result)
        if self.history:
            curves = {f"seed {self.seed}": self.history}
            path = self.directory / "curve.png"
            draw_curves(path, curves, self.stop_value, self.directory.name)
        if self.interrupted or self.history:
            tell(self._summary())
        return result

    def _besides_return(self) -> dict[str, Any]:
        """Win rate and mean return of each agent, as far as the last evaluation has them."""
        last = self.history[-1] if self.history else {}
        won = {WIN_RATE: last[WIN_RATE]} if WIN_RATE in last else {}
        agents = agent_means(last)
        return {**won, "eval_value_agents": agents} if agents else won

    def _summary(self) -> str:
        if self.interrupted:
            return (
                f"interrupted at {self.env_step:,} env steps; all is saved in {self.directory}, "
                f"go on with --resume {self.directory}"
            )
        goal = self.stop_value
        if self.found.stop:
            verdict = f"reached the goal of {goal:g}"
        else:
            verdict = f"did not reach {goal:g}" if is_goal(goal) else "finished"
        last = self.history[-1]
        return (
            f"{verdict}: return {last['reward_mean']:.1f} (best {self.found.best:.1f})"
            f"{besides_return(last)} after "
            f"{self.env_step:,} env steps, {self.train_iter:,} updates, {self.seconds:.1f} s\n"
            f"results in {self.directory}: curve.png, result.json, ckpt/ckpt_best.pth.tar, log/"
        )


def write_result(directory: Path, result: Mapping[str, Any]) -> None:
    """`result.json` with everything, `result.pkl` with the established keys."""
    import torch

    now = datetime.now().isoformat(timespec="seconds")
    versions = {
        "ding": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    full = {**result, "finish_time": now, "versions": versions}
    text = json.dumps(full, indent=2, default=_plain)
    keys = ("stop", "env_step", "train_iter", "eval_value", "eval_value_raw")
    short = pickle.dumps({**{key: result[key] for key in keys}, "finish_time": now})
    for name, content in (("result.pkl", short), ("result.json", f"{text}\n".encode())):
        # A run that is killed here must not leave half a result for the next one to read.
        unfinished = directory / f".{name}.tmp"
        unfinished.write_bytes(content)
        unfinished.replace(directory / name)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


_Curves = Mapping[str, Sequence[Mapping[str, float]]]


def draw_curves(path: Path, curves: _Curves, goal: float | None, title: str) -> None:
    """Return against env steps, one line per run, with the goal as a dashed line.

    Below it, where evaluations have them, the win rate and the returns of the agents.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    points = [point for curve in curves.values() for point in curve]
    more = [_draw_win_rates] if any(WIN_RATE in point for point in points) else []
    more += [_draw_agents] if any(map(agent_means, points)) else []
    rows = 1 + len(more)
    figure, panels = plt.subplots(
        rows, figsize=(7, 1 + 3 * rows), dpi=120, sharex=True, squeeze=False
    )
    _draw_returns(panels[0, 0], curves, goal)
    for axes, draw in zip(panels[1:, 0], more, strict=True):
        draw(axes, curves)
    panels[0, 0].set_title(title)
    panels[-1, 0].set_xlabel("env steps")
    for axes in panels[:, 0]:
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _draw_returns(axes: Any, curves: _Curves, goal: float | None) -> None:
    for label, curve in curves.items():
        steps = np.array([point["envstep"] for point in curve])
        mean = np.array([point["reward_mean"] for point in curve])
        std = np.array([point["reward_std"] for point in curve])
        (line,) = axes.plot(steps, mean, label=label, linewidth=1.6)
        axes.fill_between(steps, mean - std, mean + std, alpha=0.15, color=line.get_color())
    if goal is not None and is_goal(goal):
        axes.axhline(goal, color="0.4", linestyle="--", linewidth=1, label=f"goal {goal:g}")
    axes.set_ylabel("return of evaluation episodes")


def _draw_win_rates(axes: Any, curves: _Curves) -> None:
    for label, curve in curves.items():
        won = [(point["envstep"], point[WIN_RATE]) for point in curve if WIN_RATE in point]
        if won:
            axes.plot(*zip(*won, strict=True), label=label, linewidth=1.6)
    axes.set(ylabel="win rate", ylim=(-0.03, 1.03))


def _draw_agents(axes: Any, curves: _Curves) -> None:
    """A colour for each agent; runs share it."""
    seen: set[int] = set()
    for curve in curves.values():
        told = [(point["envstep"], agent_means(point)) for point in curve if agent_means(point)]
        for k in range(len(told[0][1]) if told else 0):
            label = None if k in seen else f"agent {k}"
            steps, means = zip(*[(step, means[k]) for step, means in told], strict=True)
            axes.plot(steps, means, label=label, linewidth=1.2, color=f"C{k % 10}")
            seen.add(k)
    axes.set_ylabel("return by agent")


def is_goal(stop_value: float) -> bool:
    """Whether a stop value is meant to be reached: huge ones stand for none."""
    return abs(stop_value) < 1e9


def iqm(values: np.ndarray) -> float:
    """Interquartile mean: the mean of the middle half."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def summary(values: Sequence[float], n_resample: int = 2000) -> dict[str, float]:
    """Mean, std, median and IQM over seeds, and a 95 % bootstrap interval of the IQM."""
    array = np.asarray(values, dtype=float)
    draws = np.random.default_rng(0).choice(array, (n_resample, len(array)))
    low, high = np.percentile([iqm(draw) for draw in draws], [2.5, 97.5])
    return {
        "mean": float(array.mean()),
        "std": float(array.std()),
        "median": float(np.median(array)),
        "iqm": iqm(array),
        "iqm_low": float(low),
        "iqm_high": float(high),
    }
