"""Feature vectors to what an algorithm reads: logits, values, actions, Gaussians.

`layer_num` counts the hidden layers of a head; with 0 it is a single linear map of the encoder's
features. Letters in shapes: B batch, F features, A actions (or dimensions of the action).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.torch_utils.network import Activation, Layers, hidden_layers, mlp
from ding.utils.errors import ConfigError, nearest

LOG_SIGMA_MIN, LOG_SIGMA_MAX = -20.0, 2.0
SIGMA_TYPES = ("independent", "conditioned", "fixed")


def head_sizes(
    in_size: int | None, hidden_size: int, layer_num: int, output_size: int
) -> list[int]:
    if layer_num < 0:
        raise ConfigError(f"head_layer_num must not be negative, got {layer_num}")
    return [in_size or hidden_size, *[hidden_size] * layer_num, output_size]


class DiscreteHead(nn.Module):
    """(B, F) -> {'logit': (B, A)}."""

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size)
        self.main = mlp(sizes, activation, norm_type)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"logit": self.main(x)}


class DuelingHead(nn.Module):
    """(B, F) -> {'logit': (B, A)} as value plus centred advantage, https://arxiv.org/abs/1511.06581."""

    def __init__(
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size)
        self.advantage = mlp(sizes, activation, norm_type)
        self.value = mlp([*sizes[:-1], 1], activation, norm_type)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        advantage = self.advantage(x)
        return {"logit": advantage - advantage.mean(dim=-1, keepdim=True) + self.value(x)}


class RegressionHead(nn.Module):
    """(B, F) -> {'pred': (B, A)}, or (B,) for one output; optionally squashed into [-1, 1]."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        final_tanh: bool = False,
        activation: Activation = "relu",
        norm_type: str | None = None,
        in_size: int | None = None,
        squeeze: bool = True,
    ) -> None:
        super().__init__()
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size)
        self.main = mlp(sizes, activation, norm_type)
        if final_tanh:
            self.main.append(nn.Tanh())
        self.squeeze = squeeze and output_size == 1

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.main(x)
        return {"pred": y.squeeze(-1) if self.squeeze else y}


class ReparameterizationHead(nn.Module):
    """(B, F) -> {'mu': (B, A), 'sigma': (B, A)} of a diagonal Gaussian."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        hidden_size: int,
        output_size: int,
        layer_num: int = 1,
        sigma_type: str = "independent",
        fixed_sigma_value: float = 1.0,
        activation: Activation = "relu",
        norm_type: str | None = None,
        bound_type: str | None = None,
        in_size: int | None = None,
    ) -> None:
        super().__init__()
        if sigma_type not in SIGMA_TYPES:
            raise ConfigError(
                f"unknown sigma_type '{sigma_type}'{nearest(sigma_type, SIGMA_TYPES)}"
            )
        if bound_type not in (None, "tanh"):
            raise ConfigError(f"unknown bound_type '{bound_type}'; valid: None, tanh")
        sizes = head_sizes(in_size, hidden_size, layer_num, output_size)
        self.sigma_type = sigma_type
        self.bound_type = bound_type
        self.main = Layers(*hidden_layers(sizes[:-1], activation, norm_type))
        self.mu = nn.Linear(sizes[-2], output_size)
        if sigma_type == "conditioned":
            self.log_sigma_layer = nn.Linear(sizes[-2], output_size)
        elif sigma_type == "independent":
            self.log_sigma_param = nn.Parameter(torch.zeros(1, output_size))
        else:
            self.fixed_sigma: Tensor
            self.register_buffer("fixed_sigma", torch.full((1, output_size), fixed_sigma_value))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.main(x)
        mu = self.mu(x)
        if self.bound_type is not None:
            mu = mu.tanh()
        return {"mu": mu, "sigma": self._sigma(x).expand_as(mu)}

    def _sigma(self, x: Tensor) -> Tensor:
        if self.sigma_type == "fixed":
            return self.fixed_sigma
        conditioned = self.sigma_type == "conditioned"
        log_sigma = self.log_sigma_layer(x) if conditioned else self.log_sigma_param
        # A clamp whose gradient is one operation, not five.
        return F.hardtanh(log_sigma, LOG_SIGMA_MIN, LOG_SIGMA_MAX).exp()


class MultiHead(nn.Module):
    """(B, F) -> {'logit': [(B, A_1), (B, A_2), ...], ...}, one head per entry of the action."""

    def __init__(
        self,
        head_cls: type[nn.Module],
        hidden_size: int,
        output_size_list: Sequence[int],
        **head_kwargs: Any,
    ) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            head_cls(hidden_size, size, **head_kwargs) for size in output_size_list
        )

    def forward(self, x: Tensor) -> dict[str, list[Tensor]]:
        outputs = [head(x) for head in self.heads]
        return {key: [output[key] for output in outputs] for key in outputs[0]}


def head_for(
    head_cls: type[nn.Module], action_shape: Sequence[int], hidden_size: int, **head_kwargs: Any
) -> nn.Module:
    """One head for a single discrete action, a `MultiHead` for several."""
    if len(action_shape) == 1:
        return head_cls(hidden_size, action_shape[0], **head_kwargs)
    return MultiHead(head_cls, hidden_size, action_shape, **head_kwargs)


def discrete_head_for(
    action_shape: Sequence[int], hidden_size: int, dueling: bool = False, **head_kwargs: Any
) -> nn.Module:
    head_cls = DuelingHead if dueling else DiscreteHead
    return head_for(head_cls, action_shape, hidden_size, **head_kwargs)
