"""Spaces: fit the model to those of the env, and refuse what contradicts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs.agents import (
    ACTION_MASK,
    AGENT_STATE,
    ALONE_PADDING_STATE,
    ALONE_STATE,
    GLOBAL_STATE,
    AgentsSpace,
)
from ding.envs.spaces import has_goals
from ding.envs.two_player import one_seat
from ding.policy import get_policy_cls
from ding.utils.errors import ConfigError
from ding.utils.registry import POLICY_REGISTRY

_USUAL = ("ppo", "sac", "qmix", "mappo")
"""Policies to name first when another one is needed."""
_OF_AGENTS = "_agents"
_HYBRID = {"action_type", "action_args"}
_MASKED = {"obs", "action_mask"}
_WITH_PAST = {"obs", "prev_action", "prev_reward_extrinsic"}
_MASKABLE = ("discrete", "hybrid", "discrete_agents")


def fit_model_to_env(policy_cfg: dict[str, Any], env: Any, *, has_model: bool = False) -> None:
    """Set `policy.model.obs_shape` and `action_shape`, or check those that the config gives.

    With agents the shapes are those of one of them, and there are more. Of a game they are those of
    one seat. Beside a network of the user's own, or a model that the config names, the policy knows
    the shape of actions alone.
    """
    model = policy_cfg["model"]
    if has_model:
        model.setdefault("action_shape", _action_shape(one_seat(env).action_space))
    if has_model or "type" in model:
        return
    env = one_seat(env)
    action_space = env.action_space
    check_kind(policy_cfg, action_space)
    if _is_masked(env.observation_space):
        _check_mask(policy_cfg, action_space)
    _fit_shapes(model, "policy.model", env, names=_names_of(policy_cfg))
    if "alone_obs_shape" in (get_policy_cls(policy_cfg).model_signature(policy_cfg) or ()):
        space = _alone_space(policy_cfg, env.observation_space)
        _fit_shape(model, "policy.model", "alone_obs_shape", _plain(space.shape[1:]), space)


def fit_reward_model_to_env(cfg: dict[str, Any], env: Any) -> None:
    """The same for what a reward model declares: `obs_shape`, `action_shape`, `action_space`."""
    section = cfg.get("reward_model")
    if section is None:
        return
    declared = [key for key in ("obs_shape", "action_shape") if key in section]
    _fit_shapes(section, "reward_model", env, declared)
    if "action_space" in section:
        kind, given = action_kind(env.action_space), section["action_space"]
        if kind not in ("discrete", "continuous") or given not in (None, kind):
            raise ConfigError(
                f"reward_model.action_space = {given!r}, but the env's actions are {kind} "
                f"({env.action_space}); reward model '{section['type']}' takes discrete and "
                "continuous ones, leave the key out to take the env's"
            )
        section["action_space"] = kind


def _fit_shapes(
    section: dict[str, Any],
    path: str,
    env: Any,
    keys: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
) -> None:
    """Fill in shapes of the env (all, or those of these keys), or refuse others."""
    found = _shapes(env.observation_space, env.action_space)
    shapes = {(names or {}).get(key, key): shape for key, shape in found.items()}
    for key in shapes.keys() if keys is None else keys:
        space = env.action_space if key == "action_shape" else env.observation_space
        _fit_shape(section, path, key, shapes[key], space)


def _fit_shape(section: dict[str, Any], path: str, key: str, shape: Any, space: gym.Space) -> None:
    given = section.get(key)
    if shape is None:
        return
    if given is None or _says_the_same(key, given, shape):
        section[key] = shape
    elif _normal(given) != _normal(shape):
        raise ConfigError(
            f"{path}.{key} = {given}, but the env has {shape} ({space}); "
            "leave it out to take the env's"
        )


def _alone_space(policy_cfg: Mapping[str, Any], space: gym.Space) -> gym.spaces.Box:
    """The space of what agents see without their allies."""
    parts: Mapping[str, Any] = space.spaces if isinstance(space, gym.spaces.Dict) else {}
    lacks = [repr(key) for key in (ALONE_STATE, ALONE_PADDING_STATE) if key not in parts]
    if lacks:
        raise ConfigError(
            f"policy '{policy_cfg['type']}' needs what agents see without their allies, but the "
            f"env's observation lacks {' and '.join(lacks)}; set env.obs_alone = True, or use "
            "policy 'qmix'"
        )
    return parts[ALONE_STATE]


def _names_of(policy_cfg: Mapping[str, Any]) -> dict[str, str]:
    """Other names that the model has for shapes."""
    known = get_policy_cls(policy_cfg).model_signature(policy_cfg) or ()
    return {"obs_shape": "agent_obs_shape"} if "agent_obs_shape" in known else {}


def _says_the_same(key: str, given: Any, shape: Any) -> bool:
    """Whether it says the same as older configs do.

    They give the size of a global state that every agent has one of, and shapes by their names.
    """
    if key == "obs_shape" and isinstance(given, Mapping) and AGENT_STATE in given:
        return _normal(given[AGENT_STATE]) == _normal(shape)
    several = key == "global_obs_shape" and isinstance(shape, list) and len(shape) == 2
    return several and _normal(given) == shape[1:]


def advice(policy_cfg: Mapping[str, Any], env: Any) -> list[str]:
    """What becomes of observations, and what would make this env easier to learn, a line each."""
    lines = list(getattr(env, "notes", ()))
    unused = not policy_cfg["on_policy"] and policy_cfg["other"].get("her") is None
    if has_goals(env.observation_space) and unused:
        lines.append(
            "the env has goals: policy.other.her = dict(her_strategy='future', her_replay_k=4) "
            "learns from those that an episode reached (docs/goals.md)"
        )
    return lines


def outside(obs: Any, space: Any, slack: float = 0.0) -> float | None:
    """A number that is out of the bounds of its box, by more than `slack` times their distance.

    `obs` is one observation, or a batch of them.
    """
    if not isinstance(space, gym.spaces.Box):
        return None
    low, high = space.low, space.high
    if np.shape(obs)[np.ndim(obs) - low.ndim :] != low.shape:
        return None
    room = slack * (high.astype(np.float64) - low) if slack else 0.0  # 0 times infinity is none
    bad = (obs < low - room) | (obs > high + room)
    return float(np.asarray(obs)[bad][0]) if np.any(bad) else None


def _shapes(obs_space: gym.Space, action_space: gym.Space) -> dict[str, Any]:
    """Arguments of a model, None where the spaces do not say."""
    if not isinstance(action_space, AgentsSpace):
        return {"obs_shape": _obs_shape(obs_space), "action_shape": _action_shape(action_space)}
    seen = obs_space
    if isinstance(obs_space, gym.spaces.Dict):
        if AGENT_STATE not in obs_space.spaces:
            raise ConfigError(
                f"the env has agents ({action_space}), but its observation {obs_space} lacks "
                f"'{AGENT_STATE}', what each of them sees"
            )
        seen = obs_space[AGENT_STATE]
    count = action_space.agent_num
    if not seen.shape or seen.shape[0] != count:
        raise ConfigError(
            f"the env has {count} agents, but what they see is of the shape {seen.shape}; its "
            "first axis must be the agents"
        )
    whole = obs_space.spaces.get(GLOBAL_STATE) if isinstance(obs_space, gym.spaces.Dict) else None
    return {
        "agent_num": count,
        "obs_shape": _plain(seen.shape[1:]),
        "global_obs_shape": None if whole is None else _obs_shape(whole),
        "action_shape": _action_shape(action_space.one),
    }


def _is_masked(space: gym.Space) -> bool:
    if not isinstance(space, gym.spaces.Dict):
        return False
    if {AGENT_STATE, ACTION_MASK} <= set(space):
        return True
    return set(space) == _MASKED or (set(space) == _WITH_PAST and _is_masked(space["obs"]))


def _obs_shape(space: gym.Space) -> Any:
    """Shapes of what an encoder is to see."""
    if isinstance(space, gym.spaces.Dict):
        if _is_masked(space) or set(space) == _WITH_PAST:
            return _obs_shape(space["obs"])  # the policy knows what the others are for
        return {key: _obs_shape(inner) for key, inner in space.items()}
    return _plain(space.shape)


def _plain(shape: tuple[int, ...] | None) -> Any:
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
    if isinstance(space, gym.spaces.Dict) and set(space) == _HYBRID:
        return {f"{key}_shape": _action_shape(inner) for key, inner in space.items()}
    return None


def _normal(shape: Any) -> Any:
    if isinstance(shape, Mapping):
        return {key: _normal(value) for key, value in shape.items()}
    return [int(n) for n in shape] if isinstance(shape, (list, tuple)) else [int(shape)]


def action_kind(space: gym.Space) -> str:
    """'discrete', 'multi_discrete', 'continuous', 'hybrid', or else the name of the space.

    Those of agents have '_agents' behind.
    """
    if isinstance(space, AgentsSpace):
        return f"{action_kind(space.one)}{_OF_AGENTS}"
    for cls, kind in (
        (gym.spaces.Discrete, "discrete"),
        (gym.spaces.MultiDiscrete, "multi_discrete"),
        (gym.spaces.Box, "continuous"),
    ):
        if isinstance(space, cls):
            return kind
    is_hybrid = isinstance(space, gym.spaces.Dict) and set(space) == _HYBRID
    return "hybrid" if is_hybrid else type(space).__name__


def check_kind(policy_cfg: Mapping[str, Any], space: gym.Space) -> None:
    """Refuse actions that the policy is not for."""
    kind, name = action_kind(space), policy_cfg["type"]
    known = get_policy_cls(policy_cfg).action_kinds
    if known is not None and kind not in known:
        raise ConfigError(
            f"policy '{name}' is for {' and '.join(known)} actions, but the env's are {kind} "
            f"({space}){_instead(kind, like=name)}"
        )
    is_continuous = policy_cfg.get("continuous")
    if isinstance(is_continuous, bool) and is_continuous != (kind == "continuous"):
        raise ConfigError(
            f"policy.continuous = {is_continuous}, but the env's actions are {kind} ({space}); "
            f"set policy.continuous = {not is_continuous}"
        )
    wanted = policy_cfg.get("action_space")
    if wanted == "discrete" and kind == "multi_discrete":
        return  # several discrete actions at once
    one = kind.removesuffix(_OF_AGENTS)
    if (
        known is not None
        and wanted != one
        and wanted in [k.removesuffix(_OF_AGENTS) for k in known]
    ):
        raise ConfigError(
            f"policy.action_space = '{wanted}', but the env's actions are {kind} ({space}); "
            f"set policy.action_space = '{one}'"
        )


def _check_mask(policy_cfg: Mapping[str, Any], space: gym.Space) -> None:
    """Refuse a mask that the policy would not look at, or that can't be for such an action."""
    kind, name = action_kind(space), policy_cfg["type"]
    keeps_to_masks = get_policy_cls(policy_cfg).keeps_to_masks
    if keeps_to_masks is None or (keeps_to_masks and kind in _MASKABLE):
        return
    what = "does not look at an action_mask"
    if keeps_to_masks:
        what = f"has no use for an action_mask of {kind} actions ({space})"
    instead = _instead(kind, masked=True) or "; leave it out of the observation"
    raise ConfigError(f"policy '{name}' {what}, but the env gives one{instead}")


def _instead(kind: str, masked: bool = False, like: str = "") -> str:
    """The tail of an error message: a policy that could act there, a relative if there is one.

    Relatives of 'sac' are 'discrete_sac', and 'masac' for several agents.
    """
    own = like.rpartition("_")[2]
    words = {own, f"ma{own}", own.removeprefix("ma"), own.removeprefix("i")}
    relatives = [name for name in POLICY_REGISTRY.query() if words & set(name.split("_"))]
    for name in (*sorted(relatives, key=len), *_USUAL, *POLICY_REGISTRY.query()):
        cls = POLICY_REGISTRY.get(name)
        acts = kind in (getattr(cls, "action_kinds", None) or ())
        masks = getattr(cls, "keeps_to_masks", None) and kind in _MASKABLE
        if acts and (masks or not masked):
            return f"; use for example '{name}'"
    return ""
