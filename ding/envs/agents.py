"""Envs with agents: one joint step, and an axis of agents on what they see, do and get.

The documented observation is a dict. A agents, K numbers that an agent sees, S of the global state,
M actions:

    agent_state   (A, K)          what each agent sees
    global_state  (S,) or (A, S)  what a mixer or a centralised critic sees
    action_mask   (A, M)          1 where an action is allowed
    alive         (A,)            0 for agents that have left; all live where it is not given

and, for policies that look at agents without their allies (`obs_alone`),

    agent_alone_state          (A, K')  what each agent sees but what is of its allies
    agent_alone_padding_state  (A, K)   what each agent sees, with zeros for its allies

Actions are (A,) or (A, D). The reward is one number for the team, or (A,): one for each agent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

AGENT_STATE, GLOBAL_STATE = "agent_state", "global_state"
ACTION_MASK, ALIVE = "action_mask", "alive"
ALONE_STATE, ALONE_PADDING_STATE = "agent_alone_state", "agent_alone_padding_state"
AGENT_RETURN = "return_agent_"
"""Beginning of the names of single agents' returns in the last info of an episode."""


class AgentsSpace(spaces.Space[np.ndarray]):
    """The space `one` for each of `agent_num` agents; samples are stacked, (A, ...).

    A `MultiDiscrete` would be several choices of one agent.
    """

    def __init__(self, one: spaces.Space[Any], agent_num: int) -> None:
        if one.shape is None or agent_num < 1:
            raise ValueError(f"a space of {agent_num} agents can't be made of {one}")
        super().__init__((agent_num, *one.shape), one.dtype)
        self.one, self.agent_num = one, agent_num

    @property
    def is_np_flattenable(self) -> bool:
        return self.one.is_np_flattenable

    def seed(self, seed: Any = None) -> Any:
        return self.one.seed(seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        masks = [None] * self.agent_num if mask is None else mask
        return np.stack([self.one.sample(one) for one in masks]).astype(self.dtype)

    def contains(self, x: Any) -> bool:
        return len(np.shape(x)) > 0 and len(x) == self.agent_num and all(map(self.one.contains, x))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, AgentsSpace) and self.agent_num == other.agent_num
        return same and self.one == other.one  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"AgentsSpace({self.one}, {self.agent_num})"


def obs_space(
    agent_num: int, agent_size: int, *, global_shape: tuple[int, ...] | None, n_action: int | None
) -> spaces.Dict:
    """Space of the documented observation; parts that are None are left out."""
    parts: dict[str, spaces.Space[Any]] = {AGENT_STATE: _numbers(agent_num, agent_size)}
    if global_shape is not None:
        parts[GLOBAL_STATE] = _numbers(*global_shape)
    if n_action is not None:
        parts[ACTION_MASK] = spaces.Box(0, 1, (agent_num, n_action), dtype=np.float32)
    parts[ALIVE] = spaces.Box(0, 1, (agent_num,), dtype=np.float32)
    return spaces.Dict(parts)


def _numbers(*shape: int) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape, dtype=np.float32)
