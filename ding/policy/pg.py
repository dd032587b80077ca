"""REINFORCE: policy gradient by the returns of whole episodes, without a critic.

Williams 1992, https://doi.org/10.1007/BF00992696

Letters in shapes: B batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from ding.policy.actor_critic import ActorCriticPolicy, check_on_policy, ends_of, learned
from ding.policy.config import CollectConfig, LearnConfig, PolicyConfig, check_samples, one_of
from ding.policy.modes import takes_all_envs
from ding.rl_utils.adder import terminated
from ding.rl_utils.scan import flat_scan
from ding.rl_utils.td import per_agent
from ding.torch_utils import GradientStep
from ding.utils.batch import Batch, ByEnv, Rows, columns_of, stacked_of
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class PGLearnConfig(LearnConfig):
    """One pass over every collect, with an update per `batch_size` samples."""

    entropy_weight: float = 0.01
    baseline: bool = False
    """Subtract the mean return of the collect: less variance, the same expectation."""
    bootstrap_truncated: bool = False
    """Value what a time limit cut off by the mean return. REINFORCE has no value: its returns end
    with the last reward, which makes states close to the limit look worse than they are."""
    grad_clip_type: str | None = "clip_norm"
    grad_clip_value: float | None = 5.0


@dataclass(frozen=True, kw_only=True)
class PGCollectConfig(CollectConfig):
    n_episode: int | None = 8
    collector: dict[str, Any] = field(default_factory=lambda: dict(get_train_sample=True))


@dataclass(frozen=True, kw_only=True)
class PGConfig(PolicyConfig):
    on_policy: bool = True
    action_space: str = "discrete"
    """'discrete' (also for several actions at once) or 'continuous'."""
    deterministic_eval: bool = True
    """Take the likeliest action when evaluating instead of drawing one."""
    learn: PGLearnConfig = field(default_factory=PGLearnConfig)
    collect: PGCollectConfig = field(default_factory=PGCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ("discrete", "continuous"))
        check_on_policy(self, "PG")
        if self.learn.ignore_done and not self.learn.bootstrap_truncated:
            raise ConfigError(
                "policy.learn.ignore_done = True: returns of REINFORCE end with the episode all "
                "the same; set policy.learn.bootstrap_truncated too"
            )


class PGPolicy(ActorCriticPolicy):
    config_class = PGConfig
    acting_mode = None
    cfg: PGConfig
    check_config = staticmethod(check_samples)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "pg"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"action_space": policy_cfg["action_space"]}

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = self._adam(self._model.parameters(), learn.learning_rate)
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {"optimizer": self._optimizer}

    def _forward_learn(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        columns = self._prepared(data)
        return_, rest = columns["return"], columns.get("rest", np.float32(0))
        mean = mean_return(return_, rest)
        target = return_ + rest * mean - (mean if self.cfg.learn.baseline else np.float32(0))
        chosen = {"obs": columns["obs"], "action": columns["action"], "return": target}
        batches = self._minibatches(chosen)
        return [learned(self._optimizer, *self._step(batch)) for batch in batches]

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        log_prob, entropy = self._log_prob(self._model(batch["obs"]), batch["action"])
        return_ = per_agent(batch["return"], log_prob)
        policy_loss, entropy_mean = -(log_prob * return_).mean(), entropy.mean()
        metrics = {
            "policy_loss": policy_loss.detach(),
            "entropy": entropy_mean.detach(),
            "return": batch["return"].mean(),
        }
        return policy_loss - self.cfg.learn.entropy_weight * entropy_mean, metrics

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss", "policy_loss", "entropy", "return"]

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        step = super()._process_transition(obs, policy_output, timestep)
        return {name: step[name] for name in ("obs", "action", "reward", "done")}

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        steps = columns_of(transitions)
        gamma, end, learn = self.cfg.discount_factor, ends_of(steps), self.cfg.learn
        decay = np.where(end, 0.0, gamma)  # G[t] = r[t] + gamma G[t+1]
        reward = self._normalisers.scaled(steps["reward"])
        return_ = flat_scan(reward.astype(np.float64), decay)
        samples: Batch = {"obs": steps["obs"], "action": steps["action"], "return": return_}
        if learn.bootstrap_truncated:
            cut_off = end & ~terminated(steps, learn.ignore_done)
            rest = flat_scan(np.where(cut_off, gamma, 0.0), decay)
            samples["rest"] = np.broadcast_to(per_agent(rest, return_), return_.shape)
        return Rows(samples)

    def _lacks(self, columns: Batch) -> bool:
        return "return" not in columns

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        if self.cfg.deterministic_eval:
            return super()._forward_eval(data)
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": self._actions.sample(self._logit(obs), self._rng)})


def mean_return(return_: np.ndarray, rest: np.ndarray | np.float32) -> np.float32:
    """Mean of `return_ + rest * mean`: what a limit cut off is worth a mean return, too.

    `rest` is the discount of what came after the last step of a piece, zero if that was the end.
    Without a critic it is the best guess, and right where all states are worth the same.
    """
    known = 1.0 - float(rest.mean(dtype=np.float64))
    # Undiscounted and all cut off: nothing says how it goes on.
    return np.float32(return_.mean(dtype=np.float64) / known if known > 1e-6 else 0.0)
