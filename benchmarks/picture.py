"""`python -m benchmarks.picture`: docs/speed.png from the stored ratios to Stable-Baselines3."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt

from benchmarks.measure import HERE

_SHOWN = ("ppo", "ppo, compiled", "dqn", "dqn, compiled", "sac", "sac, compiled", "collect")


def main() -> None:
    rows = {row["title"]: row for row in json.loads((HERE / "results.json").read_text())["rows"]}
    shown: list[Any] = [rows[title] for title in _SHOWN if title in rows]
    ratios = [row["ratio"]["middle"] for row in shown]
    figure, axes = plt.subplots(figsize=(6.4, 2.6))
    bars = axes.barh([row["title"] for row in shown], ratios, color="tab:blue")
    axes.bar_label(bars, labels=[f"{ratio:.2f}" for ratio in ratios], padding=3)
    axes.axvline(1.0, color="tab:gray", linestyle="--")
    axes.set(xlabel="work per second, as a multiple of Stable-Baselines3 (dashed)")
    axes.set_xlim(0, max(ratios) * 1.12)
    axes.invert_yaxis()
    figure.tight_layout()
    figure.savefig(HERE.parent / "docs" / "speed.png", dpi=110)


if __name__ == "__main__":
    main()
