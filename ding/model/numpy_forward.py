"""Run small models in NumPy on the very memory of their torch weights.

Acting in a handful of envs is bound by torch's cost per call, not by arithmetic. The functions
built here see every in-place change of the weights (optimizer steps, `load_state_dict`); build them
after the model was moved to its final memory. Whatever is not known exactly (convolutions, other
devices, hooks, user modules) gives `None`, and the caller keeps to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from ding.model.encoder import DictEncoder, FCEncoder
from ding.model.head import (
    LOG_SIGMA_MAX,
    LOG_SIGMA_MIN,
    DiscreteHead,
    DuelingHead,
    MultiHead,
    RegressionHead,
    ReparameterizationHead,
)
from ding.model.numpy_value_head import VALUE_MODULES, UnsupportedError, view
from ding.torch_utils.network import Layers

Function = Callable[[Any], Any]
InPlace = Callable[[np.ndarray], Any]


def numpy_forward(module: nn.Module) -> Function | None:
    """`module.forward` on arrays, or None if the module is not one of the known kinds."""
    try:
        return compiled(module)
    except UnsupportedError:
        return None


def compiled(module: nn.Module) -> Function:
    build = _MODULES.get(type(module))
    if build is None or has_hooks(module):
        raise UnsupportedError(type(module).__name__)
    return build(module)


def has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def float32(x: np.ndarray) -> np.ndarray:
    """The array as the torch encoders read it: uint8 scaled to [0, 1], the rest cast."""
    if x.dtype == np.float32:
        return x
    cast = x.astype(np.float32)
    if x.dtype == np.uint8:
        cast /= np.float32(255.0)
    return cast


_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


def _relu(x: np.ndarray) -> None:
    np.maximum(x, _ZERO, out=x)


def _tanh(x: np.ndarray) -> None:
    np.tanh(x, x)


def _sigmoid(x: np.ndarray) -> None:
    # tanh cannot overflow where exp would.
    x *= np.float32(0.5)
    np.tanh(x, x)
    x += _ONE
    x *= np.float32(0.5)


def _silu(x: np.ndarray) -> None:
    gate = x.copy()
    _sigmoid(gate)
    x *= gate


def _elu(layer: nn.ELU) -> InPlace:
    alpha = np.float32(layer.alpha)

    def elu(x: np.ndarray) -> None:
        negative = alpha * np.expm1(np.minimum(x, _ZERO))
        np.maximum(x, _ZERO, out=x)
        x += negative

    return elu


def _leaky_relu(layer: nn.LeakyReLU) -> InPlace:
    slope = np.float32(layer.negative_slope)

    def leaky_relu(x: np.ndarray) -> None:
        x[...] = np.where(x >= _ZERO, x, slope * x)

    return leaky_relu


_IN_PLACE: dict[type[nn.Module], Callable[[Any], InPlace]] = {
    nn.ReLU: lambda _: _relu,
    nn.Tanh: lambda _: _tanh,
    nn.Sigmoid: lambda _: _sigmoid,
    nn.SiLU: lambda _: _silu,
    nn.ELU: _elu,
    nn.LeakyReLU: _leaky_relu,
}


def _activation(layer: nn.Module) -> Function:
    apply = _IN_PLACE[type(layer)](layer)

    def activate(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        apply(y)
        return y

    return activate


def _linear(*layers: nn.Module, apply: InPlace | None = None) -> Function:
    """Linear layers and their activations, which can overwrite the layers' fresh outputs."""
    rows: list[list[Any]] = []
    for layer in layers:
        if has_hooks(layer):
            raise UnsupportedError("hooks")
        if type(layer) is nn.Linear:
            bias = view(layer.bias) if layer.bias is not None else _ZERO
            rows.append([view(layer.weight).T, bias, None])
        elif type(layer) not in _IN_PLACE:
            raise UnsupportedError(type(layer).__name__)
        else:
            rows[-1][2] = _IN_PLACE[type(layer)](layer)
    rows[-1][2] = apply or rows[-1][2]
    add, parts = np.add, [tuple(row) for row in rows]

    def linear(x: np.ndarray) -> np.ndarray:
        for weight, bias, apply in parts:
            x = x.dot(weight)
            add(x, bias, x)
            if apply is not None:
                apply(x)
        return x

    return linear


def _layer_norm(layer: nn.LayerNorm) -> Function:
    if len(layer.normalized_shape) != 1 or layer.weight is None or layer.bias is None:
        raise UnsupportedError("LayerNorm over several axes or without affine part")
    weight, bias, eps = view(layer.weight), view(layer.bias), np.float32(layer.eps)

    def layer_norm(x: np.ndarray) -> np.ndarray:
        y = x - x.mean(axis=-1, keepdims=True)
        y /= np.sqrt(np.square(y).mean(axis=-1, keepdims=True) + eps)
        y *= weight
        y += bias
        return y

    return layer_norm


def _flatten(layer: nn.Flatten) -> Function:
    if (layer.start_dim, layer.end_dim) != (1, -1):
        raise UnsupportedError("Flatten of some axes only")
    return lambda x: x.reshape(len(x), -1)


def _sequential(module: nn.Sequential) -> Function:
    """Runs of linear layers and their activations become one function."""
    steps: list[Function] = []
    run: list[nn.Module] = []
    for layer in module:
        joins = type(run[-1]) is nn.Linear and type(layer) in _IN_PLACE if run else False
        if type(layer) is nn.Linear or joins:
            run.append(layer)
            continue
        steps += [_linear(*run)] if run else []
        run = []
        steps.append(compiled(layer))
    steps += [_linear(*run)] if run else []
    return _chain(steps)


def _chain(steps: Sequence[Function]) -> Function:
    if len(steps) == 1:
        return steps[0]

    def chain(x: np.ndarray) -> np.ndarray:
        for step in steps:
            x = step(x)
        return x

    return chain


def _fc_encoder(encoder: FCEncoder) -> Function:
    main, ndim = compiled(encoder.main), encoder.obs_ndim
    if ndim == 1:
        return lambda x: main(float32(x))

    def encode(x: np.ndarray) -> np.ndarray:
        return main(float32(x).reshape(*x.shape[: x.ndim - ndim], -1))

    return encode


def _dict_encoder(encoder: DictEncoder) -> Function:
    parts = [(key, compiled(e)) for key, e in zip(encoder.keys, encoder.parts, strict=True)]
    return lambda x: np.concatenate([run(x[key]) for key, run in parts], axis=-1)


def _discrete_head(head: DiscreteHead) -> Function:
    main = compiled(head.main)
    return lambda x: {"logit": main(x)}


def _dueling_head(head: DuelingHead) -> Function:
    advantage_of, value_of = compiled(head.advantage), compiled(head.value)
    scale = np.float32(1.0 / head.advantage[-1].out_features)  # type: ignore[operator]
    total = np.add.reduce

    def duel(x: np.ndarray) -> dict[str, np.ndarray]:
        advantage = advantage_of(x)
        value = value_of(x)
        value -= total(advantage, axis=-1, keepdims=True) * scale
        advantage += value
        return {"logit": advantage}

    return duel


def _regression_head(head: RegressionHead) -> Function:
    main = compiled(head.main)
    if head.squeeze:
        return lambda x: {"pred": main(x)[..., 0]}
    return lambda x: {"pred": main(x)}


def _multi_head(head: MultiHead) -> Function:
    parts = [compiled(part) for part in head.heads]

    def run(x: np.ndarray) -> dict[str, list[np.ndarray]]:
        outputs = [part(x) for part in parts]
        return {key: [output[key] for output in outputs] for key in outputs[0]}

    return run


def _reparameterization_head(head: ReparameterizationHead) -> Function:
    main, sigma_of = compiled(head.main), _sigma(head)
    mu_of = _linear(head.mu, apply=_tanh if head.bound_type is not None else None)

    def gaussian(x: np.ndarray) -> dict[str, np.ndarray]:
        features = main(x)
        mu, sigma = mu_of(features), sigma_of(features)
        if sigma.shape != mu.shape:
            row, sigma = sigma, np.empty_like(mu)
            sigma[...] = row
        return {"mu": mu, "sigma": sigma}

    return gaussian


def _sigma(head: ReparameterizationHead) -> Function:
    if head.sigma_type == "fixed":
        fixed = view(head.fixed_sigma)
        return lambda _: fixed
    low, high = np.float32(LOG_SIGMA_MIN), np.float32(LOG_SIGMA_MAX)
    if head.sigma_type == "independent":
        log_sigma = view(head.log_sigma_param)
        return lambda _: np.exp(np.minimum(np.maximum(log_sigma, low), high))

    def exponential(x: np.ndarray) -> None:
        np.maximum(x, low, out=x)
        np.minimum(x, high, out=x)
        np.exp(x, x)

    return _linear(head.log_sigma_layer, apply=exponential)


_MODULES: dict[type[nn.Module], Callable[[Any], Function]] = {
    **dict.fromkeys(_IN_PLACE, _activation),
    nn.Identity: lambda _: lambda x: x,
    nn.Linear: _linear,
    nn.LayerNorm: _layer_norm,
    nn.Flatten: _flatten,
    nn.Sequential: _sequential,
    Layers: _sequential,
    FCEncoder: _fc_encoder,
    DictEncoder: _dict_encoder,
    DiscreteHead: _discrete_head,
    DuelingHead: _dueling_head,
    RegressionHead: _regression_head,
    MultiHead: _multi_head,
    ReparameterizationHead: _reparameterization_head,
    **{cls: partial(build, compiled) for cls, build in VALUE_MODULES.items()},
}
