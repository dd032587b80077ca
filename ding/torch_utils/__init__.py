"""PyTorch helpers: optimizers, target networks, network blocks, distributions, moving data."""

from ding.torch_utils.blocks import (
    MLP,
    BilinearUpsample,
    Flatten,
    NearestUpsample,
    binary_encode,
    build_activation,
    build_normalization,
    conv1d_block,
    conv2d_block,
    deconv2d_block,
    fc_block,
    normed_conv2d,
    normed_linear,
    one_hot,
)
from ding.torch_utils.checkpoint_helper import (
    CheckpointHelper,
    CountVar,
    auto_checkpoint,
    build_checkpoint_helper,
)
from ding.torch_utils.data_helper import to_device, to_dtype, to_list, to_ndarray, to_tensor
from ding.torch_utils.distribution import CategoricalPd
from ding.torch_utils.gates import (
    GLU,
    GumbelSoftmax,
    Lambda,
    NonegativeParameter,
    Swish,
    TanhParameter,
)
from ding.torch_utils.gradient_step import GradientStep
from ding.torch_utils.gradients import (
    calculate_grad_norm,
    grad_ignore_norm,
    grad_ignore_value,
    is_differentiable,
)
from ding.torch_utils.gtrxl import GRUGatingUnit, GTrXL
from ding.torch_utils.lr_schedule import cos_lr_scheduler, get_lr_ratio
from ding.torch_utils.metric import hamming_distance, levenshtein_distance
from ding.torch_utils.nested import (
    fold_batch,
    get_null_data,
    get_shape0,
    get_tensor_data,
    same_shape,
    squeeze,
    to_item,
    unfold_batch,
    unsqueeze,
    unsqueeze_repeat,
    zeros_like,
)
from ding.torch_utils.noise import NoiseLinearLayer, noise_block, noisy_mlp, reset_noise
from ding.torch_utils.optim import SGD, Adam, AdamW, RMSprop
from ding.torch_utils.popart import PopArt
from ding.torch_utils.recurrent import GRU, LSTM, PytorchLSTM, get_lstm, sequence_mask
from ding.torch_utils.resnet import ResBlock, ResFCBlock, ResNet, resnet18
from ding.torch_utils.scatter import ScatterConnection, SoftArgmax
from ding.torch_utils.target import TargetNetwork
from ding.torch_utils.transformer import ScaledDotProductAttention, Transformer

fc_block2 = fc_block
tensor_to_list = to_list

__all__ = [
    "GLU",
    "GRU",
    "LSTM",
    "MLP",
    "SGD",
    "Adam",
    "AdamW",
    "BilinearUpsample",
    "CategoricalPd",
    "CheckpointHelper",
    "CountVar",
    "Flatten",
    "GRUGatingUnit",
    "GTrXL",
    "GradientStep",
    "GumbelSoftmax",
    "Lambda",
    "NearestUpsample",
    "NoiseLinearLayer",
    "NonegativeParameter",
    "PopArt",
    "PytorchLSTM",
    "RMSprop",
    "ResBlock",
    "ResFCBlock",
    "ResNet",
    "ScaledDotProductAttention",
    "ScatterConnection",
    "SoftArgmax",
    "Swish",
    "TanhParameter",
    "TargetNetwork",
    "Transformer",
    "auto_checkpoint",
    "binary_encode",
    "build_activation",
    "build_checkpoint_helper",
    "build_normalization",
    "calculate_grad_norm",
    "conv1d_block",
    "conv2d_block",
    "cos_lr_scheduler",
    "deconv2d_block",
    "fc_block",
    "fc_block2",
    "fold_batch",
    "get_lr_ratio",
    "get_lstm",
    "get_null_data",
    "get_shape0",
    "get_tensor_data",
    "grad_ignore_norm",
    "grad_ignore_value",
    "hamming_distance",
    "is_differentiable",
    "levenshtein_distance",
    "noise_block",
    "noisy_mlp",
    "normed_conv2d",
    "normed_linear",
    "one_hot",
    "reset_noise",
    "resnet18",
    "same_shape",
    "sequence_mask",
    "squeeze",
    "tensor_to_list",
    "to_device",
    "to_dtype",
    "to_item",
    "to_list",
    "to_ndarray",
    "to_tensor",
    "unfold_batch",
    "unsqueeze",
    "unsqueeze_repeat",
    "zeros_like",
]
