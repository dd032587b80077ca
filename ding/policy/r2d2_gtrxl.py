"""R2D2 with a gated transformer in place of the recurrent network.

Parisotto et al. 2019, https://arxiv.org/abs/1910.06764

Its memory, the last steps as every layer saw them, is too large to be stored with each step: what
precedes the steps to learn from is computed anew in the burn-in, from an empty memory on.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ding.policy.acting import eval_view
from ding.policy.actions import masked_logits
from ding.policy.r2d2 import R2D2Policy, split_burn_in
from ding.policy.recurrent import RecurrentActor
from ding.utils.batch import Batch, tree_map


class R2D2GTrXLPolicy(R2D2Policy):
    sequence_columns = ("mask", "begins")

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "gtrxldqn"

    def _unrolled(self, module: nn.Module, obs: Any, batch: Batch) -> Tensor:
        model: Any = module
        model.reset_memory()
        parts = [model(part)["logit"] for part in split_burn_in(obs, self.cfg.burnin_step)]
        model.reset_memory()
        return torch.cat(parts)

    def _new_actor(self) -> RecurrentActor:
        # A copy that shares the weights: the memory of the model itself belongs to learning.
        return RecurrentActor(eval_view(self._model), _TransformerStep())


class _TransformerStep:
    """The memory (layers, M, features) of every env in, and out again one step later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # threads that act share the model and its memory

    def __call__(
        self, model: nn.Module, obs: Any, states: list[Any]
    ) -> tuple[Tensor, list[Any], None]:
        core: Any = model
        with self._lock:
            core.reset_memory(state=self._joined(states))
            output = core(tree_map(lambda leaf: leaf.unsqueeze(0), obs))
        return masked_logits(output)[0], list(output["memory"].unbind(dim=2)), None

    def _joined(self, states: list[Any]) -> Tensor | None:
        known = next((state for state in states if state is not None), None)
        if known is None:
            return None
        empty = torch.zeros_like(known)
        return torch.stack([empty if state is None else state for state in states], dim=2)
