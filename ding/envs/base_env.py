"""What an environment is, and how a config names one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from ding.utils.batch import ByEnv, take
from ding.utils.errors import DingError
from ding.utils.registry import ENV_REGISTRY, class_of

BaseEnvTimestep = namedtuple("BaseEnvTimestep", ["obs", "reward", "done", "info"])


class VecStep(NamedTuple):
    """One step of N envs; `obs` is what the action led to, also where the episode is over."""

    obs: Any
    """Array or nested dict/tuple of arrays, (N, ...)."""
    reward: np.ndarray
    """(N,) float32; (N, ...) if the env's reward is a vector."""
    done: np.ndarray
    """(N,) bool: the episode is over."""
    info: Sequence[dict[str, Any]]
    truncated: np.ndarray
    """(N,) bool: over, but cut off by a limit; values may still be bootstrapped from `obs`."""
    abnormal: np.ndarray
    """(N,) bool: the trajectory that leads here must be dropped."""
    env_id: np.ndarray
    """(N,) int64."""


class StepByEnv(ByEnv):
    """`{env_id: BaseEnvTimestep}`; `.stacked` is a `VecStep`."""

    def _rows(self) -> list[BaseEnvTimestep]:
        step: VecStep = self.stacked
        obs = [take(step.obs, k) for k in range(len(self.ids))]
        return list(map(BaseEnvTimestep, obs, step.reward, step.done.tolist(), step.info))


class BaseEnv(ABC):
    """An environment. Make the simulator in the first `reset`, not in `__init__`."""

    python_actions = False
    """Discrete actions come as `int`; otherwise, as all others, as arrays."""

    _observation_space: Any = None
    _action_space: Any = None
    _reward_space: Any = None
    _seed: int | None = None
    _dynamic_seed = True
    _seed_rng: np.random.Generator | None = None
    _seed_is_fresh = False

    episode_seed: int | None = None
    """Seed of the running episode, as `_next_seed` gave it: what a replay of it needs."""

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        self._cfg: Any = cfg

    @abstractmethod
    def reset(self, **kwargs: Any) -> Any:
        """Begin an episode and return its first observation."""

    @abstractmethod
    def step(self, action: Any) -> BaseEnvTimestep: ...

    @abstractmethod
    def close(self) -> None: ...

    def __repr__(self) -> str:
        return type(self).__name__

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Seed the coming resets: all draw from it, but the first uses a static seed as it is."""
        self._seed = int(seed)
        self._dynamic_seed = dynamic_seed
        self._seed_rng = np.random.default_rng(self._seed)
        self._seed_is_fresh = True

    def _next_seed(self) -> int | None:
        """The seed of the coming reset; None if the env was never seeded."""
        if self._seed_rng is None:
            return None
        fresh, self._seed_is_fresh = self._seed_is_fresh, False
        as_given = fresh and not self._dynamic_seed
        self.episode_seed = self._seed if as_given else int(self._seed_rng.integers(2**31))
        return self.episode_seed

    @property
    def observation_space(self) -> Any:
        return self._observation_space

    @property
    def action_space(self) -> Any:
        return self._action_space

    @property
    def reward_space(self) -> Any:
        return self._reward_space

    def random_action(self) -> Any:
        return self.action_space.sample()

    def enable_save_replay(self, replay_path: str) -> None:
        raise DingError(f"{self!r} cannot save replays: it does not define enable_save_replay")

    @staticmethod
    def create_collector_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        """One config per collecting env."""
        return _env_cfgs(cfg, "collector_env_num")

    @staticmethod
    def create_evaluator_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        """One config per evaluating env."""
        return _env_cfgs(cfg, "evaluator_env_num")


def _env_cfgs(cfg: Mapping[str, Any], count_key: str) -> list[Any]:
    if count_key not in cfg:
        raise DingError(f"env config lacks '{count_key}': how many envs shall be made?")
    count = cfg[count_key]
    if not isinstance(count, int) or count < 1:
        raise DingError(f"env.{count_key} must be a positive int, got {count!r}")
    copies: list[Any] = [deepcopy(cfg) for _ in range(count)]
    for copy in copies:
        copy.pop("collector_env_num", None)
        copy.pop("evaluator_env_num", None)
    return copies


def is_truncated(info: Mapping[str, Any] | None) -> bool:
    """Whether the `info` of a done step says that the episode was only cut off."""
    return bool(info and (info.get("truncated") or info.get("TimeLimit.truncated")))


def get_env_cls(cfg: Mapping[str, Any]) -> type[BaseEnv]:
    """The class that `type` names; a config with an `env_id` alone means `DingEnvWrapper`."""
    named = {"type": cfg.get("type") or "ding_env_wrapper", "import_names": cfg.get("import_names")}
    return class_of(ENV_REGISTRY, named)


def get_vec_env_setting(
    cfg: Mapping[str, Any], collect: bool = True, eval_: bool = True
) -> tuple[Callable[..., BaseEnv], list[Any] | None, list[Any] | None]:
    """The env class, and one config for every collecting and every evaluating env."""
    env_cls = get_env_cls(cfg)
    collector = env_cls.create_collector_env_cfg(cfg) if collect else None
    evaluator = env_cls.create_evaluator_env_cfg(cfg) if eval_ else None
    return env_cls, collector, evaluator


def not_a_timestep(given: Any) -> TypeError:
    kind = f"a tuple of {len(given)}" if isinstance(given, tuple) else type(given).__name__
    return TypeError(
        f"an env's step must return BaseEnvTimestep(obs, reward, done, info), not {kind}"
    )
