"""Networks that remember: acting one step at a time, and what sequences of such steps are made of.

Letters in shapes: N envs, A actions, T steps of a sequence, B batch, L layers, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ding.policy.actions import masked_logits
from ding.policy.base import Policy
from ding.torch_utils.data_helper import to_ndarray
from ding.utils.batch import Batch, stack, tree_map
from ding.utils.data.collate_fn import as_tensor

_INPUTS = {"obs", "action_mask", "prev_action", "prev_reward_extrinsic", "beta"}

Step = Callable[[nn.Module, Any, list[Any]], tuple[Any, list[Any], Any]]
"""Model, observations and N states (None: begins) to logits, states after, columns to store."""


class RecurrentActor:
    """`actor(env_id, obs)` goes on from where each env's episode is; `reset` when one is over."""

    def __init__(self, model: nn.Module, step: Step) -> None:
        self._model, self._step = model, step
        self._states: dict[int, Any] = {}

    def __call__(self, env_id: np.ndarray, obs: Any) -> tuple[Any, Batch]:
        """Logits (N, A), and columns to store: whether an episode begins, and the state before."""
        ids = env_id.tolist()
        states = [self._states.get(i) for i in ids]
        begins = np.array([state is None for state in states])
        device = next(self._model.parameters()).device
        with torch.no_grad():
            x = tree_map(lambda leaf: as_tensor(leaf).to(device), obs)
            logit, after, before = self._step(self._model, x, states)
        self._states.update(zip(ids, after, strict=True))
        columns: Batch = {"begins": begins}
        if before is not None:
            columns["prev_state"] = before
        return to_ndarray(logit), columns

    def reset(self, env_id: Iterable[int] | None = None) -> None:
        for i in list(self._states) if env_id is None else env_id:
            self._states.pop(int(i), None)

    def state_dict(self) -> dict[str, Any]:
        return {"states": dict(self._states)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._states = dict(state["states"])


class RecurrentPolicy(Policy):
    """Acting of policies that remember; in front of the algorithm that they are made of."""

    def _new_actor(self) -> RecurrentActor:
        return RecurrentActor(self._model, recurrent_step)

    def _init_collect(self) -> None:
        self._collector = self._new_actor()

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        self._collector.reset(data_id)

    def _get_memory(self) -> dict[str, Any]:
        return {**super()._get_memory(), "recurrent": self._collector.state_dict()}

    def _set_memory(self, memory: Mapping[str, Any]) -> None:
        super()._set_memory(memory)
        self._collector.load_state_dict(memory["recurrent"])

    def _init_eval(self) -> None:
        self._evaluator = self._new_actor()

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        self._evaluator.reset(data_id)


def recurrent_step(
    model: nn.Module, obs: Any, states: list[Any]
) -> tuple[Any, list[Any], dict[str, np.ndarray]]:
    """For networks with `prev_state` and `next_state`; the states before are stored as columns."""
    output = model(with_state(obs, states), inference=True)
    after = output["next_state"]
    zero = tree_map(torch.zeros_like, after[0])
    before = stack([zero if state is None else state for state in states])
    return masked_logits(output), after, before


def with_state(obs: Any, state: Any) -> dict[str, Any]:
    """What such networks take; what comes with the observation itself goes in beside it."""
    return {**(obs if _is_input(obs) else {"obs": obs}), "prev_state": state}


def mask_of(obs: Any) -> Any:
    """The action mask that came with an observation, if one did."""
    return obs.get("action_mask") if _is_input(obs) else None


def _is_input(obs: Any) -> bool:
    """Whether this is an observation with something beside it, not an observation in parts."""
    return isinstance(obs, dict) and {"obs"} < set(obs) <= _INPUTS


def stored_state(column: Any) -> Any:
    """States as they are stored, (B, L, 1, H), to one for a batch of sequences, (L, B, H)."""
    return tree_map(lambda leaf: leaf.squeeze(2).transpose(0, 1), column)


def with_last_obs(obs: Any, next_obs: Any, mask: Tensor) -> Any:
    """(B, T, ...) each to (T + 1, B, ...): what was seen, with what came after the last step.

    Padding repeats the last step; there its `next_obs` is where the episode has ended. Of
    `next_obs`, that of the last step alone, (B, 1, ...), will do. `mask` (T, B): steps that exist.
    """
    if isinstance(obs, dict):
        return {key: with_last_obs(obs[key], next_obs[key], mask) for key in obs}
    exists = mask.T.reshape(*mask.T.shape, *[1] * (obs.ndim - 2))
    seen = torch.where(exists, obs, next_obs)
    return torch.cat([seen, next_obs[:, -1:]], dim=1).transpose(0, 1)
