"""Scripted players: how hard a map is, and how a battle looks that is played well.

Letters in shapes: N battles, A allies, E enemies, M actions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dizoo.micro_battle.envs.battle import (
    ATTACK,
    EAST,
    NO_OP,
    NORTH,
    SHOOT_RANGE,
    SOUTH,
    STOP,
    WEST,
    Battles,
)
from dizoo.micro_battle.envs.units import BattleMap

Player = Callable[[Battles], np.ndarray]
"""Available actions of all allies, (N, A)."""
_RELOADING = 4
"""Game steps to the next shot from which on it is worth while to step back."""


def random_actions(battles: Battles, rng: np.random.Generator) -> np.ndarray:
    """(N, A): one of the available actions, each as likely."""
    allowed = battles.available()
    return np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=2)


def focus_fire(battles: Battles, *, pull_back: bool = False) -> np.ndarray:
    """(N, A): all shoot at one enemy, the weakest that any of them can; the others join them.

    They wait until enemies come. With `pull_back` the weakest ally steps back while it reloads.
    """
    allowed, n = battles.available(), battles.n_ally
    strength = battles.state["health"] + battles.state["shield"]
    possible = allowed[..., ATTACK:]
    weakness = np.where(possible.any(axis=1), -strength[:, n:], -np.inf)
    best = weakness.argmax(axis=1)[:, None, None]
    own = np.where(possible, -strength[:, None, n:], -np.inf).argmax(axis=2)
    actions = np.where(possible.any(axis=2), ATTACK + own, _joining(battles, allowed))
    shoots = np.take_along_axis(possible, best, axis=2)[..., 0]
    actions = np.where(shoots, ATTACK + best[..., 0], actions)
    if pull_back:
        living = np.where(battles.state["health"][:, :n] > 0, strength[:, :n], np.inf)
        hurt = strength[:, :n] < (battles.health + battles.shield)[:n] / 2
        hurt &= living.argmin(axis=1)[:, None] == np.arange(n)
        hurt &= np.isfinite(living).sum(axis=1)[:, None] > 1
        hurt &= possible.any(axis=2) & (battles.state["cooldown"][:, :n] > _RELOADING)
        actions = np.where(hurt & allowed[..., WEST], WEST, actions)
    return actions


def _joining(battles: Battles, allowed: np.ndarray) -> np.ndarray:
    """(N, A): go towards the nearest enemy where a fight has begun, else wait."""
    state, n = battles.state, battles.n_ally
    alive = state["health"][:, n:] > 0
    distance = np.where(alive[:, None], battles.distances()[:, :, n:], np.inf)
    nearest = distance.argmin(axis=2) + n
    dx, dy = (np.take_along_axis(state[k], nearest, axis=1) - state[k][:, :n] for k in ("x", "y"))
    across, along = np.where(dx > 0, EAST, WEST), np.where(dy > 0, NORTH, SOUTH)
    move = np.where(np.abs(dx) > np.abs(dy), across, along)
    open_ = np.take_along_axis(allowed, move[..., None], axis=2)[..., 0]
    begun = distance.min(axis=(1, 2))[:, None] <= SHOOT_RANGE
    return np.where(open_ & begun, move, np.where(allowed[..., STOP], STOP, NO_OP))


def win_rate(battle_map: BattleMap, player: Player, count: int = 256) -> float:
    """Share of `count` battles, with the seeds 0, 1, ..., that the player wins within the limit."""
    battles = Battles(battle_map, count)
    battles.reset(range(count), [np.random.default_rng(seed) for seed in range(count)])
    running, wins = np.arange(count), 0
    for _ in range(battle_map.limit):
        outcome = battles.step(player(battles)[running], running)
        wins += int(outcome.won.sum())
        running = running[~outcome.over]
        if not running.size:
            break
    return wins / count
