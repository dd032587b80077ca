"""Heads that know more than a mean: distributions, quantiles, branches, normalised values.

`noise` makes their layers noisy (https://arxiv.org/abs/1706.10295). Letters in shapes: B batch (any
number of leading axes), F features, A actions, K atoms, N quantiles, D branches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.model.head import head_sizes
from ding.rl_utils.beta_function import beta_function_map
from ding.torch_utils.network import Activation, Layers, TwinMLP, hidden_layers, mlp
from ding.torch_utils.noise import noisy_mlp
from ding.torch_utils.popart import PopArt
from ding.utils.errors import ConfigError, nearest


def _network(
    sizes: Sequence[int], activation: Activation, norm_type: str | None, noise: bool
) -> Layers:
    return (noisy_mlp if noise else mlp)(sizes, activation, norm_type)


class DistributionHead(nn.Module):
    """C51: (B, F) -> {'logit': (B, A), 'distribution': (B, A, K)}, probabilities of even atoms.

    Losses read 'log_distribution' (B, A, K): it has a gradient where a probability is rounded to 0.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        n_atom: int = 51,
        v_min: float = -10.0,
        v_max: float = 10.0,
        activation: Activation = "relu",
        norm_type: str | None = None,
        noise: bool = False,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        if v_min >= v_max or n_atom < 2:
            raise ConfigError(
                f"need v_min < v_max and two atoms at least, got {v_min}, {v_max}, {n_atom}"
            )
        self.n_atom = n_atom
        self.support: Tensor
        self.register_buffer("support", torch.linspace(v_min, v_max, n_atom), persistent=False)
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size * n_atom)
        self._build(sizes, activation, norm_type, noise)

    def _build(
        self, sizes: Sequence[int], activation: Activation, norm_type: str | None, noise: bool
    ) -> None:
        self.main = _network(sizes, activation, norm_type, noise)

    def _atoms(self, x: Tensor) -> Tensor:
        """(B, F) -> (B, A, K) before the softmax."""
        return self.main(x).unflatten(-1, (-1, self.n_atom))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        log_p = self._atoms(x).log_softmax(dim=-1)
        p = log_p.exp()
        return {"logit": p @ self.support, "distribution": p, "log_distribution": log_p}


class RainbowHead(DistributionHead):
    """C51 with a dueling decomposition of each atom, noisy by default."""

    def __init__(self, hidden_size: int, output_size: int, **kwargs: Any) -> None:
        super().__init__(hidden_size, output_size, **{"noise": True, **kwargs})

    def _build(
        self, sizes: Sequence[int], activation: Activation, norm_type: str | None, noise: bool
    ) -> None:
        self.advantage = _network(sizes, activation, norm_type, noise)
        self.value = _network([*sizes[:-1], self.n_atom], activation, norm_type, noise)

    def _atoms(self, x: Tensor) -> Tensor:
        advantage = self.advantage(x).unflatten(-1, (-1, self.n_atom))
        centred = advantage - advantage.mean(dim=-2, keepdim=True)
        return centred + self.value(x).unsqueeze(-2)


class QRDQNHead(nn.Module):
    """(B, F) -> {'logit': (B, A), 'q': (B, A, N), 'tau': (B, N, 1)}, N fixed fractions."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        num_quantiles: int = 32,
        activation: Activation = "relu",
        norm_type: str | None = None,
        noise: bool = False,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        self.num_quantiles = num_quantiles
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size * num_quantiles)
        self.main = _network(sizes, activation, norm_type, noise)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        q = self.main(x).unflatten(-1, (-1, self.num_quantiles))
        tau = midpoints(self.num_quantiles, x).expand(*x.shape[:-1], -1).unsqueeze(-1)
        return {"logit": q.mean(dim=-1), "q": q, "tau": tau}


def midpoints(n_quantile: int, like: Tensor) -> Tensor:
    """(N,): the middles of N equal parts of [0, 1]."""
    return (torch.arange(n_quantile, dtype=like.dtype, device=like.device) + 0.5) / n_quantile


class _QuantileNetwork(nn.Module):
    """Values at any fractions: (B, F), (B, N) -> (B, N, A); (1, N) are the same for all B.

    A fraction is embedded by cosines and multiplied with the features.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        embedding_size: int,
        activation: Activation,
        norm_type: str | None,
        noise: bool,
    ) -> None:
        super().__init__()
        self.embedding = Layers(*hidden_layers([embedding_size, sizes[0]], activation))
        self.main = _network(sizes, activation, norm_type, noise)
        self.frequency: Tensor
        frequency = math.pi * torch.arange(1.0, embedding_size + 1.0)
        self.register_buffer("frequency", frequency, persistent=False)

    def forward(self, x: Tensor, tau: Tensor) -> Tensor:
        cosines = (tau.unsqueeze(-1) * self.frequency).cos()
        # By rows: an activation in place would have to copy whatever is a view of them.
        embedding = self.embedding(cosines.flatten(0, -2)).unflatten(0, tau.shape)
        features = x.unsqueeze(-2) * embedding
        return self.main(features.flatten(0, -2)).unflatten(0, features.shape[:-1])


class QuantileHead(nn.Module):
    """IQN: (B, F) -> {'logit': (B, A), 'q': (N, B, A), 'quantiles': (N * B, 1)}.

    Fractions are drawn anew at each call while training; in `eval` they are evenly spaced, so that
    greedy actions are the same each time. `beta_function_type` bends those of `logit` for risk.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        num_quantiles: int = 32,
        quantile_embedding_size: int = 128,
        beta_function_type: str = "uniform",
        activation: Activation = "relu",
        norm_type: str | None = None,
        noise: bool = False,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        if beta_function_type not in beta_function_map:
            close = nearest(beta_function_type, beta_function_map)
            raise ConfigError(f"unknown beta_function_type '{beta_function_type}'{close}")
        self.num_quantiles = num_quantiles
        neutral = beta_function_type == "uniform"
        self.beta_function = None if neutral else beta_function_map[beta_function_type]
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size)
        self.main = _QuantileNetwork(sizes, quantile_embedding_size, activation, norm_type, noise)

    def forward(
        self, x: Tensor, num_quantiles: int | None = None, tau: Tensor | None = None
    ) -> dict[str, Tensor]:
        """`tau` (B, N), or (1, N) for all, are fractions that somebody else has drawn."""
        if tau is None:
            tau = self._fractions(x, num_quantiles or self.num_quantiles)
        q = self.main(x, tau)
        seen = q if self.beta_function is None else self.main(x, self.beta_function(tau))
        quantiles = tau.movedim(-1, 0).reshape(-1, 1)
        return {"logit": seen.mean(dim=-2), "q": q.movedim(-2, 0), "quantiles": quantiles}

    def _fractions(self, x: Tensor, n_quantile: int) -> Tensor:
        if self.training:
            return torch.rand(*x.shape[:-1], n_quantile, dtype=x.dtype, device=x.device)
        return midpoints(n_quantile, x).expand(*x.shape[:-1], -1)


class FQFHead(nn.Module):
    """FQF: fractions are proposed by a network of their own, https://arxiv.org/abs/1911.02140.

    (B, F) -> {'logit': (B, A), 'q': (B, N, A), 'quantiles': (B, N + 1), 'quantiles_hats': (B, N),
    'q_tau_i': (B, N - 1, A), 'entropies': (B, 1)}. Losses of `q` do not move the proposal, nor the
    fraction loss anything else.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        num_quantiles: int = 32,
        quantile_embedding_size: int = 128,
        activation: Activation = "relu",
        norm_type: str | None = None,
        noise: bool = False,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size)
        self.quantiles_proposal = nn.Linear(sizes[0], num_quantiles)
        # Nearly equal fractions at first.
        nn.init.xavier_uniform_(self.quantiles_proposal.weight, gain=0.01)
        nn.init.zeros_(self.quantiles_proposal.bias)
        self.main = _QuantileNetwork(sizes, quantile_embedding_size, activation, norm_type, noise)

    def forward(self, x: Tensor, inner: bool = True) -> dict[str, Tensor]:
        """Only the loss of the fractions reads `q_tau_i`; `inner` False leaves it out."""
        log_p = self.quantiles_proposal(x.detach()).log_softmax(dim=-1)
        p = log_p.exp()
        quantiles = nn.functional.pad(p.cumsum(dim=-1), (1, 0))
        hats = ((quantiles[..., 1:] + quantiles[..., :-1]) / 2.0).detach()
        q = self.main(x, hats)
        output = {
            "logit": (p.detach().unsqueeze(-1) * q).sum(dim=-2),
            "q": q,
            "quantiles": quantiles,
            "quantiles_hats": hats,
            "entropies": -(log_p * p).sum(dim=-1, keepdim=True),
        }
        if inner:
            with torch.no_grad():
                output["q_tau_i"] = self.main(x, quantiles[..., 1:-1])
        return output


class BranchingHead(nn.Module):
    """(B, F) -> {'logit': (B, D, A)}: a common value and an advantage for each branch.

    https://arxiv.org/abs/1711.08946; branches are evaluated as one stack unless they are noisy.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        hidden_size: int,
        num_branches: int = 1,
        action_bins_per_branch: int = 2,
        layer_num: int = 1,
        a_layer_num: int | None = None,
        v_layer_num: int | None = None,
        activation: Activation = "relu",
        norm_type: str | None = None,
        noise: bool = False,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        n_value = layer_num if v_layer_num is None else v_layer_num
        n_advantage = layer_num if a_layer_num is None else a_layer_num
        self.value = _network(
            head_sizes(in_size, hidden_size, n_value, 1), activation, norm_type, noise
        )
        sizes = head_sizes(in_size, hidden_size, n_advantage, action_bins_per_branch)
        self.advantage: nn.Module
        if noise:
            self.advantage = _Branches(
                _network(sizes, activation, norm_type, noise) for _ in range(num_branches)
            )
        else:
            self.advantage = TwinMLP(sizes, activation, norm_type, num_branches)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        flat = x.reshape(-1, x.shape[-1])
        advantage = self.advantage(flat).transpose(0, 1)
        centred = advantage - advantage.mean(dim=-1, keepdim=True)
        q = centred + self.value(flat).unsqueeze(-1)
        return {"logit": q.reshape(*x.shape[:-1], *q.shape[1:])}


class _Branches(nn.ModuleList):
    """(B, F) -> (D, B, A)."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([branch(x) for branch in self])


class PopArtVHead(nn.Module):
    """(B, F) -> {'pred': (B, A), 'unnormalized_pred': (B, A)}, or (B,) each for one output."""

    def __init__(
        self,
        hidden_size: int,
        output_size: int = 1,
        layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size)
        self.main = Layers(*hidden_layers(sizes[:-1], activation, norm_type))
        self.popart = PopArt(sizes[-2], output_size)
        self.squeeze = output_size == 1

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        output = self.popart(self.main(x))
        return {k: v.squeeze(-1) if self.squeeze else v for k, v in output.items()}
