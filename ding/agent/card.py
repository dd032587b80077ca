"""Card of an agent: all that acting needs to know besides what was learned."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ding.agent.border import Border, OwnBorder, split_wrappers
from ding.agent.spaces import plain_space, space_of
from ding.envs import BaseEnv, DingEnvWrapper, ParallelAgentsEnv, get_env_cls
from ding.envs.two_player import SeatsSpace
from ding.envs.wrappers import create_env_wrapper
from ding.utils.checkpoint import whole_file
from ding.utils.errors import CheckpointError, DingError

SPACES_NAME = "spaces.json"
"""File of a run with the spaces of its env, for envs that no config can make again."""
_UNNAMED = "ding_env_wrapper_generated"


@dataclass(frozen=True, kw_only=True)
class Card:
    policy: dict[str, Any]
    """The policy section of the config."""
    observation_space: Any
    """Space of the env without the run's wrappers of observations; so are its actions."""
    action_space: Any
    env: dict[str, Any] | None = None
    """Config of an env to evaluate in; None if only its maker knows how to make it."""
    time_wrappers: list[Any] = field(default_factory=list)
    """Wrappers that belong around the simulator, since they step or reset it."""
    wrappers: list[Any] = field(default_factory=list)
    """Wrappers of observations, which the agent runs by itself."""
    act_scale: bool = True
    progress: dict[str, Any] = field(default_factory=dict)
    """How far it was trained, for people."""
    own_env: bool = False
    """The env is no Gymnasium env but a `BaseEnv` of its own kind, as those of agents are."""

    def border(self) -> Border | OwnBorder:
        if self.own_env:
            return OwnBorder(self.observation_space, self.action_space)
        return Border(self.observation_space, self.action_space, self.wrappers, self.act_scale)

    def make_env(self, render_mode: str | None = None) -> Any:
        """The env of the run, plain but for the wrappers that change the run of time.

        One of its own kind is made as it is.
        """
        if self.env is None:
            raise DingError(
                "this agent was trained in an env that no config can make again (it was given as "
                "a class or a function): pass the env"
            )
        cfg = deepcopy(self.env)
        if self.own_env:
            return _own_env(cfg, render_mode)
        if render_mode is not None:
            cfg["env_kwargs"] = {**cfg.get("env_kwargs", {}), "render_mode": render_mode}
        return self.wrap(_adapter_of(cfg).plain_env())

    def wrap(self, env: Any) -> Any:
        if self.own_env:
            return self.by_agent(lambda: env) if hasattr(env, "possible_agents") else env
        for wrapper in self.time_wrappers:
            env = create_env_wrapper(env, wrapper)
        return env

    def by_agent(self, factory: Callable[[], Any] | None = None) -> ParallelAgentsEnv | None:
        """The run's env of agents around another simulator; None if it is of another kind."""
        cls = get_env_cls(self.env) if self.own_env and self.env is not None else BaseEnv
        return cls(factory, self.env) if issubclass(cls, ParallelAgentsEnv) else None


def card_of(cfg: Any, directory: Path | None = None, progress: Any = None) -> Card:
    """The card of a run with this compiled config, whose `directory` may hold the spaces."""
    env_cfg = evaluating_env(cfg["env"])
    if env_cfg is not None and not issubclass(get_env_cls(env_cfg), DingEnvWrapper):
        return _own_card(cfg, env_cfg, progress)
    adapter = None if env_cfg is None else _adapter_of(env_cfg)
    settings = cfg["env"] if adapter is None else adapter.settings
    time_wrappers, wrappers = split_wrappers(settings.get("env_wrapper", []))
    return Card(
        policy=cfg["policy"],
        env=env_cfg,
        time_wrappers=time_wrappers,
        wrappers=wrappers,
        act_scale=bool(settings.get("act_scale", True)),
        progress=dict(progress or {}),
        **_spaces(directory, adapter, time_wrappers),
    )


def _own_card(cfg: Any, env_cfg: dict[str, Any], progress: Any) -> Card:
    """The card of a run in an env of its own kind, which has no wrappers."""
    env = _own_env(env_cfg)
    try:
        seen, acted = env.observation_space, env.action_space
    finally:
        env.close()
    if isinstance(acted, SeatsSpace):
        raise DingError(
            f"{env!r} is a game of {acted.agent_num} seats, in which an agent alone cannot act: "
            "let its players play with ding versus, or ding.entry.eval"
        )
    return Card(
        policy=cfg["policy"],
        env=env_cfg,
        observation_space=seen,
        action_space=acted,
        progress=dict(progress or {}),
        own_env=True,
    )


def _own_env(env_cfg: Mapping[str, Any], render_mode: str | None = None) -> BaseEnv:
    cls = get_env_cls(env_cfg)
    cfg = {key: value for key, value in env_cfg.items() if key != "type"}
    if render_mode is not None and "render_mode" in getattr(cls, "config", {}):
        return cls({**cfg, "render_mode": render_mode})
    if render_mode == "human":
        raise DingError(
            f"{cls.__name__} opens no window: write a video, ding play RUN --video-dir DIR or "
            "agent.play(video=DIR)"
        )
    return cls(cfg)


def evaluating_env(env_cfg: Mapping[str, Any]) -> dict[str, Any] | None:
    """Config of one env to evaluate in, or None if it names no env."""
    if env_cfg.get("type", _UNNAMED) == _UNNAMED and not env_cfg.get("env_id"):
        return None
    one: dict[str, Any] = get_env_cls(env_cfg).create_evaluator_env_cfg(env_cfg)[0]
    return {key: value for key, value in one.items() if key not in ("manager", "replay_path")}


def _adapter_of(env_cfg: Mapping[str, Any]) -> DingEnvWrapper:
    cls = get_env_cls(env_cfg)
    assert issubclass(cls, DingEnvWrapper)
    settings = {key: value for key, value in env_cfg.items() if key != "type"}
    return cls(cfg=settings)


def _spaces(
    directory: Path | None, adapter: DingEnvWrapper | None, time_wrappers: list[Any]
) -> dict[str, Any]:
    path = None if directory is None else directory / SPACES_NAME
    if path is not None and path.is_file():
        return read_spaces(path)
    if adapter is None:
        raise CheckpointError(
            f"the run in '{directory}' has no {SPACES_NAME}, and its config names no env to take "
            "the spaces from; runs of ding.train have one"
        )
    env = adapter.plain_env()
    for wrapper in time_wrappers:
        env = create_env_wrapper(env, wrapper)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    env.close()
    return spaces


def save_spaces(directory: Path, observation_space: Any, action_space: Any) -> None:
    """Write the spaces of a plain env beside the config of a run."""
    plain = {
        "observation_space": plain_space(observation_space),
        "action_space": plain_space(action_space),
    }
    with whole_file(directory / SPACES_NAME) as file:
        file.write(f"{json.dumps(plain, indent=2)}\n".encode())


def read_spaces(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        return {key: space_of(plain[key]) for key in ("observation_space", "action_space")}
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"'{path}' is damaged: {error!r}") from error
