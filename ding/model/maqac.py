"""Action values for agents that share their weights: actors see what an agent sees, critics more.

Letters in shapes: B batch, A agents, M actions, D numbers of an action, S numbers of the global
state, C critics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.model.actor_critic import run_mode
from ding.model.agent_actor_critic import AgentCritic, central_state, check_global, n_seen
from ding.model.agents import alive_of, mask_of, state_of
from ding.model.encoder import ObsShape, shape_of, size_of
from ding.model.head import RegressionHead, ReparameterizationHead, discrete_head_for
from ding.torch_utils.network import Activation
from ding.utils.errors import ConfigError, nearest

ACTION_SPACES = ("regression", "reparameterization")


class AgentActionValues(nn.Module):
    """Base: modes and the critic."""

    modes: tuple[str, ...] = ("compute_actor", "compute_critic", "compute_critics")
    critic: AgentCritic
    twin_critic: bool

    def forward(self, x: Any, mode: str = "compute_actor") -> dict[str, Any]:
        return run_mode(self, mode, x)

    def compute_critic(self, x: Any) -> dict[str, Any]:
        """{'q_value': values}, with two critics {'q_value': [values, values]}."""
        q = self._q_values(x)
        return {"q_value": list(q.unbind(0)) if self.twin_critic else q}

    def compute_critics(self, x: Any) -> dict[str, Any]:
        """The same as one tensor, critics first, however many there are."""
        q = self._q_values(x)
        return {"q_value": q if self.twin_critic else q.unsqueeze(0)}

    def _q_values(self, x: Any) -> Tensor:
        raise NotImplementedError


class DiscreteMAQAC(AgentActionValues):
    """Critics give each agent the values of its own actions."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        agent_obs_shape: ObsShape,
        global_obs_shape: ObsShape | None,
        action_shape: int | Sequence[int],
        twin_critic: bool = False,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        agent_num: int | None = None,
    ) -> None:
        """`agent_num` may only be left out where every agent has a global state of its own."""
        super().__init__()
        self.twin_critic = twin_critic
        options: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        n_action = shape_of(action_shape, "action_shape")
        self.actor = discrete_head_for(
            n_action,
            actor_head_hidden_size,
            layer_num=actor_head_layer_num + 1,
            in_size=n_seen(agent_obs_shape),
            **options,
        )
        state = check_global(global_obs_shape, "DiscreteMAQAC")
        sizes = [*[critic_head_hidden_size] * (critic_head_layer_num + 1), *n_action]
        self.critic = AgentCritic(agent_num, state, sizes, twin=twin_critic, **options)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        """'logit': (B, A, M), with the mask."""
        obs = _obs_of(x)
        mask = mask_of(obs)
        output = self.actor(state_of(obs))
        return output if mask is None else {**output, "action_mask": mask}

    def _q_values(self, x: Any) -> Tensor:
        """(B, A, M) or (2, B, A, M)."""
        return self.critic(*central_state(_obs_of(x)))


class ContinuousMAQAC(AgentActionValues):
    """Critics see the actions of all agents, those of the dead as zeros."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        agent_obs_shape: ObsShape,
        global_obs_shape: ObsShape | None,
        action_shape: int | Sequence[int],
        action_space: str = "regression",
        twin_critic: bool = False,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        agent_num: int | None = None,
    ) -> None:
        """Without `agent_num` critics see the agent's own action and its own global state."""
        super().__init__()
        if action_space not in ACTION_SPACES:
            valid = nearest(action_space, ACTION_SPACES)
            raise ConfigError(f"action_space = '{action_space}'{valid}")
        self.action_space, self.twin_critic = action_space, twin_critic
        options: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        n_action, hidden = size_of(action_shape, "action_shape"), actor_head_hidden_size
        actor = {
            "layer_num": actor_head_layer_num + 1,
            "in_size": n_seen(agent_obs_shape),
            **options,
        }
        self.actor: nn.Module
        if action_space == "regression":
            self.actor = RegressionHead(hidden, n_action, final_tanh=True, squeeze=False, **actor)
        else:
            self.actor = ReparameterizationHead(hidden, n_action, sigma_type="conditioned", **actor)
        *agents, size = shape_of(
            check_global(global_obs_shape, "ContinuousMAQAC"), "global_obs_shape"
        )
        self.sees_all = agent_num is not None
        size += n_action * ((agent_num or 0) + bool(agents or not self.sees_all))
        sizes = [*[critic_head_hidden_size] * (critic_head_layer_num + 1), 1]
        self.critic = AgentCritic(agent_num, [*agents, size], sizes, twin=twin_critic, **options)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        """'action': (B, A, D), or 'logit': {'mu', 'sigma'} of reparameterised ones."""
        output = self.actor(state_of(_obs_of(x)))
        if self.action_space == "regression":
            return {"action": output["pred"]}
        return {"logit": output}

    def _q_values(self, x: Mapping[str, Any]) -> Tensor:
        """{'obs', 'action'} to (B, A) or (2, B, A).

        With 'own_action' each agent's value is of that action beside those of the others.
        """
        obs, action, own = x["obs"], x["action"], x.get("own_action")
        state, has_agents = central_state(obs)
        alive = alive_of(obs)
        if alive is not None:
            action = action * alive.unsqueeze(-1)
            own = None if own is None else own * alive.unsqueeze(-1)
        if own is None and self.sees_all and not has_agents:
            return self.critic(torch.cat([state, action.flatten(-2)], dim=-1), False).squeeze(-1)
        parts = [state if has_agents else state.unsqueeze(-2).expand(*action.shape[:-1], -1)]
        if self.critic.is_shared:  # which of the actions is its own
            parts.append(action if own is None else own)
        if self.sees_all:
            parts.append(_beside(action, action if own is None else own))
        return self.critic(torch.cat(parts, dim=-1), True).squeeze(-1)


def _obs_of(x: Any) -> Any:
    return x["obs"] if isinstance(x, Mapping) and "obs" in x else x


def _beside(action: Tensor, own: Tensor) -> Tensor:
    """(B, A, D) each to (B, A, A D): for each agent all actions, with its own in its place."""
    agents = action.shape[-2]
    is_own = torch.eye(agents, dtype=torch.bool, device=action.device).unsqueeze(-1)
    rows = action.unsqueeze(-3).expand(*action.shape[:-2], agents, agents, -1)
    return torch.where(is_own, own.unsqueeze(-3), rows).flatten(-2)
