"""HAPPO's networks: an actor of its own for each agent, and one central critic.

Letters in shapes: B batch, A agents, K numbers that an agent sees, M actions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ding.model.agent_actor_critic import MAVAC
from ding.model.agents import mask_of, state_of


class HAVAC(nn.Module):
    """MAVACs of one agent each behind the modes of one; they have the critic of the first.

    https://arxiv.org/abs/2109.11251
    """

    modes = MAVAC.modes
    options_of = MAVAC
    """Whose arguments it passes on."""

    def __init__(self, agent_num: int, **options: Any) -> None:
        super().__init__()
        first, *others = (MAVAC(agent_num=agent_num, **options) for _ in range(agent_num))
        self.agent_num, self.whole = agent_num, first
        self.actors = nn.ModuleList([first.actor, *(other.actor for other in others)])

    def forward(
        self, x: Any, mode: str = "compute_actor", agent_idx: int | None = None
    ) -> dict[str, Any]:
        """Of all agents, or of one: logits (B, M) and so on."""
        output: dict[str, Any] = {}
        if mode != "compute_critic":
            output = self._policies(x) if agent_idx is None else self._policy(x, agent_idx)
        if mode != "compute_actor":
            value = self.whole(x, "compute_critic")["value"]
            output["value"] = value if agent_idx is None else value[..., agent_idx]
        return output

    def _policy(self, x: Any, i: int) -> dict[str, Any]:
        output, mask = self.actors[i](state_of(x)[..., i, :]), mask_of(x)
        output = output if "logit" in output else {"logit": output}
        return output if mask is None else {**output, "action_mask": mask[..., i, :]}

    def _policies(self, x: Any) -> dict[str, Any]:
        each = [self._policy(x, i) for i in range(self.agent_num)]
        return {key: _stacked([one[key] for one in each]) for key in each[0]}


def _stacked(parts: list[Any]) -> Any:
    """(B, ...) of each agent to (B, A, ...)."""
    if isinstance(parts[0], dict):
        return {key: _stacked([part[key] for part in parts]) for key in parts[0]}
    stacked: Tensor = torch.stack(parts, dim=-2)
    return stacked
