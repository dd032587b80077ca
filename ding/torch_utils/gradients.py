"""Gradients: their norm, and limits that look at their history.

Options of the optimizers in `optim.py`. `grad_clip_type` clips, `grad_ignore_type` replaces by zero
and comes first: *_value by the largest entry, *_norm by the norm of all gradients, *_momentum by a
multiple of each entry's running root mean square, *_momentum_norm by a multiple of the norm's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ding.utils.errors import ConfigError, nearest

CLIP_TYPES = ("clip_value", "clip_norm", "clip_momentum", "clip_momentum_norm")
IGNORE_TYPES = ("ignore_value", "ignore_norm", "ignore_momentum", "ignore_momentum_norm")
_DECAY = 0.999


def grad_norm(grads: Sequence[Tensor], norm_type: float = 2.0) -> Tensor:
    """Norm of all entries of all gradients together, as a tensor."""
    norms = [torch.linalg.vector_norm(grad, norm_type) for grad in grads]
    if len(norms) == 1:
        return norms[0]
    return torch.linalg.vector_norm(torch.stack(norms), norm_type)


def calculate_grad_norm(model: nn.Module, norm_type: float | str = 2.0) -> float:
    """Norm of the gradients of `model`; `norm_type` may be 'inf'."""
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return float(grad_norm(grads, float(norm_type))) if grads else 0.0


def is_differentiable(loss: Tensor, model: nn.Module | Sequence[nn.Module]) -> None:
    """Assert that `loss` gives every parameter a gradient, and that there was none before."""
    models = [model] if isinstance(model, nn.Module) else model
    named = [pair for one in models for pair in one.named_parameters()]
    before = [name for name, p in named if p.grad is not None]
    assert not before, f"these have a gradient already: {before}"
    loss.backward()
    without = [name for name, p in named if p.requires_grad and p.grad is None]
    assert not without, f"no gradient reaches {without}"


def grad_ignore_norm(
    parameters: Iterable[nn.Parameter], clip_value: float, norm_type: float = 2.0
) -> None:
    """Zero all gradients if their norm is above `clip_value`."""
    grads = [p.grad for p in parameters if p.grad is not None]
    _zero_if(grads, ~(grad_norm(grads, norm_type) <= clip_value))


def grad_ignore_value(parameters: Iterable[nn.Parameter], clip_value: float) -> None:
    """Zero all gradients if any entry is above `clip_value` in size."""
    grads = [p.grad for p in parameters if p.grad is not None]
    _zero_if(grads, ~(grad_norm(grads, float("inf")) <= clip_value))


def _zero_if(grads: Sequence[Tensor], flag: Tensor) -> None:
    # NaN compares as not within any limit, and a product would keep it.
    for grad in grads:
        grad.masked_fill_(flag, 0.0)


@dataclass(frozen=True)
class GradientLimit:
    """A `*_clip_type` or `*_ignore_type` with its options."""

    kind: str | None
    value: float | None = None
    coef: float = 5.0
    norm_type: float = 2.0
    timestep: int = 100
    """Momentum kinds only watch for so many steps first."""

    def __post_init__(self) -> None:
        known = (*CLIP_TYPES, *IGNORE_TYPES)
        if self.kind is not None and self.kind not in known:
            raise ConfigError(f"unknown gradient limit '{self.kind}'{nearest(self.kind, known)}")
        needs_value = self.kind is not None and "momentum" not in self.kind
        if needs_value and self.value is None:
            raise ConfigError(f"{self.kind} needs a value: set clip_value or ignore_value")
        if self.value is not None and not needs_value:
            raise ConfigError(f"a value of {self.value} has no effect with {self.kind}")


class GradientHistory:
    """Applies one `GradientLimit`; knows the running mean squares that momentum kinds need.

    Nothing here asks a tensor for its value: a step never waits for the device.
    """

    def __init__(self, limit: GradientLimit, parameters: Sequence[Tensor]) -> None:
        self.limit = limit
        self._squares: list[Tensor] = []
        kind = limit.kind or ""
        self._of_norm = kind.endswith("norm")
        if "momentum" in kind:
            first = parameters[0]
            self._count = torch.zeros((), device=first.device)
            self._squares = [torch.zeros((), device=first.device)]
            if not self._of_norm:
                self._squares = [torch.zeros_like(p) for p in parameters]

    def apply_(self, grads: Sequence[Tensor]) -> None:
        limit = self.limit
        if limit.kind is None:
            return
        ignores = limit.kind.startswith("ignore")
        if self._of_norm:
            norm = grad_norm(grads, limit.norm_type)
            largest = self._thresholds([norm])[0]
            if ignores:
                _zero_if(grads, ~(norm <= largest))
            else:
                factor = (largest / (norm + 1e-6)).clamp_(max=1.0)
                for grad in grads:
                    grad.mul_(factor)
            return
        thresholds = self._thresholds(grads)
        if ignores:
            pairs = zip(grads, thresholds, strict=True)
            within = torch.stack([(grad.abs() <= largest).all() for grad, largest in pairs])
            _zero_if(grads, ~within.all())
            return
        for grad, largest in zip(grads, thresholds, strict=True):
            grad.copy_(grad.clamp(-largest, largest))  # type: ignore[arg-type]

    def _thresholds(self, watched: Sequence[Tensor]) -> Sequence[Tensor | float]:
        """Largest size that each of `watched` may have now."""
        limit = self.limit
        if limit.value is not None:
            return [limit.value] * len(watched)
        # Of the past alone: a spike must not raise its own limit.
        watching = self._count < max(limit.timestep, 1)
        correction = -torch.expm1(self._count * math.log(_DECAY))
        thresholds = []
        for square, w in zip(self._squares, watched, strict=True):
            largest = limit.coef * (square / correction).sqrt()
            thresholds.append(largest.masked_fill(watching, float("inf")))
            # One infinite gradient must not switch the limit off for good.
            square.lerp_(w.square().where(w.isfinite(), square), 1.0 - _DECAY)
        # By a tensor made from the gradients: a tracer would carry out a plain `+= 1` for real.
        self._count += watched[0].new_ones(())
        return thresholds

    def state_dict(self) -> dict[str, Any]:
        if not self._squares:
            return {}
        return {"count": self._count.clone(), "squares": [s.clone() for s in self._squares]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self._squares and state:
            self._count.copy_(state["count"])
            for square, saved in zip(self._squares, state["squares"], strict=True):
                square.copy_(saved)


class GradientLimits:
    """The ignoring and clipping of one optimizer, from options of these names."""

    def __init__(self, parameters: Sequence[Tensor], owner: str, options: dict[str, Any]) -> None:
        rest = dict(options)
        clip = _limit_of(rest, "clip", CLIP_TYPES)
        limits = {"ignore": _limit_of(rest, "ignore", IGNORE_TYPES), "clip": clip}
        if rest:
            raise TypeError(f"{owner} has no option {', '.join(sorted(rest))}")
        self.parts = {
            name: GradientHistory(limit, parameters)
            for name, limit in limits.items()
            if limit.kind is not None
        }

    def apply_(self, grads: Sequence[Tensor]) -> None:
        for part in self.parts.values():
            part.apply_(grads)

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what is there: a limit that is new starts watching now."""
        for name, part in self.parts.items():
            part.load_state_dict(state.get(name, {}))


def _limit_of(options: dict[str, Any], verb: str, kinds: Sequence[str]) -> GradientLimit:
    """Take the options of one kind of limit out of `options`."""
    name = f"grad_{verb}_type"
    kind, value = options.pop(name, None), options.pop(f"{verb}_value", None)
    if kind is None and value is not None:
        raise ConfigError(f"{name} = None and {verb}_value = {value}: set both or none")
    if kind in CLIP_TYPES + IGNORE_TYPES and kind not in kinds:
        other = "clip" if kind in CLIP_TYPES else "ignore"
        raise ConfigError(f"'{kind}' is a grad_{other}_type, not a {name}")
    if kind is not None and kind not in kinds:
        raise ConfigError(f"{name} = '{kind}'{nearest(kind, kinds)}")
    return GradientLimit(
        kind,
        value,
        options.pop(f"{verb}_coef", 5.0),
        options.pop(f"{verb}_norm_type", 2.0),
        options.pop(f"{verb}_momentum_timestep", 100),
    )
