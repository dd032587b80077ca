"""Optimizers with the established options for gradients, and learning-rate schedules.

`grad_clip_type` and `grad_ignore_type` are explained in `gradients.py`; ignoring comes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

from ding.torch_utils import optim
from ding.torch_utils.gradients import CLIP_TYPES, GradientHistory, GradientLimit
from ding.torch_utils.group import Group, current
from ding.utils.errors import ConfigError, nearest


class _Limits:
    """The clipping and ignoring options of one optimizer, and their history."""

    def __init__(self, parameters: list[Tensor], options: dict[str, Any]) -> None:
        clip = GradientLimit(
            options.pop("grad_clip_type", None),
            options.pop("clip_value", None),
            options.pop("clip_coef", 5.0),
            options.pop("clip_norm_type", 2.0),
            options.pop("clip_momentum_timestep", 100),
        )
        ignore = GradientLimit(
            options.pop("grad_ignore_type", None),
            options.pop("ignore_value", None),
            options.pop("ignore_coef", 5.0),
            options.pop("ignore_norm_type", 2.0),
            options.pop("ignore_momentum_timestep", 100),
        )
        if (clip.kind or "clip").startswith("ignore"):
            raise ConfigError(f"'{clip.kind}' is a grad_ignore_type, not a grad_clip_type")
        if (ignore.kind or "ignore").startswith("clip"):
            raise ConfigError(f"'{ignore.kind}' is a grad_clip_type, not a grad_ignore_type")
        named = {"ignore": ignore, "clip": clip}
        self._parts = {
            name: GradientHistory(limit, parameters)
            for name, limit in named.items()
            if limit.kind is not None
        }

    def __bool__(self) -> bool:
        return bool(self._parts)

    def apply_(self, grads: list[Tensor]) -> None:
        for part in self._parts.values():
            part.apply_(grads)

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what is there: a limit that is new starts watching now."""
        for name, part in self._parts.items():
            part.load_state_dict(state.get(name, {}))


class Adam(optim.Adam):
    """Adam on one flat buffer, with every option of `gradients.py`."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **gradient_options: Any,
    ) -> None:
        clip: dict[str, Any] = {}
        kind = gradient_options.get("grad_clip_type")
        if kind is not None and kind not in CLIP_TYPES:
            raise ConfigError(f"grad_clip_type = '{kind}'{nearest(kind, CLIP_TYPES)}")
        if kind in (None, *optim.CLIP_TYPES) and "clip_norm_type" not in gradient_options:
            # What the base knows itself it does in fewer calls.
            names = gradient_options.keys() & {"grad_clip_type", "clip_value"}
            clip = {name: gradient_options.pop(name) for name in names}
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay, **clip)
        self._limits = _Limits([self.flat.data], gradient_options)
        _refuse_rest(type(self).__name__, gradient_options)

    def clip_(self, grad: Tensor) -> None:
        if self._limits:
            self._limits.apply_([grad])
        super().clip_(grad)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "limits": self._limits.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "limits"})
        if "limits" in state_dict:
            self._limits.load_state_dict(state_dict["limits"])


class AdamW(torch.optim.AdamW):
    """Adam with decoupled weight decay and every option of `gradients.py`."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        **gradient_options: Any,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        _limit(self, gradient_options)


class RMSprop(torch.optim.RMSprop):
    """RMSprop with every option of `gradients.py`."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        *,
        centered: bool = False,
        **gradient_options: Any,
    ) -> None:
        super().__init__(params, lr, alpha, eps, weight_decay, momentum, centered)
        _limit(self, gradient_options)


def _limit(optimizer: torch.optim.Optimizer, options: dict[str, Any]) -> None:
    """Average and limit gradients before every step; their history is in the optimizer's state."""
    limits = _Limits(_parameters(optimizer), options)
    _refuse_rest(type(optimizer).__name__, options)

    def before_step(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        learners = current()
        if learners is not None:
            _average_(_gradients(optimizer), learners)
        if limits:
            limits.apply_(_gradients(optimizer))

    def after_saving(_: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "limits": limits.state_dict()}

    def before_loading(_: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        limits.load_state_dict(state.get("limits", {}))
        return {key: value for key, value in state.items() if key != "limits"}

    optimizer.register_step_pre_hook(before_step)
    optimizer.register_state_dict_post_hook(after_saving)
    optimizer.register_load_state_dict_pre_hook(before_loading)


def _average_(grads: list[Tensor], group: Group) -> None:
    """All at once: every call waits for all members."""
    flat = torch.cat([grad.reshape(-1) for grad in grads])
    group.average_(flat)
    for grad, mean in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
        grad.copy_(mean.view_as(grad))


def _refuse_rest(name: str, options: dict[str, Any]) -> None:
    if options:
        raise TypeError(f"{name} has no option {', '.join(sorted(options))}")


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _gradients(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """One gradient per parameter; one that was not reached counts as zero."""
    for parameter in _parameters(optimizer):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [cast(Tensor, parameter.grad) for parameter in _parameters(optimizer)]


def get_lr_ratio(
    epoch: int, warmup_epochs: int, learning_rate: float, lr_epochs: int, min_lr: float
) -> float:
    """Factor for the learning rate: linear up during `warmup_epochs`, then half a cosine down."""
    if epoch < warmup_epochs:
        return epoch / warmup_epochs
    if epoch >= lr_epochs:
        return min_lr / learning_rate
    progress = (epoch - warmup_epochs) / (lr_epochs - warmup_epochs)
    lowest = min_lr / learning_rate
    return lowest + 0.5 * (1.0 + math.cos(math.pi * progress)) * (1.0 - lowest)


def cos_lr_scheduler(
    optimizer: torch.optim.Optimizer,
    learning_rate: float,
    warmup_epochs: int = 5,
    lr_epochs: int = 100,
    min_lr: float = 6e-5,
) -> torch.optim.lr_scheduler.LambdaLR:
    """Schedule of `get_lr_ratio`; call its `step` once per epoch."""
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda epoch: get_lr_ratio(epoch, warmup_epochs, learning_rate, lr_epochs, min_lr),
    )
