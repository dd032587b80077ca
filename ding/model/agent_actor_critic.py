"""Actor-critics of agents that share weights: actors see one agent's observation, critics more.

Letters in shapes: B batch (any number of axes), A agents, K numbers that an agent sees, S of the
global state, N values, C critics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from ding.model.actor_critic import critic_of, run_mode
from ding.model.agents import mask_of, state_of
from ding.model.encoder import ObsShape, shape_of
from ding.model.head import ReparameterizationHead, discrete_head_for
from ding.torch_utils.network import Activation, orthogonal_
from ding.utils.errors import ConfigError, nearest

ACTION_SPACES = ("discrete", "continuous")


class AgentCritic(nn.Module):
    """Values of every agent: of a state of its own, or of one that is the same for all.

    Made for states (A, S), all agents have the same weights. Made for states (S,), they share all
    layers but the last, which tells them apart.
    """

    def __init__(
        self,
        agent_num: int | None,
        state_shape: ObsShape,
        sizes: Sequence[int],
        activation: Activation = "relu",
        norm_type: str | None = None,
        twin: bool = False,
    ) -> None:
        """`sizes`: of the hidden layers, then the number of values of each agent.

        Without `agent_num` states are of each agent, (S,) or (A, S).
        """
        super().__init__()
        shape = shape_of(state_shape, "global_obs_shape")
        self.is_shared = len(shape) == 2 or agent_num is None
        if len(shape) > 2 or (len(shape) == 2 and agent_num not in (None, shape[0])):
            raise ConfigError(
                f"global_obs_shape = {list(shape)}: critics of {agent_num} agents see (S,) or "
                f"({agent_num}, S)"
            )
        *hidden, self.n_value = sizes
        self.agent_num = agent_num
        outputs = self.n_value * (agent_num if agent_num and not self.is_shared else 1)
        self.main = critic_of([shape[-1], *hidden, outputs], twin, activation, norm_type)

    def forward(self, state: Tensor, has_agents: bool) -> Tensor:
        """(B, S), or (B, A, S) if it `has_agents`, to (B, A, N); of twins to (C, B, A, N)."""
        y = self.main(state.reshape(-1, state.shape[-1]))
        y = y.view(*y.shape[:-2], *state.shape[:-1], y.shape[-1])
        if self.is_shared:
            return y
        y = y.unflatten(-1, (self.agent_num, self.n_value))
        return y.diagonal(dim1=-3, dim2=-2).mT if has_agents else y


def central_state(obs: Any) -> tuple[Tensor, bool]:
    """The global state, and whether there is one for each agent."""
    state = obs["global_state"]
    return state, state.ndim == obs["agent_state"].ndim


def check_global(global_obs_shape: ObsShape | None, name: str, instead: str = "") -> ObsShape:
    if global_obs_shape is None:
        raise ConfigError(
            f"{name} needs a global state for its critic: let the env's observation have a "
            f"'global_state' (agent_obs_only = False){instead}"
        )
    return global_obs_shape


def n_seen(agent_obs_shape: ObsShape) -> int:
    shape = shape_of(agent_obs_shape, "agent_obs_shape")
    if len(shape) != 1:
        raise ConfigError(
            f"policy.model.agent_obs_shape = {list(shape)}: agents see vectors (K,) here; flatten "
            "them in the env, or pass a model of your own"
        )
    return shape[0]


class MAVAC(nn.Module):
    """Policy of each agent from what it sees, and its value from the global state.

    https://arxiv.org/abs/2103.01955. Without `central_critic` the value is of what it sees, too.
    """

    modes = ("compute_actor", "compute_critic", "compute_actor_critic")

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        agent_obs_shape: ObsShape,
        global_obs_shape: ObsShape | None,
        action_shape: int | Sequence[int],
        agent_num: int,
        actor_head_hidden_size: int = 256,
        actor_head_layer_num: int = 2,
        critic_head_hidden_size: int = 512,
        critic_head_layer_num: int = 1,
        action_space: str = "discrete",
        activation: Activation = "relu",
        norm_type: str | None = None,
        sigma_type: str = "independent",
        fixed_sigma_value: float = 0.3,
        bound_type: str | None = None,
        central_critic: bool = True,
        orthogonal_init: bool = False,
    ) -> None:
        super().__init__()
        if action_space not in ACTION_SPACES:
            raise ConfigError(
                f"action_space = '{action_space}'{nearest(action_space, ACTION_SPACES)}"
            )
        seen, self.central_critic = n_seen(agent_obs_shape), central_critic
        state: ObsShape = [agent_num, seen]
        if central_critic:
            instead = ", or let critics see what agents see with policy 'ippo'"
            state = check_global(global_obs_shape, "MAVAC", instead)
        self.action_space = action_space
        options: dict[str, Any] = {"activation": activation, "norm_type": norm_type}
        actor: dict[str, Any] = {
            "layer_num": actor_head_layer_num + 1,
            "in_size": seen,
            **options,
        }
        n_action = shape_of(action_shape, "action_shape")
        if action_space == "continuous":
            actor |= {"fixed_sigma_value": fixed_sigma_value, "bound_type": bound_type}
            self.actor: nn.Module = ReparameterizationHead(
                actor_head_hidden_size, math.prod(n_action), sigma_type=sigma_type, **actor
            )
        else:
            self.actor = discrete_head_for(n_action, actor_head_hidden_size, **actor)
        hidden = [critic_head_hidden_size] * (critic_head_layer_num + 1)
        self.critic = AgentCritic(agent_num, state, [*hidden, 1], **options)
        if orthogonal_init:
            self._init_orthogonal()

    def _init_orthogonal(self) -> None:
        """Gains sqrt(2) inside, 0.01 for the policy's output and 1 for the value's."""
        orthogonal_(self)
        orthogonal_(self.critic.main[-1], 1.0)  # type: ignore[index]
        actor: Any = self.actor
        orthogonal_(actor.mu if self.action_space == "continuous" else actor.main[-1], 0.01)

    def forward(self, x: Any, mode: str = "compute_actor") -> dict[str, Any]:
        return run_mode(self, mode, x)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        """'logit': (B, A, M), or {'mu', 'sigma'} of continuous actions; the mask goes with it."""
        output, mask = self.actor(state_of(x)), mask_of(x)
        output = {"logit": output} if self.action_space == "continuous" else output
        return output if mask is None else {**output, "action_mask": mask}

    def compute_critic(self, x: Any) -> dict[str, Any]:
        """'value': (B, A)."""
        state, has_agents = central_state(x) if self.central_critic else (state_of(x), True)
        return {"value": self.critic(state, has_agents).squeeze(-1)}

    def compute_actor_critic(self, x: Any) -> dict[str, Any]:
        return {**self.compute_actor(x), **self.compute_critic(x)}
