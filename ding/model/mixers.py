"""Mixers: values of agents and the global state to one value of the team.

Where more of any agent's value is never less for the team, agents that act greedily by themselves
act greedily together. Letters in shapes: B batch (any number of axes), A agents, M actions, S
numbers of the global state, E embedding, H attention heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.model.encoder import ObsShape, size_of
from ding.torch_utils.network import mlp
from ding.utils.errors import ConfigError

_SMALLEST = 1e-10
"""Added to weights that must not be zero."""


class Mixer(nn.Module):
    """Base of mixers, made of (agent_num, state_shape, mixing_embed_dim).

    One that `needs_actions` is told `n_action` as well, and of more than values: the best of each
    agent's, (B, A), and its action, (B, A), as arguments `best` and `action` of `forward`.
    """

    needs_state = True
    """Whether it looks at the global state."""
    needs_actions = False
    """Whether it looks at what agents do, and what they could have got."""

    def __init__(
        self, agent_num: int, state_dim: ObsShape | None = None, mixing_embed_dim: int = 32
    ) -> None:
        super().__init__()
        if self.needs_state:
            check_given(self, state_dim)

    def forward(self, q: Tensor, state: Tensor | None) -> Tensor:
        """(B, A), (B, S) -> (B,)."""
        raise NotImplementedError


def check_given(part: nn.Module, state_dim: ObsShape | None) -> None:
    """Refuse to be made without a global state."""
    if state_dim is None:
        raise ConfigError(
            f"{type(part).__name__} needs a global state: let the env's observation have a "
            "'global_state' (agent_obs_only = False), or add values up with policy 'vdn'"
        )


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


class DuplexMixer(Mixer):
    """QPLEX: values of the best actions, less weighted advantages of those that are taken.

    Wang et al. 2020, https://arxiv.org/abs/2008.01062:
    Q_tot = sum_a V_a + sum_a lambda_a(s, u) A_a with V_a = w_a(s) max Q_a + b_a(s) and
    A_a = w_a(s) (Q_a - max Q_a) <= 0, w and lambda positive. So Q_tot is largest where every Q_a
    is, and else anything below. lambda_a sums `n_head` products, |k_h(s)| of a key, and sigmoids
    of the state for the agent, and of state and actions (equation 12).
    """

    needs_actions = True

    def __init__(
        self,
        agent_num: int,
        state_dim: ObsShape | None = None,
        mixing_embed_dim: int = 32,
        n_action: int = 1,
        hypernet_embed: int = 64,
        n_head: int = 10,
    ) -> None:
        super().__init__(agent_num, state_dim, mixing_embed_dim)
        size, embed = size_of(state_dim, "global_obs_shape"), mixing_embed_dim
        self.agent_num, self.n_action, self.n_head = agent_num, n_action, n_head
        self.scale = mlp([size, hypernet_embed, agent_num])
        self.offset = mlp([size, hypernet_embed, agent_num])
        self.keys = mlp([size, embed, n_head])
        self.of_agents = mlp([size, embed, n_head * agent_num])
        self.of_actions = mlp([size + agent_num * n_action, embed, n_head * agent_num])

    def forward(
        self,
        q: Tensor,
        state: Tensor | None,
        best: Tensor | None = None,
        action: Tensor | None = None,
    ) -> Tensor:
        assert state is not None and best is not None and action is not None
        s = state.reshape(*q.shape[:-1], -1)
        scale = (1 + self.scale(s)).abs() + _SMALLEST  # begins near the sum of values
        # Without a gradient, as in the paper: else a weight would move values by itself.
        advantage = (scale * (q - best)).detach()
        # V + lambda A = V + A + (lambda - 1) A: values learn as in a sum.
        of_agent = scale * q + self.offset(s) + (self.weights(s, action) - 1) * advantage
        return of_agent.sum(dim=-1)

    def weights(self, s: Tensor, action: Tensor) -> Tensor:
        """lambda (B, A), positive, from states (B, S) and actions (B, A)."""
        chosen = action.unsqueeze(-1) == torch.arange(self.n_action, device=action.device)
        joint = torch.cat([s, chosen.flatten(-2).to(s.dtype)], dim=-1)
        by_head = self.of_agents(s).sigmoid() * self.of_actions(joint).sigmoid()
        keys = self.keys(s).abs() + _SMALLEST
        return (keys.unsqueeze(-1) * by_head.unflatten(-1, (self.n_head, -1))).sum(dim=-2)


class FreeMixer(Mixer):
    """Perceptron of the values and the global state, with nothing that keeps it monotonic.

    It may judge joint actions, but agents cannot act greedily by it: that of Rashid et al. 2020,
    https://arxiv.org/abs/2006.10800, three layers and a value of the state.
    """

    def __init__(
        self, agent_num: int, state_dim: ObsShape | None = None, mixing_embed_dim: int = 256
    ) -> None:
        super().__init__(agent_num, state_dim, mixing_embed_dim)
        size, width = size_of(state_dim, "global_obs_shape"), mixing_embed_dim
        self.main = mlp([size + agent_num, width, width, width, 1])
        self.value = mlp([size, width, 1])

    def forward(self, q: Tensor, state: Tensor | None) -> Tensor:
        assert state is not None
        s = state.reshape(*q.shape[:-1], -1)
        return (self.main(torch.cat([q, s], dim=-1)) + self.value(s)).squeeze(-1)
