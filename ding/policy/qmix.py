"""QMIX, QPLEX, VDN and independent Q-learning: values of agents, of a team or each by itself.

Rashid et al. 2018 (QMIX), https://arxiv.org/abs/1803.11485
Wang et al. 2020 (QPLEX), https://arxiv.org/abs/2008.01062
Sunehag et al. 2017 (VDN), https://arxiv.org/abs/1706.05296
Tampuu et al. 2015 (independent Q-learning), https://arxiv.org/abs/1511.08779

Single steps are collected, each with what its agents remembered; the replay buffer makes sequences
of them. Letters in shapes: T steps of a sequence, B batch, N envs, A agents, M actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ding.model.action_mask import masked
from ding.model.agents import alive_of, mask_of
from ding.policy.agents import AgentsActor, best_of, explored
from ding.policy.config import (
    CollectConfig,
    LearnConfig,
    OtherConfig,
    PolicyConfig,
    at_least,
    check_buffer,
    one_of,
    within,
)
from ding.policy.dqn import DQNPolicy, EpsConfig
from ding.policy.needs import Needs
from ding.policy.recurrent import with_last_obs
from ding.rl_utils.td import per_agent, sequence_returns
from ding.torch_utils import Adam, GradientStep, RMSprop, TargetNetwork
from ding.utils.batch import Batch, ByEnv, stacked_of, tree_map
from ding.utils.errors import ConfigError
from ding.utils.registry import BUFFER_REGISTRY


class Steps(NamedTuple):
    """Sequences (T, B), what a network says of them, and actions (T, B, A)."""

    values: Mapping[str, Tensor]
    action: Tensor
    obs: Any


@dataclass(frozen=True, kw_only=True)
class QMIXLearnConfig(LearnConfig):
    update_per_collect: int = 20
    batch_size: int = 32
    """Sequences per update."""
    learning_rate: float = 5e-4
    optim_type: str = "rmsprop"
    """'rmsprop' (alpha 0.99, eps 1e-5) or 'adam'."""
    weight_decay: float = 1e-5
    grad_clip_type: str | None = "clip_norm"
    grad_clip_value: float | None = 100.0
    clip_value: float | None = None
    """Established name of grad_clip_value; set one of them."""
    target_update_theta: float | None = 0.008
    """Move the target network this fraction of the way after each update; None: copy instead ..."""
    target_update_freq: int | None = None
    """... every so many updates."""
    double_q: bool = False
    """Let the online network pick the next actions, the target network value them."""

    def __post_init__(self) -> None:
        one_of("policy.learn.optim_type", self.optim_type, ("rmsprop", "adam"))
        at_least("policy.learn.weight_decay", self.weight_decay, 0)
        if self.compile and self.optim_type != "adam":
            raise ConfigError("policy.learn.compile = True needs policy.learn.optim_type = 'adam'")
        if (self.target_update_theta is None) == (self.target_update_freq is None):
            raise ConfigError(
                f"policy.learn.target_update_theta = {self.target_update_theta} and "
                f"target_update_freq = {self.target_update_freq}: set one, the other to None"
            )
        if self.target_update_theta is not None:
            within("policy.learn.target_update_theta", self.target_update_theta, 0, 1)


@dataclass(frozen=True, kw_only=True)
class QMIXCollectConfig(CollectConfig):
    n_sample: int | None = 320
    """Joint steps per collect."""
    unroll_len: int = 10
    """Steps of the sequences that are learned from; what is collected are single steps."""


@dataclass(frozen=True, kw_only=True)
class QMIXOtherConfig(OtherConfig):
    eps: EpsConfig = field(default_factory=lambda: EpsConfig(start=1.0, end=0.05, decay=50000))
    """Exploration."""
    replay_buffer: dict[str, Any] = field(
        default_factory=lambda: {"type": "sequence", "replay_buffer_size": 50000}
    )
    """Settings of the replay buffer; it counts joint steps, not sequences."""


@dataclass(frozen=True, kw_only=True)
class QMIXConfig(PolicyConfig):
    learn: QMIXLearnConfig = field(default_factory=QMIXLearnConfig)
    collect: QMIXCollectConfig = field(default_factory=QMIXCollectConfig)
    other: QMIXOtherConfig = field(default_factory=QMIXOtherConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.collect.unroll_len", self.collect.unroll_len, 1)
        if self.random_collect_size:
            raise ConfigError(
                f"policy.random_collect_size = {self.random_collect_size}: random steps have no "
                "memory of agents to store; explore more by policy.other.eps instead"
            )


class QMIXPolicy(DQNPolicy):
    """One value of the team, from those of its agents by a mixer that never falls in any of them.

    Rewards of agents are summed for the team.
    """

    config_class: ClassVar[type] = QMIXConfig
    action_kinds = ("discrete_agents",)
    cfg: QMIXConfig  # type: ignore[assignment]
    mixers: ClassVar[tuple[Any, ...] | None] = None
    """Values of `policy.model.mixer` that it can have, the usual one first; None: any but None."""
    draws_sequences: ClassVar[bool] = True
    """Its buffer hands out sequences of `policy.collect.unroll_len` steps."""

    @classmethod
    def check_config(cls, cfg: Any) -> None:
        check_buffer(cfg)
        policy = cfg["policy"]
        cls._check_mixer(policy)
        buffer = policy["other"]["replay_buffer"]["type"]
        if "burn_in" not in BUFFER_REGISTRY.get(buffer).config:
            raise ConfigError(
                f"policy '{policy['type']}' learns from sequences, which the replay buffer "
                f"'{buffer}' does not draw; leave its type out"
            )

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "qmix"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        usual = {"global_obs_shape": None, "hidden_size_list": [64, 64]}
        return usual if cls.mixers is None else {**usual, "mixer": cls.mixers[0]}

    @classmethod
    def _check_mixer(cls, policy: Mapping[str, Any]) -> None:
        model = policy["model"]
        if "mixer" not in model or "type" in model:
            return
        mixer, allowed = model["mixer"], cls.mixers
        if mixer is None if allowed is None else mixer not in allowed:
            fitting = {None: "idqn", False: "vdn", "qplex": "qplex"}.get(mixer, "qmix")
            raise ConfigError(
                f"policy.model.mixer = {mixer!r} is not of policy '{policy['type']}'; use policy "
                f"'{fitting}', or leave it out"
            )

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        limit = learn.grad_clip_value if learn.clip_value is None else learn.clip_value
        options: dict[str, Any] = dict(
            lr=learn.learning_rate,
            weight_decay=learn.weight_decay,
            grad_clip_type=learn.grad_clip_type,
            clip_value=limit,
        )
        parameters = self._model.parameters()
        optimizer: Adam | RMSprop
        if learn.optim_type == "adam":
            optimizer = Adam(parameters, **options)
        else:
            optimizer = RMSprop(parameters, alpha=0.99, eps=1e-5, **options)
        self._optimizer = optimizer  # type: ignore[assignment]
        self._target = TargetNetwork(
            self._model, freq=learn.target_update_freq, theta=learn.target_update_theta
        )
        self._step = GradientStep(self._model, optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {"target": self._target, "optimizer": optimizer}

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        exists = batch["mask"].T > 0  # (T, B)
        obs = with_last_obs(batch["obs"], batch["next_obs"], exists)  # (T + 1, B, ...)
        values = self._values(self._model, obs, batch.get("prev_state"))
        target = self._targets(values, obs, batch)  # (T, B), of agents (T, B, A)
        action = batch["action"].transpose(0, 1)
        values, seen = (tree_map(lambda leaf: leaf[:-1], x) for x in (values, obs))
        q_taken, error = self._errors(Steps(values, action, seen), target)
        td_error = target - q_taken.detach()
        learned = self._learned(exists, seen, td_error)
        count = learned.sum().clamp(min=1)
        error = learned * error
        if "weight" in batch:
            error = error * batch["weight"].view(1, -1, *[1] * (error.ndim - 2))
        size = (learned * td_error).abs().transpose(0, 1).flatten(1).sum(dim=1)  # (B,)
        of_each = learned.transpose(0, 1).flatten(1).sum(dim=1).clamp(min=1)
        metrics = {
            "q_value": (learned * q_taken.detach()).sum() / count,
            "target_q_value": (learned * target).sum() / count,
            "priority": size / of_each,
        }
        return error.sum() / count, metrics

    def _values(self, model: Any, obs: Any, memory: Tensor | None) -> dict[str, Tensor]:
        """Of observations (T, B, ...): 'q' (T, B, A, M), and what else is learned from."""
        return {"q": model.values(obs, memory)[0]}

    def _value(self, model: Any, steps: Steps) -> Tensor:
        """Value of the actions, (T, B) or of agents (T, B, A), that targets are made of."""
        return model.team(steps.values["q"], steps.action, steps.obs)

    def _errors(self, steps: Steps, target: Tensor) -> tuple[Tensor, Tensor]:
        """Values of the actions taken, and the error of each step."""
        q_taken = self._value(self._model, steps)
        return q_taken, (target - q_taken).square()

    @torch.no_grad()
    def _targets(self, values: Mapping[str, Tensor], obs: Any, batch: Batch) -> Tensor:
        """r + gamma Q'(s', a') of the team or of each agent; the target network remembers, too.

        It runs over the same steps, so its memory at the next observation is its own.
        """
        target: Any = self._target.module
        next_values = self._values(target, obs, batch.get("prev_state"))
        judge = values if self.cfg.learn.double_q else next_values
        best = masked(judge["q"], mask_of(obs)).argmax(dim=-1)
        value = self._value(target, Steps(next_values, best, obs))
        columns = batch["reward"].transpose(0, 1), batch["discount"].T, batch["mask"].T > 0
        reward, discount, exists = columns
        if value.ndim > discount.ndim:  # every agent by itself
            reward, discount = per_agent(reward, value[1:]), discount.unsqueeze(-1)
            exists = exists.unsqueeze(-1)
        elif reward.ndim > discount.ndim:
            reward = reward.flatten(2).sum(dim=2)
        return sequence_returns(reward, discount, value, exists, self.cfg.nstep)

    def _learned(self, exists: Tensor, seen: Any, td_error: Tensor) -> Tensor:
        """Floats of the shape of the errors: which count."""
        if td_error.ndim == exists.ndim:
            return exists.float()
        alive = alive_of(seen)
        living = torch.ones_like(td_error) if alive is None else alive.float()
        return exists.unsqueeze(-1) * living

    def _get_needs(self) -> Needs:
        return replace(super()._get_needs(), links_steps=True)

    # --- acting --------------------------------------------------------------------------------

    def _get_unroll_len(self) -> int:
        return 1

    def _init_collect(self) -> None:
        self._collector = AgentsActor(self._model)

    def _forward_collect(  # type: ignore[override]
        self, data: Mapping[int, Any], eps: float | np.ndarray = 0.0
    ) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        q, memory = self._collector(env_id, obs)
        output = {"action": explored(q, obs, eps, self._rng)}
        return ByEnv(env_id, output if memory is None else {**output, "prev_state": memory})

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        step = super()._process_transition(obs, policy_output, timestep)
        memory = {key: policy_output[key] for key in ("prev_state",) if key in policy_output}
        return {**step, **memory}

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        self._collector.reset(data_id)

    def _get_memory(self) -> dict[str, Any]:
        return {**super()._get_memory(), "agents": self._collector.state_dict()}

    def _set_memory(self, memory: Mapping[str, Any]) -> None:
        super()._set_memory(memory)
        self._collector.load_state_dict(memory["agents"])

    def _init_eval(self) -> None:
        self._evaluator = AgentsActor(self._model)

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        q, _ = self._evaluator(env_id, obs)
        return ByEnv(env_id, {"action": best_of(q, obs)})

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        self._evaluator.reset(data_id)


class QPLEXPolicy(QMIXPolicy):
    """A value of the team that is best where all its agents' are, and else any (duplex dueling)."""

    mixers = ("qplex",)


class VDNPolicy(QMIXPolicy):
    """The value of the team is the sum of those of its agents."""

    mixers = (False, "vdn")


class IDQNPolicy(QMIXPolicy):
    """Every agent learns by itself: from its own reward, or from that of the team."""

    mixers = (None,)
