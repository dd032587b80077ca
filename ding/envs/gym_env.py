"""Any Gymnasium env, by id, instance or factory, as a `BaseEnv`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from easydict import EasyDict
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.given import OLD_GYM, checked_reset, in_gymnasium, is_adapted, maker_of
from ding.envs.obs_map import PlainObs, obs_map
from ding.envs.packages import missing_simulator, refuse_rebuilt, register_package, unknown_id
from ding.envs.spaces import DiscreteAction, QuickDiscrete, action_map, check_supported
from ding.envs.video import EpisodeRecorder
from ding.envs.wrappers import create_env_wrapper
from ding.utils.errors import DingError

_FLOAT64 = np.dtype(np.float64)


class DingEnvWrapper(BaseEnv):
    """Of an env, a factory of envs, or by id: `DingEnvWrapper(cfg={"env_id": "CartPole-v1"})`."""

    config: ClassVar[dict[str, Any]] = {
        # Id of a registered Gymnasium env, 'module:Class', a class or a function that makes one;
        # not needed if an env or a factory is given.
        "env_id": None,
        # Further arguments of `gymnasium.make`.
        "env_kwargs": {},
        # Present bounded float actions in [-1, 1] and scale them; beyond is clipped.
        "act_scale": True,
        # Wrappers, innermost first: names, `dict(type=..., kwargs=dict(...))` or callables.
        # A dict with `collect_only=True` is left out when evaluating.
        "env_wrapper": [],
        # Truncate episodes after so many steps; None keeps the env's own limit.
        "max_episode_steps": None,
        # Clip the rewards to [-1, 1] when collecting; episode returns stay unclipped.
        "rew_clip": False,
        # Save every evaluated episode as a video in this directory.
        "replay_path": None,
    }
    python_actions = True

    @classmethod
    def default_config(cls) -> EasyDict:
        return EasyDict(deepcopy(cls.config), cfg_type=f"{cls.__name__}Dict")

    def __init__(
        self,
        env: gym.Env[Any, Any] | Callable[[], gym.Env[Any, Any]] | Mapping[str, Any] | None = None,
        cfg: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(env, Mapping):  # DingEnvWrapper(cfg), as for every other env class
            env, cfg = None, env
        super().__init__({**self.config, **(cfg or {})})
        if env is None and not self._cfg["env_id"]:
            raise DingError("DingEnvWrapper needs an env, a factory, or cfg['env_id']")
        self._given = env if isinstance(env, gym.Env) else None
        self._factory: Any = env if not isinstance(env, gym.Env) else None
        if env is None:
            self._factory = _factory_of(self._cfg)
        self._env: Any = None
        self._env_step: Callable[[Any], Any] = self._no_episode
        self._action_map: Callable[[Any], Any] = self._no_episode
        self._passes: type | None = None
        self._obs_map: Callable[[Any], Any] = self._no_episode
        self._remaps = False
        self._notes: tuple[str, ...] = ()
        self._limit = sys.maxsize
        self._steps = 0
        self._episode_return = 0.0
        self._rew_clip = bool(self._cfg["rew_clip"])
        self._recorder: EpisodeRecorder | None = None
        self._render_mode: str | None = None
        if self._cfg["replay_path"]:
            self.enable_save_replay(self._cfg["replay_path"])

    def reset(self, **kwargs: Any) -> Any:
        if self._env is None or self._must_remake():
            self._make()
        if self._recorder is not None:
            self._recorder.end_episode()
        first = self._env.reset(seed=self._next_seed(), **kwargs)
        obs, _ = checked_reset(self._env, first)
        self._env_step = self._env.step
        self._steps = 0
        self._episode_return = 0.0
        if self._recorder is not None:
            self._recorder.add(self._env)
        return self._obs_map(obs)

    def step(self, action: Any) -> BaseEnvTimestep:
        if type(action) is not self._passes:
            action = self._action_map(action)
        obs, reward, terminated, truncated, info = self._env_step(action)
        if type(obs) is not np.ndarray or obs.dtype is _FLOAT64 or self._remaps:
            obs = self._obs_map(obs)
        reward = float(reward)
        self._episode_return += reward
        self._steps += 1
        if self._recorder is not None:
            self._recorder.add(self._env)
        if self._rew_clip:
            reward = min(max(reward, -1.0), 1.0)
        if not (terminated or truncated or self._steps >= self._limit):
            return BaseEnvTimestep(obs, reward, False, info)
        return BaseEnvTimestep(obs, reward, True, self._last_info(info, terminated))

    def _no_episode(self, action: Any) -> Any:
        raise DingError(f"{self!r} has no running episode: call reset() before step()")

    def _last_info(self, info: dict[str, Any], terminated: bool) -> dict[str, Any]:
        self._env_step = self._no_episode
        if self._recorder is not None:
            self._recorder.end_episode()
        info = dict(info)  # Some envs hand out the same dict at every step.
        # A wrapper may have counted the rewards before others changed them.
        info.setdefault("eval_episode_return", self._episode_return)
        if not terminated:
            info["truncated"] = True
        return info

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.end_episode()
        if self._env is not None:
            self._env.close()
        self._env = None
        self._env_step = self._no_episode

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        super().seed(seed, dynamic_seed)
        if self._action_space is not None:
            self._action_space.seed(self._seed)

    def render(self) -> Any:
        """The current frame; needs `env_kwargs=dict(render_mode='rgb_array')`."""
        if self._env is None or self._env.render_mode is None:
            raise DingError(
                f"{self!r} cannot render: set env_kwargs=dict(render_mode='rgb_array') and reset it"
            )
        return self._env.render()

    def enable_save_replay(self, replay_path: str) -> None:
        """Save the episodes from the next reset on as mp4 files in this directory."""
        self._recorder = EpisodeRecorder(replay_path, self._name)
        self._render_mode = "rgb_array"

    @staticmethod
    def create_collector_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        cfgs = BaseEnv.create_collector_env_cfg(cfg)
        for one in cfgs:
            one["replay_path"] = None
        return cfgs

    @staticmethod
    def create_evaluator_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        cfgs = BaseEnv.create_evaluator_env_cfg(cfg)
        for one in cfgs:
            one["rew_clip"] = False
            one["env_wrapper"] = [w for w in one.get("env_wrapper", []) if not _collect_only(w)]
        return cfgs

    @property
    def observation_space(self) -> Any:
        self._need_spaces()
        return self._observation_space

    @property
    def notes(self) -> tuple[str, ...]:
        """What becomes of observations, where people should know it."""
        self._need_spaces()
        return self._notes

    @property
    def step_limit(self) -> int | None:
        """Most steps of an episode, if the env or the config sets a limit that is seen here."""
        self._need_spaces()
        return None if self._limit == sys.maxsize else self._limit

    @property
    def action_space(self) -> Any:
        self._need_spaces()
        return self._action_space

    @property
    def reward_space(self) -> Any:
        self._need_spaces()
        return self._reward_space

    @property
    def settings(self) -> Mapping[str, Any]:
        """The config with the defaults of the class."""
        return self._cfg

    def plain_env(self) -> Any:
        """A new Gymnasium env without the wrappers of the config, or the one that was given."""
        return self._bare_env()

    @property
    def unwrapped(self) -> Any:
        """The simulator itself."""
        self._need_spaces()
        return None if self._env is None else self._env.unwrapped

    @property
    def _name(self) -> str:
        spec = self._given.spec if self._given is not None else None
        named = self._cfg["env_id"]
        if callable(named):
            named = getattr(named, "__name__", None)
        return str(named or (spec.id if spec else None) or "env")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name})"

    def __getstate__(self) -> dict[str, Any]:
        if self._env is not None and self._env_step != self._no_episode:
            refuse_rebuilt(self._env)
        # A factory is often a lambda; once the env exists only a reset after close() would miss it.
        return self.__dict__ | ({"_factory": None} if self._env is not None else {})

    def _must_remake(self) -> bool:
        return self._render_mode is not None and self._env.render_mode != self._render_mode

    def _need_spaces(self) -> None:
        if self._observation_space is None:
            self._make()

    def _make(self) -> None:
        """Build the simulator; spaces that were handed out before stay as they are."""
        if self._env is not None:
            self._env.close()
        env = self._bare_env()
        if not self._cfg["env_wrapper"]:
            env = self._unwrap_bookkeeping(env)
        for wrapper in self._cfg["env_wrapper"]:
            env = create_env_wrapper(env, wrapper)
        self._env = env
        if self._observation_space is None:
            self._set_spaces(env)

    def _bare_env(self) -> Any:
        steps = self._cfg["max_episode_steps"]
        if self._given is None and self._factory is None and self._cfg["env_id"]:
            return self._registered_env(steps)
        if self._given is None and self._factory is None:
            raise DingError(
                f"{self!r} was unpickled and closed: its factory is gone, make a new one"
            )
        env = in_gymnasium(self._given if self._given is not None else self._factory())
        if self._render_mode is not None and env.render_mode != self._render_mode:
            raise DingError(
                f"{self!r}: to save replays make the env with render_mode='{self._render_mode}', "
                f"it has {env.render_mode!r}"
            )
        return TimeLimit(env, steps) if steps else env

    def _registered_env(self, max_episode_steps: int | None) -> Any:
        kwargs = dict(self._cfg["env_kwargs"])
        if self._render_mode is not None:
            kwargs["render_mode"] = self._render_mode
        env_id = self._cfg["env_id"]
        register_package(env_id)
        try:
            env = gym.make(
                env_id, max_episode_steps=max_episode_steps, disable_env_checker=True, **kwargs
            )
        except gym.error.UnregisteredEnv as error:
            raise DingError(
                f"unknown env_id '{env_id}'{unknown_id(env_id, gym.registry)}"
            ) from error
        except gym.error.DependencyNotInstalled as error:
            raise missing_simulator(env_id, error) from error
        except (gym.error.Error, TypeError) as error:
            raise DingError(f"cannot make env '{env_id}' with {kwargs}: {error}") from error
        env = in_gymnasium(env)
        if type(env.unwrapped.action_space) is gym.spaces.Discrete:
            env.unwrapped.action_space = QuickDiscrete(env.unwrapped.action_space)
        return env

    def _unwrap_bookkeeping(self, env: Any) -> Any:
        """Take off the wrappers whose work is done here: order of calls, and counting steps."""
        self._limit = sys.maxsize
        while type(env) in (TimeLimit, OrderEnforcing):
            if type(env) is TimeLimit:
                self._limit = min(self._limit, env._max_episode_steps)
            env = env.env
        return env

    def _set_spaces(self, env: Any) -> None:
        check_supported(env.action_space, f"action space of {self!r}")
        seen = obs_map(env.observation_space, f"observation space of {self!r}")
        self._obs_map, self._remaps = seen, not isinstance(seen, PlainObs)
        self._observation_space = seen.presented
        self._notes = (*seen.notes, *([OLD_GYM] if is_adapted(env) else []))
        self._action_map = action_map(env.action_space, bool(self._cfg["act_scale"]))
        # A plain int needs no mapping, except where the simulator counts from another number.
        plain = isinstance(self._action_map, DiscreteAction) and self._action_map.start == 0
        self._passes = int if plain else None
        self._action_space = self._action_map.presented
        self._action_space.seed(self._seed)
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)


def _factory_of(cfg: Mapping[str, Any]) -> Callable[[], Any] | None:
    """Maker of the env that `env_id` names, unless that is an id."""
    make = maker_of(cfg["env_id"])
    return None if make is None else partial(make, **cfg["env_kwargs"])


def _collect_only(wrapper: Any) -> bool:
    return isinstance(wrapper, Mapping) and bool(wrapper.get("collect_only"))
