"""HAPPO: agents with networks of their own, improved one after the other.

Kuba et al. 2022, https://arxiv.org/abs/2109.11251

After each collect agents take turns in random order. Each climbs the clipped objective of the
advantage of the team, times the ratios by which those before it have moved already (algorithm 4):
together they improve the joint policy. Rewards of agents are summed for the team. Letters in
shapes: n steps, B batch, A agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.model.agents import alive_of
from ding.policy.actions import masked_logits
from ding.policy.actor_critic import learned
from ding.policy.mappo import MAPPOConfig, MAPPOLearnConfig, MAPPOPolicy
from ding.policy.ppo import normalised
from ding.rl_utils.ppo import clipped_surrogate, ratio_statistics, value_loss
from ding.rl_utils.td import weighted_mean
from ding.torch_utils import GradientStep
from ding.utils.batch import Batch, Rows
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class HAPPOLearnConfig(MAPPOLearnConfig):
    critic_learning_rate: float = 5e-4


@dataclass(frozen=True, kw_only=True)
class HAPPOConfig(MAPPOConfig):
    learn: HAPPOLearnConfig = field(default_factory=HAPPOLearnConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learn.teacher is not None:
            raise ConfigError(
                f"policy.learn.teacher = {self.learn.teacher}: agents that take turns have no "
                "teacher; leave it out, or use policy 'mappo'"
            )


class HAPPOPolicy(MAPPOPolicy):
    config_class = HAPPOConfig
    cfg: HAPPOConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "havac"

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, self._model
        step = partial(GradientStep, model, compiled=learn.compile)
        critic = self._adam(self._parameters_of("whole.critic."), learn.critic_learning_rate)
        self._critic_step = step(critic, self._critic_loss)
        self._turns = []
        optimizers = {"critic": critic}
        for i in range(len(model.actors)):  # type: ignore[arg-type]
            optimizer = self._adam(self._parameters_of(f"actors.{i}."), learn.learning_rate)
            optimizers[f"agent_{i}"] = optimizer
            self._turns.append((optimizer, step(optimizer, partial(self._agent_loss, agent=i))))
        self.learn_state |= {f"optimizer_{name}": o for name, o in optimizers.items()}

    def _parameters_of(self, prefix: str) -> list[torch.nn.Parameter]:
        named = self._model.named_parameters(remove_duplicate=False)
        return [p for name, p in named if name.startswith(prefix)]

    def _forward_learn(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        columns, learn = self._prepared(data), self.cfg.learn
        self._check_size(columns)
        if learn.value_norm:
            self._return_scale.update(self._known_returns(columns))
        for_loss = self._for_loss(columns)
        outputs = self._turns_of_all(for_loss)
        for epoch in range(learn.epoch_per_collect):
            if epoch > 0 and self.cfg.recompute_adv:
                for_loss = self._for_loss(self._with_advantage(columns))
            for batch in self._minibatches(for_loss):
                outputs.append({"value_loss": self._critic_step(batch)[0]})
        return outputs

    def _turns_of_all(self, columns: Batch) -> list[dict[str, Any]]:
        outputs = []
        columns = {**columns, "factor": np.ones(len(columns["advantage"]), dtype=np.float32)}
        for agent in self._rng.permutation(len(self._turns)).tolist():
            optimizer, step = self._turns[agent]
            for _ in range(self.cfg.learn.epoch_per_collect):
                batches = self._minibatches(columns)
                outputs += [learned(optimizer, *step(batch)) for batch in batches]
            columns = {**columns, "factor": columns["factor"] * self._ratio(columns, agent)}
        return outputs

    @torch.no_grad()
    def _ratio(self, columns: Batch, agent: int) -> np.ndarray:
        """(n,): how much likelier the agent's actions have become; 1 of the dead."""
        batch = self._batch(Rows(columns))
        log_ratio = self._log_prob_of(batch, agent)[0] - batch["log_prob"][:, agent]
        alive = alive_of(batch["obs"])
        log_ratio = log_ratio if alive is None else log_ratio * alive[:, agent]
        return log_ratio.exp().cpu().numpy()

    def _log_prob_of(self, batch: Batch, agent: int) -> tuple[Tensor, Tensor]:
        output = self._model(batch["obs"], mode="compute_actor", agent_idx=agent)
        return self._actions.log_prob_entropy(masked_logits(output), batch["action"][:, agent])

    def _agent_loss(self, batch: Batch, agent: int) -> tuple[Tensor, dict[str, Tensor]]:
        learn, alive = self.cfg.learn, alive_of(batch["obs"])
        log_prob, entropy = self._log_prob_of(batch, agent)
        lives = torch.ones_like(log_prob) if alive is None else alive[:, agent].float()
        weight = lives / lives.mean().clamp(min=1e-8)
        advantage = batch["advantage"][:, agent]
        if learn.adv_norm:
            advantage = normalised(advantage, lives)
        log_ratio = log_prob - batch["log_prob"][:, agent]
        ratio = log_ratio.exp()
        objective = clipped_surrogate(ratio, advantage, learn.clip_ratio, learn.dual_clip)
        # M of algorithm 4: the ratios of those before, times the advantage.
        policy_loss = -weighted_mean(batch["factor"] * objective, weight)
        entropy_mean = weighted_mean(entropy, weight)
        approx_kl, clipfrac = ratio_statistics(log_ratio, ratio, learn.clip_ratio)
        metrics = {
            "policy_loss": policy_loss.detach(),
            "entropy": entropy_mean.detach(),
            "approx_kl": approx_kl,
            "clipfrac": clipfrac,
        }
        return policy_loss - learn.entropy_weight * entropy_mean, metrics

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self.cfg.learn
        value = self._model(batch["obs"], mode="compute_critic")["value"]
        clip = learn.clip_ratio if learn.value_clip else None
        alive = alive_of(batch["obs"])
        weight = None if alive is None else alive / alive.mean().clamp(min=1e-8)
        loss = value_loss(value, batch["value"], batch["return"], clip, weight)
        return learn.value_weight * loss, {}

    def _with_advantage(self, steps: Batch) -> Batch:
        reward = steps["reward"]
        team = reward if reward.ndim == 1 else reward.sum(axis=1)
        return super()._with_advantage({**steps, "reward": team})
