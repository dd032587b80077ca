"""Tables of `ding versus`: a duel, a tournament, and what was odd about the games."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ding.league.standings import elo_difference, elo_table, points_of, share_interval
from ding.worker.battle import Game

_SEATS = ("first", "second")
_MOST_PAIRS = 8


def duel(names: Sequence[str], counts: np.ndarray) -> list[str]:
    """What the first player did at each seat, and the difference of ratings."""
    a, b = names
    rows = [*zip((f"as the {seat}" for seat in _SEATS), counts[0, 1], strict=True)]
    total = counts[0, 1].sum(axis=0)
    lines = [f"{a} against {b}", ""] if len(a) + len(b) < 70 else [a, f"against {b}", ""]
    lines.append(f"{'':<14}{'games':>7}{'wins':>7}{'draws':>7}{'losses':>8}{'win rate':>10}   95 %")
    lines += [_duel_row(name, row) for name, row in [*rows, ("together", total)]]
    n = int(total.sum())
    share = float(points_of(total)) / n
    low, high = share_interval(share, n)
    bounds = f"{_signed(elo_difference(low))} .. {_signed(elo_difference(high))}"
    difference = _signed(elo_difference(share))
    return [*lines, "", f"Elo difference {difference} (95 %: {bounds}); a draw counts half"]


def _duel_row(name: str, row: np.ndarray) -> str:
    wins, draws, losses = (int(x) for x in row)
    n = wins + draws + losses
    low, high = share_interval(wins / n if n else 0.0, n)
    rate = f"{wins / n:.1%}" if n else "-"
    interval = f"{low:.1%} .. {high:.1%}" if n else ""
    return f"{name:<14}{n:>7}{wins:>7}{draws:>7}{losses:>8}{rate:>10}   {interval}"


def _signed(elo: float) -> str:
    if math.isinf(elo):
        return "more than any" if elo > 0 else "less than any"
    return f"{elo:+.0f}"


def tournament(names: Sequence[str], counts: np.ndarray) -> list[str]:
    """Players by rating, and the share of points of each pair."""
    rated = elo_table(counts)
    order = np.argsort(-rated.elo)
    total = counts.sum(axis=(1, 2))
    columns = f"{'games':>7}{'wins':>6}{'draws':>6}{'losses':>7}{'elo':>7}   95 %"
    lines = [f"    {'player':<27}{columns}"]
    for place, k in enumerate(order, start=1):
        wins, draws, losses = (int(x) for x in total[k])
        elo, half = rated.elo[k], rated.interval[k]
        numbers = f"{wins + draws + losses:>7}{wins:>6}{draws:>6}{losses:>7}{elo:>7.0f}"
        lines.append(f"{place:>2}  {names[k]:<27}{numbers}   {elo - half:.0f} .. {elo + half:.0f}")
    lines += ["", "Elo with the mean 1200; one drawn game is added to each pair"]
    return [*lines, *_points_by_pair(names, counts, order)]


def _points_by_pair(names: Sequence[str], counts: np.ndarray, order: np.ndarray) -> list[str]:
    if len(names) > _MOST_PAIRS:
        return []
    pair = counts.sum(axis=2)
    played = pair.sum(axis=-1)
    share = points_of(pair) / np.maximum(played, 1)
    head = "".join(f"{place:>6}" for place in range(1, len(order) + 1))
    lines = ["", f"{'points of the row in % against':<32}{head}"]
    for place, k in enumerate(order, start=1):
        row = "".join(f"{share[k, j]:>6.0%}" if played[k, j] else f"{'-':>6}" for j in order)
        lines.append(f"{place:>2}  {names[k][:27]:<28}{row}")
    return lines


def notes(
    games: Sequence[Game], names: Sequence[str], failures: Mapping[str, str]
) -> Iterator[str]:
    """Forfeits, games without an end, and pairs that play the same game again and again."""
    forfeits = Counter(game.seats[game.forfeit] for game in games if game.forfeit is not None)
    reasons = {g.seats[g.forfeit]: g.reason for g in games if g.forfeit is not None}
    for name, n in forfeits.items():
        why = f"it raised {failures[name]}" if name in failures else reasons[name]
        yield f"{name} forfeited {n} of its games: {why}"
    cut = [game.reason for game in games if game.reason and game.forfeit is None]
    if cut:
        yield f"{len(cut)} games had no end and count as draws: {cut[0]}"
    yield from _repeated(games)


def _repeated(games: Sequence[Game]) -> Iterator[str]:
    kinds: dict[tuple[str, ...], list[tuple[object, ...]]] = defaultdict(list)
    for game in games:
        kinds[game.seats].append((game.result, game.returns, game.steps))
    same = [seats for seats, played in kinds.items() if len(played) > 4 and len(set(played)) == 1]
    if same:
        yield (
            f"all games of {' against '.join(same[0])} went alike: they say no more than one; "
            "--sample lets policies draw their actions"
        )
