"""Learning rates that change with the progress of training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ding.utils.errors import ConfigError

KINDS = ("linear", "cosine", "step")
UNITS = ("train_iter", "env_step")


def lr_factor(
    progress: int,
    kind: str,
    *,
    decay: int,
    end: float = 0.0,
    gamma: float = 0.1,
    warmup: int = 0,
) -> float:
    """Factor of the learning rate after `progress` units of training.

    It rises linearly during `warmup` units. Then 'linear' and 'cosine' fall to `end` within `decay`
    units; 'step' multiplies by `gamma` every `decay` units, and stops at `end`.
    """
    if progress < warmup:
        return (progress + 1) / (warmup + 1)  # never zero, or the first update would be wasted
    units = progress - warmup
    if kind == "step":
        return max(gamma ** (units // decay), end)
    fallen = min(units / decay, 1.0)
    if kind == "cosine":
        fallen = 0.5 - 0.5 * math.cos(math.pi * fallen)
    return 1.0 - (1.0 - end) * fallen


def get_lr_ratio(
    epoch: int, warmup_epochs: int, learning_rate: float, lr_epochs: int, min_lr: float
) -> float:
    """Factor for the learning rate: linear up during `warmup_epochs`, then half a cosine down."""
    if epoch < warmup_epochs:
        return epoch / warmup_epochs
    end = min_lr / learning_rate
    if epoch >= lr_epochs:
        return end
    return lr_factor(epoch - warmup_epochs, "cosine", decay=lr_epochs - warmup_epochs, end=end)


def cos_lr_scheduler(
    optimizer: Optimizer,
    learning_rate: float,
    warmup_epochs: int = 5,
    lr_epochs: int = 100,
    min_lr: float = 6e-5,
) -> LambdaLR:
    """Schedule of `get_lr_ratio`; call its `step` once per epoch."""
    return LambdaLR(
        optimizer,
        lambda epoch: get_lr_ratio(epoch, warmup_epochs, learning_rate, lr_epochs, min_lr),
    )


class LrSchedule:
    """Sets the learning rates of optimizers to a share of what they were at first.

    It has no state of its own: the rates follow from counters that a learner keeps and saves.
    """

    def __init__(
        self,
        optimizers: Sequence[Optimizer],
        factor: Callable[[int], float],
        unit: str = "train_iter",
    ) -> None:
        self._groups = [
            (optimizer, i, group["lr"])
            for optimizer in optimizers
            for i, group in enumerate(optimizer.param_groups)
        ]
        self._factor, self._unit = factor, unit

    @classmethod
    def of(cls, parts: Iterable[Any], scheduler: Any, owner: str) -> LrSchedule:
        """For those of `parts` (a policy's `learn_state`) that are optimizers."""
        optimizers = [part for part in parts if isinstance(part, Optimizer)]
        if not optimizers:
            raise ConfigError(
                "policy.learn.lr_scheduler has no effect: there is no optimizer in the "
                f"`learn_state` of {owner}; put it there, or leave the schedule out"
            )
        return cls(optimizers, scheduler.factor, scheduler.unit)

    def apply(self, train_iter: int, env_step: int) -> None:
        """Set the rates for the coming update."""
        progress = env_step if self._unit == "env_step" else train_iter
        if progress < 0:
            raise ConfigError(
                "policy.learn.lr_scheduler.unit = 'env_step', but the learner was not told the env "
                "steps; call learner.train(data, envstep), or set unit = 'train_iter'"
            )
        factor = self._factor(progress)
        # Looked up anew: loading a state replaces the groups.
        for optimizer, i, lr in self._groups:
            optimizer.param_groups[i]["lr"] = lr * factor
