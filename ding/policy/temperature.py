"""Temperature: the learned weight of the entropy."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Temperature(nn.Module):
    """Its loss, log_alpha * (entropy - target), has that difference for a gradient.

    So alpha falls while the entropy is above the target, and rises below.
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor(math.log(alpha)))

    @property
    def alpha(self) -> Tensor:
        return self.log_alpha.exp()
