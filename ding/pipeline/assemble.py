"""Assembly: the parts of a run between collecting and learning, made from its config in one place.

A serial run holds all of them; in a parallel one the buffer service has those of replay, and the
learner those of an on-policy run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ding.config.tree import short
from ding.data.demo_formats import load_demonstrations
from ding.data.expert_buffer import ExpertBuffer
from ding.envs import get_vec_env_setting
from ding.pipeline.batches import CollectedBatches, Mixture, ReplayBatches
from ding.policy import get_policy_cls
from ding.policy.config import DemonstrationsConfig
from ding.utils.batch import Batch, columns_of
from ding.utils.errors import CheckpointError, ConfigError
from ding.worker import create_buffer
from ding.worker.buffer import IBuffer
from ding.worker.buffer.relabelling import Drawn, Relabeller

EXPERT = "expert"
EnvSetting = tuple[Callable[..., Any], Sequence[Any] | None, Sequence[Any] | None]


@runtime_checkable
class Stateful(Protocol):
    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class LearnedPart(Protocol):
    def save(self, name: str) -> None: ...


@dataclass(frozen=True)
class Parts:
    """Where samples are kept, and what relabels those that are learned from."""

    batches: ReplayBatches | CollectedBatches
    buffer: IBuffer | None = None
    """What the agent's own samples go to; saved by itself since it is large."""
    named: Mapping[str, Any] = field(default_factory=dict)
    """Other parts of the run by name; those with a state are saved with the run."""

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._stateful.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        ours = self._stateful
        for name in sorted({*ours, *state}):
            if name not in state:
                raise CheckpointError(f"the saved run has no state of its part '{name}'")
            if name not in ours:
                raise CheckpointError(
                    f"the saved run has a part '{name}', which this one is made without"
                )
            try:
                ours[name].load_state_dict(state[name])
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                raise CheckpointError(
                    f"the saved state of part '{name}' is of another kind: {error!r}"
                ) from error

    @property
    def _stateful(self) -> dict[str, Stateful]:
        return {name: part for name, part in self.named.items() if isinstance(part, Stateful)}

    def save(self, name: str) -> None:
        """Write what others may load under this name: learned rewards."""
        for part in self.named.values():
            if isinstance(part, LearnedPart):
                part.save(name)

    def close(self) -> None:
        for part in (self.buffer, *self.named.values()):
            if hasattr(part, "close"):
                part.close()


def env_setting_of(cfg: Any, given: EnvSetting | None) -> EnvSetting:
    """Env function and env configs: as given, after a check, or as the config says."""
    if given is None:
        return get_vec_env_setting(cfg.env)
    wanted = (
        "give (env_fn, collector_env_cfg, evaluator_env_cfg): what makes an env when called as "
        "env_fn(cfg=...), and two lists with a config for each env"
    )
    if not (isinstance(given, (tuple, list)) and len(given) == 3 and callable(given[0])):
        raise ConfigError(f"env_setting = {short(given)}: {wanted}")
    for name, cfgs in zip(("collector_env_cfg", "evaluator_env_cfg"), given[1:], strict=True):
        if cfgs is not None and not (isinstance(cfgs, (list, tuple)) and len(cfgs)):
            raise ConfigError(f"{name} of env_setting = {short(cfgs)}: {wanted}")
    try:
        inspect.signature(given[0]).bind(cfg={})
    except TypeError as error:
        raise ConfigError(f"env_fn of env_setting: {given[0]!r}: {error}; {wanted}") from error
    except ValueError:  # Written in C: it has no signature.
        pass
    return given


def assemble(cfg: Any, env_setting: EnvSetting | None = None) -> Parts:
    """Parts of the run that this compiled config describes; envs as it says unless given."""
    policy = cfg.policy
    named = relabelling_parts(cfg, env_setting)
    relabel = [part for part in named.values() if isinstance(part, Relabeller)]
    if policy.on_policy:
        collected = CollectedBatches(relabel)
        return Parts(collected, named={**named, "draws": collected} if relabel else {})
    try:
        buffer = create_buffer(policy.other.replay_buffer, exp_name=cfg.exp_name)
    except MemoryError as error:
        size = policy.other.replay_buffer.replay_buffer_size
        raise ConfigError(
            f"config key 'policy.other.replay_buffer.replay_buffer_size' = {size:,}: there is not "
            "enough memory for so many samples; 100,000 to 1,000,000 are usual"
        ) from error
    if policy.other.get("demonstrations") is None:
        return Parts(ReplayBatches.of(buffer, policy, relabel), buffer, named)
    expert = expert_buffer(cfg, env_setting)
    shares = DemonstrationsConfig(**policy.other.demonstrations)

    def shares_at(train_iter: int) -> dict[str, float]:
        share = shares.share_at(train_iter)
        return {"agent": 1 - share, EXPERT: share}

    buffers: dict[str, IBuffer] = {"agent": buffer, EXPERT: expert}
    mixture = Mixture(buffers, shares_at)
    batches = ReplayBatches.of(mixture, policy, relabel, pretrain=shares.pretrain)
    return Parts(batches, buffer, {**named, "expert_buffer": expert})


def expert_buffer(cfg: Any, env_setting: EnvSetting | None) -> ExpertBuffer:
    """The demonstrations of the config, checked against its envs."""
    policy = cfg.policy
    settings = policy.other.demonstrations
    env_fn, env_cfgs, *_ = env_setting_of(cfg, env_setting)
    demonstrations = load_demonstrations(settings.path).episodes(slice(settings.n_episode))
    env = env_fn((env_cfgs or [{}])[0])
    try:
        demonstrations.check(env.observation_space, env.action_space, cfg.env.get("env_id"))
    finally:
        env.close()
    more = get_policy_cls(policy).expert_columns(policy, columns_of(demonstrations.steps()))
    return ExpertBuffer(
        demonstrations,
        policy.other.replay_buffer,
        more,
        at_least=policy.learn.batch_size,
        exp_name=cfg.exp_name,
    )


class FixedRewards:
    """Relabelling part: one reward for every step of the agent, another for those of an expert.

    Reddy et al. 2020 (SQIL), https://arxiv.org/abs/1905.11108
    """

    def __init__(self, agent: float, expert: float) -> None:
        self._agent, self._expert = np.float32(agent), np.float32(expert)

    def relabel(self, drawn: Drawn) -> Batch:
        reward = self._expert if drawn.source == "expert_buffer" else self._agent
        return {**drawn.steps, "reward": np.full_like(drawn.steps["reward"], reward)}


def relabelling_parts(cfg: Any, env_setting: EnvSetting | None) -> dict[str, Any]:
    """What gives samples other goals or rewards, in the order in which it is applied."""
    parts: dict[str, Any] = {}
    her, reward_model = cfg.policy.other.get("her"), cfg.get("reward_model")
    check_intrinsic(cfg.policy, reward_model or {})
    if her is not None:
        from ding.reward_model.her import HindsightGoals

        check_takes_other_rewards(cfg.policy, "policy.other.her")
        env_fn, env_cfgs, *_ = env_setting_of(cfg, env_setting)
        parts["her"] = HindsightGoals.for_env(her, env_fn, (env_cfgs or [{}])[0])
    demonstrations = cfg.policy.other.get("demonstrations") or {}
    if demonstrations.get("expert_reward") is not None:
        check_takes_other_rewards(cfg.policy, "policy.other.demonstrations")
        parts["fixed_rewards"] = FixedRewards(
            demonstrations["agent_reward"], demonstrations["expert_reward"]
        )
    if reward_model is not None:
        from ding.reward_model import LearnedReward, create_reward_model

        check_takes_other_rewards(cfg.policy, "reward_model")
        device = "cuda" if cfg.policy.cuda else "cpu"
        model = create_reward_model(reward_model, device)
        parts["reward_model"] = LearnedReward(model, reward_model.type, cfg.exp_name)
    return parts


def check_takes_other_rewards(policy_cfg: Any, section: str) -> None:
    """Refuse policies whose samples hold what was worked out from the former rewards."""
    policy = get_policy_cls(policy_cfg)
    takes = policy.takes_other_rewards
    if takes is None:
        takes = getattr(policy._get_train_sample, "single_steps", False)
    if not takes:
        instead = "'ppo' or 'a2c'" if policy_cfg.on_policy else "'dqn', 'sac' or 'r2d2'"
        raise ConfigError(
            f"config section '{section}': policy '{policy_cfg.type}' works out its targets when it "
            f"collects, so other rewards would come too late; use for example {instead}"
        )


def check_intrinsic(policy_cfg: Any, reward_model_cfg: Mapping[str, Any]) -> None:
    """A column of intrinsic rewards and a policy that reads it go together."""
    separate = reward_model_cfg.get("intrinsic_reward_type") == "new"
    reads = policy_cfg.get("intrinsic") is not None
    if separate and not reads:
        raise ConfigError(
            "reward_model.intrinsic_reward_type = 'new' gives a column that policy "
            f"'{policy_cfg.type}' does not read; set policy.intrinsic = dict(weight=0.5) with "
            "'ppo', or use 'add'"
        )
    if reads and not separate:
        raise ConfigError(
            "policy.intrinsic is for a reward model that gives intrinsic rewards apart; set "
            "reward_model.intrinsic_reward_type = 'new'"
        )
