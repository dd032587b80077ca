"""Acting with networks that remember: one step at a time, a state for every env's episode.

Letters in shapes: N envs, A actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ding.utils.batch import Batch, stack, tree_map
from ding.utils.data.collate_fn import as_tensor

Step = Callable[[nn.Module, Any, list[Any]], tuple[Tensor, list[Any], Any]]
"""Model, observations and N states (None: begins) to logits, states after, columns to store."""


class RecurrentActor:
    """`actor(env_id, obs)` goes on from where each env's episode is; `reset` when one is over."""

    def __init__(self, model: nn.Module, step: Step, rng: np.random.Generator) -> None:
        self._model, self._step, self._rng = model, step, rng
        self._states: dict[int, Any] = {}
        self._episodes: dict[int, int] = {}

    def __call__(self, env_id: np.ndarray, obs: Any) -> tuple[np.ndarray, Batch]:
        """Logits (N, A), and columns that say where these steps belong."""
        ids = env_id.tolist()
        states = [self._states.get(i) for i in ids]
        begins = np.array([state is None for state in states])
        for i in env_id[begins].tolist():
            self._episodes[i] = int(self._rng.integers(2**62))
        device = next(self._model.parameters()).device
        with torch.no_grad():
            x = tree_map(lambda leaf: as_tensor(leaf).to(device), obs)
            logit, after, before = self._step(self._model, x, states)
        self._states.update(zip(ids, after, strict=True))
        origin = {
            "begins": begins,
            # Not the env's own number: steps of a dropped episode must not be joined to the next.
            "env_id": np.array([self._episodes[i] for i in ids]),
        }
        return logit.cpu().numpy(), origin if before is None else {**origin, "prev_state": before}

    def reset(self, env_id: Iterable[int] | None = None) -> None:
        for i in list(self._states) if env_id is None else env_id:
            self._states.pop(int(i), None)

    def state_dict(self) -> dict[str, Any]:
        return {"states": dict(self._states), "episodes": dict(self._episodes)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._states, self._episodes = dict(state["states"]), dict(state["episodes"])


def recurrent_step(
    model: nn.Module, obs: Any, states: list[Any]
) -> tuple[Tensor, list[Any], dict[str, np.ndarray]]:
    """For networks with `prev_state` and `next_state`; the states before are stored as columns."""
    output = model({"obs": obs, "prev_state": states}, inference=True)
    after = output["next_state"]
    zero = tree_map(torch.zeros_like, after[0])
    before = stack([zero if state is None else state for state in states])
    return output["logit"], after, before
