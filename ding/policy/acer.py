"""ACER: actor-critic on replayed unrolls, with Retrace, truncated weights and a trust region.

Wang et al. 2017, https://arxiv.org/abs/1611.01224
Munos et al. 2016 (Retrace), https://arxiv.org/abs/1606.02647

Letters in shapes: T time, B batch, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ding.policy.actions import masked_logits
from ding.policy.actor_critic import ActorCriticPolicy
from ding.policy.config import LearnConfig, PolicyConfig, at_least, one_of, unused, within
from ding.policy.modes import takes_all_envs
from ding.policy.unrolled import (
    UnrollCollectConfig,
    UnrollOtherConfig,
    check_replay,
    check_unrolls,
    time_first,
    unroll_samples,
)
from ding.rl_utils.acer import acer_policy_error, acer_trust_region_update, acer_value_error
from ding.rl_utils.retrace import retrace
from ding.rl_utils.td import at_action, weighted_mean
from ding.torch_utils import GradientStep, TargetNetwork
from ding.utils.batch import Batch, Rows


@dataclass(frozen=True, kw_only=True)
class ACERLearnConfig(LearnConfig):
    update_per_collect: int = 4
    batch_size: int = 16
    """Unrolls per update."""
    learning_rate_actor: float = 5e-4
    learning_rate_critic: float = 5e-4
    value_weight: float = 0.5
    entropy_weight: float = 1e-4
    c_clip_ratio: float = 10.0
    """Importance weights of taken actions are cut here; above, all actions correct for the cut."""
    trust_region: bool = True
    """Hold the policy near its running average ..."""
    trust_region_value: float = 1.0
    """... which an update may not be driven from faster than this ..."""
    target_theta: float = 0.01
    """... and which moves this fraction of the way towards the policy after each."""

    def __post_init__(self) -> None:
        instead = "policy.learn.learning_rate_actor and learning_rate_critic"
        unused("policy.learn.learning_rate", self.learning_rate, LearnConfig.learning_rate, instead)


@dataclass(frozen=True, kw_only=True)
class ACERConfig(PolicyConfig):
    action_space: str = "discrete"
    """'discrete' is the only one for now: one action."""
    learn: ACERLearnConfig = field(default_factory=ACERLearnConfig)
    collect: UnrollCollectConfig = field(default_factory=UnrollCollectConfig)
    other: UnrollOtherConfig = field(default_factory=UnrollOtherConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ("discrete",))
        at_least("policy.learn.c_clip_ratio", self.learn.c_clip_ratio, 0)
        at_least("policy.learn.trust_region_value", self.learn.trust_region_value, 0)
        within("policy.learn.target_theta", self.learn.target_theta, 0, 1)
        check_replay(self, "ACER")


class ACERPolicy(ActorCriticPolicy):
    config_class = ACERConfig
    action_kinds = ("discrete",)
    cfg: ACERConfig
    check_config = staticmethod(check_unrolls)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "acer"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, self._model
        named = list(model.named_parameters())
        critic = [p for name, p in named if name.startswith("critic")]
        actor = [p for name, p in named if not name.startswith("critic")]
        self._critic_optimizer = self._adam(critic, learn.learning_rate_critic)
        self._actor_optimizer = self._adam(actor, learn.learning_rate_actor)
        self._average = TargetNetwork(model, theta=learn.target_theta, only=actor)
        step = partial(GradientStep, model, compiled=learn.compile)
        self._critic_step = step(self._critic_optimizer, self._critic_loss)
        self._actor_step = step(self._actor_optimizer, self._actor_loss)
        self.learn_state |= {
            "critic_optimizer": self._critic_optimizer,
            "actor_optimizer": self._actor_optimizer,
            "average": self._average,
        }

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        batch = self._with_targets(time_first(self._batch(Rows(self._prepared(data)))))
        critic_loss, critic = self._critic_step(batch)
        actor_loss, actor = self._actor_step(batch)
        self._average.update()
        return {
            "cur_lr_actor": self._actor_optimizer.param_groups[0]["lr"],
            "cur_lr_critic": self._critic_optimizer.param_groups[0]["lr"],
            "total_loss": critic_loss + actor_loss,
            **critic,
            **actor,
        }

    @torch.no_grad()
    def _with_targets(self, batch: Batch) -> Batch:
        """Add what both losses take as given: values, Retrace returns and importance weights."""
        log_pi = _log_pi(self._model, batch["obs"])
        q = _q_values(self._model, batch["obs"])
        value = (log_pi.exp() * q).sum(dim=-1)  # (T, B)
        next_pi = _log_pi(self._model, batch["next_obs"]).exp()
        next_value = (next_pi * _q_values(self._model, batch["next_obs"])).sum(dim=-1)
        ratio = (log_pi - torch.log_softmax(batch["logit"], dim=-1)).exp()
        q_ret = retrace(
            batch["reward"],
            batch["discount"],
            at_action(q, batch["action"]),
            next_value,
            at_action(ratio, batch["action"]),
            batch["end"],
        )
        given = {"q": q, "v": value.unsqueeze(-1), "q_ret": q_ret.unsqueeze(-1), "ratio": ratio}
        return {**batch, **given}

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        q = _q_values(self._model, batch["obs"])
        error = acer_value_error(q, batch["q_ret"], batch["action"]).squeeze(-1)
        loss = weighted_mean(error, batch.get("weight"))
        metrics = {
            "value_loss": loss.detach(),
            "q_value": batch["v"].mean(),
            "priority": (2.0 * error.detach()).sqrt().mean(dim=0),
        }
        return self.cfg.learn.value_weight * loss, metrics

    def _actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        learn, weight = self.cfg.learn, batch.get("weight")
        log_pi = _log_pi(self._model, batch["obs"])
        gradient, objective = torch.func.grad_and_value(partial(self._negative_objective, batch))(
            log_pi.detach()
        )
        if learn.trust_region:
            with torch.no_grad():
                average = _log_pi(self._average.module, batch["obs"])
            bound = learn.trust_region_value
            [gradient] = acer_trust_region_update([gradient], log_pi, average, bound)
        # This has the gradient that was just worked out.
        policy_loss = weighted_mean((gradient * log_pi).sum(dim=-1), weight)
        entropy = weighted_mean(-(log_pi.exp() * log_pi).sum(dim=-1), weight)
        metrics = {
            "policy_loss": objective.detach() / batch["reward"].numel(),
            "entropy": entropy.detach(),
        }
        return policy_loss - learn.entropy_weight * entropy, metrics

    def _negative_objective(self, batch: Batch, log_pi: Tensor) -> Tensor:
        truncated, correction = acer_policy_error(
            batch["q"],
            batch["q_ret"],
            batch["v"],
            log_pi.exp(),
            batch["action"],
            batch["ratio"],
            self.cfg.learn.c_clip_ratio,
        )
        return -(truncated + correction).sum()

    def _monitor_vars_learn(self) -> list[str]:
        losses = ["total_loss", "policy_loss", "value_loss"]
        return ["cur_lr_actor", "cur_lr_critic", *losses, "entropy", "q_value"]

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        return unroll_samples(transitions, self.cfg)


def _log_pi(model: nn.Module, obs: Any) -> Tensor:
    """Log-probabilities (T, B, A) of all actions."""
    return torch.log_softmax(masked_logits(model(obs, mode="compute_actor")), dim=-1)


def _q_values(model: nn.Module, obs: Any) -> Tensor:
    return model(obs, mode="compute_critic")["q_value"]
