"""Settings that every algorithm has; the file of an algorithm adds its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ding.torch_utils.lr_schedule import KINDS, UNITS, lr_factor
from ding.utils.errors import ConfigError, nearest
from ding.utils.registry import BUFFER_REGISTRY

_MOST_THREADS = 256


@dataclass(frozen=True, kw_only=True)
class LrSchedulerConfig:
    type: str
    """How the learning rates fall: 'linear', 'cosine' or 'step'."""
    decay: int
    """Units until they have fallen to the end; for 'step' between two steps."""
    unit: str = "train_iter"
    """What is counted: 'train_iter' (updates) or 'env_step'."""
    end: float = 0.0
    """Share of the learning rates that is left at the end."""
    gamma: float | None = None
    """What each step of 'step' multiplies them by."""
    warmup: int = 0
    """Units of a linear rise before."""

    def __post_init__(self) -> None:
        path = "policy.learn.lr_scheduler"
        one_of(f"{path}.type", self.type, KINDS)
        one_of(f"{path}.unit", self.unit, UNITS)
        at_least(f"{path}.decay", self.decay, 1)
        within(f"{path}.end", self.end, 0, 1)
        at_least(f"{path}.warmup", self.warmup, 0)
        if (self.gamma is not None) != (self.type == "step"):
            raise ConfigError(
                f"{path}.gamma = {self.gamma} with type = '{self.type}': "
                "'step' needs it, the others have no use for it"
            )
        if self.gamma is not None:
            within(f"{path}.gamma", self.gamma, 0, 1)

    def factor(self, progress: int) -> float:
        """What the learning rates are multiplied by after so many units."""
        return lr_factor(
            progress,
            self.type,
            decay=self.decay,
            end=self.end,
            gamma=self.gamma or 0.0,
            warmup=self.warmup,
        )


@dataclass(frozen=True, kw_only=True)
class LearnConfig:
    update_per_collect: int = 1
    """Updates after each collect."""
    batch_size: int = 64
    """Samples per update."""
    learning_rate: float = 1e-3
    """Step size of the optimizer."""
    lr_scheduler: LrSchedulerConfig | None = None
    """How the learning rates (all of them) change during training; None: they do not."""
    grad_clip_type: str | None = None
    """'clip_norm' or 'clip_value' ..."""
    grad_clip_value: float | None = None
    """... and the norm or value that gradients are cut to."""
    ignore_done: bool = False
    """Bootstrap through terminations too, for envs whose end means nothing."""
    compile: bool = False
    """Compile loss, gradient, clipping and Adam into one graph; needs a C++ compiler."""
    threads: int | None = None
    """Torch threads; by default one, or all cores if the network is large enough to gain."""
    multi_gpu: bool = False
    """Several GPUs in one process: False; parallel runs have several learners instead."""
    resume_training: bool = False
    """Take the counters from a loaded checkpoint as well."""
    learner: dict[str, Any] = field(default_factory=dict)
    """Settings of the learner."""


@dataclass(frozen=True, kw_only=True)
class CollectConfig:
    n_sample: int | None = None
    """Training samples per collect; set this or n_episode."""
    n_episode: int | None = None
    """Whole episodes per collect; set this or n_sample."""
    unroll_len: int = 1
    """Steps per training sample; more than one only for recurrent policies."""
    save_path: str | None = None
    """Where `collect_demo_data` writes if it is not told."""
    data_type: Literal["naive", "hdf5", "ding"] | None = None
    """... and in which format: 'naive' (a pickle of rows), 'hdf5' (flat columns) or 'ding' (checked
    files of ours); None: by the ending of the name, '.hdf5' is ours, anything else a pickle."""
    collector: dict[str, Any] = field(default_factory=dict)
    """Settings of the collector."""


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    evaluator: dict[str, Any] = field(default_factory=dict)
    """Settings of the evaluator."""


HER_STRATEGIES = ("future", "final", "episode")


@dataclass(frozen=True, kw_only=True)
class HerConfig:
    her_strategy: str = "future"
    """Which goal of its episode a step gets: one reached later, the last one, or any."""
    her_replay_k: int = 4
    """Relabelled samples for each original one."""
    ends_at_goal: bool | None = None
    """Whether reaching a goal ends an episode; None: by the env's compute_terminated."""
    split_func: Any = None
    """For observations that are no Dict: 'module:function' from obs to (state, desired goal,
    achieved goal), of rows; ..."""
    merge_func: Any = None
    """... from state and goal to an observation; ..."""
    goal_reward_func: Any = None
    """... and from achieved and desired goal to rewards."""

    def __post_init__(self) -> None:
        path = "policy.other.her"
        one_of(f"{path}.her_strategy", self.her_strategy, HER_STRATEGIES)
        at_least(f"{path}.her_replay_k", self.her_replay_k, 0)
        names = ("split_func", "merge_func", "goal_reward_func")
        missing = [name for name in names if getattr(self, name) is None]
        if 0 < len(missing) < len(names):
            raise ConfigError(f"{path}.{missing[0]} is missing; give all of {names}, or none")


@dataclass(frozen=True, kw_only=True)
class DemonstrationsConfig:
    path: str = ""
    """File of demonstrations, made by `ding demo make` or in an established format."""
    share: float = 0.25
    """Share of each batch that is drawn from them ..."""
    share_end: float | None = None
    """... and what it falls (or rises) to, linearly ..."""
    share_decay: int = 10_000
    """... within so many updates."""
    pretrain: int = 0
    """Updates on demonstrations alone, before anything is collected."""
    n_episode: int | None = None
    """Only the first so many episodes; None: all."""
    agent_reward: float | None = None
    """Reward of every step of the agent, in place of the env's; None: the env's ..."""
    expert_reward: float | None = None
    """... and of every step of the demonstrations."""

    def __post_init__(self) -> None:
        path = "policy.other.demonstrations"
        if not self.path:
            raise ConfigError(f"{path}.path is missing: the file of demonstrations")
        within(f"{path}.share", self.share, 0, 1)
        if self.share_end is not None:
            within(f"{path}.share_end", self.share_end, 0, 1)
        at_least(f"{path}.share_decay", self.share_decay, 1)
        at_least(f"{path}.pretrain", self.pretrain, 0)
        if self.n_episode is not None:
            at_least(f"{path}.n_episode", self.n_episode, 1)
        if (self.agent_reward is None) != (self.expert_reward is None):
            raise ConfigError(f"set both of {path}.agent_reward and expert_reward, or none")

    def share_at(self, train_iter: int) -> float:
        """Share of demonstrations in the batch of this update."""
        if train_iter < self.pretrain:
            return 1.0
        if self.share_end is None:
            return self.share
        progress = min((train_iter - self.pretrain) / self.share_decay, 1.0)
        return self.share + progress * (self.share_end - self.share)


@dataclass(frozen=True, kw_only=True)
class OtherConfig:
    demonstrations: DemonstrationsConfig | None = None
    """Steps of an expert in every batch; None: the agent's own alone."""
    her: HerConfig | None = None
    """Hindsight: replayed steps get goals that their episode reached; None: they keep theirs."""
    replay_buffer: dict[str, Any] = field(default_factory=dict)
    """Settings of the replay buffer."""
    commander: dict[str, Any] = field(default_factory=dict)
    """Settings of the commander."""


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    type: str = ""
    """Registered name."""
    import_names: list[str] = field(default_factory=list)
    """Modules to import first, so that what they register is known."""
    on_policy: bool = False
    """Samples are used once and dropped when the weights have changed."""
    cuda: bool = False
    """Train on a GPU."""
    multi_gpu: bool = False
    """Several GPUs in one process: False; parallel runs have several learners instead."""
    bp_update_sync: bool = True
    """With several learners: average the gradients at every update."""
    traj_len_inf: bool = False
    """Hand out samples of whole episodes only."""
    random_collect_size: int = 0
    """Samples collected by a random policy before training starts."""
    transition_with_policy_data: bool = False
    """Warm up with the policy instead of at random; only where there is no warm-up, for now."""
    discount_factor: float = 0.99
    """Gamma."""
    nstep: int = 1
    """Steps of real reward in a target."""
    priority: bool = False
    """Prioritised replay."""
    priority_IS_weight: bool = False  # noqa: N815 (established key)
    """Correct the bias of prioritised replay by importance weights."""
    obs_norm: bool = False
    """Normalise observations by running statistics of all envs, saved with the weights."""
    obs_norm_range: tuple[float, float] = (-3.0, 3.0)
    """Bounds of normalised observations."""
    reward_norm: bool = False
    """Divide rewards by the running deviation of the discounted return ..."""
    reward_norm_discount: float | None = None
    """... with this discount; by default discount_factor."""
    load_path: str | None = None
    """Checkpoint to start from."""
    model: dict[str, Any] = field(default_factory=dict)
    """Arguments of the model."""
    learn: LearnConfig = field(default_factory=LearnConfig)
    collect: CollectConfig = field(default_factory=CollectConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    other: OtherConfig = field(default_factory=OtherConfig)

    def __post_init__(self) -> None:
        at_least("policy.nstep", self.nstep, 1)
        self._check_counts()
        within("policy.discount_factor", self.discount_factor, 0, 1)
        if self.priority_IS_weight and not self.priority:
            raise ConfigError(
                "policy.priority_IS_weight = True takes effect with priority = True only"
            )
        self._check_effects()
        clip_type = self.learn.grad_clip_type
        if clip_type in ("clip_norm", "clip_value") and self.learn.grad_clip_value is None:
            raise ConfigError(
                f"policy.learn.grad_clip_type = '{clip_type}' and grad_clip_value = None: set both "
                "or none"
            )

    def _check_effects(self) -> None:
        """Refuse established settings that nothing would act upon."""
        for path, value in (
            ("policy.multi_gpu", self.multi_gpu),
            ("policy.learn.multi_gpu", self.learn.multi_gpu),
        ):
            if value:
                raise ConfigError(
                    f"{path} = True: one learner trains on one GPU; several share every batch and "
                    "average their gradients in a parallel run: ding -m parallel with "
                    "policy.learn.learner.learner_num = 2 or more"
                )
        if self.transition_with_policy_data and self.random_collect_size:
            raise ConfigError(
                "policy.transition_with_policy_data = True: the warm-up of random_collect_size = "
                f"{self.random_collect_size} samples draws its actions at random and stores "
                "nothing of the policy's; leave it out, or set random_collect_size = 0"
            )
        own = type(self)  # of an algorithm here; users say of theirs what they like
        is_built_in = own is not PolicyConfig and own.__module__.startswith("ding.policy.")
        if is_built_in and self.on_policy != own.on_policy:
            data = "on-policy" if own.on_policy else "from a replay buffer"
            raise ConfigError(
                f"policy.on_policy = {self.on_policy}: policy '{self.type}' learns {data}; leave "
                "it out"
            )

    def _check_counts(self) -> None:
        at_least("policy.learn.batch_size", self.learn.batch_size, 1)
        at_least("policy.learn.update_per_collect", self.learn.update_per_collect, 1)
        at_least("policy.random_collect_size", self.random_collect_size, 0)
        if self.learn.threads is not None:
            within("policy.learn.threads", self.learn.threads, 1, _MOST_THREADS)
        for path, value in (
            ("policy.collect.n_sample", self.collect.n_sample),
            ("policy.collect.n_episode", self.collect.n_episode),
        ):
            if value is not None:
                at_least(path, value, 1)
        for name, value in vars(self.learn).items():
            if "learning_rate" in name and not value > 0:
                raise ConfigError(f"policy.learn.{name} = {value}: must be above 0")
            if name.endswith(("_weight", "clip_ratio")):
                at_least(f"policy.learn.{name}", value, 0)


def check_multi_agent(cfg: Any, agents: str) -> None:
    """Refuse one agent where a policy is for several, and several where it is for one.

    Configs are led to the policy for several, `agents`, by their `multi_agent` before.
    """
    if cfg.multi_agent != type(cfg).multi_agent:
        kind = "one agent" if cfg.multi_agent else "several agents"
        raise ConfigError(
            f"policy.multi_agent = {cfg.multi_agent}: this policy is for {kind}; leave it out, or "
            f"create the policy by its config (create_policy), where True makes it '{agents}'"
        )


def at_least(path: str, value: float, low: float) -> None:
    if not value >= low:
        raise ConfigError(f"{path} = {value}: must be at least {low}")


def within(path: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{path} = {value}: must be between {low} and {high}")


def one_of(path: str, value: str, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise ConfigError(f"{path} = '{value}'{nearest(value, valid)}")


def unused(path: str, value: float, default: float, instead: str) -> None:
    if value != default:
        raise ConfigError(f"{path} = {value} has no effect here; set {instead}")


def check_buffer(cfg: Any) -> None:
    """Refuse a replay buffer that could never give what the policy wants of it."""
    policy = cfg["policy"]
    if policy["on_policy"]:
        if policy["other"].get("demonstrations") is not None:
            raise ConfigError(
                "policy.other.demonstrations mixes an expert's steps into replayed batches, but "
                f"policy '{policy['type']}' learns on-policy; use an off-policy one such as 'dqfd'"
            )
        if policy["other"].get("her") is not None:
            raise ConfigError(
                f"policy.other.her relabels what is replayed, but policy '{policy['type']}' learns "
                "on-policy; use an off-policy one such as 'dqn' or 'sac', or leave it out"
            )
        return
    buffer = policy["other"]["replay_buffer"]
    kind = BUFFER_REGISTRY.get(buffer["type"])
    if policy.get("priority") and not kind.supports_priority:
        raise ConfigError(
            f"policy.priority = True, but the replay buffer '{buffer['type']}' draws uniformly; "
            "set create_config.replay_buffer = dict(type='advanced') or leave priority out"
        )
    size, batch_size = buffer.get("replay_buffer_size"), policy["learn"].get("batch_size")
    if size is not None and batch_size is not None and size < batch_size:
        raise ConfigError(
            f"policy.other.replay_buffer.replay_buffer_size = {size} is less than a batch "
            f"(policy.learn.batch_size = {batch_size}): nothing would be learned"
        )


def check_samples(cfg: Any) -> None:
    """For policies that learn from single steps: refuse what would collect anything else."""
    check_buffer(cfg)
    collect = cfg["policy"]["collect"]
    collector = collect["collector"]
    # A buffer of whole episodes is for loops written by hand, which make samples themselves.
    by_hand = cfg["policy"]["other"]["replay_buffer"].get("type") == "episode"
    gives_episodes = collector.get("type") == "episode" and not collector.get("get_train_sample")
    if gives_episodes and not by_hand:
        raise ConfigError(
            f"policy '{cfg['policy']['type']}' learns from samples, but an episode collector gives "
            "whole episodes; set policy.collect.collector.get_train_sample = True"
        )
    if collect["unroll_len"] != 1:
        raise ConfigError(
            f"policy.collect.unroll_len = {collect['unroll_len']} has no effect in policy "
            f"'{cfg['policy']['type']}', which is not recurrent; leave it out"
        )
