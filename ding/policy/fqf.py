"""FQF: quantiles of returns at fractions that a network of their own proposes for each state.

Yang et al. 2019, https://arxiv.org/abs/1911.02140

Letters in shapes: B batch, A actions, N quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ding.policy.actions import masked_logits
from ding.policy.config import LearnConfig, at_least
from ding.policy.distributional import QuantileLearnConfig, mean_and_metrics
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.rl_utils.td import at_action, td_target
from ding.rl_utils.td_dist import fraction_loss, quantile_huber
from ding.torch_utils import Adam, GradientStep
from ding.utils.batch import Batch
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class FQFLearnConfig(QuantileLearnConfig):
    learning_rate_quantile: float = 5e-5
    """Step size of the network of values."""
    learning_rate_fraction: float = 2.5e-9
    """Step size of the network that proposes fractions."""
    ent_coef: float = 0.0
    """Weight of the entropy of the proposal, which keeps fractions from falling together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.ent_coef", self.ent_coef, 0)
        if self.learning_rate != LearnConfig.learning_rate:
            raise ConfigError(
                f"policy.learn.learning_rate = {self.learning_rate} has no effect in fqf; set "
                "learning_rate_quantile and learning_rate_fraction"
            )


@dataclass(frozen=True, kw_only=True)
class FQFConfig(DQNConfig):
    model: dict[str, Any] = field(default_factory=lambda: dict(num_quantiles=32))
    """Arguments of the model."""
    learn: FQFLearnConfig = field(default_factory=FQFLearnConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.model.num_quantiles", self.model["num_quantiles"], 2)


class FQFPolicy(DQNPolicy):
    config_class = FQFConfig
    cfg: FQFConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "fqf"

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, self._model
        clip: dict[str, Any] = {
            "grad_clip_type": learn.grad_clip_type,
            "clip_value": learn.grad_clip_value,
        }
        values, proposal = _split_parameters(model)
        self._optimizer = Adam(values, lr=learn.learning_rate_quantile, **clip)
        # The paper's RMSprop; without momentum Adam is just that, its first steps corrected.
        self._fraction_optimizer = Adam(
            proposal, lr=learn.learning_rate_fraction, betas=(0.0, 0.95), eps=1e-5, **clip
        )
        self._target = self._new_target()
        step = partial(GradientStep, model, compiled=learn.compile)
        self._step = step(self._optimizer, self._loss)
        self._fraction_step = step(self._fraction_optimizer, self._fraction_loss)
        self.learn_state |= {
            "target": self._target,
            "optimizer": self._optimizer,
            "optimizer_fraction": self._fraction_optimizer,
        }

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        batch = self._batch(data)
        fraction_loss, fraction = self._fraction_step(batch)
        quantile_loss, metrics = self._step(batch)
        self._target.update()
        return {
            "cur_lr": self._optimizer.param_groups[0]["lr"],
            "total_loss": quantile_loss + fraction_loss,
            "quantile_loss": quantile_loss,
            "fraction_loss": fraction_loss,
            **fraction,
            **metrics,
        }

    def _fraction_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of the proposal alone: the model cuts the gradient to everything else."""
        output = self._model(batch["obs"])
        q_tau, q_tau_hat = (at_action(output[k].mT, batch["action"]) for k in ("q_tau_i", "q"))
        loss = fraction_loss(q_tau, q_tau_hat, output["quantiles"])
        entropy = output["entropies"].mean()
        return loss - self.cfg.learn.ent_coef * entropy, {"entropy": entropy.detach()}

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"], inner=False)
        next_output, next_action = self._next(batch)
        z = at_action(output["q"].mT, batch["action"])  # (B, N, A) -> (B, N)
        target = td_target(
            batch["reward"], batch["discount"], at_action(next_output["q"].mT, next_action)
        )
        loss = quantile_huber(z, target, output["quantiles_hats"], self.cfg.learn.kappa)
        return mean_and_metrics(loss, batch, output, next_output, next_action)

    @torch.no_grad()
    def _next(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        output = self._target.module(batch["next_obs"], inner=False)
        double_q = self.cfg.learn.double_q
        picker = self._model(batch["next_obs"], inner=False) if double_q else output
        return output, masked_logits(picker).argmax(dim=-1)

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), "quantile_loss", "fraction_loss", "entropy"]


def _split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters of the values, and those of the proposal."""
    named = list(model.named_parameters())
    proposal = [p for name, p in named if "quantiles_proposal" in name]
    return [p for name, p in named if "quantiles_proposal" not in name], proposal
