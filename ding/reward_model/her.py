"""Hindsight experience replay: a step that missed its goal reached another one.

Andrychowicz et al. 2017, https://arxiv.org/abs/1707.01495
Letters in shapes: B batch, n steps of a chain, G size of a goal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs.spaces import GOAL_KEYS, has_goals
from ding.policy.config import HerConfig
from ding.utils.batch import Batch
from ding.utils.errors import ConfigError
from ding.worker.buffer.relabelling import Drawn

logger = logging.getLogger(__name__)

_PATH = "policy.other.her"
_FUNCTIONS = ("split_func", "merge_func", "goal_reward_func")
Function = Callable[..., Any]


@dataclass(frozen=True)
class Goals:
    """How observations hold goals, and what reaching one is worth; all for rows (N, ...)."""

    achieved: Callable[[Any], np.ndarray]
    desired: Callable[[Any], np.ndarray]
    replaced: Callable[[Any, np.ndarray], Any]
    """Observations with another desired goal."""
    reward: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """(N,) of achieved and desired goals."""
    terminated: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    """(N,) whether an episode ends there; None: not known."""


class HindsightGoals:
    """Relabelling part: `her_replay_k` of `her_replay_k + 1` chains get a goal that was reached."""

    def __init__(self, cfg: HerConfig, goals: Goals, env: Any = None) -> None:
        """`env`: the one whose functions the goals are, closed with this part."""
        self._cfg, self._goals, self._env = cfg, goals, env
        self._share = cfg.her_replay_k / (cfg.her_replay_k + 1)

    @classmethod
    def for_env(cls, cfg: Any, env_fn: Callable[..., Any], env_cfg: Any) -> HindsightGoals:
        """Hindsight in the goals of this env, or of the functions that the config names."""
        cfg = cfg if isinstance(cfg, HerConfig) else HerConfig(**cfg)
        env = env_fn(env_cfg)
        try:
            return cls(cfg, goals_of(cfg, env), env)
        except BaseException:
            env.close()
            raise

    def close(self) -> None:
        if self._env is not None:
            self._env.close()

    def relabel(self, drawn: Drawn) -> Batch:
        steps, (n_row, nstep) = drawn.steps, drawn.exist.shape
        chosen = np.repeat(drawn.rng.random(n_row) < self._share, nstep)
        desired = self._goals.desired(steps["obs"])
        goal = np.where(_over(chosen, desired), self._reached(drawn), desired)
        achieved = self._goals.achieved(steps["next_obs"])
        reward = self._goals.reward(achieved, goal).astype(steps["reward"].dtype)
        over = self._terminated(steps, achieved, goal)
        truncated = steps.get("truncated", np.zeros_like(chosen))
        return {
            **steps,
            "obs": self._goals.replaced(steps["obs"], goal),
            "next_obs": self._goals.replaced(steps["next_obs"], goal),
            "reward": np.where(chosen, reward, steps["reward"]),
            "done": np.where(chosen, over | truncated.astype(bool), steps["done"]),
            "truncated": np.where(chosen, truncated.astype(bool) & ~over, truncated),
        }

    def _reached(self, drawn: Drawn) -> np.ndarray:
        """(B*n, G): for each chain one goal that its episode reached, by the strategy."""
        n_row, nstep = drawn.exist.shape
        left = drawn.left.reshape(n_row, nstep)[:, 0]
        strategy = self._cfg.her_strategy
        if strategy == "final":
            ahead = left
        elif strategy == "future":
            ahead = (drawn.rng.random(n_row) * (left + 1)).astype(np.int64)
        else:
            passed = drawn.passed.reshape(n_row, nstep)[:, 0]
            ahead = (drawn.rng.random(n_row) * (left + passed + 1)).astype(np.int64) - passed
        first = np.zeros((n_row, nstep), np.int64)
        first[:, 0] = ahead
        found = drawn.later(first.reshape(-1), ["next_obs"])["next_obs"]
        goal = self._goals.achieved(found)[::nstep]
        return np.repeat(goal, nstep, axis=0)

    def _terminated(self, steps: Batch, achieved: np.ndarray, goal: np.ndarray) -> np.ndarray:
        ends = self._goals.terminated
        if ends is not None:
            return np.asarray(ends(achieved, goal)).astype(bool)
        ended = np.asarray(steps["done"]).astype(bool)
        if "truncated" in steps:
            ended = ended & ~np.asarray(steps["truncated"]).astype(bool)
        if ended.any():
            raise ConfigError(
                "the env ends episodes but has no compute_terminated(achieved_goal, desired_goal, "
                f"info), so HER can't tell where another goal ends them; set {_PATH}.ends_at_goal "
                "= True if they end where the goal is reached, else False"
            )
        return np.zeros(len(ended), bool)


def goals_of(cfg: HerConfig, env: Any) -> Goals:
    """Goals by the functions that the config names, or by Gymnasium's convention."""
    return _by_functions(cfg) if cfg.split_func is not None else _by_convention(cfg, env)


def _by_convention(cfg: HerConfig, env: Any) -> Goals:
    space = env.observation_space
    if not has_goals(space):
        raise ConfigError(
            f"{_PATH} needs an env with goals: its observation must be a Dict with "
            f"{sorted(GOAL_KEYS)}, got {space}; or set {_PATH}.{_FUNCTIONS[0]}, {_FUNCTIONS[1]} "
            f"and {_FUNCTIONS[2]}"
        )
    compute = _method_of(env, "compute_reward")
    if compute is None:
        raise ConfigError(
            f"{_PATH} needs the env's compute_reward(achieved_goal, desired_goal, info), which "
            f"{env!r} does not have"
        )
    reward = _in_batches(compute, space["desired_goal"], "compute_reward")
    ends = _method_of(env, "compute_terminated")
    terminated = None
    if cfg.ends_at_goal is not None:
        terminated = _ends_at_goal(reward, cfg.ends_at_goal)
    elif ends is not None:
        terminated = _in_batches(ends, space["desired_goal"], "compute_terminated")
    return Goals(
        achieved=lambda obs: obs["achieved_goal"],
        desired=lambda obs: obs["desired_goal"],
        replaced=lambda obs, goal: {**obs, "desired_goal": goal.astype(obs["desired_goal"].dtype)},
        reward=reward,
        terminated=terminated,
    )


def _by_functions(cfg: HerConfig) -> Goals:
    split, merge, compute = (_function(getattr(cfg, name), name) for name in _FUNCTIONS)

    def reward(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        return np.asarray(compute(achieved, desired)).reshape(len(achieved))

    terminated = None if cfg.ends_at_goal is None else _ends_at_goal(reward, cfg.ends_at_goal)
    return Goals(
        achieved=lambda obs: split(obs)[2],
        desired=lambda obs: split(obs)[1],
        replaced=lambda obs, goal: np.asarray(merge(split(obs)[0], goal)).astype(obs.dtype),
        reward=reward,
        terminated=terminated,
    )


def _ends_at_goal(reward: Function, ends: bool) -> Function:
    """Episodes end where a step is worth as much as standing on the goal, or never."""
    if not ends:
        return lambda achieved, goal: np.zeros(len(goal), bool)
    return lambda achieved, goal: reward(achieved, goal) >= reward(goal, goal)


def _method_of(env: Any, name: str) -> Function | None:
    for owner in (env, getattr(env, "unwrapped", None)):
        method = getattr(owner, name, None)
        if callable(method):
            return method
    return None


def _in_batches(function: Function, space: gym.Space, name: str) -> Function:
    """The env's function for rows at once; called row by row if it does not take them."""

    def by_row(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        return np.array([function(a, d, {}) for a, d in zip(achieved, desired, strict=True)])

    def at_once(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        return np.asarray(function(achieved, desired, [{}] * len(desired)))

    goals = np.stack([space.sample() for _ in range(3)])
    achieved, desired = goals[[0, 1, 2, 0]], goals[[0, 0, 2, 1]]
    expected = by_row(achieved, desired)
    try:
        found = at_once(achieved, desired)
    except Exception as error:  # whatever a user's function raises for a shape it does not know
        logger.debug("%s of rows: %r", name, error)
        found = np.zeros(0)
    if found.shape == expected.shape and np.allclose(found, expected):
        return at_once
    logger.warning("the env's %s takes no batches: it is called for every row, slowly", name)
    return by_row


def _function(given: Any, name: str) -> Function:
    """A function, or the one that 'module:name' says."""
    if callable(given):
        return given
    module, _, attribute = str(given).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{_PATH}.{name} = '{given}': no such function ({error}); write 'module:function'"
        ) from error


def _over(flags: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Flags (N,) with axes to be compared with (N, ...)."""
    return flags.reshape(-1, *[1] * (like.ndim - 1))
