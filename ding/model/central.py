"""Agents that act by one value of the team and learn from another one, which may be any function.

Letters in shapes: T time, B batch, A agents, M actions, S numbers of what an agent remembers, H
features of an agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ding.model.agents import (
    AgentQ,
    QMix,
    alive_of,
    check_flat,
    global_state_of,
    of_living,
    state_of,
)
from ding.model.encoder import ObsShape, shape_of, size_of
from ding.model.mixers import FreeMixer, check_given
from ding.rl_utils.td import at_action
from ding.torch_utils.network import Activation, mlp


class WQMix(QMix):
    """QMIX, and agents and a mixer of their own for Q*, https://arxiv.org/abs/2006.10800.

    What agents remember, (..., 2 S), is that of both networks.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        agent_num: int,
        obs_shape: ObsShape,
        global_obs_shape: ObsShape | None,
        action_shape: int | Sequence[int],
        hidden_size_list: Sequence[int],
        lstm_type: str | None = "gru",
        dueling: bool = False,
        activation: Activation = "relu",
        mixing_embed_dim: int | None = None,
        star_embed_dim: int = 256,
    ) -> None:
        """`star_embed_dim`: width of the mixer of Q*."""
        super().__init__(
            agent_num,
            obs_shape,
            global_obs_shape,
            action_shape,
            hidden_size_list,
            lstm_type=lstm_type,
            activation=activation,
            dueling=dueling,
            mixing_embed_dim=mixing_embed_dim,
        )
        n_action = shape_of(action_shape, "action_shape")[0]
        sizes = (obs_shape, n_action, hidden_size_list, lstm_type, activation)
        self.star_agents = AgentQ(*sizes, dueling)
        self.star_mixer = FreeMixer(agent_num, global_obs_shape, star_embed_dim)

    @property
    def memory_size(self) -> int:
        return self.agents.memory_size + self.star_agents.memory_size

    def values(self, obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if not self.memory_size:
            return self.agents(state_of(obs), None)
        q, _, memory = self.both(obs, memory)
        return q, memory

    def both(self, obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values of QMIX, those of Q* (each (T, B, A, M)), and the memory (B, A, 2 S) after."""
        state = state_of(obs)
        own, of_star = (None, None) if memory is None else memory.chunk(2, dim=-1)
        q, own = self.agents(state, own)
        star, of_star = self.star_agents(state, of_star)
        if own is None or of_star is None:
            return q, star, None
        return q, star, torch.cat([own, of_star], dim=-1)

    def star(self, q: Tensor, action: Tensor, obs: Any) -> Tensor:
        """Q* (...) of values (..., A, M) of its own agents and actions (..., A)."""
        return self.star_mixer(of_living(at_action(q, action), obs), global_state_of(obs))

    def forward(
        self, data: Mapping[str, Any], single_step: bool = True, q_star: bool = False
    ) -> dict[str, Any]:
        """As that of QMix; `q_star`: of the values and the mixer of Q*."""
        if not q_star:
            return super().forward(data, single_step)
        return self._output(data, single_step, self._star_values, self.star)

    def _star_values(self, obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
        _, star, memory = self.both(obs, memory)
        return star, memory


class QTran(QMix):
    """Sum of the agents' values, a value of joint actions, and one of the state to make up for it.

    Son et al. 2019, https://arxiv.org/abs/1905.05408 (QTRAN-base): the joint value sees the state
    and the sum of encodings of what each agent has seen and does.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        agent_num: int,
        obs_shape: ObsShape,
        global_obs_shape: ObsShape | None,
        action_shape: int | Sequence[int],
        hidden_size_list: Sequence[int],
        embedding_size: int = 64,
        lstm_type: str | None = "gru",
        dueling: bool = False,
        activation: Activation = "relu",
    ) -> None:
        """`embedding_size`: width of the networks of the joint value and of the state's."""
        super().__init__(
            agent_num,
            obs_shape,
            None,
            action_shape,
            hidden_size_list,
            mixer=False,
            lstm_type=lstm_type,
            activation=activation,
            dueling=dueling,
        )
        check_given(self, global_obs_shape)
        check_flat(global_obs_shape)
        self.n_action = shape_of(action_shape, "action_shape")[0]
        self.state_ndim = len(shape_of(global_obs_shape, "global_obs_shape"))
        size, embed = size_of(global_obs_shape, "global_obs_shape"), embedding_size
        encoding = int(hidden_size_list[-1]) + self.n_action
        self.encode = mlp([encoding, encoding, encoding])
        self.joint_value = mlp([size + encoding, embed, embed, 1])
        self.state_value = mlp([size, embed, embed, 1])

    def unrolled(self, obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values (T, B, A, M), features (T, B, A, H), and the memory (B, A, S) after them."""
        assert isinstance(self.agents, AgentQ)
        x, memory = self.agents.features(state_of(obs), memory)
        return self.agents.head(x)["logit"], x, memory

    def joint(self, features: Tensor, action: Tensor, obs: Any) -> Tensor:
        """Q_jt (...) of features (..., A, H) and actions (..., A)."""
        chosen = action.unsqueeze(-1) == torch.arange(self.n_action, device=action.device)
        encoded = self.encode(torch.cat([features, chosen.to(features.dtype)], dim=-1))
        alive = alive_of(obs)
        encoded = encoded if alive is None else encoded * alive.unsqueeze(-1)
        s = global_state_of(obs).flatten(-self.state_ndim)
        return self.joint_value(torch.cat([s, encoded.sum(dim=-2)], dim=-1)).squeeze(-1)

    def of_state(self, obs: Any) -> Tensor:
        """V_jt (...): what the sum of values is off by, which sees only parts."""
        return self.state_value(global_state_of(obs).flatten(-self.state_ndim)).squeeze(-1)

    def forward(self, data: Mapping[str, Any], single_step: bool = True) -> dict[str, Any]:
        """As that of QMix, with the joint value as 'total_q', and 'agent_q_act', 'vs'."""
        found: dict[str, Tensor] = {}

        def values(obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
            q, found["features"], memory = self.unrolled(obs, memory)
            return q, memory

        def team(q: Tensor, action: Tensor, obs: Any) -> Tensor:
            found["agent_q_act"], found["vs"] = at_action(q, action), self.of_state(obs)
            return self.joint(found["features"], action, obs)

        output = self._output(data, single_step, values, team)
        more = {key: found[key] for key in ("agent_q_act", "vs")}
        return {**output, **({k: x[0] for k, x in more.items()} if single_step else more)}
