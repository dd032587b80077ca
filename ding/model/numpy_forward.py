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

from ding.model.actor_critic import QAC, VAC, DiscreteQAC
from ding.model.dqn import DQN, QNetwork
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
from ding.model.hybrid import PDQN, HybridQAC
from ding.model.numpy_value_head import VALUE_MODULES
from ding.model.numpy_value_head import UnsupportedError as _UnsupportedError
from ding.model.numpy_value_head import view as _view
from ding.model.policy_gradient import ACER, PG, PPG
from ding.model.q_learning import C51DQN, QRDQN, RainbowDQN
from ding.model.qac_dist import QACDIST
from ding.torch_utils.network import Layers

Function = Callable[[Any], Any]
InPlace = Callable[[np.ndarray], Any]


def numpy_forward(module: nn.Module) -> Function | None:
    """`module.forward` on arrays, or None if the module is not one of the known kinds."""
    try:
        return _compiled(module)
    except _UnsupportedError:
        return None


def numpy_policy(model: nn.Module, mode: str | None = None) -> Function | None:
    """`model.forward(x, mode)` on arrays, with the same dict outputs, or None."""
    build = _MODELS.get((type(model), mode))
    if build is None or _has_hooks(model):
        return None
    try:
        run = build(model)
    except _UnsupportedError:
        return None
    return _unwrapping(run, masked=mode != "compute_critic") if model.wraps_obs else run


def _unwrapping(run: Function, masked: bool) -> Function:
    """Accept `{'obs': ..., 'action_mask': ...}` besides the bare observation."""

    def unwrapped(x: Any) -> dict[str, Any]:
        if not (isinstance(x, dict) and "obs" in x):
            return run(x)
        output = run(x["obs"])
        if masked and "action_mask" in x:
            output["action_mask"] = x["action_mask"]
        return output

    return unwrapped


def _compiled(module: nn.Module) -> Function:
    build = _MODULES.get(type(module))
    if build is None or _has_hooks(module):
        raise _UnsupportedError(type(module).__name__)
    return build(module)


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _float32(x: np.ndarray) -> np.ndarray:
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
        if _has_hooks(layer):
            raise _UnsupportedError("hooks")
        if type(layer) is nn.Linear:
            bias = _view(layer.bias) if layer.bias is not None else _ZERO
            rows.append([_view(layer.weight).T, bias, None])
        elif type(layer) not in _IN_PLACE:
            raise _UnsupportedError(type(layer).__name__)
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
        raise _UnsupportedError("LayerNorm over several axes or without affine part")
    weight, bias, eps = _view(layer.weight), _view(layer.bias), np.float32(layer.eps)

    def layer_norm(x: np.ndarray) -> np.ndarray:
        y = x - x.mean(axis=-1, keepdims=True)
        y /= np.sqrt(np.square(y).mean(axis=-1, keepdims=True) + eps)
        y *= weight
        y += bias
        return y

    return layer_norm


def _flatten(layer: nn.Flatten) -> Function:
    if (layer.start_dim, layer.end_dim) != (1, -1):
        raise _UnsupportedError("Flatten of some axes only")
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
        steps.append(_compiled(layer))
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
    main, ndim = _compiled(encoder.main), encoder.obs_ndim
    if ndim == 1:
        return lambda x: main(_float32(x))

    def encode(x: np.ndarray) -> np.ndarray:
        return main(_float32(x).reshape(*x.shape[: x.ndim - ndim], -1))

    return encode


def _dict_encoder(encoder: DictEncoder) -> Function:
    parts = [(key, _compiled(e)) for key, e in zip(encoder.keys, encoder.parts, strict=True)]
    return lambda x: np.concatenate([run(x[key]) for key, run in parts], axis=-1)


def _discrete_head(head: DiscreteHead) -> Function:
    main = _compiled(head.main)
    return lambda x: {"logit": main(x)}


def _dueling_head(head: DuelingHead) -> Function:
    advantage_of, value_of = _compiled(head.advantage), _compiled(head.value)
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
    main = _compiled(head.main)
    if head.squeeze:
        return lambda x: {"pred": main(x)[..., 0]}
    return lambda x: {"pred": main(x)}


def _multi_head(head: MultiHead) -> Function:
    parts = [_compiled(part) for part in head.heads]

    def run(x: np.ndarray) -> dict[str, list[np.ndarray]]:
        outputs = [part(x) for part in parts]
        return {key: [output[key] for output in outputs] for key in outputs[0]}

    return run


def _reparameterization_head(head: ReparameterizationHead) -> Function:
    main, sigma_of = _compiled(head.main), _sigma(head)
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
        fixed = _view(head.fixed_sigma)
        return lambda _: fixed
    low, high = np.float32(LOG_SIGMA_MIN), np.float32(LOG_SIGMA_MAX)
    if head.sigma_type == "independent":
        log_sigma = _view(head.log_sigma_param)
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
    **{cls: partial(build, _compiled) for cls, build in VALUE_MODULES.items()},
}


def _encoded(encoder: nn.Module | None, run: Function) -> Function:
    if encoder is None:
        return lambda x: run(_float32(x))
    encode = _compiled(encoder)
    return lambda x: run(encode(x))


def _dqn(model: QNetwork) -> Function:
    return _encoded(model.encoder, _compiled(model.head))


def _vac_policy(model: VAC) -> Function:
    head = _compiled(model.actor_head)
    return head if model.action_space == "discrete" else lambda x: {"logit": head(x)}


def _vac_actor(model: VAC) -> Function:
    return _encoded(model.actor_encoder, _vac_policy(model))


def _vac_critic(model: VAC) -> Function:
    value_of = _compiled(model.critic_head)
    return _encoded(model.critic_encoder, lambda x: {"value": value_of(x)["pred"]})


def _vac_actor_critic(model: VAC) -> Function:
    policy, value_of = _vac_policy(model), _compiled(model.critic_head)
    encode, encode_value = _compiled(model.actor_encoder), _compiled(model.critic_encoder)
    shared = model.share_encoder

    def act(x: Any) -> dict[str, Any]:
        features = encode(x)
        output = policy(features)
        output["value"] = value_of(features if shared else encode_value(x))["pred"]
        return output

    return act


def _qac_actor(model: QAC) -> Function:
    head = _compiled(model.actor_head)
    if model.action_space == "regression":
        return _encoded(model.actor_encoder, lambda x: {"action": head(x)["pred"]})
    return _encoded(model.actor_encoder, lambda x: {"logit": head(x)})


def _discrete_qac_actor(model: DiscreteQAC) -> Function:
    return _encoded(model.actor_encoder, _compiled(model.actor_head))


def _hybrid_qac_actor(model: HybridQAC) -> Function:
    type_of, args_of = _compiled(model.type_head), _compiled(model.args_head)
    return _encoded(
        model.actor_encoder, lambda x: {**type_of(x), "action_args": args_of(x)["pred"]}
    )


def _pdqn_arguments(model: PDQN) -> Function:
    args_of = _compiled(model.args_head)
    return _encoded(model.args_encoder, lambda x: {"action_args": args_of(x)["pred"]})


def _pdqn_values(model: PDQN) -> Function:
    """Of {'state', 'action_args'}."""
    encode, q_of = _compiled(model.encoder), _compiled(model.head)
    if model.args_mask is not None:
        raise _UnsupportedError("a pass per type")

    def value(x: Any) -> dict[str, Any]:
        args = x["action_args"]
        return {**q_of(np.concatenate([encode(x["state"]), args], axis=-1)), "action_args": args}

    return value


def _pg(model: PG) -> Function:
    head = _compiled(model.head)
    policy = head if model.action_space == "discrete" else lambda x: {"logit": head(x)}
    return _encoded(model.encoder, policy)


def _ppg_critic(model: PPG) -> Function:
    value_of = _compiled(model.aux_head)
    return _encoded(model.aux_encoder, lambda x: {"value": value_of(x)["pred"]})


_MODELS: dict[tuple[type[nn.Module], str | None], Callable[[Any], Function]] = {
    (DQN, None): _dqn,
    (C51DQN, None): _dqn,
    (RainbowDQN, None): _dqn,
    (QRDQN, None): _dqn,
    (VAC, "compute_actor"): _vac_actor,
    (VAC, "compute_critic"): _vac_critic,
    (VAC, "compute_actor_critic"): _vac_actor_critic,
    (QAC, "compute_actor"): _qac_actor,
    (DiscreteQAC, "compute_actor"): _discrete_qac_actor,
    (ACER, "compute_actor"): _discrete_qac_actor,
    (PG, None): _pg,
    (PPG, "compute_actor"): lambda model: _vac_actor(model.actor_critic),
    (PPG, "compute_actor_critic"): lambda model: _vac_actor_critic(model.actor_critic),
    (PPG, "compute_critic"): _ppg_critic,
    (QACDIST, "compute_actor"): _qac_actor,
    (HybridQAC, "compute_actor"): _hybrid_qac_actor,
    (PDQN, "compute_continuous"): _pdqn_arguments,
    (PDQN, "compute_discrete"): _pdqn_values,
}
