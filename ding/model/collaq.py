"""Agents whose value is what they are worth alone, and what others add to that.

Letters in shapes: T time, B batch, A agents, K numbers that an agent sees, M actions, S numbers of
what an agent remembers, F numbers of an ally, E size of the attention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.model.agents import AgentQ, QMix, alone_of, state_of
from ding.model.encoder import ObsShape, shape_of, size_of
from ding.torch_utils.network import Activation
from ding.utils.errors import ConfigError


class AllyAttention(nn.Module):
    """(..., K) with what is seen of allies, (A - 1) F numbers, made into E by attention."""

    def __init__(self, n_ally: int, own: Sequence[int], allies: Sequence[int], size: int) -> None:
        super().__init__()
        (self.own_begin, self.own_end), (self.begin, self.end) = own, allies
        self.n_ally = n_ally
        each = (self.end - self.begin) // n_ally
        self.query = nn.Linear(self.own_end - self.own_begin, size)
        self.key = nn.Linear(each, size)
        self.value = nn.Linear(each, size)

    def forward(self, x: Tensor) -> Tensor:
        allies = x[..., self.begin : self.end].unflatten(-1, (self.n_ally, -1))  # (..., A - 1, F)
        query = self.query(x[..., self.own_begin : self.own_end]).unsqueeze(-1)
        score = self.key(allies) @ query / math.sqrt(query.shape[-2])
        summed = (score.softmax(dim=-2) * self.value(allies)).sum(dim=-2)
        return torch.cat([x[..., : self.begin], summed, x[..., self.end :]], dim=-1)


class CollaQ(QMix):
    """Q = Q_alone(what is seen without allies) + Q_collab(all) - Q_collab(allies zeroed).

    Zhang et al. 2020, https://arxiv.org/abs/2010.08531. What agents remember, (..., 3 S), is that
    of the three parts. With `attention` the collaborative part attends to allies, whose numbers are
    `ally_feature_range` of what an agent sees, by those of `self_feature_range`.
    """

    inputs = ("agent_state", "agent_alone_state", "agent_alone_padding_state")

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        agent_num: int,
        obs_shape: ObsShape,
        alone_obs_shape: ObsShape,
        global_obs_shape: ObsShape | None,
        action_shape: int | Sequence[int],
        hidden_size_list: Sequence[int],
        attention: bool = False,
        self_feature_range: Sequence[int] | None = None,
        ally_feature_range: Sequence[int] | None = None,
        attention_size: int = 32,
        mixer: bool | str = True,
        lstm_type: str | None = "gru",
        activation: Activation = "relu",
        dueling: bool = False,
        mixing_embed_dim: int | None = None,
    ) -> None:
        attend: AllyAttention | None = None
        if attention:
            ranges = {"self": self_feature_range, "ally": ally_feature_range}
            own, allies = (_checked(f"{k}_feature_range", x, obs_shape) for k, x in ranges.items())
            if (allies[1] - allies[0]) % max(agent_num - 1, 1):
                raise ConfigError(
                    f"policy.model.ally_feature_range = {list(allies)} does not hold as many "
                    f"numbers of each of {agent_num - 1} allies"
                )
            attend = AllyAttention(agent_num - 1, own, allies, attention_size)
            obs_shape = size_of(obs_shape, "obs_shape") - allies[1] + allies[0] + attention_size
        super().__init__(
            agent_num,
            obs_shape,
            global_obs_shape,
            action_shape,
            hidden_size_list,
            mixer=mixer,
            lstm_type=lstm_type,
            activation=activation,
            dueling=dueling,
            mixing_embed_dim=mixing_embed_dim,
        )
        n_action = shape_of(action_shape, "action_shape")[0]
        sizes = (n_action, hidden_size_list, lstm_type, activation, dueling)
        self.alone_agents = AgentQ(alone_obs_shape, *sizes)
        self.attend = attend or nn.Identity()

    @property
    def memory_size(self) -> int:
        return self.alone_agents.memory_size + 2 * self.agents.memory_size

    def values(self, obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor | None]:
        q, _, memory = self.parts(obs, memory)
        return q, memory

    def parts(self, obs: Any, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values (T, B, A, M), those of collaboration with nobody, and the memory after them."""
        seen, (without, padded) = state_of(obs), alone_of(obs)
        first: list[Tensor | None] = [None] * 3
        if memory is not None:
            first = list(memory.chunk(3, dim=-1))
        alone, of_alone = self.alone_agents(without, first[0])
        collab, of_collab = self.agents(self.attend(seen), first[1])
        nobody, of_nobody = self.agents(self.attend(padded), first[2])
        after = [part for part in (of_alone, of_collab, of_nobody) if part is not None]
        return alone + collab - nobody, nobody, torch.cat(after, dim=-1) if after else None


def _checked(name: str, given: Sequence[int] | None, obs_shape: ObsShape) -> tuple[int, int]:
    size = size_of(obs_shape, "obs_shape")
    fits = given is not None and len(given) == 2 and 0 <= given[0] < given[1] <= size
    if given is None or not fits:
        raise ConfigError(
            f"policy.model.{name} = {given}: with attention it is [begin, end] within the {size} "
            "numbers that an agent sees; or set policy.model.attention = False"
        )
    return int(given[0]), int(given[1])
