"""A point in a square field that has to come to rest inside a round target.

An action has a type and arguments: accelerate by a power in [0, 1], turn by an angle in [-1, 1]
quarter circles to each side, or brake. The reward is the distance gained, less a small cost of
time; 1 more for arriving, 1 less for leaving the field.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np

ACCELERATE, TURN, BRAKE = range(3)
FIELD = 1.0
"""Half the side of the field."""
RADIUS = 0.1
"""Of the target."""
STEP = 0.05
"""Distance per step at full speed, which is 1."""
TIME_COST = 0.001
_PIXELS = 200


class Moving(gym.Env[np.ndarray, dict[str, Any]]):
    """Goes where it looks, and stops at once."""

    max_gain = 0.5
    """Speed won by accelerating with full power."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (10,), dtype=np.float32)
        low, high = np.array([0.0, -1.0], np.float32), np.array([1.0, 1.0], np.float32)
        self.action_space = gym.spaces.Dict(
            {
                "action_type": gym.spaces.Discrete(3),
                "action_args": gym.spaces.Box(low, high, dtype=np.float32),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        edge = FIELD - RADIUS
        self.x, self.y, self.target_x, self.target_y = self.np_random.uniform(-edge, edge, 4)
        self.heading = self.np_random.uniform(-math.pi, math.pi)
        self.velocity_x = self.velocity_y = 0.0
        return self._obs(), {}

    def step(self, action: dict[str, Any]) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        before = self.distance
        power, turn = (float(arg) for arg in action["action_args"])
        kind = int(action["action_type"])
        if kind == ACCELERATE:
            self._accelerate(self.max_gain * power)
        elif kind == TURN:
            self._turn(0.5 * math.pi * turn)
        else:
            self._brake()
        self.x += STEP * self.velocity_x
        self.y += STEP * self.velocity_y
        arrived = self.distance <= RADIUS and self.speed == 0
        outside = max(abs(self.x), abs(self.y)) > FIELD
        reward = before - self.distance - TIME_COST + float(arrived) - float(outside)
        return self._obs(), reward, arrived or outside, False, {"success": arrived}

    @property
    def distance(self) -> float:
        return math.hypot(self.target_x - self.x, self.target_y - self.y)

    @property
    def speed(self) -> float:
        return math.hypot(self.velocity_x, self.velocity_y)

    def _accelerate(self, gain: float) -> None:
        self._go(min(1.0, self.speed + gain))

    def _turn(self, angle: float) -> None:
        self._look(angle)
        self._go(self.speed)

    def _brake(self) -> None:
        self._go(0.0)

    def _look(self, angle: float) -> None:
        self.heading = math.remainder(self.heading + angle, 2 * math.pi)

    def _go(self, speed: float) -> None:
        """This fast, straight ahead."""
        self.velocity_x = speed * math.cos(self.heading)
        self.velocity_y = speed * math.sin(self.heading)

    def _obs(self) -> np.ndarray:
        """Where it is and looks; velocity and direction of the target as seen from there."""
        cos, sin = math.cos(self.heading), math.sin(self.heading)
        bearing = math.atan2(self.target_y - self.y, self.target_x - self.x) - self.heading
        seen = (
            *(self.x, self.y, cos, sin),
            self.velocity_x * cos + self.velocity_y * sin,
            self.velocity_y * cos - self.velocity_x * sin,
            *(self.distance, math.cos(bearing), math.sin(bearing)),
            float(self.distance <= RADIUS),
        )
        return np.array(seen, dtype=np.float32)

    def render(self) -> Any:
        """(H, W, 3): the target green, the point red with a nose."""
        frame = np.full((_PIXELS, _PIXELS, 3), 255, dtype=np.uint8)
        nose = 0.05 * math.cos(self.heading), 0.05 * math.sin(self.heading)
        _disc(frame, (self.target_x, self.target_y), RADIUS, (120, 200, 120))
        _disc(frame, (self.x, self.y), 0.04, (200, 60, 60))
        _disc(frame, (self.x + nose[0], self.y + nose[1]), 0.02, (60, 60, 60))
        return frame


class Sliding(Moving):
    """Has inertia: turning changes where it looks, not where it slides; brakes work slowly."""

    max_gain = 0.25
    brake_power = 0.25
    """Speed lost by braking once."""

    def _accelerate(self, gain: float) -> None:
        self.velocity_x += gain * math.cos(self.heading)
        self.velocity_y += gain * math.sin(self.heading)
        self._slide(min(1.0, self.speed))

    def _turn(self, angle: float) -> None:
        self._look(angle)

    def _brake(self) -> None:
        self._slide(max(0.0, self.speed - self.brake_power))

    def _slide(self, speed: float) -> None:
        """This fast, in the direction that it has."""
        factor = speed / self.speed if self.speed > 0 else 0.0
        self.velocity_x *= factor
        self.velocity_y *= factor


def _disc(
    frame: np.ndarray, centre: tuple[float, float], radius: float, colour: tuple[int, int, int]
) -> None:
    place = (np.arange(_PIXELS) + 0.5) * (2 * FIELD / _PIXELS) - FIELD
    inside = np.hypot(place[None, :] - centre[0], place[::-1, None] - centre[1]) <= radius
    frame[inside] = colour
