"""Mixers: values of agents and the global state to one value of the team.

Where more of any agent's value is never less for the team, agents that act greedily by themselves
act greedily together. Letters in shapes: B batch (any number of axes), A agents, S numbers of the
global state, E embedding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.model.encoder import ObsShape, size_of
from ding.torch_utils.network import mlp
from ding.utils.errors import ConfigError


class Mixer(nn.Module):
    """Base of mixers, made of (agent_num, state_shape, mixing_embed_dim)."""

    needs_state = True
    """Whether it looks at the global state."""

    def __init__(
        self, agent_num: int, state_dim: ObsShape | None = None, mixing_embed_dim: int = 32
    ) -> None:
        super().__init__()
        if self.needs_state and state_dim is None:
            raise ConfigError(
                f"{type(self).__name__} needs a global state: let the env's observation have a "
                "'global_state' (agent_obs_only = False), or add values up with policy 'vdn'"
            )

    def forward(self, q: Tensor, state: Tensor | None) -> Tensor:
        """(B, A), (B, S) -> (B,)."""
        raise NotImplementedError


class SumMixer(Mixer):
    """VDN: Q_tot = sum_a Q_a, https://arxiv.org/abs/1706.05296."""

    needs_state = False

    def forward(self, q: Tensor, state: Tensor | None) -> Tensor:
        return q.sum(dim=-1)


class MonotonicMixer(Mixer):
    """QMIX: two layers whose weights, made from the state, are not negative.

    Figure 2 of Rashid et al. 2018, https://arxiv.org/abs/1803.11485:
    Q_tot = |W2(s)|' elu(|W1(s)|' q + b1(s)) + V(s). `hypernet_embed` 0 makes W1 and W2 linear in
    the state, as in the paper.
    """

    def __init__(
        self,
        agent_num: int,
        state_dim: ObsShape | None = None,
        mixing_embed_dim: int = 32,
        hypernet_embed: int = 64,
    ) -> None:
        super().__init__(agent_num, state_dim, mixing_embed_dim)
        size, embed = size_of(state_dim, "global_obs_shape"), mixing_embed_dim
        hidden = [hypernet_embed] if hypernet_embed else []
        self.agent_num, self.embed = agent_num, embed
        self.hyper_w1 = mlp([size, *hidden, agent_num * embed])
        self.hyper_b1 = nn.Linear(size, embed)
        self.hyper_w2 = mlp([size, *hidden, embed])
        self.value = mlp([size, embed, 1])

    def forward(self, q: Tensor, state: Tensor | None) -> Tensor:
        assert state is not None
        leading, q = q.shape[:-1], q.reshape(-1, 1, self.agent_num)
        s = state.reshape(len(q), -1)
        w1 = self.hyper_w1(s).abs().view(-1, self.agent_num, self.embed)
        hidden = F.elu(torch.bmm(q, w1).squeeze(1) + self.hyper_b1(s))  # (B, E)
        mixed = (hidden * self.hyper_w2(s).abs()).sum(dim=-1) + self.value(s).squeeze(-1)
        return mixed.view(leading)
