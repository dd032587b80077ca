"""PPO with a network that remembers, for envs that do not show everything at once.

Schulman et al. 2017, https://arxiv.org/abs/1707.06347
Hausknecht and Stone 2015 (sequences with recurrent networks), https://arxiv.org/abs/1507.06527

Every step is collected with the state that it was acted from. Learning cuts the steps of a collect
into sequences, none of which crosses the end of an episode, and goes on from the state stored with
the first step of each. Letters in shapes: T steps of a sequence, S sequences, B batch of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ding.policy.actor_critic import ActorCriticPolicy, ends_of
from ding.policy.config import at_least, one_of, unused
from ding.policy.ppo import PPOConfig, PPOLearnConfig, PPOPolicy, ppo_loss
from ding.policy.recurrent import RecurrentPolicy, stored_state, with_last_obs, with_state
from ding.policy.user_rows import check_columns
from ding.utils.batch import Batch, ByEnv, Rows, columns_of, stacked_of, take, tree_map
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class PPORecurrentLearnConfig(PPOLearnConfig):
    batch_size: int = 16
    """Sequences per update."""


@dataclass(frozen=True, kw_only=True)
class PPORecurrentConfig(PPOConfig):
    action_space: str = "discrete"
    """'discrete' (also for several actions at once) or 'continuous'."""
    learn_unroll_len: int = 16
    """Steps of a sequence: gradients flow back through so many. Ends of episodes cut it short."""
    learn: PPORecurrentLearnConfig = field(default_factory=PPORecurrentLearnConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learn.teacher is not None:
            raise ConfigError(
                "policy.learn.teacher: a recurrent policy would need what its teacher remembers; "
                "use 'ppo'"
            )
        one_of("policy.action_space", self.action_space, ("discrete", "continuous"))
        at_least("policy.learn_unroll_len", self.learn_unroll_len, 2)
        unused("policy.collect.unroll_len", self.collect.unroll_len, 1, "policy.learn_unroll_len")
        n_sample, wanted = self.collect.n_sample, self.learn.batch_size * self.learn_unroll_len
        if n_sample is not None and n_sample < wanted:
            raise ConfigError(
                f"policy.collect.n_sample = {n_sample}: less than the {wanted} steps of a batch "
                f"(policy.learn.batch_size = {self.learn.batch_size} sequences of "
                f"policy.learn_unroll_len = {self.learn_unroll_len})"
            )


_NOT_ACTED = (
    "PPORecurrentPolicy learns from steps with the state that each was acted from; train on what a "
    "collector returns, or keep 'prev_state' of what collect_mode.forward returns"
)


class Sequences(NamedTuple):
    """Positions of sequences in the flat steps, (S, T) each; padding repeats the last step."""

    row: np.ndarray
    exists: np.ndarray


def cut(end: np.ndarray, unroll_len: int) -> Sequences:
    """Up to `unroll_len` successive steps each, all steps once, in order, none across an `end`."""
    last = np.flatnonzero(end)
    row = np.arange(len(end))
    piece = np.searchsorted(last, row)
    begin = np.append(0, last + 1)[piece]
    first = np.flatnonzero((row - begin) % unroll_len == 0)
    until = last[piece[first]].reshape(-1, 1)
    rows = first.reshape(-1, 1) + np.arange(unroll_len)
    return Sequences(np.minimum(rows, until), rows <= until)


class PPORecurrentPolicy(RecurrentPolicy, PPOPolicy):
    config_class = PPORecurrentConfig
    action_kinds = ActorCriticPolicy.action_kinds
    cfg: PPORecurrentConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "recurrent_vac"

    # --- learning ------------------------------------------------------------------------------

    def _prepared(self, data: Sequence[Any]) -> Batch:
        columns = columns_of(data)
        check_columns(columns, ("prev_state",), _NOT_ACTED)
        return super()._prepared(Rows(columns))

    def _check_size(self, columns: Batch, unit: str = "sequences") -> None:
        super()._check_size({"row": self._sequences(columns).row}, unit)

    def _sequences(self, columns: Batch) -> Sequences:
        return cut(ends_of(columns), self.cfg.learn_unroll_len)

    def _for_loss(self, columns: Batch) -> Batch:
        """Sequences, (S, T, ...), with the state before each and a mask of the steps that exist."""
        row, exists = self._sequences(columns)
        return {
            **take(super()._for_loss(columns), row),
            "mask": exists.astype(np.float32),
            "prev_state": take(columns["prev_state"], row[:, 0]),
        }

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        columns = {name: column for name, column in batch.items() if name != "prev_state"}
        steps = tree_map(lambda column: column.transpose(0, 1), columns)  # (T, B, ...)
        inputs = with_state(steps["obs"], stored_state(batch["prev_state"]))
        output = self._model(inputs, mode="compute_actor_critic")
        log_prob, entropy = self._log_prob(output, steps["action"])
        mask = steps["mask"]
        # Means over all places become means over the steps that exist.
        scale = mask.numel() / mask.sum()
        log_prob = torch.where(mask > 0, log_prob, steps["log_prob"])
        steps["weight"] = scale * mask
        loss, metrics = ppo_loss(self.cfg.learn, steps, log_prob, entropy, output["value"])
        for name in ("approx_kl", "clipfrac"):
            metrics[name] = scale * metrics[name]
        return loss, metrics

    # --- collecting ----------------------------------------------------------------------------

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        logit, origin = self._collector(env_id, obs)
        action = self._actions.sample(logit, self._rng)
        output = {"action": action, "logit": logit, "prev_state": origin["prev_state"]}
        return ByEnv(env_id, output)

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        step = super()._process_transition(obs, policy_output, timestep)
        return {**step, "prev_state": policy_output["prev_state"]}

    @torch.no_grad()
    def _values(self, steps: Batch, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By the same sequences as the loss, each with what was seen after its last step."""
        row, exists = cut(end, self.cfg.learn_unroll_len)
        columns = {
            "obs": take(steps["obs"], row),
            "next_obs": take(steps["next_obs"], row[:, -1:]),
            "mask": exists,
            "prev_state": take(steps["prev_state"], row[:, 0]),
        }
        batch = self._batch(Rows(columns))
        obs = with_last_obs(batch["obs"], batch["next_obs"], batch["mask"].T)
        inputs = with_state(obs, stored_state(batch["prev_state"]))
        value = self._model(inputs, mode="compute_critic")["value"].cpu().numpy()  # (T + 1, S)
        after = value[exists.sum(axis=1), np.arange(len(row))]
        return value[:-1].T[exists], after[end[row[:, -1]]]

    # --- evaluating ----------------------------------------------------------------------------

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": self._actions.best(self._evaluator(env_id, obs)[0])})
