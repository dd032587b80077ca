"""Pictures of battles, drawn with NumPy alone.

Discs are units, allies blue and enemies red; the second kind of units on a map is a ring. Bars
above them are health and, if they have one, shield. Lines are the shots of the last action, crosses
the dead.
"""

from __future__ import annotations

import numpy as np

from dizoo.micro_battle.envs.battle import Battles
from dizoo.micro_battle.envs.units import FIELD

SCALE = 20
"""Pixels of a cell."""
_GROUND, _LINES = (38, 44, 40), (48, 55, 50)
_TEAMS = ((88, 156, 245), (240, 96, 80))
_DEAD, _SHOT = (92, 92, 92), ((150, 200, 255), (255, 180, 120))
_HEALTH, _SHIELD, _EMPTY = (96, 214, 110), (150, 220, 250), (20, 20, 20)
_BAR = 4


def picture(battles: Battles, i: int) -> np.ndarray:
    """(height, width, 3) uint8: battle i, north at the top."""
    state = {key: column[i] for key, column in battles.state.items()}
    size = int(FIELD * SCALE)
    image = np.empty((size, size, 3), dtype=np.uint8)
    image[:] = _GROUND
    image[:: 4 * SCALE], image[:, :: 4 * SCALE] = _LINES, _LINES
    units = range(battles.n_unit)
    at = [(state["x"][u] * SCALE, size - state["y"][u] * SCALE) for u in units]
    alive = state["health"] > 0
    for u in np.flatnonzero(~alive).tolist():
        _cross(image, at[u], battles.radius[u] * SCALE / 2, _DEAD)
    for u in np.flatnonzero(state["shot"] >= 0).tolist():
        _line(image, at[u], at[int(state["shot"][u])], _SHOT[u >= battles.n_ally])
    for u in np.flatnonzero(alive).tolist():
        _unit(image, battles, u, at[u])
    for u in np.flatnonzero(alive).tolist():
        _bars(image, battles, state, u, at[u])
    return image


def _unit(image: np.ndarray, battles: Battles, u: int, at: tuple[float, float]) -> None:
    radius = battles.radius[u] * SCALE
    unit = (*battles.map.allies, *battles.map.enemies)[u]
    colour = _TEAMS[u >= battles.n_ally]
    _disc(image, at, radius, colour)
    if unit != battles.map.types[0]:
        _disc(image, at, radius * 0.55, _GROUND)
        _disc(image, at, radius * 0.3, colour)


def _bars(
    image: np.ndarray,
    battles: Battles,
    state: dict[str, np.ndarray],
    u: int,
    at: tuple[float, float],
) -> None:
    top = at[1] - battles.radius[u] * SCALE - _BAR - 2
    _bar(image, (at[0], top), state["health"][u] / battles.health[u], _HEALTH)
    if battles.shield[u]:
        _bar(image, (at[0], top - _BAR - 1), state["shield"][u] / battles.shield[u], _SHIELD)


def _disc(
    image: np.ndarray, at: tuple[float, float], radius: float, colour: tuple[int, int, int]
) -> None:
    rows, columns = np.ogrid[: image.shape[0], : image.shape[1]]
    near = (columns - at[0]) ** 2 + (rows - at[1]) ** 2 <= radius**2
    image[near] = colour


def _bar(
    image: np.ndarray, at: tuple[float, float], part: float, colour: tuple[int, int, int]
) -> None:
    width = SCALE + 4
    left, top = max(int(at[0]) - width // 2, 0), max(int(at[1]), 0)
    image[top : top + _BAR, left : left + width] = _EMPTY
    image[top : top + _BAR, left : left + int(np.ceil(width * part))] = colour


def _line(
    image: np.ndarray,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: tuple[int, int, int],
) -> None:
    length = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1.0)
    share = np.linspace(0.0, 1.0, int(np.ceil(length)) + 1)
    x, y = (np.rint(a + share * (b - a)).astype(int) for a, b in zip(start, end, strict=True))
    height, width = image.shape[:2]
    image[y.clip(0, height - 1), x.clip(0, width - 1)] = colour
    image[(y + 1).clip(0, height - 1), x.clip(0, width - 1)] = colour


def _cross(
    image: np.ndarray, at: tuple[float, float], arm: float, colour: tuple[int, int, int]
) -> None:
    for way in (1, -1):
        start, end = (at[0] - arm, at[1] - way * arm), (at[0] + arm, at[1] + way * arm)
        _line(image, start, end, colour)
