"""PopArt: values normalised by running statistics, outputs preserved when these move.

https://arxiv.org/abs/1809.04474
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ding.torch_utils.distributed import current


class PopArt(nn.Module):
    """(B, I) -> {'pred': normalised (B, O), 'unnormalized_pred': (B, O)}."""

    def __init__(self, input_features: int, output_features: int = 1, beta: float = 0.5) -> None:
        """`beta` is the weight of the newest batch in the statistics."""
        super().__init__()
        self.beta = beta
        self.linear = nn.Linear(input_features, output_features)
        self.mu: Tensor
        self.sigma: Tensor
        self.square: Tensor
        self.register_buffer("mu", torch.zeros(output_features))
        self.register_buffer("sigma", torch.ones(output_features))
        self.register_buffer("square", torch.ones(output_features))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        pred = self.linear(x)
        return {"pred": pred, "unnormalized_pred": pred * self.sigma + self.mu}

    def normalized(self, value: Tensor) -> Tensor:
        return (value - self.mu) / self.sigma

    @torch.no_grad()
    def update_parameters(self, value: Tensor) -> dict[str, Tensor]:
        """Follow the targets `value` (B,) or (B, O); what `unnormalized_pred` gives stays."""
        value = value.reshape(-1, len(self.mu))
        old_mu, old_sigma = self.mu.clone(), self.sigma.clone()
        moments = torch.stack([value.mean(dim=0), value.square().mean(dim=0)])
        learners = current()
        if learners is not None:
            learners.average_(moments)
        self.mu.lerp_(moments[0], self.beta)
        self.square.lerp_(moments[1], self.beta)
        variance = self.square - self.mu.square()
        self.sigma.copy_(variance.clamp_min(0.0).sqrt().clamp(1e-4, 1e6))
        # In place: an optimizer may own this memory.
        self.linear.weight.mul_((old_sigma / self.sigma).unsqueeze(-1))
        self.linear.bias.mul_(old_sigma).add_(old_mu - self.mu).div_(self.sigma)
        return {"new_mean": self.mu, "new_std": self.sigma}
