"""PyTorch helpers: optimizers, target networks, moving data."""

from ding.torch_utils.data_helper import to_device, to_dtype, to_list, to_ndarray, to_tensor
from ding.torch_utils.optim import Adam, GradientStep
from ding.torch_utils.target import TargetNetwork

__all__ = [
    "Adam",
    "GradientStep",
    "TargetNetwork",
    "to_device",
    "to_dtype",
    "to_list",
    "to_ndarray",
    "to_tensor",
]
