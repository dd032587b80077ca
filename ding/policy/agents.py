"""Acting of agents that share a network: values of all agents at once, and what they remember.

Letters in shapes: N envs, A agents, M actions, S numbers of what an agent remembers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ding.model.action_mask import masked
from ding.model.agents import alive_of, mask_of, state_of
from ding.policy.acting import epsilon_greedy
from ding.rl_utils.td import per_agent
from ding.utils.batch import Batch
from ding.utils.data.collate_fn import as_tensor
from ding.utils.errors import DingError

Array = TypeVar("Array", Tensor, np.ndarray)


class AgentsActor:
    """`actor(env_id, obs)` goes on from where each env's episode is; `reset` when one is over."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._inputs: tuple[str, ...] = getattr(model, "inputs", ())
        self._memory: np.ndarray | None = None
        """By env id, (ids, A, S): zeros for an episode that begins."""
        self._lock = threading.Lock()  # threads that act share the memory

    def __call__(self, env_id: np.ndarray, obs: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Values (N, A, M) under the mask, and what the agents remembered before, (N, A, S)."""
        check_masks(env_id, obs)
        state = state_of(obs)
        device = next(self._model.parameters()).device
        before = self._read(env_id, state.shape[1])
        with torch.no_grad():
            parts = {"agent_state": state}
            parts |= {key: obs[key] for key in self._inputs if key != "agent_state" and key in obs}
            x = {key: as_tensor(part).to(device).unsqueeze(0) for key, part in parts.items()}
            memory = None if before is None else torch.from_numpy(before).to(device)
            q, after = self._model.values(x, memory)
        if before is not None:
            self._write(env_id, after.cpu().numpy())
        return masked(q[0].cpu().numpy(), mask_of(obs)), before

    def _read(self, env_id: np.ndarray, agent_num: int) -> np.ndarray | None:
        size = self._model.memory_size
        if not size:
            return None
        with self._lock:
            known, needed = self._memory, int(env_id.max()) + 1
            if known is None or len(known) < needed:
                known = np.zeros((needed, agent_num, size), dtype=np.float32)
                if self._memory is not None:
                    known[: len(self._memory)] = self._memory
                self._memory = known
            return known[env_id]

    def _write(self, env_id: np.ndarray, after: np.ndarray) -> None:
        with self._lock:
            assert self._memory is not None
            self._memory[env_id] = after

    def reset(self, env_id: Iterable[int] | None = None) -> None:
        if self._memory is None:
            return
        ids = slice(None) if env_id is None else [i for i in env_id if i < len(self._memory)]
        self._memory[ids] = 0

    def state_dict(self) -> dict[str, Any]:
        return {"memory": None if self._memory is None else self._memory.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._memory = None if state["memory"] is None else np.array(state["memory"])


def explored(
    q: np.ndarray, obs: Any, eps: float | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(N, A): the best actions under (N, A, M) values, each at random with a chance of `eps`."""
    return of_living(epsilon_greedy(q, eps, rng, mask_of(obs)), obs)


def with_dead(value: Array, obs: Any, of_team: bool) -> Array:
    """Values (B, A) of agents, those of the dead for what is still to come.

    That is what the living say of the team, or nothing where rewards are each agent's own.
    """
    alive = alive_of(obs)
    if alive is None:
        return value
    lives = alive != 0
    living = value * lives
    if not of_team:
        return living
    # Each part keeps the dtype of the values: NumPy would divide by integers in float64.
    count = (living * 0 + lives).sum(-1, keepdims=True).clip(1)
    return living + living.sum(-1, keepdims=True) / count * ~lives


def agents_target(batch: Batch, next_value: Tensor) -> Tensor:
    """(B, A): r + gamma^n v(s') of every agent, by the values (B, A) of what they see next."""
    of_team = batch["reward"].ndim == 1
    value = with_dead(next_value, batch["next_obs"], of_team)
    return per_agent(batch["reward"], value) + batch["discount"].unsqueeze(-1) * value


def living_mean(x: Tensor, obs: Any) -> Tensor:
    """Mean of (B, A), or (B,) of (C, B, A), over agents that live."""
    alive = alive_of(obs)
    if alive is None:
        return x.mean(dim=(-2, -1))
    return (x * alive).sum(dim=(-2, -1)) / alive.sum().clamp(min=1)


def agents_td_loss(q: Tensor, target: Tensor, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    """Squared error of `q` (C, B, A) against `target` (B, A), summed over the critics."""
    obs, weight = batch["obs"], batch.get("weight")
    td_error = q - target
    squared = td_error.square()
    squared = squared if weight is None else squared * weight.unsqueeze(-1)
    size, alive = td_error.detach().abs().mean(dim=0), alive_of(obs)
    if alive is not None:
        size = (size * alive).sum(dim=-1) / alive.sum(dim=-1).clamp(min=1)
    metrics = {
        "target_q_value": living_mean(target, obs),
        "priority": size if size.ndim == 1 else size.mean(dim=-1),
    }
    return living_mean(squared, obs).sum(), metrics


def best_of(q: np.ndarray, obs: Any) -> np.ndarray:
    """(N, A): the best actions."""
    return of_living(q.argmax(axis=-1), obs)


def of_living(action: Array, obs: Any) -> Array:
    """The actions (N, A) or (N, A, D) with zeros for dead agents."""
    alive = alive_of(obs)
    if alive is None:
        return action
    lives = alive != 0
    return action * (lives if action.ndim == lives.ndim else lives[..., None])


def check_masks(env_id: np.ndarray, obs: Any) -> None:
    """Refuse a mask that leaves a living agent without an action."""
    mask, alive = mask_of(obs), alive_of(obs)
    if not isinstance(mask, np.ndarray):  # none, or a graph is made of this for other data
        return
    stuck = ~mask.any(axis=-1)
    if alive is not None:
        stuck &= alive != 0
    if stuck.any():
        row, agent = np.argwhere(stuck)[0].tolist()
        raise DingError(
            f"the action_mask of agent {agent} in env {env_id[row]} allows no action; allow one at "
            "least, or set its 'alive' to 0"
        )
