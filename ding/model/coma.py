"""COMA's networks: an actor for each agent, and a critic of its actions beside those of the others.

B batch, A agents, M actions, K numbers that an agent sees, S of the global state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.model.actor_critic import run_mode
from ding.model.agent_actor_critic import AgentCritic, central_state, check_global, n_seen
from ding.model.agents import alive_of, mask_of, state_of
from ding.model.encoder import ObsShape, shape_of
from ding.torch_utils.network import Activation, mlp


class COMA(nn.Module):
    """All share weights, and the critic is told whose actions it values.

    https://arxiv.org/abs/1705.08926
    """

    modes = ("compute_actor", "compute_critic")

    def __init__(
        self,
        agent_num: int,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        actor_hidden_size_list: Sequence[int] = (64, 64),
        critic_hidden_size_list: Sequence[int] = (128, 128),
        global_obs_shape: ObsShape | None = None,
        activation: Activation = "relu",
    ) -> None:
        """`obs_shape` may be {'agent_state', 'global_state'}."""
        super().__init__()
        if isinstance(obs_shape, Mapping):
            global_obs_shape = obs_shape.get("global_state", global_obs_shape)
            obs_shape = obs_shape["agent_state"]
        seen, n_action = n_seen(obs_shape), shape_of(action_shape, "action_shape")[0]
        self.agent_num, self.n_action = agent_num, n_action
        self.actor = mlp([seen, *actor_hidden_size_list, n_action], activation)
        *_, size = shape_of(check_global(global_obs_shape, "COMA"), "global_obs_shape")
        inputs = size + seen + agent_num * (n_action + 1)
        sizes = [*critic_hidden_size_list, n_action]
        self.critic = AgentCritic(agent_num, [agent_num, inputs], sizes, activation)

    def forward(self, x: Any, mode: str = "compute_actor") -> dict[str, Any]:
        return run_mode(self, mode, x)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        """'logit': (B, A, M), with the mask."""
        obs = x.get("obs", x)
        mask = mask_of(obs)
        output = {"logit": self.actor(state_of(obs))}
        return output if mask is None else {**output, "action_mask": mask}

    def compute_critic(self, x: Mapping[str, Any]) -> dict[str, Tensor]:
        """{'obs', 'action'} to 'q_value': (B, A, M), of each agent's actions beside the others'."""
        obs, action = x["obs"], x["action"]
        state, has_agents = central_state(obs)
        if not has_agents:
            state = state.unsqueeze(-2).expand(*action.shape, -1)
        parts = [state, state_of(obs), self._others(action, alive_of(obs)), self._who(action)]
        return {"q_value": self.critic(torch.cat(parts, dim=-1), True)}

    def _others(self, action: Tensor, alive: Tensor | None) -> Tensor:
        """(B, A, A M): what the other living agents do, with zeros in an agent's own place."""
        taken = F.one_hot(action.long(), self.n_action).float()
        taken = taken if alive is None else taken * alive.unsqueeze(-1)
        is_other = 1 - torch.eye(self.agent_num, device=action.device)
        return (taken.unsqueeze(-3) * is_other.unsqueeze(-1)).flatten(-2)

    def _who(self, action: Tensor) -> Tensor:
        who = torch.eye(self.agent_num, device=action.device)
        return who.expand(*action.shape, self.agent_num)
