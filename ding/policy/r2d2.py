"""R2D2: recurrent Q-learning from replayed sequences with stored states and burn-in.

Kapturowski et al. 2019, https://openreview.net/forum?id=r1lyTjAqYX
Pohlen et al. 2018 (value rescaling), https://arxiv.org/abs/1805.11593

Steps are collected one by one, each with the state that it was acted from; the replay buffer makes
sequences of them. Letters in shapes: T steps of a sequence, B batch, N envs, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ding.policy.acting import epsilon_greedy
from ding.policy.actions import masked_logits
from ding.policy.config import at_least, check_samples
from ding.policy.dqn import DQNConfig, DQNLearnConfig, DQNOtherConfig, DQNPolicy
from ding.policy.needs import Needs
from ding.policy.recurrent import (
    RecurrentPolicy,
    mask_of,
    stored_state,
    with_last_obs,
    with_state,
)
from ding.policy.user_rows import check_columns
from ding.rl_utils.td import at_action, sequence_returns
from ding.rl_utils.value_rescale import value_inv_transform, value_transform
from ding.utils.batch import Batch, ByEnv, Rows, columns_of, stacked_of, take, tree_map
from ding.utils.errors import ConfigError
from ding.utils.registry import BUFFER_REGISTRY

# Share of the largest error (and not the mean one) in the priority of a sequence.
_ETA = 0.9
_NOT_SEQUENCES = (
    "{} learns from sequences of steps and what was remembered before them, not from plain steps; "
    "push what a collector returns into a replay buffer of the type 'sequence' and train on what "
    "its sample() returns"
)


@dataclass(frozen=True, kw_only=True)
class R2D2LearnConfig(DQNLearnConfig):
    update_per_collect: int = 1
    learning_rate: float = 1e-4
    value_rescale: bool = True
    """Networks predict h(value), which grows like the square root: rewards need no clipping."""
    rescale_eps: float = 1e-3
    """Linear part of h(x) = sign(x) (sqrt(|x| + 1) - 1) + eps x: the paper's. Pohlen et al. 2018,
    where h comes from, and the default of `value_transform` have 1e-2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.rescale_eps", self.rescale_eps, 0)


@dataclass(frozen=True, kw_only=True)
class R2D2OtherConfig(DQNOtherConfig):
    replay_buffer: dict[str, Any] = field(default_factory=lambda: {"type": "sequence"})
    """Settings of the replay buffer; it counts steps, not sequences."""


@dataclass(frozen=True, kw_only=True)
class R2D2Config(DQNConfig):
    discount_factor: float = 0.997
    nstep: int = 5
    burnin_step: int = 20
    """Steps at the start of a sequence that only bring the stored state up to date."""
    learn_unroll_len: int = 80
    """Steps after them that are learned from."""
    learn: R2D2LearnConfig = field(default_factory=R2D2LearnConfig)
    other: R2D2OtherConfig = field(default_factory=R2D2OtherConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.burnin_step", self.burnin_step, 0)
        at_least("policy.learn_unroll_len", self.learn_unroll_len, 1)
        if self.random_collect_size:
            raise ConfigError(
                f"policy.random_collect_size = {self.random_collect_size}: random steps have no "
                "recurrent state to store; explore more by policy.other.eps instead"
            )


class R2D2Policy(RecurrentPolicy, DQNPolicy):
    config_class: ClassVar[type] = R2D2Config
    sequence_columns: ClassVar[tuple[str, ...]] = ("mask", "begins", "prev_state")
    """What sequences have besides the columns of plain steps."""
    cfg: R2D2Config

    @staticmethod
    def check_config(cfg: Any) -> None:
        policy = cfg["policy"]
        buffer = policy["other"]["replay_buffer"]["type"]
        unroll_len = policy["collect"]["unroll_len"]
        if "burn_in" not in BUFFER_REGISTRY.get(buffer).config:
            raise ConfigError(
                f"policy '{policy['type']}' learns from sequences, which the replay buffer "
                f"'{buffer}' does not draw; leave its type out"
            )
        if unroll_len != 1:
            raise ConfigError(
                f"policy.collect.unroll_len = {unroll_len}: single steps are collected; the length "
                "of sequences is policy.burnin_step + policy.learn_unroll_len"
            )
        check_samples(cfg)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "drqn"

    # --- learning ------------------------------------------------------------------------------

    def _batch(self, data: Sequence[Any]) -> Batch:
        columns = columns_of(data)
        check_columns(columns, self.sequence_columns, _NOT_SEQUENCES.format(type(self).__name__))
        return super()._batch(Rows(columns))

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        mask = batch["mask"].T > 0  # (T, B): steps that exist
        obs = with_last_obs(batch["obs"], batch["next_obs"], mask)
        q = self._unrolled(self._model, obs, batch)  # (T + 1, B, A)
        q_taken = at_action(q[:-1], batch["action"].T)
        learned = self._learned(mask, batch["begins"][:, 0])
        error, metrics = self._step_errors(q, q_taken, obs, mask, batch)
        error = (learned * error).sum(dim=0)  # (B,)
        weight = batch.get("weight")
        error = error if weight is None else weight * error
        td_error, count = (learned * metrics.pop("td_error")).abs(), learned.sum().clamp(min=1)
        mean_error = td_error.sum(dim=0) / learned.sum(dim=0).clamp(min=1)
        means = {name: (learned * value).sum() / count for name, value in metrics.items()}
        priority = _ETA * td_error.amax(dim=0) + (1 - _ETA) * mean_error
        return error.sum() / count, {**means, "priority": priority}

    def _step_errors(
        self, q: Tensor, q_taken: Tensor, obs: Any, mask: Tensor, batch: Batch
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """(T, B): the loss of every step; metrics of every step, `td_error` among them."""
        target = self._targets(q.detach(), obs, mask, batch, self.cfg.nstep)
        td_error = target - q_taken
        metrics = {
            "q_value": q_taken.detach(),
            "target_q_value": target,
            "td_error": td_error.detach(),
        }
        return td_error.square(), metrics

    @torch.no_grad()
    def _targets(self, q: Tensor, obs: Any, mask: Tensor, batch: Batch, nstep: int) -> Tensor:
        """(T, B): n-step returns on the scale of the network."""
        learn = self.cfg.learn
        next_q = self._unrolled(self._target.module, obs, batch)
        judge = q if learn.double_q else next_q
        best = masked_logits({"logit": judge, "action_mask": mask_of(obs)}).argmax(dim=-1)
        value = at_action(next_q, best)  # (T + 1, B)
        if learn.value_rescale:
            value = value_inv_transform(value, learn.rescale_eps)
        reward, discount = batch["reward"].T, batch["discount"].T
        returns = sequence_returns(reward, discount, value, mask, nstep)
        return value_transform(returns, learn.rescale_eps) if learn.value_rescale else returns

    def _learned(self, mask: Tensor, begins: Tensor) -> Tensor:
        """(T, B) floats: which steps count.

        What begins with its episode has the right state from the first step on. Without its burn-in
        steps, the beginnings of episodes would never be learned from.
        """
        after = torch.arange(len(mask), device=mask.device) >= self.cfg.burnin_step
        return (mask & (after.unsqueeze(1) | begins)).float()

    def _unrolled(self, module: nn.Module, obs: Any, batch: Batch) -> Tensor:
        """Q-values (T + 1, B, A); from the steps after burn-in no gradient flows back into it."""
        state = stored_state(batch["prev_state"])
        parts = []
        for part in split_burn_in(obs, self.cfg.burnin_step):
            output = module(with_state(part, state))
            parts.append(output["logit"])
            state = tree_map(Tensor.detach, _joined(output["next_state"]))
        return torch.cat(parts)

    # --- acting --------------------------------------------------------------------------------

    def _forward_collect(  # type: ignore[override]
        self, data: Mapping[int, Any], eps: float | np.ndarray = 0.0
    ) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        q, origin = self._collector(env_id, obs)
        action = epsilon_greedy(q, eps, self._rng, mask_of(obs))
        return ByEnv(env_id, {"action": action, "origin": origin})

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        step = super()._process_transition(obs, policy_output, timestep)
        return {**step, **policy_output["origin"]}

    def _get_needs(self) -> Needs:
        return replace(super()._get_needs(), links_steps=True)

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": self._evaluator(env_id, obs)[0].argmax(axis=-1)})


def split_burn_in(obs: Any, burn_in: int) -> list[Any]:
    """Burn-in, if there is any, and the rest."""
    if not burn_in:
        return [obs]
    return [take(obs, slice(0, burn_in)), take(obs, slice(burn_in, None))]


def _joined(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """B states of (L, 1, H) to one of (L, B, H)."""
    return {key: torch.cat([state[key] for state in states], dim=1) for key in states[0]}
