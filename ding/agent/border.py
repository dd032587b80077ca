"""The border between an env's own observations and actions and those of a policy.

Envs of a run are wrapped: frames are warped and stacked, boxes rescaled, former actions put beside
the observation. The same wrappers run here, one chain for each row of a batch, around an env that
only hands on the observations it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TimeLimit

from ding.envs.obs_map import ObsMap, obs_map
from ding.envs.spaces import (
    ActionMap,
    DiscreteAction,
    NestedAction,
    PlainAction,
    RegroupedAction,
    action_map,
)
from ding.envs.wrappers import (
    EpisodicLifeWrapper,
    FireResetWrapper,
    MaxAndSkipWrapper,
    NoopResetWrapper,
    ObsPlusPrevActRewWrapper,
    create_env_wrapper,
    wrapper_class,
)
from ding.utils.batch import first_leaf, stack, take, tree_map
from ding.utils.errors import DingError

_OF_TIME = (NoopResetWrapper, MaxAndSkipWrapper, EpisodicLifeWrapper, FireResetWrapper)
"""Wrappers that step or reset the simulator by themselves."""


class Feed(gym.Env[Any, Any]):
    """Hands on the observation it was given, once."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self._given: list[tuple[Any, float]] = []

    def give(self, obs: Any, reward: float) -> None:
        self._given = [(obs, reward)]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return self._take()[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return (*self._take(), False, False, {})

    def _take(self) -> tuple[Any, float]:
        if not self._given:
            raise DingError(
                "an env_wrapper of this run steps the env several times for one action, which "
                "cannot be done outside of it: evaluate in the run's own env"
            )
        return self._given.pop()


class Row:
    """One episode's chain of wrappers."""

    def __init__(self, feed: Feed, chain: Any, see: ObsMap) -> None:
        self._feed, self._chain, self._see = feed, chain, see
        self.action: Any = None
        """Taken after the last observation; None: the episode begins."""

    def seen(self, obs: Any, reward: float) -> Any:
        self._feed.give(obs, reward)
        if self.action is None:
            return self._see(self._chain.reset()[0])
        return self._see(self._chain.step(self.action)[0])


class Border:
    """Observations to what the policy sees, its actions to those of the env."""

    def __init__(
        self, observation_space: Any, action_space: Any, wrappers: Sequence[Any], act_scale: bool
    ) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.wrappers = tuple(wrappers)
        self.rows: list[Row] = []
        chain = self._new_chain()[1]
        self.obs_map = obs_map(chain.observation_space)
        self.seen_space = self.obs_map.presented
        """Space of what the policy is given."""
        self.action_map = action_map(chain.action_space, act_scale)
        self.outward = _actions_of(chain, action_space)
        self.looks_at_reward = any(
            _is_a(wrapper_class(wrapper), (ObsPlusPrevActRewWrapper,)) for wrapper in wrappers
        )

    def _new_chain(self) -> tuple[Feed, Any]:
        feed = Feed(self.observation_space, self.action_space)
        chain: Any = feed
        for wrapper in self.wrappers:
            chain = create_env_wrapper(chain, wrapper)
        return feed, chain

    def seen(self, obs: Any, reward: Any = None) -> Any:
        """Stacked observations of the env as the policy knows them."""
        if not self.wrappers:
            return self.obs_map(obs)
        n = len(first_leaf(obs))
        while len(self.rows) < n:
            self.rows.append(Row(*self._new_chain(), self.obs_map))
        rewards = self._rewards(reward, n)
        rows = zip(self.rows[:n], range(n), rewards, strict=True)
        # Copies: frame stacks keep them, and envs may write the next frame into the same memory.
        return stack([row.seen(tree_map(_own, take(obs, i)), r) for row, i, r in rows])

    def _rewards(self, reward: Any, n: int) -> list[float]:
        if reward is None:
            if self.looks_at_reward and any(row.action is not None for row in self.rows[:n]):
                raise DingError(
                    "this policy looks at the reward of the last step: act(obs, reward=reward), "
                    "and agent.reset() when an episode begins"
                )
            return [0.0] * n
        return np.broadcast_to(np.asarray(reward, np.float32), (n,)).tolist()

    def taken(self, action: Any) -> Any:
        """Stacked actions of the policy as the env takes them."""
        mapped = to_env(self.action_map, action)
        if not self.wrappers:
            return mapped
        each = [take(mapped, i) for i in range(len(first_leaf(mapped)))]
        each = [int(one) if isinstance(one, np.integer) else one for one in each]
        for row, one in zip(self.rows, each, strict=False):
            row.action = one
        for outward in self.outward:
            each = [outward(one) for one in each]
        return stack(each) if self.outward else mapped

    def reset(self, rows: Iterable[int] | None = None) -> None:
        for i in range(len(self.rows)) if rows is None else rows:
            if i < len(self.rows):
                self.rows[i].action = None


class OwnBorder:
    """Where the env gives what policies see and takes what they do, as a `BaseEnv` does."""

    wrappers: Sequence[Any] = ()
    outward: Sequence[Any] = ()

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.seen_space, self.action_map = observation_space, PlainAction(action_space)

    def seen(self, obs: Any, reward: Any = None) -> Any:
        return obs

    def taken(self, action: Any) -> Any:
        return action

    def reset(self, rows: Iterable[int] | None = None) -> None:
        pass


def _own(leaf: Any) -> Any:
    return np.copy(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf


def to_env(mapping: ActionMap, action: Any) -> Any:
    """`mapping` for stacked actions."""
    if isinstance(mapping, RegroupedAction):
        return to_env(mapping.nested, mapping.split(action))
    if isinstance(mapping, NestedAction):
        if isinstance(mapping.parts, dict):
            return {key: to_env(part, action[key]) for key, part in mapping.parts.items()}
        pairs = zip(mapping.parts, action, strict=True)
        return tuple(to_env(part, one) for part, one in pairs)
    if isinstance(mapping, DiscreteAction):
        return action + mapping.start if mapping.start else action
    return mapping(action)


def _actions_of(chain: Any, action_space: Any) -> list[Callable[[Any], Any]]:
    """Functions from actions of the outermost wrapper to those of the env, in order."""
    outward: list[Callable[[Any], Any]] = []
    layer = chain
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, gym.ActionWrapper):
            outward.append(layer.action)
        layer = layer.env
    if not outward and chain.action_space != action_space:
        raise DingError(
            f"an env_wrapper of this run changes the actions from {action_space} to "
            f"{chain.action_space}, but is no gymnasium.ActionWrapper: write it as one"
        )
    return outward


def split_wrappers(wrappers: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Wrappers that have to be around the simulator, and those that may be around observations."""
    classes = [wrapper_class(wrapper) for wrapper in wrappers]
    of_time = [i for i, cls in enumerate(classes) if _is_a(cls, _OF_TIME)]
    cut = of_time[-1] + 1 if of_time else 0
    limits = [w for w, cls in zip(wrappers, classes, strict=True) if _is_a(cls, (TimeLimit,))]
    inner, outer = list(wrappers[:cut]), list(wrappers[cut:])
    return inner + [w for w in limits if w in outer], [w for w in outer if w not in limits]


def _is_a(cls: Any, bases: tuple[type, ...]) -> bool:
    return isinstance(cls, type) and issubclass(cls, bases)
