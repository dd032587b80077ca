"""A tiny env for every kind of observation and action, strict about what it is given.

Episodes last 5 to 8 steps; some terminate, some are cut off. What is seen does not depend on the
actions, what is rewarded does. An action outside of the space, or that the mask forbids, raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from ding.envs import AgentsSpace, BaseEnvTimestep, DingEnvWrapper
from ding.utils.registry import ENV_REGISTRY

N_CHOICE, N_AGENT = 3, 2
_ARGS = spaces.Box(np.array([-2, -1], np.float32), np.array([2, 3], np.float32))
_OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "vector": spaces.Box(-np.inf, np.inf, (3,), dtype=np.float32),
    "image": spaces.Box(0, 255, (2, 36, 36), dtype=np.uint8),
    "dict": spaces.Dict(
        {
            "near": spaces.Box(-np.inf, np.inf, (3,), dtype=np.float32),
            "far": spaces.Box(-np.inf, np.inf, (2,), dtype=np.float32),
        }
    ),
}
_OF_AGENTS = spaces.Dict(
    {
        "agent_state": spaces.Box(-np.inf, np.inf, (N_AGENT, 3), dtype=np.float32),
        "global_state": spaces.Box(-np.inf, np.inf, (4,), dtype=np.float32),
    }
)
_ALONE = {
    "agent_alone_state": spaces.Box(-np.inf, np.inf, (N_AGENT, 2), dtype=np.float32),
    "agent_alone_padding_state": _OF_AGENTS["agent_state"],
}
_ACTIONS: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(N_CHOICE),
    "multi_discrete": spaces.MultiDiscrete([N_CHOICE, N_CHOICE]),
    "continuous": _ARGS,
    "hybrid": spaces.Dict({"action_type": spaces.Discrete(N_CHOICE), "action_args": _ARGS}),
    "discrete_agents": AgentsSpace(spaces.Discrete(N_CHOICE), N_AGENT),
    "continuous_agents": AgentsSpace(spaces.Box(-1, 1, (2,), np.float32), N_AGENT),
    # Nobody claims these.
    "tuple": spaces.Tuple([spaces.Discrete(N_CHOICE), spaces.Discrete(2), _ARGS]),
    "dict": spaces.Dict({"one": spaces.MultiDiscrete([2, 2]), "two": _ARGS}),
}
UNCLAIMED_ACTIONS = ("tuple", "dict")


class World(gym.Env[Any, Any]):
    def __init__(self, observation: str, action: str, masked: bool, **cfg: Any) -> None:
        self._of_agents = action.endswith("_agents")
        self.observation_space = _OF_AGENTS if self._of_agents else _OBSERVATIONS[observation]
        if masked and self._of_agents:
            mask = spaces.Box(0, 1, (N_AGENT, N_CHOICE), dtype=np.int8)
            self.observation_space = spaces.Dict({**_OF_AGENTS, "action_mask": mask})
        elif masked:
            mask = spaces.Box(0, 1, (N_CHOICE,), dtype=np.int8)
            self.observation_space = spaces.Dict(
                {"obs": self.observation_space, "action_mask": mask}
            )
        self.action_space = _ACTIONS[action]
        self._observation, self._masked = observation, masked
        self._end, self._shift = cfg["end"], cfg["shift"]
        self._dies, self._dead_shift = cfg["dies"], cfg["dead_shift"]
        self._each, self._reversed = cfg["each"], cfg["reversed"]
        self._alone = cfg["alone"] and self._of_agents
        if self._alone:
            self.observation_space = spaces.Dict({**self.observation_space, **_ALONE})
        if self._dies:
            alive = spaces.Box(0, 1, (N_AGENT,), dtype=np.float32)
            self.observation_space = spaces.Dict({**self.observation_space, "alive": alive})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = int(self.np_random.integers(5, 9))
        self._terminates = bool(self.np_random.integers(2))
        if self._end != "either":
            self._terminates = self._end == "terminated"
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"{action!r} is no action of {self.action_space}")
        if self._masked and not self._allows(action):
            raise ValueError(f"{action!r} is forbidden by the mask {self._allowed}")
        # Small: losses that grow linearly from 1 on would not tell one target from another.
        reward = 0.1 * (float(self.np_random.normal()) + _worth(action))
        self._left -= 1
        over = self._left == 0
        parts = np.arange(1, 1 + N_AGENT)[:: -1 if self._reversed else 1]
        info = {"each": (reward * parts * self._alive()).astype(np.float32)}
        ends = over and self._terminates, over and not self._terminates
        return self._seen(), reward, *ends, info if self._each else {}

    def _allows(self, action: Any) -> bool:
        if self._of_agents:
            return bool(self._allowed[np.arange(N_AGENT), action].all())
        return bool(self._allowed[_choice(action)])

    def _seen(self) -> Any:
        if self._of_agents:
            return self._seen_by_agents()
        obs = self._drawn()
        forbidden = self.np_random.permutation(N_CHOICE)[: self.np_random.integers(1, N_CHOICE)]
        self._allowed = np.ones(N_CHOICE, dtype=np.int8)
        self._allowed[forbidden] = 0
        if not self._masked:
            return obs
        return {"obs": obs, "action_mask": self._allowed.copy()}

    def _seen_by_agents(self) -> Any:
        shift = self._shift if self._left == 0 else 0.0
        state, whole = ((self.np_random.normal(size=n) + shift) for n in ((N_AGENT, 3), 4))
        obs = {"agent_state": state.astype(np.float32), "global_state": whole.astype(np.float32)}
        self._allowed = self.np_random.permuted(np.eye(N_AGENT, N_CHOICE, dtype=np.int8), axis=1)
        alive = self._alive()
        obs["agent_state"] += (self._dead_shift * (1 - alive))[:, None]
        obs |= {"alive": alive} if self._dies else {}
        if self._alone:
            obs["agent_alone_state"] = obs["agent_state"][:, :2].copy()
            obs["agent_alone_padding_state"] = obs["agent_state"] * np.float32([1, 1, 0])
        self._allowed[alive == 0] = np.eye(N_CHOICE, dtype=np.int8)[0]
        return {**obs, "action_mask": self._allowed.copy()} if self._masked else obs

    def _alive(self) -> np.ndarray:
        """The last agent dies three steps before the end."""
        gone = self._dies and self._left < 3
        return np.array([1.0] * (N_AGENT - 1) + [1.0 - gone], np.float32)

    def _drawn(self) -> Any:
        if self._observation == "image":
            return self.np_random.integers(0, 256, (2, 36, 36), dtype=np.uint8)
        shift = self._shift if self._left == 0 else 0.0
        near, far = ((self.np_random.normal(size=n) + shift).astype(np.float32) for n in (3, 2))
        return near if self._observation == "vector" else {"near": near, "far": far}


def _choice(action: Any) -> int:
    return int(action["action_type"] if isinstance(action, dict) else action)


def _worth(action: Any) -> float:
    parts = action.values() if isinstance(action, dict) else [action]
    return float(sum(np.sum(part) for part in parts))


@ENV_REGISTRY.register("conformance_world")
class WorldEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {
        **DingEnvWrapper.config,
        "observation": "vector",
        "action": "discrete",
        # Observations are {'obs', 'action_mask'}.
        "masked": False,
        # How episodes end: 'terminated', 'truncated' or 'either', by chance.
        "end": "either",
        # Added to the last observation of every episode.
        "shift": 0.0,
        # Of agents: whether one dies, what is added to what it sees then, and rewards of each:
        # the second gets twice what the first gets, or half of it.
        "dies": False,
        "dead_shift": 0.0,
        "each": False,
        "reversed": False,
        # Of agents: what they see without their allies, the last number.
        "alone": False,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        names = [name for name in self.config if name not in DingEnvWrapper.config]
        self._each = merged["each"]
        super().__init__(partial(World, **{name: merged[name] for name in names}), merged)

    def step(self, action: Any) -> BaseEnvTimestep:
        step = super().step(action)
        return step._replace(reward=step.info["each"]) if self._each else step
