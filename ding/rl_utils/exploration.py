"""Exploration: epsilon schedules and action noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ding.utils.errors import ConfigError, nearest


def get_epsilon_greedy_fn(
    start: float, end: float, decay: int, type_: str = "exp"
) -> Callable[[int], float]:
    """Epsilon by step: from `start` towards `end`, exponentially or linearly over `decay` steps."""
    if type_ not in ("exp", "linear"):
        raise ConfigError(f"unknown eps type '{type_}'{nearest(type_, ('exp', 'linear'))}")
    if decay <= 0:
        raise ConfigError(f"eps decay must be positive, got {decay}")

    def exponential(step: int) -> float:
        return end + (start - end) * math.exp(-step / decay)

    def linear(step: int) -> float:
        return start + (end - start) * min(step / decay, 1.0)

    return exponential if type_ == "exp" else linear


class BaseNoise(ABC):
    """`noise(shape, device)`; `reset` starts a new episode."""

    @abstractmethod
    def __call__(self, shape: Sequence[int], device: Any = None) -> Tensor: ...

    def reset(self) -> None:
        """Most noise remembers nothing."""
        return


class GaussianNoise(BaseNoise):
    def __init__(self, mu: float = 0.0, sigma: float = 1.0) -> None:
        if sigma < 0:
            raise ValueError(f"sigma of GaussianNoise must not be negative, got {sigma}")
        self.mu, self.sigma = mu, sigma

    def __call__(self, shape: Sequence[int], device: Any = None) -> Tensor:
        return self.mu + self.sigma * torch.randn(*shape, device=device)


class OUNoise(BaseNoise):
    """Ornstein-Uhlenbeck process: noise that drifts back to `mu`, correlated in time."""

    def __init__(
        self,
        mu: float = 0.0,
        sigma: float = 0.3,
        theta: float = 0.15,
        dt: float = 1e-2,
        x0: float | Tensor = 0.0,
    ) -> None:
        self.mu, self.sigma, self.theta, self.dt = mu, sigma, theta, dt
        self._x0 = x0
        self._x: float | Tensor = x0

    @property
    def x0(self) -> float | Tensor:
        """Noise at the start of an episode; setting it starts one."""
        return self._x0

    @x0.setter
    def x0(self, x0: float | Tensor) -> None:
        self._x0 = x0
        self.reset()

    def __call__(self, shape: Sequence[int], device: Any = None, mu: float | None = None) -> Tensor:
        """The next noise; `mu` takes the place of the own one this time."""
        previous = self._x
        mu = self.mu if mu is None else mu
        if not isinstance(previous, Tensor) or previous.shape != torch.Size(shape):
            previous = torch.zeros(*shape, device=device) + self.x0
        drift = self.theta * (mu - previous) * self.dt
        shock = self.sigma * math.sqrt(self.dt) * torch.randn(*shape, device=device)
        self._x = previous + drift + shock
        return self._x

    def reset(self) -> None:
        self._x = self.x0


noise_mapping: dict[str, type[BaseNoise]] = {"gauss": GaussianNoise, "ou": OUNoise}


def create_noise_generator(noise_type: str, noise_kwargs: Mapping[str, Any]) -> Any:
    """The noise of this name ('gauss' or 'ou')."""
    if noise_type not in noise_mapping:
        raise KeyError(f"unknown noise type '{noise_type}'{nearest(noise_type, noise_mapping)}")
    return noise_mapping[noise_type](**noise_kwargs)
