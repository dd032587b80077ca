"""Envs where agents take turns (PettingZoo's AEC interface), as envs where all act at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs.agents import ACTION_MASK


def takes_turns(env: Any) -> bool:
    """Whether the env has PettingZoo's interface of turns."""
    return hasattr(env, "agent_iter") and hasattr(env, "observe")


class TurnsAsSteps:
    """Every turn is a joint step: one agent acts, the others wait, which is action 0.

    Masks of waiting agents allow no more than that. Each agent sees, behind what it observes, 1
    when it is its turn. Rewards are those that the turn has brought to each agent.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self.possible_agents = list(env.possible_agents)

    @property
    def unwrapped(self) -> Any:
        return self._env.unwrapped

    @property
    def metadata(self) -> Mapping[str, Any]:
        return getattr(self._env, "metadata", {})

    def render(self) -> Any:
        return self._env.render()

    def observation_space(self, agent: str) -> gym.Space[Any]:
        space = self._env.observation_space(agent)
        space = space["observation"] if isinstance(space, gym.spaces.Dict) else space
        if not isinstance(space, gym.spaces.Box):
            return space  # refused with its reason
        size = int(np.prod(space.shape)) + 1
        return gym.spaces.Box(-np.inf, np.inf, (size,), dtype=np.float32)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._env.action_space(agent)

    def reset(self, seed: int | None = None, **kwargs: Any) -> tuple[dict[str, Any], Any]:
        self._env.reset(seed=seed, **kwargs)
        self._pass_dead()
        return self._seen(), {}

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        env = self._env
        env.step(actions[env.agent_selection])
        agents = list(env.agents)
        reward = {agent: float(env.rewards.get(agent, 0.0)) for agent in agents}
        over = {agent: bool(env.terminations[agent]) for agent in agents}
        cut = {agent: bool(env.truncations[agent]) for agent in agents}
        seen = self._seen()
        self._pass_dead()
        if self._env.agents:  # else what was seen last
            seen = self._seen()
        return seen, reward, over, cut, {}

    def _pass_dead(self) -> None:
        """Agents that are over take their last turn, which does nothing."""
        env = self._env
        while env.agents and self._is_over(env.agent_selection):
            env.step(None)

    def _is_over(self, agent: str) -> bool:
        return bool(self._env.terminations[agent] or self._env.truncations[agent])

    def _seen(self) -> dict[str, Any]:
        return {agent: self._seen_by(agent) for agent in self._env.agents}

    def _seen_by(self, agent: str) -> dict[str, Any]:
        turn = agent == self._env.agent_selection
        seen, mask = self._env.observe(agent), self._env.infos[agent].get(ACTION_MASK)
        if isinstance(seen, Mapping):
            mask, seen = seen.get(ACTION_MASK, mask), seen["observation"]
        flat = np.append(np.reshape(seen, -1), turn).astype(np.float32)
        space = self._env.action_space(agent)
        if not isinstance(space, gym.spaces.Discrete):
            return {"observation": flat}
        if not turn:
            mask = np.arange(space.n) == 0
        return {"observation": flat} if mask is None else {"observation": flat, ACTION_MASK: mask}

    def close(self) -> None:
        self._env.close()
