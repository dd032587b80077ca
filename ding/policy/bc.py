"""Behaviour cloning: the actions of demonstrations as targets of supervised learning.

Pomerleau 1988, https://proceedings.neurips.cc/paper/1988/hash/812b4ba287f5ee0bc9d43bbf5bbe87fb

Letters in shapes: B batch, N envs, A actions (or dimensions of the action).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.policy.acting import acting_model, epsilon_greedy
from ding.policy.actions import masked_logits
from ding.policy.base import Policy
from ding.policy.config import (
    CollectConfig,
    LearnConfig,
    PolicyConfig,
    at_least,
    check_samples,
    one_of,
    within,
)
from ding.policy.ddpg import NoiseRange
from ding.torch_utils import Adam, GradientStep
from ding.torch_utils.distribution import gaussian_log_prob
from ding.torch_utils.early_stop import EarlyStop
from ding.torch_utils.optim import SGD
from ding.utils.batch import Batch, ByEnv, Rows, columns_of, length, stacked_of, take
from ding.utils.errors import ConfigError

LOSS_TYPES = ("mse_loss", "l1_loss")
_TANH_1 = math.tanh(1.0)
_LEAST_SIGMA = 0.05
"""A deterministic expert would drive sigma to zero, and gradients beyond all bounds."""
_SMOOTHING = 0.1
_CHUNK = 4096


@dataclass(frozen=True, kw_only=True)
class BCLearnConfig(LearnConfig):
    batch_size: int = 32
    learning_rate: float = 1e-5
    train_epoch: int = 20
    """Passes over the demonstrations at most ..."""
    early_stop_epoch: int = 5
    """... and without a lower loss on those held out, until training ends."""
    held_out: float = 0.1
    """Share of the demonstrations that is not learned from."""
    lr_decay: bool = False
    """Begin with warmup_lr; later multiply learning_rate by decay_rate every decay_epoch epochs."""
    decay_epoch: int = 30
    decay_rate: float = 0.1
    warmup_lr: float = 1e-4
    warmup_epoch: int = 3
    optimizer: str = "SGD"
    """'SGD' or 'Adam'."""
    momentum: float = 0.9
    """Of SGD."""
    weight_decay: float = 1e-4
    ce_label_smooth: bool = False
    """A tenth of the probability of each label goes to all allowed actions alike."""
    show_accuracy: bool = False
    """Log the share of a batch's discrete actions that are met."""
    tanh_mask: bool = False
    """Continuous: learn nothing where the output is beyond tanh(1), unless that is nearly all."""
    data_path: str | None = None
    """Older place of policy.collect.data_path."""

    def __post_init__(self) -> None:
        path = "policy.learn"
        one_of(f"{path}.optimizer", self.optimizer, ("SGD", "Adam"))
        within(f"{path}.momentum", self.momentum, 0, 1)
        within(f"{path}.held_out", self.held_out, 0.01, 0.5)
        within(f"{path}.decay_rate", self.decay_rate, 0, 1)
        for key in ("train_epoch", "early_stop_epoch", "decay_epoch"):
            at_least(f"{path}.{key}", getattr(self, key), 1)
        for key in ("warmup_epoch", "warmup_lr"):
            at_least(f"{path}.{key}", getattr(self, key), 0)
        if self.compile and self.optimizer != "Adam":
            raise ConfigError(
                f"{path}.compile = True takes effect with {path}.optimizer = 'Adam' only"
            )
        if self.lr_decay and self.lr_scheduler is not None:
            raise ConfigError(f"{path}.lr_decay = True and an lr_scheduler: set one of them")


@dataclass(frozen=True, kw_only=True)
class BCCollectConfig(CollectConfig):
    n_sample: int | None = 64
    data_path: str | None = None
    """Demonstrations to learn from."""
    noise: bool = False
    """Normal noise on continuous actions ..."""
    noise_sigma: float = 0.2
    """... of this deviation ..."""
    noise_range: NoiseRange = field(default_factory=NoiseRange)
    """... clipped to these bounds."""

    def __post_init__(self) -> None:
        at_least("policy.collect.noise_sigma", self.noise_sigma, 0)
        at_least("policy.collect.noise_range.max", self.noise_range.max, self.noise_range.min)


@dataclass(frozen=True, kw_only=True)
class BCConfig(PolicyConfig):
    continuous: bool = False
    """Whether actions are continuous."""
    loss_type: str | None = None
    """For continuous actions: 'mse_loss' or 'l1_loss'; a Gaussian's likelihood needs none."""
    learn: BCLearnConfig = field(default_factory=BCLearnConfig)
    collect: BCCollectConfig = field(default_factory=BCCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        # As models of their own and those of actor-critics call it.
        is_gaussian = self.model.get("action_space") in ("reparameterization", "continuous")
        if self.continuous and not is_gaussian and self.loss_type is None:
            raise ConfigError("policy.loss_type is missing: 'mse_loss' or 'l1_loss'")
        if self.loss_type is not None:
            one_of("policy.loss_type", self.loss_type, LOSS_TYPES)
            if is_gaussian or not self.continuous:
                raise ConfigError(
                    f"policy.loss_type = '{self.loss_type}' is for continuous actions without a "
                    "distribution; leave it out"
                )
        kind = "continuous" if self.continuous else "discrete"
        keys = ("ce_label_smooth", "show_accuracy") if self.continuous else ("tanh_mask",)
        for key in keys:
            if getattr(self.learn, key):
                raise ConfigError(f"policy.learn.{key} = True has no effect on {kind} actions")
        if self.reward_norm:
            raise ConfigError("policy.reward_norm = True: policy 'bc' does not look at rewards")


def check_config(cfg: Any) -> None:
    check_samples(cfg)
    if cfg.get("reward_model") is not None:
        raise ConfigError(
            f"config section 'reward_model': policy '{cfg['policy']['type']}' learns no rewards; "
            "leave it out"
        )


class BehaviourCloningPolicy(Policy):
    """Fits its network to the actions of batches; its entry passes over demonstrations."""

    config_class: ClassVar[type] = BCConfig
    action_kinds = ("discrete", "continuous")
    keeps_to_masks = True
    takes_other_rewards = False
    cfg: BCConfig
    check_config = staticmethod(check_config)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "continuous_bc" if policy_cfg["continuous"] else "discrete_bc"

    @property
    def _takes_whole_action(self) -> bool:
        return not self.cfg.continuous

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = _optimizer(self._model, learn)
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        # A name of its own: other algorithms that start from these weights have other optimizers.
        self.early_stop = EarlyStop(self._model, learn.early_stop_epoch)
        self.learn_state |= {"bc_optimizer": self._optimizer, "early_stop": self.early_stop}
        self._set_epoch(0)

    def _set_epoch(self, epoch: int) -> None:
        """Learning rate of this pass over the demonstrations."""
        learn = self.cfg.learn
        if not learn.lr_decay:
            return
        later = epoch - learn.warmup_epoch
        rate = learn.learning_rate * learn.decay_rate ** (later // learn.decay_epoch)
        for group in self._optimizer.param_groups:
            group["lr"] = learn.warmup_lr if later < 0 else rate

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        loss, metrics = self._step(self._batch(data))
        return {"cur_lr": self._optimizer.param_groups[0]["lr"], "total_loss": loss, **metrics}

    def _output(self, obs: Any) -> dict[str, Any]:
        mode = _acting_mode(self._model)
        return self._model(obs) if mode is None else self._model(obs, mode=mode)

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._output(batch["obs"])
        if not self.cfg.continuous:
            return self._discrete_loss(output, batch["action"].long())
        action = batch["action"].reshape(len(batch["action"]), -1).float()  # (B, A)
        return self._continuous_loss(output, action), {}

    def _discrete_loss(
        self, output: dict[str, Any], action: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        logit, learn = masked_logits(output), self.cfg.learn
        loss = F.cross_entropy(logit, action)
        if learn.ce_label_smooth:
            allowed = output.get("action_mask")
            loss = (1 - _SMOOTHING) * loss + _SMOOTHING * _uniform_cross_entropy(logit, allowed)
        if not learn.show_accuracy:
            return loss, {}
        return loss, {"accuracy": (logit.detach().argmax(dim=-1) == action).float().mean()}

    def _continuous_loss(self, output: dict[str, Any], action: Tensor) -> Tensor:
        if "logit" in output:
            mu, sigma = output["logit"]["mu"], output["logit"]["sigma"].clamp(min=_LEAST_SIGMA)
            return -gaussian_log_prob(mu, sigma, action).mean()
        predicted = output["action"]
        loss = F.mse_loss if self.cfg.loss_type == "mse_loss" else F.l1_loss
        error = loss(predicted, action, reduction="none")
        return _masked_mean(error, predicted) if self.cfg.learn.tanh_mask else error.mean()

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), "accuracy"]

    @torch.no_grad()
    def held_out(self, samples: Sequence[Any]) -> dict[str, float]:
        """Loss and, of discrete actions, accuracy on samples that are not learned from."""
        columns, n = columns_of(samples), len(samples)
        totals: dict[str, float] = {}
        for start in range(0, n, _CHUNK):
            batch = self._batch(Rows(take(columns, slice(start, start + _CHUNK))))
            share = length(batch) / n
            for name, value in self._measured(batch).items():
                totals[name] = totals.get(name, 0.0) + share * value
        return totals

    def _measured(self, batch: Batch) -> dict[str, float]:
        metrics = {"loss": float(self._loss(batch)[0])}
        if not self.cfg.continuous:
            best = masked_logits(self._output(batch["obs"])).argmax(dim=-1)
            metrics["accuracy"] = float((best == batch["action"]).float().mean())
        return metrics

    # --- acting --------------------------------------------------------------------------------

    def _init_collect(self) -> None:
        self._actor = acting_model(self._model, _acting_mode(self._model))

    def _init_eval(self) -> None:
        self._actor = acting_model(self._model, _acting_mode(self._model))

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.0) -> Mapping[int, Any]:  # type: ignore[override]
        env_id, obs = stacked_of(data)
        output = self._actor(obs)
        if self.cfg.continuous:
            return ByEnv(env_id, {"action": self._with_noise(_best(output))})
        mask = output.get("action_mask")
        action = epsilon_greedy(masked_logits(output), eps, self._rng, mask)
        return ByEnv(env_id, {"action": action})

    def _with_noise(self, action: np.ndarray) -> np.ndarray:
        collect = self.cfg.collect
        if not collect.noise:
            return action
        drawn = self._rng.standard_normal(action.shape, dtype=np.float32) * collect.noise_sigma
        noise = drawn.clip(collect.noise_range.min, collect.noise_range.max)
        return np.clip(action + noise, -1.0, 1.0).astype(np.float32)

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        output = self._actor(obs)
        if self.cfg.continuous:
            return ByEnv(env_id, {"action": _best(output)})
        return ByEnv(env_id, {"action": masked_logits(output).argmax(axis=-1)})


def _optimizer(model: nn.Module, learn: BCLearnConfig) -> Adam | SGD:
    clip = {"grad_clip_type": learn.grad_clip_type, "clip_value": learn.grad_clip_value}
    shared: dict[str, Any] = {"lr": learn.learning_rate, "weight_decay": learn.weight_decay, **clip}
    if learn.optimizer == "Adam":
        return Adam(model.parameters(), **shared)
    return SGD(model.parameters(), momentum=learn.momentum, **shared)


def _uniform_cross_entropy(logit: Tensor, allowed: Tensor | None) -> Tensor:
    """Cross entropy of logits (B, A) with actions that are all alike, where they are allowed."""
    log_prob = logit.log_softmax(dim=-1)
    if allowed is None:
        return -log_prob.mean()
    mask = (allowed != 0).float()
    return -((log_prob * mask).sum(dim=-1) / mask.sum(dim=-1)).mean()


def _acting_mode(model: nn.Module) -> str | None:
    """Networks of actors and critics are asked for their actor."""
    return "compute_actor" if "compute_actor" in getattr(model, "modes", ()) else None


def _best(output: Mapping[str, Any]) -> np.ndarray:
    return output["logit"]["mu"] if "logit" in output else output["action"]


def _masked_mean(error: Tensor, predicted: Tensor) -> Tensor:
    """Mean where the prediction is not saturated, or of all if that is less than a fifth."""
    inside = (predicted.detach().abs() <= _TANH_1).float()
    enough = (inside.mean() >= 0.2).float()
    weight = inside * enough + (1.0 - enough)
    return (error * weight).sum() / weight.sum()
