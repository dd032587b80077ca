"""PettingZoo's envs by family and id, parallel or in turns: MPE (`mpe2`), SISL, Butterfly, ..."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, ClassVar

from ding.envs.packages import env_module, missing_package
from ding.envs.parallel_agents import ParallelAgentsEnv
from ding.envs.simple_spread import SimpleSpread
from ding.utils.errors import ConfigError, DingError, nearest

_EXTRA = "pettingzoo"
_MPE = "mpe"
_SPREAD = "simple_spread"
_FAST_KNOWS = {"N", "local_ratio", "max_cycles", "continuous_actions"}
"""Arguments of simple_spread that our own version has."""


class PettingZooEnv(ParallelAgentsEnv):
    config: ClassVar[dict[str, Any]] = {
        **ParallelAgentsEnv.config,
        # 'mpe', or a part of PettingZoo such as 'sisl' or 'butterfly'.
        "env_family": _MPE,
        # Name of the module; an older version of an MPE id means the installed one.
        "env_id": None,
        # Number of agents, where the env leaves that open; None: its default.
        "n_agent": None,
        # Number of landmarks, which is that of agents.
        "n_landmark": None,
        # Steps of an episode.
        "max_cycles": 25,
        # Actions are numbers instead of choices.
        "continuous_actions": False,
        # simple_spread: our own NumPy version of it, which gives the same numbers in less time.
        "fast": True,
        # Further arguments of the env.
        "env_kwargs": {},
        # How the env draws itself: 'rgb_array' for videos, 'human' for a window; None: not at all.
        "render_mode": None,
    }

    def __init__(
        self,
        env: Callable[[], Any] | Mapping[str, Any] | None = None,
        cfg: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(env, cfg)
        if self._factory is None and not self._cfg["env_id"]:
            raise DingError("PettingZooEnv needs a factory of envs, or cfg['env_id']")
        agents, landmarks = self._cfg["n_agent"], self._cfg["n_landmark"]
        if landmarks is not None and landmarks != (3 if agents is None else agents):
            raise ConfigError(
                f"env.n_landmark = {landmarks}, but there are as many landmarks as agents "
                f"(env.n_agent = {agents}); leave it out"
            )

    def _new_env(self) -> Any:
        if self._factory is not None:
            return super()._new_env()
        module = self._module()
        arguments = self._arguments(module)
        if self._is_spread and self._cfg["fast"] and set(arguments) <= _FAST_KNOWS:
            return SimpleSpread(**arguments)
        make = getattr(module, "parallel_env", None) or module.env
        return make(**arguments)

    @property
    def _is_spread(self) -> bool:
        name = str(self._cfg["env_id"]).rpartition("_v")[0]
        return self._cfg["env_family"] == _MPE and name == _SPREAD

    def _own_state(self, env: Any) -> Any:
        # That of MPE is what all agents see, computed once more.
        return None if self._cfg["env_family"] == _MPE else super()._own_state(env)

    def _ally_features(self, env: Any) -> Any:
        given = super()._ally_features(env)
        if given is not None or not self._is_spread:
            return given
        # Own velocity and place, the landmarks, then where the others are and what they say.
        count = len(env.possible_agents)
        return 4 + 2 * count, 4 + 2 * count + 2 * (count - 1)

    def _module(self) -> ModuleType:
        family, env_id = self._cfg["env_family"], str(self._cfg["env_id"])
        package = "mpe2" if family == _MPE else f"pettingzoo.{family}"
        try:
            known = [module.name for module in iter_modules(import_module(package).__path__)]
        except ModuleNotFoundError as error:
            if error.name not in ("mpe2", "pettingzoo"):
                raise ConfigError(f"env.env_family = '{family}': {error}") from error
            raise missing_package(env_id, error.name, _EXTRA) from error
        ids = [name for name in known if name.rpartition("_v")[2].isdigit()]
        name = _installed(env_id, ids) if family == _MPE else env_id
        if name not in ids:
            raise ConfigError(f"env.env_id = '{env_id}' of family '{family}'{nearest(name, ids)}")
        try:
            return env_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            raise missing_package(env_id, str(error.name), _EXTRA) from error

    def _arguments(self, module: ModuleType) -> dict[str, Any]:
        """Arguments of the env; counts that it can't be told are an error."""
        cfg, taken = self._cfg, inspect.signature(module.raw_env).parameters
        found = {}
        if "max_cycles" in taken:
            found["max_cycles"] = cfg["max_cycles"]
        if "continuous_actions" in taken:
            found["continuous_actions"] = cfg["continuous_actions"]
        if cfg["n_agent"] is not None:
            if "N" not in taken:
                raise ConfigError(
                    f"env.n_agent = {cfg['n_agent']}: '{cfg['env_id']}' does not take a number of "
                    f"agents; set env.env_kwargs (it takes {', '.join(taken)})"
                )
            found["N"] = cfg["n_agent"]
        if cfg["render_mode"] is not None:
            found["render_mode"] = cfg["render_mode"]
        return {**found, **cfg["env_kwargs"]}

    def render(self) -> Any:
        """The picture of the env, with `render_mode`."""
        self._need_env()
        return self._env.render()

    @property
    def metadata(self) -> Mapping[str, Any]:
        self._need_env()
        return getattr(self._env, "metadata", {})

    def __repr__(self) -> str:
        return f"PettingZooEnv({self._cfg['env_id'] or 'factory'})"


def _installed(env_id: str, ids: list[str]) -> str:
    """The version that is there of an id whose version is older."""
    name, _, version = env_id.rpartition("_v")
    there = [one for one in ids if one.rpartition("_v")[0] == name]
    is_older = version.isdigit() and there and int(version) < int(there[0].rpartition("_v")[2])
    return there[0] if is_older else env_id
