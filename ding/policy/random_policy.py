"""Random policy: random actions behind the functions of a collect mode, for warm-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs.agents import AgentsSpace
from ding.policy.acting import random_allowed
from ding.policy.agents import check_masks
from ding.policy.modes import CollectMode
from ding.utils.batch import ByEnv, stack, stacked_of
from ding.utils.errors import DingError
from ding.utils.seed import new_generator


class PolicyFactory:
    """Modes that act otherwise but store like the policy they stand in for."""

    @staticmethod
    def get_random_policy(
        policy: CollectMode,
        action_space: gym.Space | None = None,
        forward_fn: Callable[..., Mapping[int, Any]] | None = None,
    ) -> CollectMode:
        """`policy` with random actions (or `forward_fn`) in place of its own."""
        if (action_space is None) == (forward_fn is None):
            raise ValueError("get_random_policy needs exactly one of action_space and forward_fn")
        if forward_fn is not None:
            return policy._replace(forward=forward_fn)
        rng = new_generator()

        def forward(data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
            assert action_space is not None
            env_id, obs = stacked_of(data)
            if isinstance(action_space, AgentsSpace):
                check_masks(env_id, obs)
            return ByEnv(env_id, {"action": random_actions(action_space, len(env_id), rng, obs)})

        return policy._replace(forward=forward)


def random_actions(space: gym.Space, n: int, rng: np.random.Generator, obs: Any = None) -> Any:
    """`n` actions of the space, stacked; an 'action_mask' in `obs` says which are allowed."""
    if isinstance(obs, dict) and "action_mask" in obs:
        return _masked_actions(space, n, rng, obs["action_mask"])
    if isinstance(space, AgentsSpace):
        rows = random_actions(space.one, n * space.agent_num, rng)
        return rows.reshape(n, space.agent_num, *rows.shape[1:])
    if isinstance(space, gym.spaces.Dict):
        return {key: random_actions(part, n, rng) for key, part in space.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(random_actions(part, n, rng) for part in space)
    if isinstance(space, gym.spaces.Discrete):
        return space.start + rng.integers(0, space.n, n)
    if isinstance(space, gym.spaces.Box) and space.is_bounded():
        return rng.uniform(space.low, space.high, (n, *space.shape)).astype(space.dtype)
    space.seed(int(rng.integers(2**31)))
    return stack([space.sample() for _ in range(n)])


def _masked_actions(space: gym.Space, n: int, rng: np.random.Generator, mask: np.ndarray) -> Any:
    """The mask is for a discrete action, or the type of a hybrid one."""
    if isinstance(space, gym.spaces.Dict):
        return {**random_actions(space, n, rng), "action_type": random_allowed(mask, rng)}
    return random_allowed(mask, rng)


def get_random_policy(
    policy: CollectMode,
    action_space: gym.Space | None = None,
    forward_fn: Callable[..., Mapping[int, Any]] | None = None,
) -> CollectMode:
    return PolicyFactory.get_random_policy(policy, action_space, forward_fn)


class RandomPolicy:
    """Policy that acts at random.

    `like` is the policy whose samples its `collect_mode` gives: warm-up data are learned from.
    """

    def __init__(self, action_space: gym.Space, like: Any = None, seed: int | None = None) -> None:
        self.action_space, self._like = action_space, like
        self._rng = new_generator() if seed is None else np.random.default_rng(seed)

    def forward(self, obs: Mapping[int, Any]) -> Mapping[int, Any]:
        """An action for each env, as `env_manager.step` takes them."""
        env_id, seen = stacked_of(obs)
        return ByEnv(env_id, random_actions(self.action_space, len(env_id), self._rng, seen))

    @property
    def collect_mode(self) -> CollectMode:
        if self._like is None:
            raise DingError(
                "a collector has to know which samples to make: RandomPolicy(action_space, "
                "like=policy)"
            )
        mode: CollectMode = self._like.collect_mode
        return mode._replace(forward=self._act)

    def _act(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        actions = self.forward(data)
        env_id, action = stacked_of(actions)
        return ByEnv(env_id, {"action": action})
