"""Actor-critic base: acting by a stochastic policy, advantages, passes over a collect.

Letters in shapes: B batch, N envs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from ding.policy.acting import acting_model
from ding.policy.actions import ACTION_KINDS, ActionKind, action_kind, masked_logits
from ding.policy.base import Policy
from ding.policy.config import CollectConfig, PolicyConfig
from ding.rl_utils.adder import terminated
from ding.rl_utils.gae import flat_advantages
from ding.torch_utils import Adam
from ding.torch_utils.distributed import own_rows, worked_out_together
from ding.torch_utils.running_statistics import RunningScale
from ding.utils.batch import Batch, ByEnv, Rows, columns_of, gather, length, stacked_of, take
from ding.utils.errors import ConfigError

ACTION_SPACES = ("discrete", "continuous", "hybrid")


@dataclass(frozen=True, kw_only=True)
class AdvantageCollectConfig(CollectConfig):
    gae_lambda: float = 0.95
    """Between one-step errors (0) and Monte-Carlo returns (1)."""


def check_on_policy(cfg: PolicyConfig, name: str) -> None:
    """Refuse what only means something with a replay buffer."""
    for key in ("priority", "random_collect_size"):
        if getattr(cfg, key):
            raise ConfigError(f"policy.{key} has no effect in on-policy {name}; leave it out")
    if cfg.nstep != 1:
        raise ConfigError(f"policy.nstep has no effect in {name}; leave it out")
    updates = cfg.learn.update_per_collect
    if updates != 1:
        epochs = [key for key in vars(cfg.learn) if key.endswith("epoch_per_collect")]
        instead = f"set policy.learn.{epochs[0]}" if epochs else "leave it out"
        raise ConfigError(
            f"policy.learn.update_per_collect = {updates} has no effect in on-policy {name}, which "
            f"learns from every collect once; {instead}"
        )
    n_sample, batch_size = cfg.collect.n_sample, cfg.learn.batch_size
    if n_sample is not None and n_sample < batch_size:
        raise ConfigError(
            f"policy.learn.batch_size = {batch_size} is more than the samples of a collect "
            f"(policy.collect.n_sample = {n_sample})"
        )


class ActorCriticPolicy(Policy):
    """Base of algorithms that draw actions from the 'logit' of a network.

    Its config says `action_space`; one that uses `_with_advantage` says `collect.gae_lambda` too.
    """

    action_kinds: ClassVar[tuple[str, ...]] = ("discrete", "multi_discrete", "continuous")
    keeps_to_masks = True
    acting_mode: ClassVar[str | None] = "compute_actor"
    """Mode of the model that gives the logits."""

    @cached_property
    def _actions(self) -> ActionKind:
        return action_kind(self.cfg.action_space, self.cfg.model.get("action_shape"))

    @property
    def _takes_whole_action(self) -> bool:
        return self._actions is ACTION_KINDS["discrete"]

    def _init_acting(self) -> None:
        self._return_scale = RunningScale()
        self.acting_parts["return_scale"] = self._return_scale

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "hybrid_vac" if policy_cfg["action_space"] == "hybrid" else "vac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        if policy_cfg["action_space"] == "hybrid":
            return {}
        return {"action_space": policy_cfg["action_space"], "orthogonal_init": True}

    # --- learning ------------------------------------------------------------------------------

    def _adam(self, parameters: Any, lr: float, **options: Any) -> Adam:
        learn = self.cfg.learn
        clip = {"grad_clip_type": learn.grad_clip_type, "clip_value": learn.grad_clip_value}
        return Adam(parameters, lr=lr, **clip, **options)

    def _prepared(self, data: Sequence[Any]) -> Batch:
        """Samples as collecting makes them; also of plain steps in order, as users bring them."""
        columns = columns_of(data)
        if self._lacks(columns):
            columns = self._columns(data)
        if "done" not in columns or "reward" not in columns or not self._lacks(columns):
            return columns
        if "log_prob" in columns:  # samples whose rewards were replaced
            return self._with_advantage(columns)
        steps = {"truncated": np.zeros(length(columns), dtype=bool), **columns}
        steps |= {name: np.asarray(steps[name]).astype(bool) for name in ("done", "truncated")}
        steps["end"] = ends_of(steps)
        if "logit" not in steps:
            steps["logit"] = masked_logits(self._actor(self._normalisers.seen(steps["obs"])))
        samples = columns_of(self._get_train_sample(Rows(steps)))
        if not length(samples):
            raise ValueError(f"{length(columns)} steps make no sample of {type(self).__name__}")
        return samples

    def _lacks(self, columns: Batch) -> bool:
        """Whether these are steps that no sample was made of."""
        return "advantage" not in columns

    @cached_property
    def _actor(self) -> Any:
        """Logits of arrays of observations; made on first use, after the optimizer."""
        return acting_model(self._model, self.acting_mode)

    def _minibatches(self, columns: Batch) -> Iterator[Batch]:
        """One pass in random order; what is left over at the end is dropped.

        Of several learners each takes its share of every batch: they shuffle alike.
        """
        shuffled = self._rng.permutation(length(columns))
        order, batch_size = own_rows(shuffled, self.cfg.learn.batch_size)
        chosen = self._batch(Rows(gather(columns, order)))
        for start in range(0, max(len(order) - batch_size, 0) + 1, batch_size):
            yield take(chosen, slice(start, start + batch_size))

    def _for_loss(self, columns: Batch) -> Batch:
        """Columns that the losses of PPO read; returns on the scale of the critic."""
        names = ("obs", "action", "log_prob", "advantage", "value")
        scaled = columns["return"] / np.float32(self._return_scale.std)
        return {**{name: columns[name] for name in names}, "return": scaled}

    def _check_size(self, columns: Batch, unit: str = "samples") -> None:
        """Refuse collects that never fill a batch; short episodes are learned from as they are."""
        size, batch_size = length(columns), self.cfg.learn.batch_size
        if size < batch_size and self.cfg.collect.n_episode is None:
            raise ConfigError(
                f"policy.learn.batch_size = {batch_size} is more than the {size} {unit} of a "
                "collect (policy.collect.n_sample)"
            )

    def _log_prob(self, output: dict[str, Any], action: Any) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies, (B,) each, by what the network put out."""
        return self._actions.log_prob_entropy(masked_logits(output), action)

    # --- collecting ----------------------------------------------------------------------------

    def _init_collect(self) -> None:
        """Nothing to prepare: the actor is made on first use."""

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        logit = self._logit(obs)
        return ByEnv(env_id, {"action": self._actions.sample(logit, self._rng), "logit": logit})

    def _logit(self, obs: Any) -> Any:
        output = self._actor(obs)
        logit = output["logit"]
        plain = type(logit) is np.ndarray and len(output) == 1  # most often: nothing to prepare
        return logit if plain else masked_logits(output)

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        picked = super()._process_transition(obs, policy_output, timestep)
        return {**picked, "logit": policy_output["logit"]}

    @cached_property
    def _critic(self) -> Any:
        """Values of arrays of observations; made after the optimizer, whose memory it reads."""
        return acting_model(self._model, "compute_critic")

    def _with_advantage(self, steps: Batch) -> Batch:
        """Add columns advantage and return, by the critic as it is now, and its own `value`.

        `value` is the output of the network, so that clipping its move does not depend on how far
        the scale of returns has moved meanwhile.
        """
        scale = np.float32(self._return_scale.std)
        end = ends_of(steps)
        output, last_output = self._values(steps, end)
        value = output * scale
        next_value = np.empty_like(value)
        next_value[:-1] = value[1:]
        # Where a piece ends the next row is another episode: value the true last observation.
        next_value[end] = last_output * scale
        gamma, lambda_ = self.cfg.discount_factor, self._gae_lambda()
        discount = np.where(terminated(steps, self.cfg.learn.ignore_done), 0.0, gamma)
        decay = np.where(end, 0.0, gamma * lambda_)
        reward = self._normalisers.scaled(steps["reward"])
        advantage = flat_advantages(reward, value, next_value, discount=discount, decay=decay)
        return {**steps, "value": output, "advantage": advantage, "return": advantage + value}

    def _gae_lambda(self) -> float:
        return self.cfg.collect.gae_lambda

    def _values(self, steps: Batch, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """On the scale of the critic: of all steps, and after those where a piece ends."""
        obs, last_obs = steps["obs"], take(steps["next_obs"], end)
        value = worked_out_together(
            lambda rows: self._critic(self._normalisers.seen(take(obs, rows)))["value"], len(end)
        )
        return value, self._critic(self._normalisers.seen(last_obs))["value"]

    def _with_log_prob(self, transitions: Batch) -> Batch:
        """The log-probability of the action in place of all logits."""
        kept = {name: column for name, column in transitions.items() if name != "logit"}
        log_prob = self._actions.log_prob(transitions["logit"], transitions["action"])
        return {**kept, "log_prob": log_prob}

    # --- evaluating ----------------------------------------------------------------------------

    def _init_eval(self) -> None:
        """Nothing to prepare: the actor is made on first use."""

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": self._actions.best(self._logit(obs))})


def ends_of(steps: Batch) -> np.ndarray:
    """Where what follows a step is another episode, another env, or nothing."""
    end = np.array(steps.get("end", steps["done"]), dtype=bool)
    end[-1] = True
    return end


def learned(optimizer: Adam, loss: Tensor, metrics: Mapping[str, Tensor]) -> dict[str, Any]:
    """What an update reports."""
    return {"cur_lr": optimizer.param_groups[0]["lr"], "total_loss": loss, **metrics}


def samples_of(columns: Batch, names: Sequence[str]) -> Rows:
    """Only these columns: every other one costs time and memory in the buffer."""
    return Rows({name: columns[name] for name in names})
