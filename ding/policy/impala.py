"""IMPALA: actor-critic on replayed unrolls, corrected by V-trace.

Espeholt et al. 2018, https://arxiv.org/abs/1802.01561

Letters in shapes: T time, B batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ding.policy.actor_critic import ActorCriticPolicy, learned
from ding.policy.config import LearnConfig, PolicyConfig, at_least, one_of, within
from ding.policy.modes import takes_all_envs
from ding.policy.unrolled import (
    UnrollCollectConfig,
    UnrollOtherConfig,
    check_replay,
    check_unrolls,
    time_first,
    unroll_samples,
)
from ding.rl_utils.a2c import actor_critic_losses
from ding.rl_utils.td import per_agent
from ding.rl_utils.vtrace import vtrace_advantage, vtrace_returns
from ding.torch_utils import GradientStep
from ding.utils.batch import Batch, Rows, tree_map


@dataclass(frozen=True, kw_only=True)
class IMPALALearnConfig(LearnConfig):
    update_per_collect: int = 4
    batch_size: int = 16
    """Unrolls per update."""
    learning_rate: float = 5e-4
    value_weight: float = 0.5
    entropy_weight: float = 1e-4
    lambda_: float = 0.95
    """How far returns look ahead: 0 one step, 1 as far as the trace goes."""
    rho_clip_ratio: float = 1.0
    """Bound of the importance weight of a step's own error in the returns ..."""
    c_clip_ratio: float = 1.0
    """... of the trace, by which later errors reach back ..."""
    rho_pg_clip_ratio: float = 1.0
    """... and of the policy's loss."""
    grad_clip_type: str | None = "clip_norm"
    grad_clip_value: float | None = 0.5


@dataclass(frozen=True, kw_only=True)
class IMPALAConfig(PolicyConfig):
    action_space: str = "discrete"
    """'discrete' (also for several actions at once) or 'continuous'."""
    learn: IMPALALearnConfig = field(default_factory=IMPALALearnConfig)
    collect: UnrollCollectConfig = field(default_factory=UnrollCollectConfig)
    other: UnrollOtherConfig = field(default_factory=UnrollOtherConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ("discrete", "continuous"))
        within("policy.learn.lambda_", self.learn.lambda_, 0, 1)
        for name in ("rho_clip_ratio", "c_clip_ratio", "rho_pg_clip_ratio"):
            at_least(f"policy.learn.{name}", getattr(self.learn, name), 0)
        check_replay(self, "IMPALA")


class IMPALAPolicy(ActorCriticPolicy):
    config_class = IMPALAConfig
    cfg: IMPALAConfig
    check_config = staticmethod(check_unrolls)

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = self._adam(self._model.parameters(), learn.learning_rate)
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {"optimizer": self._optimizer}

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        batch = time_first(self._batch(Rows(self._prepared(data))))
        batch["last_value"] = self._last_value(batch)
        del batch["next_obs"]
        return learned(self._optimizer, *self._step(batch))

    @torch.no_grad()
    def _last_value(self, batch: Batch) -> Tensor:
        """Values (T, B) of next observations that are not those of the next rows; else 0.

        How many there are changes from batch to batch: a compiled step could not value them.
        """
        last = _last_rows(batch["end"])
        next_obs = tree_map(lambda column: column[last], batch["next_obs"])
        found = self._model(next_obs, mode="compute_critic")["value"]
        value = found.new_zeros(*last.shape, *found.shape[1:])
        value[last] = found
        return value

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self.cfg.learn
        output = self._model(batch["obs"], mode="compute_actor_critic")
        log_prob, entropy = self._log_prob(output, batch["action"])
        value = output["value"]
        advantage, return_ = self._targets(batch, log_prob.detach(), value.detach())
        policy_loss, value_loss, entropy_mean = actor_critic_losses(
            log_prob, entropy, advantage, value, return_, _weight(batch, value)
        )
        loss = policy_loss + learn.value_weight * value_loss - learn.entropy_weight * entropy_mean
        metrics = {
            "policy_loss": policy_loss.detach(),
            "value_loss": value_loss.detach(),
            "entropy": entropy_mean.detach(),
            "value": value.detach().mean(),
            "priority": advantage.abs().mean(dim=[0, *range(2, advantage.ndim)]),
        }
        return loss, metrics

    @torch.no_grad()
    def _targets(self, batch: Batch, log_prob: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Advantages and returns by V-trace, (T, B) each; log_prob and value are the present ones.

        Where the next row is of another episode (or there is none) the trace is cut, and what
        follows is worth the value of the true last observation.
        """
        learn, end = self.cfg.learn, per_agent(_last_rows(batch["end"]), value)
        reward, discount = (per_agent(batch[name], value) for name in ("reward", "discount"))
        behaviour, _ = self._actions.log_prob_entropy(batch["logit"], batch["action"])
        weight = (log_prob - behaviour).exp()
        clips = learn.rho_clip_ratio, learn.c_clip_ratio, learn.rho_pg_clip_ratio
        rho, c, rho_pg = (weight.clamp(max=clip) for clip in clips)
        c = (learn.lambda_ * c).masked_fill(end, 0.0)
        next_value = torch.where(end, batch["last_value"], value.roll(-1, dims=0))
        v = vtrace_returns(rho, c, reward, discount, value, next_value)
        next_v = torch.where(end, batch["last_value"], v.roll(-1, dims=0))
        return vtrace_advantage(rho_pg, reward, next_v, value, discount), v

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss", "policy_loss", "value_loss", "entropy", "value"]

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        return unroll_samples(transitions, self.cfg)


def _weight(batch: Batch, value: Tensor) -> Tensor | None:
    """Importance weights (B,), or (B, 1) where values (T, B, ...) have an axis of agents."""
    weight = batch.get("weight")
    return None if weight is None else per_agent(weight, value[0])


def _last_rows(end: Tensor) -> Tensor:
    """Flags (T, B) of rows whose next row is of another episode, or missing."""
    return torch.cat([end[:-1], torch.ones_like(end[-1:])])
