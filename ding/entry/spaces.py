"""Does the model fit the env? Fills in what the env says, and refuses what contradicts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from ding.policy import get_policy_cls
from ding.utils.errors import ConfigError
from ding.utils.registry import POLICY_REGISTRY

_USUAL = ("ppo", "sac")
"""Policies to name first when another one is needed."""


def fit_model_to_env(policy_cfg: dict[str, Any], env: Any) -> None:
    """Set `policy.model.obs_shape` and `action_shape`, or check those that the config gives."""
    model = policy_cfg["model"]
    action_space = env.action_space
    _check_kind(policy_cfg, action_space)
    for key, shape in (
        ("obs_shape", _obs_shape(env.observation_space)),
        ("action_shape", _action_shape(action_space)),
    ):
        if shape is None:
            continue
        given = model.get(key)
        if given is None:
            model[key] = shape
        elif _normal(given) != _normal(shape):
            raise ConfigError(
                f"policy.model.{key} = {given}, but the env has {shape} "
                f"({env.observation_space if key == 'obs_shape' else action_space}); "
                "leave it out to take the env's"
            )


def _obs_shape(space: gym.Space) -> Any:
    if isinstance(space, gym.spaces.Dict):
        if set(space) == {"obs", "action_mask"}:
            return _obs_shape(space["obs"])  # the mask is for the policy, not for the network
        return {key: _obs_shape(inner) for key, inner in space.items()}
    shape = space.shape
    if not shape:
        return None
    return int(shape[0]) if len(shape) == 1 else [int(n) for n in shape]


def _action_shape(space: gym.Space) -> Any:
    if isinstance(space, gym.spaces.Discrete):
        return int(space.n)
    if isinstance(space, gym.spaces.MultiDiscrete):
        return [int(n) for n in space.nvec]
    if isinstance(space, gym.spaces.Box):
        return int(np.prod(space.shape))
    if isinstance(space, gym.spaces.Dict) and set(space) == {"action_type", "action_args"}:
        return {f"{key}_shape": _action_shape(inner) for key, inner in space.items()}
    return None


def _normal(shape: Any) -> Any:
    if isinstance(shape, Mapping):
        return {key: _normal(value) for key, value in shape.items()}
    return [int(n) for n in shape] if isinstance(shape, (list, tuple)) else [int(shape)]


def action_kind(space: gym.Space) -> str:
    """'discrete', 'multi_discrete', 'continuous' or, for nested spaces, 'hybrid'."""
    for cls, kind in (
        (gym.spaces.Discrete, "discrete"),
        (gym.spaces.MultiDiscrete, "multi_discrete"),
        (gym.spaces.Box, "continuous"),
    ):
        if isinstance(space, cls):
            return kind
    return "hybrid"


def _check_kind(policy_cfg: Mapping[str, Any], space: gym.Space) -> None:
    kind, name = action_kind(space), policy_cfg["type"]
    known = get_policy_cls(policy_cfg).action_kinds
    if known is not None and kind not in known:
        names = [*_USUAL, *POLICY_REGISTRY.query()]
        others = [other for other in names if _acts_in(other, kind)]
        instead = f"; use for example '{others[0]}'" if others else ""
        raise ConfigError(
            f"policy '{name}' is for {' and '.join(known)} actions, but the env's are {kind} "
            f"({space}){instead}"
        )
    wanted = policy_cfg.get("action_space")
    if wanted == "discrete" and kind == "multi_discrete":
        return  # several discrete actions at once
    if known is not None and wanted in known and wanted != kind:
        raise ConfigError(
            f"policy.action_space = '{wanted}', but the env's actions are {kind} ({space}); "
            f"set policy.action_space = '{kind}'"
        )


def _acts_in(policy: str, kind: str) -> bool:
    return kind in (getattr(POLICY_REGISTRY.get(policy), "action_kinds", None) or ())
