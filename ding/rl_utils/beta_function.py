"""Distortions of quantile fractions for risk-sensitive IQN, https://arxiv.org/abs/1806.06923."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

X = TypeVar("X", float, Tensor)


def uniform(x: X) -> X:
    """Risk-neutral."""
    return x


def cpw(x: X, eta: float = 0.71) -> X:
    """Cumulative probability weighting: over-weights rare outcomes; 0.71 is close to people."""
    return x**eta / (x**eta + (1 - x) ** eta) ** (1 / eta)


def CVaR(x: X, eta: float = 0.71) -> X:  # noqa: N802 (established name)
    """Risk-averse: only the worst `eta` of all outcomes count."""
    if not 0 < eta <= 1:
        raise ValueError(f"eta of CVaR must be in (0, 1], got {eta}")
    return x * eta


def Pow(x: X, eta: float = 0.0) -> X:  # noqa: N802 (established name)
    """Risk-averse with `eta` < 0, risk-seeking with `eta` > 0."""
    power = 1 / (1 + abs(eta))
    return x**power if eta >= 0 else 1 - (1 - x) ** power


beta_function_map: dict[str, Callable[..., Tensor]] = {
    "uniform": uniform,
    "CPW": cpw,
    "CVaR": CVaR,
    "Pow": Pow,
}
