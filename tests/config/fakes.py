"""Small parts to compile configs for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ding.config import compile_config
from ding.utils.errors import ConfigError

CREATE = {"env": {"type": "fake"}, "policy": {"type": "fake_typed"}}


@dataclass(frozen=True, kw_only=True)
class EpsConfig:
    start: float = 0.95
    kind: Literal["exp", "linear"] = "exp"


@dataclass(frozen=True, kw_only=True)
class LearnConfig:
    batch_size: int = 64
    """Samples per update."""
    learning_rate: float = 1e-3
    update_per_collect: int = 3
    betas: tuple[float, float] = (0.9, 0.999)
    clip: float | None = None
    learner: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CollectConfig:
    n_sample: int | None = 8
    n_episode: int | None = None
    collector: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OtherConfig:
    eps: EpsConfig = field(default_factory=lambda: EpsConfig(start=0.5))
    replay_buffer: dict[str, Any] = field(default_factory=lambda: {"replay_buffer_size": 77})


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    on_policy: bool = False
    cuda: bool = False
    nstep: int = 1
    """Steps of real reward
    in a target."""
    model: dict[str, Any] = field(default_factory=dict)
    learn: LearnConfig = field(default_factory=LearnConfig)
    collect: CollectConfig = field(default_factory=CollectConfig)
    other: OtherConfig = field(default_factory=OtherConfig)

    def __post_init__(self) -> None:
        if self.nstep < 1:
            raise ValueError(f"nstep must be at least 1, got {self.nstep}")


class TypedPolicy:
    config_class = PolicyConfig

    @staticmethod
    def model_signature(policy_cfg: dict[str, Any]) -> set[str]:
        return {"obs_shape", "action_shape", "hidden_sizes"}

    @staticmethod
    def check_config(cfg: Any) -> None:
        if cfg.policy.learn.clip is not None and cfg.policy.on_policy:
            raise ConfigError("policy.learn.clip has no effect with policy.on_policy")


class UserPolicy(TypedPolicy):
    config: ClassVar[dict[str, Any]] = {"my_key": 3, "learn": {"batch_size": 16, "rho": 0.1}}


class DictPolicy:
    config: ClassVar[dict[str, Any]] = {
        "type": "dict_policy",
        "learn": {"batch_size": 4, "names": ["a"], "learner": {"train_iterations": 5}},
        "collect": {},
    }


class Env:
    config: ClassVar[dict[str, Any]] = {"env_id": None, "act_scale": True, "env_kwargs": {}}


class OpenEnv:
    pass


class Manager:
    config: ClassVar[dict[str, Any]] = {
        "episode_num": float("inf"),
        "max_retry": 1,
        "retry_type": "reset",
        "shape": (1,),
    }


class ManyProcesses(Manager):
    config: ClassVar[dict[str, Any]] = {**Manager.config, "max_processes": 3, "per_process": "auto"}


class Learner:
    config: ClassVar[dict[str, Any]] = {
        "train_iterations": int(1e9),
        "hook": {"save_ckpt_after_iter": 10000},
    }
    config_open = ("hook",)


class Collector:
    config: ClassVar[dict[str, Any]] = {"collect_print_freq": 100}


class EpisodeCollector(Collector):
    config: ClassVar[dict[str, Any]] = {"get_train_sample": False}


class Evaluator:
    config: ClassVar[dict[str, Any]] = {
        "eval_freq": 1000,
        "render": {"render_freq": -1, "mode": "train_iter"},
    }


class Buffer:
    config: ClassVar[dict[str, Any]] = {"replay_buffer_size": 10000, "deepcopy": False}


class Commander:
    pass


def main_config(env: dict[str, Any] | None = None, **policy: Any) -> dict[str, Any]:
    return {"env": {"stop_value": 195, "n_evaluator_episode": 5} | (env or {}), "policy": policy}


def run(main: dict[str, Any], create: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    """compile_config as the pipelines call it."""
    create = CREATE if create is None else create
    return compile_config(main, auto=True, create_cfg=create, **({"save_cfg": False} | kwargs))
