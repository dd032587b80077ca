"""Acting state: everything that acting needs of a policy, as one versioned value.

Serial acting, evaluation, parallel publishing and checkpoints use it and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ding.utils.batch import tree_map
from ding.utils.errors import CheckpointError


@dataclass(frozen=True)
class ActingState:
    """State of the acting parts in NumPy arrays and plain values."""

    version: int
    """Updates behind it."""
    parts: dict[str, Any]
    """By name: 'model' (weights), normalisers, return scale, temperature."""


class ActingPart(Protocol):
    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> Any: ...


class ActingParts(dict[str, ActingPart]):
    """Parts of a policy by name, among them its 'model'; algorithms add theirs."""

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self.items()}

    def published(self, version: int) -> ActingState:
        """A copy, which does not change with the next update."""
        return ActingState(version, tree_map(_owned, self.state_dict()))

    def not_finite(self) -> list[str]:
        """Names of weights with NaN or infinite numbers; other tensors may be infinite."""
        return [
            f"{part_name}.{name}"
            for part_name, part in self.items()
            if isinstance(part, nn.Module)
            for name, tensor in part.state_dict(keep_vars=True).items()
            if tensor.isnan().any() or (tensor.requires_grad and tensor.isinf().any())
        ]

    def load(self, state: ActingState) -> None:
        missing = self.keys() - state.parts.keys()
        if missing:
            raise CheckpointError(f"the acting state lacks {', '.join(sorted(missing))}")
        # Arrays of a store of objects are read-only, and modules load tensors.
        tensors = {
            name: tree_map(lambda leaf: torch.from_numpy(leaf.copy()), state.parts[name])
            for name, part in self.items()
            if isinstance(part, nn.Module)
        }
        self.load_checkpoint({**state.parts, **tensors})

    def load_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Load the parts that a checkpoint has; the model and its normaliser must be there."""
        for name in ("model", "obs_norm"):
            if name in self and name not in state:
                raise CheckpointError(
                    f"no '{name}' in the checkpoint, only {sorted(state)}{_ADVICE.get(name, '')}"
                )
        for name, part in self.items():
            if name == "model":
                _load_model(part, state["model"])
            elif name in state:
                part.load_state_dict(state[name])


_ADVICE = {"obs_norm": "; it was trained without: set policy.obs_norm = False"}


def _load_model(model: ActingPart, weights: dict[str, Any]) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        raise CheckpointError(
            "the checkpoint does not fit the model of this config: " + _shortened(lines[1:4])
        ) from error


def _shortened(lines: list[str]) -> str:
    """The first of what torch complains of; other names are those of another network."""
    if any("size mismatch" in line for line in lines):
        return next(line for line in lines if "size mismatch" in line)
    names = "; ".join(line if len(line) <= 120 else f"{line[:117]}..." for line in lines)
    return f"it is of another algorithm or network ({names})"


def _owned(value: Any) -> Any:
    return value.detach().cpu().numpy().copy() if isinstance(value, Tensor) else value
