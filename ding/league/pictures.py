"""Pictures of a league: ratings with their intervals, and who beats whom how often."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ding.league.league import BaseLeague
from ding.league.player import ActivePlayer

MOST_PLAYERS = 40
"""In a picture: all that learn, and the best of the others."""


def shown_players(league: BaseLeague, most: int = MOST_PLAYERS) -> list[Any]:
    """The best first; those that learn are always there."""
    copies = sorted(league.historical_players, key=lambda player: -player.rating.mu)
    chosen = [*league.active_players, *copies[: max(most - len(league.active_players), 0)]]
    return sorted(chosen, key=lambda player: -player.rating.mu)


def draw(league: BaseLeague, directory: Path) -> None:
    """`ratings.png` and `payoff.png`."""
    import matplotlib

    matplotlib.use("Agg")
    players = shown_players(league)
    names = [player.player_id for player in players]
    _ratings(players, names, directory / "ratings.png")
    _payoff(league, players, names, directory / "payoff.png")


def _ratings(players: Sequence[Any], names: Sequence[str], path: Path) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 1.2 + 0.24 * len(players)), dpi=100)
    for row, player in enumerate(players):
        colour = "C0" if isinstance(player, ActivePlayer) else "0.6"
        low, high = player.rating.interval
        axes.plot([low, high], [row, row], color=colour, linewidth=2)
        axes.plot(player.rating.mu, row, "o", color=colour)
    axes.set_yticks(range(len(players)), names, fontsize="small")
    axes.invert_yaxis()
    best = [player.rating.mu for player in players]
    spread = max(np.ptp(best), 1.0)  # a copy that never played is as wide as all others together
    axes.set_xlim(min(best) - spread, max(best) + spread)
    axes.set(xlabel="skill and its 95 % interval; blue: they learn", title="ratings")
    axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _payoff(league: BaseLeague, players: Sequence[Any], names: Sequence[str], path: Path) -> None:
    """A row for each that learns: copies never meet each other."""
    from matplotlib import pyplot as plt

    rows = [player for player in players if isinstance(player, ActivePlayer)]
    met = [[a is not b and league.payoff.games(a, b) > 0 for b in players] for a in rows]
    size = (4.5 + 0.26 * len(players), 3.4 + 0.26 * len(rows))
    figure, axes = plt.subplots(figsize=size, dpi=100)
    rates = np.where(met, league.payoff[rows, list(players)], np.nan)
    shown = axes.imshow(rates, cmap="RdYlGn", vmin=0, vmax=1)
    axes.set_xticks(range(len(players)), names, rotation=90, fontsize="x-small")
    axes.set_yticks(range(len(rows)), [row.player_id for row in rows], fontsize="x-small")
    axes.set(title="rate of winning of the row; white: never met")
    figure.colorbar(shown, ax=axes)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
