"""Rules of slime volley: two half discs, a fence and a ball that must not fall on one's own side.

After the game of Quin Pendragon, 1999, in the dimensions that are usual for learning it. The court
is `WIDTH` wide, the fence stands at 0, y goes up. Player 0 has the left half.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

WIDTH = HEIGHT = 48.0
GROUND = 1.5
FENCE_WIDTH, FENCE_HEIGHT = 1.0, 3.5
SLIME_RADIUS, BALL_RADIUS = 1.5, 0.5
GRAVITY = -29.4
RUN, JUMP, MOST_BALL_SPEED = 17.5, 13.5, 22.5
FRAME = 1 / 30
"""Seconds."""
PAUSE = 30
"""Frames that the ball hangs still before it is thrown."""
NUDGE = 0.1
_HALF = WIDTH / 2

LEFT, RIGHT = 0, 1
SIDE = (-1, 1)
"""Of each player; towards the fence is the other way."""
MOVES = ((0, 0), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0))
"""Towards the fence (1) or away (-1), and whether it jumps: stand, forward, ..., back."""


@dataclass
class Body:
    x: float
    y: float
    vx: float = 0.0
    vy: float = 0.0
    radius: float = 0.0

    def move(self) -> None:
        self.x += self.vx * FRAME
        self.y += self.vy * FRAME


class Volley:
    """One rally after the other; `step` says who has won a rally."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.slimes = [Body(side * WIDTH / 4, GROUND, radius=SLIME_RADIUS) for side in SIDE]
        self.serve()

    def serve(self) -> None:
        """Throw the ball up from the middle, to either side."""
        self.ball = Body(0.0, WIDTH / 4, *serve_of(self._rng), BALL_RADIUS)
        self.pause = PAUSE

    def step(self, moves: tuple[int, int]) -> int | None:
        """One frame; the player who wins the rally with it, if there is one."""
        for player, move in enumerate(moves):
            self._move_slime(player, *MOVES[move])
        if self.pause > 0:
            self.pause -= 1
            return None
        ball = self.ball
        ball.vy += GRAVITY * FRAME
        _limit(ball)
        was = ball.x
        ball.move()
        for slime in self.slimes:
            _bounce(ball, slime)
        _bounce(ball, Body(0.0, FENCE_HEIGHT, radius=FENCE_WIDTH / 2))
        winner = self._hit_walls(was)
        if winner is not None:
            self.serve()
        return winner

    def _move_slime(self, player: int, forward: int, jumps: int) -> None:
        slime, side = self.slimes[player], SIDE[player]
        slime.vx = -side * forward * RUN
        slime.vy += GRAVITY * FRAME
        if slime.y <= GROUND + NUDGE * FRAME:
            slime.vy = JUMP * jumps
        slime.move()
        if slime.y <= GROUND:
            slime.y, slime.vy = GROUND, 0.0
        nearest, farthest = FENCE_WIDTH / 2 + SLIME_RADIUS, _HALF - SLIME_RADIUS
        away = min(max(slime.x * side, nearest), farthest)
        if away != slime.x * side:
            slime.x, slime.vx = side * away, 0.0

    def _hit_walls(self, was: float) -> int | None:
        """Reflect the ball; whose rally it is if it has touched the ground."""
        ball, r, nudge = self.ball, BALL_RADIUS, NUDGE * FRAME
        if abs(ball.x) >= _HALF - r:
            side = 1 if ball.x > 0 else -1
            ball.vx, ball.x = -ball.vx, side * (_HALF - r - nudge)
        if ball.y >= HEIGHT - r:
            ball.vy, ball.y = -ball.vy, HEIGHT - r - nudge
        edge = FENCE_WIDTH / 2 + r
        if abs(ball.x) <= edge < abs(was) and ball.y <= FENCE_HEIGHT:
            side = 1 if was > 0 else -1
            ball.vx, ball.x = -ball.vx, side * (edge + nudge)
        if ball.y > GROUND + r:
            return None
        return RIGHT if ball.x <= 0 else LEFT

    def seen(self, player: int) -> np.ndarray:
        """(12,): x, y, vx, vy of the own slime, the ball and the other one, in tens.

        As a player of the right half sees it: own places are positive.
        """
        side, parts = SIDE[player], (self.slimes[player], self.ball, self.slimes[1 - player])
        rows = [(one.x * side, one.y, one.vx * side, one.vy) for one in parts]
        return np.array(rows, dtype=np.float32).ravel() / 10


def serve_of(rng: np.random.Generator) -> tuple[float, float]:
    """Speed with which the ball is thrown."""
    return float(rng.uniform(-20, 20)), float(rng.uniform(10, 25))


def _limit(ball: Body) -> None:
    speed = sqrt(ball.vx * ball.vx + ball.vy * ball.vy)
    if speed > MOST_BALL_SPEED:
        ball.vx, ball.vy = (v * MOST_BALL_SPEED / speed for v in (ball.vx, ball.vy))


def _bounce(ball: Body, other: Body) -> None:
    """Reflect the ball from a disc, in the frame in which that rests."""
    dx, dy = ball.x - other.x, ball.y - other.y
    distance, reach = sqrt(dx * dx + dy * dy), ball.radius + other.radius
    if distance >= reach or distance == 0:
        return
    nx, ny = dx / distance, dy / distance
    ball.x, ball.y = other.x + nx * (reach + NUDGE), other.y + ny * (reach + NUDGE)
    along = (ball.vx - other.vx) * nx + (ball.vy - other.vy) * ny
    ball.vx, ball.vy = ball.vx - 2 * along * nx, ball.vy - 2 * along * ny
