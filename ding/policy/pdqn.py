"""P-DQN: Q-learning for hybrid actions, a type together with continuous arguments.

Xiong et al. 2018, https://arxiv.org/abs/1810.06394
Bester et al. 2019 (one pass per type, `policy.model.multi_pass`), https://arxiv.org/abs/1905.04388

One network proposes the arguments of all types, another values the types given these.

Letters in shapes: B batch, N envs, K types, M arguments, which lie in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from ding.policy.acting import acting_model
from ding.policy.actions import best_hybrid_action, hybrid_action, masked_logits
from ding.policy.config import LearnConfig, at_least, unused
from ding.policy.critics import slow_target, squared_td_loss
from ding.policy.dqn import DQNCollectConfig, DQNConfig, DQNLearnConfig, DQNPolicy
from ding.rl_utils.td import at_action, double_q_target
from ding.torch_utils import Adam, GradientStep
from ding.torch_utils.running_statistics import UpdateCount
from ding.utils.batch import Batch, ByEnv, stacked_of
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class PDQNLearnConfig(DQNLearnConfig):
    """`target_theta` is 0.005 if neither it nor `target_update_freq` is set."""

    dis_learning_rate: float = 1e-3
    """Step size of the values of the types."""
    cont_learning_rate: float = 1e-3
    """Step size of the arguments."""
    update_circle: int | None = None
    """Train by turns in circles of so many updates, values in the first half, arguments in the
    second; None: both at every update."""
    double_q: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.update_circle is not None and (self.update_circle < 2 or self.update_circle % 2):
            raise ConfigError(
                f"policy.learn.update_circle = {self.update_circle}: must be an even number, 2 at "
                "least, or None"
            )
        instead = "policy.learn.dis_learning_rate and cont_learning_rate"
        unused("policy.learn.learning_rate", self.learning_rate, LearnConfig.learning_rate, instead)


@dataclass(frozen=True, kw_only=True)
class PDQNCollectConfig(DQNCollectConfig):
    noise: bool = True
    """Gaussian noise on the arguments, besides the actions drawn at random with epsilon ..."""
    noise_sigma: float = 0.1
    """... and its standard deviation."""

    def __post_init__(self) -> None:
        at_least("policy.collect.noise_sigma", self.noise_sigma, 0)


@dataclass(frozen=True, kw_only=True)
class PDQNConfig(DQNConfig):
    learn: PDQNLearnConfig = field(default_factory=PDQNLearnConfig)
    collect: PDQNCollectConfig = field(default_factory=PDQNCollectConfig)


class PDQNPolicy(DQNPolicy):
    """Actions are {'action_type': (N,), 'action_args': (N, M)}."""

    config_class = PDQNConfig
    action_kinds = ("hybrid",)
    cfg: PDQNConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "pdqn"

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, cast(Any, self._model)
        adam = partial(Adam, grad_clip_type=learn.grad_clip_type, clip_value=learn.grad_clip_value)
        proposing = model.continuous_parameters()
        of_args = {id(p) for p in proposing}
        valuing = [p for p in model.parameters() if id(p) not in of_args]
        self._optimizer = adam(valuing, lr=learn.dis_learning_rate)
        self._args_optimizer = adam(proposing, lr=learn.cont_learning_rate)
        self._target = slow_target(model, learn.target_update_freq, learn.target_theta)
        step = partial(GradientStep, model, compiled=learn.compile)
        self._step = step(self._optimizer, self._loss)
        self._args_step = step(self._args_optimizer, self._args_loss)
        self._updates = UpdateCount()
        self.learn_state |= {
            "optimizer": self._optimizer,
            "optimizer_args": self._args_optimizer,
            "target": self._target,
            "updates": self._updates,
        }

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        batch, circle = self._batch(data), self.cfg.learn.update_circle
        before = self._updates.next() - 1
        second_half = circle is not None and before % circle >= circle // 2
        output = {
            "cur_lr": self._optimizer.param_groups[0]["lr"],
            "cur_lr_args": self._args_optimizer.param_groups[0]["lr"],
        }
        losses = {}
        if not second_half:
            losses["q_loss"], metrics = self._step(batch)
            output |= metrics
        if circle is None or second_half:
            losses["args_loss"], _ = self._args_step(batch)
        self._target.update()
        return {**output, **losses, "total_loss": sum(losses.values())}

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        action = batch["action"]
        q = self._valued(self._model, batch["obs"], action["action_args"])["logit"]
        q_taken = at_action(q, action["action_type"])
        target_q = self._target_q(batch)
        loss, metrics = squared_td_loss(q_taken.unsqueeze(0), target_q, batch.get("weight"))
        return loss, {"q_value": q_taken.detach().mean(), **metrics}

    @torch.no_grad()
    def _target_q(self, batch: Batch) -> Tensor:
        obs, target = batch["next_obs"], self._target.module
        args = target(obs, mode="compute_continuous")["action_args"]
        valued = self._valued(target, obs, args)
        picking = self._valued(self._model, obs, args) if self.cfg.learn.double_q else valued
        return double_q_target(
            batch["reward"],
            batch["discount"],
            q_pick=masked_logits(picking),
            q_value=valued["logit"],
        )

    def _args_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Arguments climb the values of all types at once: each type has its own of them."""
        args = self._model(batch["obs"], mode="compute_continuous")["action_args"]
        return -self._valued(self._model, batch["obs"], args)["logit"].sum(dim=1).mean(), {}

    @staticmethod
    def _valued(model: Any, obs: Any, args: Tensor) -> dict[str, Tensor]:
        """Output with the values of the types, 'logit' (B, K)."""
        return model({"state": obs, "action_args": args}, mode="compute_discrete")

    def _monitor_vars_learn(self) -> list[str]:
        losses = ["total_loss", "q_loss", "args_loss"]
        return ["cur_lr", "cur_lr_args", *losses, "q_value", "target_q_value"]

    # --- acting --------------------------------------------------------------------------------

    def _init_collect(self) -> None:
        self._args = acting_model(self._model, "compute_continuous")
        self._q = acting_model(self._model, "compute_discrete")

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.0) -> Mapping[int, Any]:  # type: ignore[override]
        env_id, obs = stacked_of(data)
        args, collect = self._args(obs)["action_args"], self.cfg.collect
        output = self._q({"state": obs, "action_args": args})
        sigma = collect.noise_sigma if collect.noise else 0.0
        action = hybrid_action(output, eps=eps, sigma=sigma, rng=self._rng)
        return ByEnv(env_id, {"action": action})

    def _init_eval(self) -> None:
        self._init_collect()

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        args = self._args(obs)["action_args"]
        output = self._q({"state": obs, "action_args": args})
        return ByEnv(env_id, {"action": best_hybrid_action(output)})
