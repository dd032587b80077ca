"""Pictures of slime volley, drawn with NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dizoo.slime_volley.envs.volley import (
    BALL_RADIUS,
    FENCE_HEIGHT,
    FENCE_WIDTH,
    GROUND,
    SLIME_RADIUS,
    WIDTH,
    Volley,
)

SCALE, ROWS, COLUMNS = 12, 336, int(WIDTH * 12)
_SKY, _EARTH, _FENCE, _BALL = (18, 24, 38), (92, 74, 52), (214, 206, 190), (240, 214, 90)
_SLIMES = ((88, 156, 245), (240, 96, 80))


def picture(volley: Volley, points: Sequence[int]) -> np.ndarray:
    """(height, width, 3) uint8; the small discs above are points."""
    image = np.empty((ROWS, COLUMNS, 3), dtype=np.uint8)
    image[:] = _SKY
    row, column = np.ogrid[:ROWS, :COLUMNS]
    y, x = (ROWS - row) / SCALE, column / SCALE - WIDTH / 2
    for slime, colour in zip(volley.slimes, _SLIMES, strict=True):
        image[((x - slime.x) ** 2 + (y - slime.y) ** 2 < SLIME_RADIUS**2) & (y > slime.y)] = colour
    image[(abs(x) < FENCE_WIDTH / 2) & (y < FENCE_HEIGHT)] = _FENCE
    image[np.broadcast_to(y < GROUND, image.shape[:2])] = _EARTH
    ball = volley.ball
    image[(x - ball.x) ** 2 + (y - ball.y) ** 2 < BALL_RADIUS**2] = _BALL
    for side, (count, colour) in enumerate(zip(points, _SLIMES, strict=True)):
        for k in range(count):
            place = (2 * side - 1) * (WIDTH / 2 - 1.5 - 1.5 * k)
            image[(x - place) ** 2 + (y - ROWS / SCALE + 1.5) ** 2 < 0.25] = colour
    return image
