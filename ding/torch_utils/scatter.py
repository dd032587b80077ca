"""Between lists of entities and places on a map.

Letters in shapes: B batch, M entities, N features, (H, W) a map.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ding.utils.errors import ConfigError, nearest

SCATTER_TYPES = ("cover", "add")


class ScatterConnection(nn.Module):
    """Puts the features of entities on the map; on one place they 'add' up or the last 'cover's."""

    def __init__(self, scatter_type: str) -> None:
        super().__init__()
        if scatter_type not in SCATTER_TYPES:
            raise ConfigError(
                f"unknown scatter_type '{scatter_type}'{nearest(scatter_type, SCATTER_TYPES)}"
            )
        self.scatter_type = scatter_type

    def forward(self, x: Tensor, spatial_size: tuple[int, int], location: Tensor) -> Tensor:
        """(B, M, N) at rows and columns (B, M, 2) -> (B, N, H, W)."""
        return self.xy_forward(x, spatial_size, location[..., 1], location[..., 0])

    def xy_forward(
        self, x: Tensor, spatial_size: tuple[int, int], coord_x: Tensor, coord_y: Tensor
    ) -> Tensor:
        """As `forward`, with columns and rows (B, M) on their own."""
        height, width = spatial_size
        place = (coord_y * width + coord_x).long()
        if self.scatter_type == "cover":
            place, x = self._last(place, x, height * width)
        index = place.unsqueeze(-1).expand_as(x)
        flat = x.new_zeros(len(x), height * width, x.shape[-1]).scatter_add(1, index, x)
        return flat.transpose(1, 2).unflatten(-1, (height, width))

    @staticmethod
    def _last(place: Tensor, x: Tensor, n_place: int) -> tuple[Tensor, Tensor]:
        """Features of covered entities become zero: a scatter with doubles has no fixed winner."""
        order = torch.arange(place.shape[1], device=place.device).expand_as(place)
        winner = order.new_full((len(place), n_place), -1)
        winner = winner.scatter_reduce(1, place, order, "amax")
        return place, x * (winner.gather(1, place) == order).unsqueeze(-1)


class SoftArgmax(nn.Module):
    """(B, 1, H, W) -> (B, 2): expected row and column under the softmax of the map."""

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        prob = x.flatten(1).softmax(dim=-1).reshape(-1, height, width)
        rows = torch.arange(height, dtype=x.dtype, device=x.device)
        columns = torch.arange(width, dtype=x.dtype, device=x.device)
        return torch.stack([prob.sum(2) @ rows, prob.sum(1) @ columns], dim=-1)
