"""What every env manager offers around `reset` and `step`: seeds, states, spaces, its envs."""

from __future__ import annotations

import logging
import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np
from easydict import EasyDict

from ding.envs.base_env import StepByEnv
from ding.envs.manager.columns import ActionRows, ObsColumns
from ding.envs.manager.flight.recorder import FlightRecorder
from ding.envs.manager.slot import EnvState as EnvState
from ding.utils.batch import ByEnv, take
from ding.utils.errors import ConfigError

logger = logging.getLogger(__name__)

# What objects raise that do not want to be pickled.
UNPICKLABLE = (
    *(pickle.PicklingError, TypeError, AttributeError),
    *(NotImplementedError, RuntimeError, ValueError),
)
ResetParam = Mapping[int, Mapping[str, Any] | None]


class BadRetryTypeError(ConfigError, AssertionError):
    """`retry_type` is neither 'reset' nor 'renew'; handlers of an assertion see it too."""


class EnvManager(ABC):
    """Runs one env for each callable of `env_fn`."""

    config: ClassVar[dict[str, Any]] = {
        # Episodes of each env before it is DONE.
        "episode_num": float("inf"),
        # Attempts at a reset, and steps of one env that may fail in a row; 1 means no second try.
        "max_retry": 1,
        # After a failure call reset again ('reset') or close the env and make a new one ('renew').
        "retry_type": "reset",
        # Reset an env when its episode ends; else it waits in NEED_RESET for the caller's reset.
        "auto_reset": True,
        # Limits in seconds for one step and one reset of one env; None for no limit.
        "step_timeout": None,
        "reset_timeout": None,
        # Seconds between two attempts at a reset.
        "retry_waiting_time": 0.1,
        # Directory for files that replay what led to an env's failure (`ding -m replay`), or None.
        "flight_dir": "flight",
    }
    method_name_list: ClassVar[list[str]] = [
        *("reset", "step", "seed", "close", "enable_save_replay"),
        *("render", "reward_shaping", "enable_save_figure"),
    ]

    @classmethod
    def default_config(cls) -> EasyDict:
        return EasyDict(deepcopy(cls.config), cfg_type=f"{cls.__name__}Dict")

    def __init__(
        self, env_fn: Sequence[Callable[[], Any]], cfg: Mapping[str, Any] | None = None
    ) -> None:
        if not env_fn or not all(callable(fn) for fn in env_fn):
            raise ValueError("env_fn must be a list of callables that make one env each")
        self._cfg: dict[str, Any] = {**self.config, **(cfg or {})}
        retry_type = self._cfg["retry_type"]
        if retry_type not in ("reset", "renew"):
            raise BadRetryTypeError(
                f"env.manager.retry_type: 'reset' or 'renew', not {retry_type!r}"
            )
        self._env_fn = list(env_fn)
        self._step_timeout: float | None = self._cfg["step_timeout"]
        self._reset_timeout: float | None = self._cfg["reset_timeout"]
        self._max_retry = max(int(self._cfg["max_retry"]), 1)
        count = len(env_fn)
        self._all_ids = np.arange(count)
        self._env_ref: Any = None
        self._ref_is_unused = False
        self._columns: ObsColumns | None = None
        self._splitter: ActionRows | None = None
        self._told_unpicklable = False
        self._flights = FlightRecorder(count, self._env_fn, self._cfg)
        self.faults: Counter[str] = Counter()
        self._seeds: list[int | None] = [None] * count
        self._dynamic: list[bool | None] = [None] * count
        self._unsent: set[int] = set()
        self._replay_paths: list[str | None] = [None] * count
        self._clear()

    def _clear(self) -> None:
        count = self.env_num
        self._envs: list[Any] = []
        self._obs: Any = None
        self._states = [EnvState.VOID] * count
        self._run_ids = self._all_ids[:0]
        self._episodes = [0] * count
        self._renewals = [0] * count
        self._reset_params: list[dict[str, Any]] = [{} for _ in range(count)]
        self._failures: dict[int, int] = {}
        self._broken: dict[int, Exception] = {}

    @abstractmethod
    def launch(self, reset_param: ResetParam | None = None) -> None:
        """Make the envs and begin their first episodes."""

    @abstractmethod
    def reset(self, reset_param: ResetParam | None = None) -> None: ...

    @abstractmethod
    def step(self, actions: Mapping[int, Any]) -> StepByEnv: ...

    @abstractmethod
    def close(self) -> None: ...

    def flights_under(self, directory: str | Path) -> None:
        """A relative `flight_dir` means one in this directory, not in the working directory."""
        if self._cfg["flight_dir"] is not None:
            self._flights.directory = Path(directory) / self._cfg["flight_dir"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seed(
        self, seed: int | Sequence[int] | Mapping[int, int], dynamic_seed: bool | None = None
    ) -> None:
        """Seed the next reset, and with `dynamic_seed=False` every later full `reset()` again."""
        for i, one in self._seed_by_env(seed).items():
            self._seeds[i] = int(one)
            self._dynamic[i] = dynamic_seed
            self._unsent.add(i)

    def _seed_by_env(self, seed: Any) -> dict[int, int]:
        if isinstance(seed, (int, np.integer)):
            return {i: int(seed) + i for i in range(self.env_num)}
        if isinstance(seed, Mapping):
            self._check_known(seed)
            return dict(seed)
        if isinstance(seed, (list, tuple)):
            if len(seed) != self.env_num:
                raise ValueError(f"got {len(seed)} seeds for {self.env_num} envs")
            return dict(enumerate(seed))
        raise TypeError(f"seed must be an int, a list or a dict by env id, got {seed!r}")

    def _repeat_static_seeds(self) -> None:
        for i in self._seeded():
            if self._dynamic[i] is False:
                self._unsent.add(i)
                self._renewals[i] = 0

    def _seed_anew(self) -> None:
        """For new episodes; with dynamic seeds other ones than the run began with."""
        for i in self._seeded():
            self._unsent.add(i)
            self._renewals[i] += self._dynamic[i] is not False

    def _seeded(self) -> Iterable[int]:
        return (i for i, seed in enumerate(self._seeds) if seed is not None)

    @property
    def ready_obs(self) -> ByEnv:
        """Observations of the envs that wait for an action; not written to by later steps."""
        self._check_open()
        ids = self._run_ids
        return ByEnv(ids, self._obs if ids is self._all_ids else take(self._obs, ids))

    @property
    def ready_obs_id(self) -> list[int]:
        return self._run_ids.tolist()

    @property
    def ready_imgs(self) -> dict[int, Any]:
        return {i: self._envs[i].render() for i in self.ready_obs_id}

    @property
    def active_env(self) -> list[int]:
        """Ids of the envs that have episodes before them."""
        over = (EnvState.VOID, EnvState.DONE, EnvState.ERROR)
        return [i for i, state in enumerate(self._states) if state not in over]

    @property
    def done(self) -> bool:
        return all(state == EnvState.DONE for state in self._states)

    @property
    def closed(self) -> bool:
        return not self._envs

    @property
    def gives_views(self) -> bool:
        """Whether observations that were handed out change when their envs step."""
        return False

    @property
    def env_num(self) -> int:
        return len(self._env_fn)

    @property
    def env_state(self) -> dict[int, EnvState]:
        return dict(enumerate(self._states))

    @property
    def env_ref(self) -> Any:
        """An env to read spaces and attributes from."""
        if self._env_ref is None:
            env = self._env_fn[0]()
            self._env_ref, self._ref_is_unused = env, True
            if getattr(env, "observation_space", None) is None:
                env.reset()
                env.close()
                self._ref_is_unused = False
        return self._env_ref

    @property
    def observation_space(self) -> Any:
        return self.env_ref.observation_space

    @property
    def action_space(self) -> Any:
        return self.env_ref.action_space

    @property
    def reward_space(self) -> Any:
        return self.env_ref.reward_space

    def env_state_done(self, env_id: int) -> bool:
        self._check_known([env_id])
        return self._states[env_id] == EnvState.DONE

    def random_action(self) -> dict[int, Any]:
        """An action for every env that waits for one, drawn by the env's own seeded generator."""
        self._check_open()
        return {i: self._envs[i].random_action() for i in self.ready_obs_id}

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        """Save the episodes that begin from now on, in one directory or in one per env."""
        paths = [replay_path] * self.env_num if isinstance(replay_path, str) else list(replay_path)
        if len(paths) != self.env_num:
            raise ValueError(f"got {len(paths)} replay paths for {self.env_num} envs")
        self._replay_paths = list(paths)
        for env, path in zip(self._envs, paths, strict=False):
            env.enable_save_replay(path)

    def enable_save_figure(self, env_id: int, figure_path: str) -> None:
        self._check_known([env_id])
        self._check_open()
        self._envs[env_id].enable_save_figure(figure_path)

    def reward_shaping(
        self, env_id: int, transitions: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        self._check_known([env_id])
        self._check_open()
        return self._envs[env_id].reward_shaping(transitions)

    def __getattr__(self, name: str) -> list[Any]:
        """What only the envs have, as a list over them."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        assert not self.closed, f"the env manager is closed, its envs have no '{name}' now"
        if not hasattr(self.env_ref, name):
            raise AttributeError(f"neither the env manager nor {self.env_ref!r} has '{name}'")
        if (
            isinstance(getattr(self.env_ref, name), MethodType)
            and name not in self.method_name_list
        ):
            raise RuntimeError(
                f"env method '{name}' cannot be called through the manager; it offers "
                f"{', '.join(self.method_name_list)}"
            )
        return [getattr(env, name, None) for env in self._envs]

    def _remember(self, reset_param: ResetParam) -> None:
        for i, param in reset_param.items():
            if param is not None:
                self._reset_params[i] = dict(param)

    def _note_states(self) -> None:
        if self._states.count(EnvState.RUN) == self.env_num:
            self._run_ids = self._all_ids
            return
        run = [i for i, state in enumerate(self._states) if state == EnvState.RUN]
        self._run_ids = np.array(run, dtype=np.int64)

    def _check_closed(self) -> None:
        if not self.closed:
            raise RuntimeError("the env manager is launched already: close() it first")

    def _check_state(self, state: Mapping[str, Any]) -> None:
        count = len(state["states"])
        if count != self.env_num:
            raise ValueError(f"state is of {count} envs, here are {self.env_num}")

    def _tell_unpicklable(self, error: Exception) -> None:
        if not self._told_unpicklable:
            self._told_unpicklable = True
            logger.warning("envs cannot be saved, a resumed run begins new episodes: %s", error)

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("the env manager is not launched: call launch() first")

    def _check_known(self, ids: Iterable[Any]) -> None:
        for i in ids:
            if not isinstance(i, (int, np.integer)) or not 0 <= i < self.env_num:
                raise ValueError(f"unknown env id {i!r}: there are envs 0 to {self.env_num - 1}")
