"""Env manager: many envs behind one `step`, as a state machine over their slots."""

from __future__ import annotations

import logging
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from easydict import EasyDict

from ding.envs.base_env import StepByEnv
from ding.envs.manager.env_access import (
    ReferenceEnv,
    attribute_errors_shown,
    attribute_values,
)
from ding.envs.manager.failures import FailurePolicy, closing_errors_noted
from ding.envs.manager.flight.recorder import FlightRecorder
from ding.envs.manager.slot import EnvState, Slot, SlotTable
from ding.utils.batch import ByEnv, take
from ding.utils.errors import ConfigError

logger = logging.getLogger(__name__)

ResetParam = Mapping[int, Mapping[str, Any] | None]
_OVER = (EnvState.VOID, EnvState.DONE, EnvState.ERROR)


class BadRetryTypeError(ConfigError, AssertionError):
    """`retry_type` is neither 'reset' nor 'renew'; handlers of an assertion see it too."""


class EnvManager(ABC):
    """Runs one env for each callable of `env_fn`: `launch`, then `ready_obs` and `step` in turn.

    Counting, seeding, retries, state and faults are here; subclasses execute.
    """

    _obs: Any = None
    """Columns of what all envs show, (N, ...), for executors that keep them here."""
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
        self._slots = SlotTable(len(env_fn), self._cfg)
        self._all_ids = self._slots.all_ids
        self._reference = ReferenceEnv(self._env_fn[0])
        self._warned_unpicklable = False
        self._flights = FlightRecorder(len(env_fn), self._env_fn, self._cfg)
        # A bound method would keep the manager alive until the garbage collector finds the cycle.
        close = weakref.WeakMethod(self.close)
        self._failures = FailurePolicy(self._slots, self._flights, self._cfg, close)
        self.faults: Counter[str] = self._failures.counts

    @abstractmethod
    def step(self, actions: Mapping[int, Any]) -> StepByEnv: ...

    @abstractmethod
    def _start(self) -> None:
        """Make the envs, or whatever will make them."""

    @abstractmethod
    def _stop(self) -> None:
        """Close the envs."""

    @abstractmethod
    def _reset_slots(self, slots: Sequence[Slot]) -> None:
        """Reset envs in state RESET, with retries, and wait for their first observations."""

    @abstractmethod
    def _call(self, ids: Sequence[int], name: str, *args: Any) -> list[Any]:
        """Results of a method of these envs."""

    @abstractmethod
    def _look_up(self, name: str) -> list[tuple[str, Any]]:
        """Results of `look_up` for an attribute of every env."""

    @abstractmethod
    def _saved_envs(self) -> list[bytes]: ...

    @abstractmethod
    def _executor_state(self) -> dict[str, Any]:
        """Plain data beside slots and envs from which `_restore` goes on."""

    @abstractmethod
    def _restore(self, state: Mapping[str, Any]) -> None:
        """Start with saved envs; the slots are loaded already."""

    def _settle(self) -> None:
        """Wait until no step and no reset is under way."""

    def _settings_changed(self, slots: Sequence[Slot]) -> None:
        """Seeds or replay paths of these slots are new."""

    def launch(self, reset_param: ResetParam | None = None) -> None:
        """Make the envs and begin their first episodes."""
        if not self.closed:
            raise RuntimeError("the env manager is launched already: close() it first")
        self._check_params(reset_param or {})
        with self._closed_on_failure():
            self._open()
            for slot in self._slots:
                slot.send_seed()
            self._remember(reset_param or {})
            self.reset()

    def _open(self) -> None:
        self._slots.is_open = True
        self._start()
        for slot in self._slots:
            self._slots.enter(slot, EnvState.INIT)

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            with closing_errors_noted(error):
                self.close()
            raise

    def reset(self, reset_param: ResetParam | None = None) -> None:
        """Begin new episodes in all envs, or in the given ones; arguments are kept for later."""
        self._slots.check_open()
        self._check_params(reset_param or {})
        ids = range(self.env_num) if reset_param is None else reset_param
        slots = [self._slots[i] for i in ids]
        self._settle()
        self._remember(reset_param or {})
        for slot in slots:
            if reset_param is None:
                slot.repeat_static_seed()
            if reset_param is None or slot.state is EnvState.DONE:
                slot.episodes = 0
            slot.failures = 0
            self._slots.enter(slot, EnvState.RESET)
        if slots:
            self._reset_slots(slots)

    def close(self) -> None:
        if self._slots.is_open:
            self._slots.is_open = False
            try:
                self._stop()
            finally:
                self._slots.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seed(
        self, seed: int | Sequence[int] | Mapping[int, int], dynamic_seed: bool | None = None
    ) -> None:
        """Seed the next reset, and with `dynamic_seed=False` every later full `reset()` again."""
        slots = self._slots.seed(seed, dynamic_seed)
        if not self.closed:
            self._settings_changed(slots)

    def _check_params(self, reset_param: ResetParam) -> None:
        self._slots.check_known(reset_param)

    def _remember(self, reset_param: ResetParam) -> None:
        for i, param in reset_param.items():
            if param is not None:
                self._slots[i].reset_kwargs = dict(param)

    def state_dict(self) -> dict[str, Any]:
        """All that a bit-exact continuation needs; 'envs' is None if an env cannot be pickled."""
        self._slots.check_open()
        self._settle()
        envs: list[bytes] | None = None
        try:
            envs = self._saved_envs()
        except Exception as error:  # Pickling runs code of the envs, which may raise anything.
            if self.closed:  # By a failure that came meanwhile.
                raise
            if not self._warned_unpicklable:
                logger.warning("envs cannot be saved, a resumed run begins new episodes: %r", error)
            self._warned_unpicklable = True
        return {
            "envs": envs,
            "slots": self._slots.state_dict(),
            "flights": self._flights.state_dict(),
            **self._executor_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called; with new episodes if the envs could not be saved."""
        self._slots.check_state(state["slots"])
        self.close()
        self._slots.load_state_dict(state["slots"])
        with self._closed_on_failure():
            if state["envs"] is None:
                self._begin_anew()
            else:
                self._slots.is_open = True
                self._restore(state)
                self._flights.load_state_dict(state["flights"])

    def _begin_anew(self) -> None:
        """New episodes, and with dynamic seeds other ones than the run began with."""
        states = self._slots.withdraw()
        self._open()
        for slot in self._slots:
            slot.draw_new_seeds()
            self._slots.enter(slot, EnvState.RESET)
        self._reset_slots(list(self._slots))
        for slot, state in zip(self._slots, states, strict=True):
            if state in (EnvState.DONE, EnvState.NEED_RESET, EnvState.ERROR):
                self._slots.enter(slot, state)

    @property
    def ready_obs(self) -> ByEnv:
        """Observations of the envs that wait for an action; not written to by later steps."""
        ids = self._slots.ready_ids()
        return ByEnv(ids, self._obs if ids is self._all_ids else take(self._obs, ids))

    @property
    def ready_obs_id(self) -> list[int]:
        return np.flatnonzero(self._slots.waiting).tolist()

    @property
    def ready_imgs(self) -> dict[int, Any]:
        with attribute_errors_shown("'render' of an env"):
            return self._call_ready("render")

    def random_action(self) -> dict[int, Any]:
        """An action for every env that waits for one, drawn by the env's own seeded generator."""
        return self._call_ready("random_action")

    def _call_ready(self, name: str) -> dict[int, Any]:
        self._slots.check_open()
        ids = self.ready_obs_id
        return dict(zip(ids, self._call(ids, name), strict=True))

    @property
    def active_env(self) -> list[int]:
        """Ids of the envs that have episodes before them."""
        return [slot.env_id for slot in self._slots if slot.state not in _OVER]

    @property
    def done(self) -> bool:
        return all(slot.state is EnvState.DONE for slot in self._slots)

    @property
    def closed(self) -> bool:
        return not self._slots.is_open

    @property
    def gives_views(self) -> bool:
        """Whether observations that were handed out change when their envs step."""
        return False

    @property
    def env_num(self) -> int:
        return len(self._env_fn)

    @property
    def env_state(self) -> dict[int, EnvState]:
        return {slot.env_id: slot.state for slot in self._slots}

    def env_state_done(self, env_id: int) -> bool:
        self._slots.check_known([env_id])
        return self._slots[env_id].state is EnvState.DONE

    @property
    def env_ref(self) -> Any:
        """An env to read spaces and attributes from."""
        with attribute_errors_shown("making env 0"):
            return self._reference.env

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of the envs, as far as they say it."""
        return tuple(getattr(self.env_ref, "notes", ()))

    @property
    def step_limit(self) -> int | None:
        """Most steps of an episode, if the envs say it."""
        return getattr(self.env_ref, "step_limit", None)

    @property
    def observation_space(self) -> Any:
        return self._space("observation_space")

    @property
    def action_space(self) -> Any:
        return self._space("action_space")

    @property
    def reward_space(self) -> Any:
        return self._space("reward_space")

    def _space(self, name: str) -> Any:
        with attribute_errors_shown(f"'{name}' of env 0"):
            return getattr(self.env_ref, name)

    def flights_under(self, directory: str | Path) -> None:
        """A relative `flight_dir` means one in this directory, not in the working directory."""
        if self._cfg["flight_dir"] is not None:
            self._flights.directory = Path(directory) / self._cfg["flight_dir"]

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        """Save the episodes that begin from now on, in one directory or in one per env."""
        paths = [replay_path] * self.env_num if isinstance(replay_path, str) else list(replay_path)
        if len(paths) != self.env_num:
            raise ValueError(f"got {len(paths)} replay paths for {self.env_num} envs")
        for slot, path in zip(self._slots, paths, strict=True):
            slot.replay_path = path
            if not self.closed:
                self._call([slot.env_id], "enable_save_replay", path)
        if not self.closed:
            self._settings_changed(list(self._slots))

    def enable_save_figure(self, env_id: int, figure_path: str) -> None:
        self._call_one(env_id, "enable_save_figure", figure_path)

    def reward_shaping(
        self, env_id: int, transitions: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        return self._call_one(env_id, "reward_shaping", transitions)

    def _call_one(self, env_id: int, name: str, *args: Any) -> Any:
        self._slots.check_known([env_id])
        self._slots.check_open()
        return self._call([env_id], name, *args)[0]

    def __getattr__(self, name: str) -> list[Any]:
        """Attributes that only the envs have, as a list over them."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        assert not self.closed, f"the env manager is closed, its envs have no '{name}' now"
        values = attribute_values(name, self._look_up(name), self.method_name_list)
        if values is None:
            return [partial(self._call_one, i, name) for i in range(self.env_num)]
        return values
