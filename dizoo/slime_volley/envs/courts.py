"""The rules of `volley.py` for many courts at once, with the very same numbers.

Letters in shapes: N courts, of which n play; three bodies (both slimes, then the ball) of x, y, vx
and vy each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dizoo.slime_volley.envs.volley import (
    BALL_RADIUS,
    FENCE_HEIGHT,
    FENCE_WIDTH,
    FRAME,
    GRAVITY,
    GROUND,
    HEIGHT,
    JUMP,
    LEFT,
    MOST_BALL_SPEED,
    MOVES,
    NUDGE,
    PAUSE,
    RIGHT,
    RUN,
    SIDE,
    SLIME_RADIUS,
    WIDTH,
    Body,
    Volley,
    serve_of,
)

_X, _Y, _VX, _VY = range(4)
_BALL = 2
_SIDES = np.array(SIDE, dtype=float)
_MOVES = np.array(MOVES, dtype=float)
_NEAREST, _FARTHEST = FENCE_WIDTH / 2 + SLIME_RADIUS, WIDTH / 2 - SLIME_RADIUS
_NOBODY = -1


class Courts:
    """`count` courts; `step` says who has won a rally on each."""

    def __init__(self, count: int) -> None:
        self.bodies, self.pause = np.zeros((count, 3, 4)), np.zeros(count, dtype=np.int64)
        self._rngs = [np.random.default_rng(0)] * count

    def reset(self, index: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        """Begin games on these courts; balls are thrown by the generator of each."""
        for i, rng in zip(index, rngs, strict=True):
            self._rngs[i] = rng
            self.bodies[i, :_BALL] = [(side * WIDTH / 4, GROUND, 0.0, 0.0) for side in SIDE]
            self._serve(i)

    def _serve(self, i: int) -> None:
        self.bodies[i, _BALL], self.pause[i] = (0.0, WIDTH / 4, *serve_of(self._rngs[i])), PAUSE

    def step(self, moves: np.ndarray, index: np.ndarray) -> np.ndarray:
        """One frame on the courts `index` with moves (n, 2); winners (n,), -1 where nobody is."""
        bodies, winner = self.bodies[index], np.full(len(index), _NOBODY)
        _move_slimes(bodies, moves)
        plays = np.flatnonzero(self.pause[index] == 0)
        if plays.size:
            part = bodies[plays]
            winner[plays] = _move_ball(part)
            bodies[plays] = part
        self.bodies[index] = bodies
        self.pause[index] = np.maximum(self.pause[index] - 1, 0)
        for k in np.flatnonzero(winner != _NOBODY).tolist():
            self._serve(int(index[k]))
        return winner

    def court(self, i: int) -> Volley:
        """One of them, to look at."""
        court = Volley(np.random.default_rng(0))
        radii = (SLIME_RADIUS, SLIME_RADIUS, BALL_RADIUS)
        *court.slimes, court.ball = (
            Body(x, y, vx, vy, radius)
            for (x, y, vx, vy), radius in zip(self.bodies[i].tolist(), radii, strict=True)
        )
        return court

    def seen(self) -> np.ndarray:
        """(N, 2, 12): what both players see."""
        signs = _SIDES[:, None, None] * np.array([1, 0, 1, 0]) + np.array([0, 1, 0, 1])  # (2, 1, 4)
        order = np.array([[0, _BALL, 1], [1, _BALL, 0]])
        rows = self.bodies[:, order] * signs
        return rows.reshape(len(rows), 2, 12).astype(np.float32) / 10


def _move_slimes(bodies: np.ndarray, moves: np.ndarray) -> None:
    x, y, vx, vy = (bodies[:, :_BALL, k] for k in range(4))
    chosen = _MOVES[moves]
    vx[:] = -_SIDES * chosen[..., 0] * RUN
    vy += GRAVITY * FRAME
    vy[:] = np.where(y <= GROUND + NUDGE * FRAME, JUMP * chosen[..., 1], vy)
    x += vx * FRAME
    y += vy * FRAME
    landed = y <= GROUND
    y[landed], vy[landed] = GROUND, 0.0
    away = x * _SIDES
    kept = np.minimum(np.maximum(away, _NEAREST), _FARTHEST)
    vx[kept != away] = 0.0
    x[:] = _SIDES * kept


def _move_ball(bodies: np.ndarray) -> np.ndarray:
    ball = bodies[:, _BALL]
    ball[:, _VY] += GRAVITY * FRAME
    speed = np.sqrt(ball[:, _VX] * ball[:, _VX] + ball[:, _VY] * ball[:, _VY])
    fast = speed > MOST_BALL_SPEED
    ball[fast, _VX:] = ball[fast, _VX:] * MOST_BALL_SPEED / speed[fast, None]
    was = ball[:, _X].copy()
    ball[:, :_VX] += ball[:, _VX:] * FRAME
    for player in (LEFT, RIGHT):
        _bounce(ball, bodies[:, player], SLIME_RADIUS)
    _bounce(ball, np.broadcast_to([0.0, FENCE_HEIGHT, 0.0, 0.0], ball.shape), FENCE_WIDTH / 2)
    return _hit_walls(ball, was)


def _bounce(ball: np.ndarray, other: np.ndarray, radius: float) -> None:
    dx, dy = ball[:, _X] - other[:, _X], ball[:, _Y] - other[:, _Y]
    distance, reach = np.sqrt(dx * dx + dy * dy), BALL_RADIUS + radius
    hit = np.flatnonzero((distance < reach) & (distance > 0))
    if not hit.size:
        return
    nx, ny, other = dx[hit] / distance[hit], dy[hit] / distance[hit], other[hit]
    vx, vy = ball[hit, _VX], ball[hit, _VY]
    ball[hit, _X] = other[:, _X] + nx * (reach + NUDGE)
    ball[hit, _Y] = other[:, _Y] + ny * (reach + NUDGE)
    along = (vx - other[:, _VX]) * nx + (vy - other[:, _VY]) * ny
    ball[hit, _VX], ball[hit, _VY] = vx - 2 * along * nx, vy - 2 * along * ny


def _hit_walls(ball: np.ndarray, was: np.ndarray) -> np.ndarray:
    x, y, vx, vy = (ball[:, k] for k in range(4))
    r, half, nudge = BALL_RADIUS, WIDTH / 2, NUDGE * FRAME
    wall = np.abs(x) >= half - r
    vx[wall], x[wall] = -vx[wall], np.sign(x[wall]) * (half - r - nudge)
    roof = y >= HEIGHT - r
    vy[roof], y[roof] = -vy[roof], HEIGHT - r - nudge
    edge = FENCE_WIDTH / 2 + r
    fence = (np.abs(x) <= edge) & (edge < np.abs(was)) & (y <= FENCE_HEIGHT)
    vx[fence], x[fence] = -vx[fence], np.sign(was[fence]) * (edge + nudge)
    return np.where(y > GROUND + r, _NOBODY, np.where(x <= 0, RIGHT, LEFT))
