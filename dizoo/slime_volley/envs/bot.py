"""Bot of slime volley: goes where the ball will come down, and jumps when it is near."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from dizoo.slime_volley.envs.volley import (
    BALL_RADIUS,
    FENCE_WIDTH,
    GRAVITY,
    GROUND,
    MOVES,
    SLIME_RADIUS,
    WIDTH,
)

_BEHIND = 0.6
"""So far behind the ball it hits it towards the fence."""
_HOME, _NEAR = 11.0, 0.4
_JUMP_HEIGHT, _JUMP_WIDTH = 6.0, 2.0


def bot(obs: Any, rng: np.random.Generator) -> int:
    """A move for what a player sees, (12,)."""
    own, ball = np.asarray(obs, dtype=float)[:8].reshape(2, 4) * 10
    place = landing(ball)
    mine = place > -FENCE_WIDTH
    goal = max(place, FENCE_WIDTH + SLIME_RADIUS) + _BEHIND if mine else _HOME
    # Towards the fence is towards smaller places.
    forward = 0 if abs(own[0] - goal) < _NEAR else (1 if own[0] > goal else -1)
    falls = ball[1] < _JUMP_HEIGHT and ball[3] < 0
    jumps = int(mine and falls and abs(ball[0] - own[0]) < _JUMP_WIDTH)
    return MOVES.index((forward, jumps))


def landing(ball: np.ndarray) -> float:
    """Where a ball (x, y, vx, vy) comes down to the height of a slime, off the side walls."""
    x, y, vx, vy = ball.tolist()
    fall = max(y - GROUND - SLIME_RADIUS, 0.0)
    seconds = (vy + sqrt(vy * vy - 2 * GRAVITY * fall)) / -GRAVITY
    wall = WIDTH / 2 - BALL_RADIUS
    place = (x + vx * seconds + wall) % (4 * wall)
    return min(place, 4 * wall - place) - wall
