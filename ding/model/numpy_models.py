"""Whole models in NumPy, put together from the modules of `numpy_forward`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from ding.model.actor_critic import QAC, VAC, DiscreteQAC
from ding.model.dqn import DQN, QNetwork, split_mask
from ding.model.hybrid import PDQN, HybridQAC
from ding.model.numpy_forward import Function, compiled, float32, has_hooks
from ding.model.numpy_value_head import UnsupportedError
from ding.model.policy_gradient import ACER, PG, PPG
from ding.model.q_learning import C51DQN, QRDQN, RainbowDQN
from ding.model.qac_dist import QACDIST


def numpy_policy(model: nn.Module, mode: str | None = None) -> Function | None:
    """`model.forward(x, mode)` on arrays, with the same dict outputs, or None."""
    build = _MODELS.get((type(model), mode))
    if build is None or has_hooks(model):
        return None
    try:
        run = build(model)
    except UnsupportedError:
        return None
    return _unwrapping(run, masked=mode != "compute_critic") if model.wraps_obs else run


def _unwrapping(run: Function, masked: bool) -> Function:
    """Accept `{'obs': ..., 'action_mask': ...}` besides the bare observation."""

    def unwrapped(x: Any) -> dict[str, Any]:
        obs, mask = split_mask(x, wraps_obs=True)
        output = run(obs)
        return {**output, **mask} if mask and masked else output

    return unwrapped


def _encoded(encoder: nn.Module | None, run: Function) -> Function:
    if encoder is None:
        return lambda x: run(float32(x))
    encode = compiled(encoder)
    return lambda x: run(encode(x))


def _dqn(model: QNetwork) -> Function:
    return _encoded(model.encoder, compiled(model.head))


def _policy(head: nn.Module, action_space: str) -> Function:
    run = compiled(head)
    return run if action_space == "discrete" else lambda x: {"logit": run(x)}


def _vac_actor(model: VAC) -> Function:
    return _encoded(model.actor_encoder, _policy(model.actor_head, model.action_space))


def _vac_critic(model: VAC) -> Function:
    value_of = compiled(model.critic_head)
    return _encoded(model.critic_encoder, lambda x: {"value": value_of(x)["pred"]})


def _vac_actor_critic(model: VAC) -> Function:
    policy = _policy(model.actor_head, model.action_space)
    value_of = compiled(model.critic_head)
    encode, encode_value = compiled(model.actor_encoder), compiled(model.critic_encoder)
    shared = model.share_encoder

    def act(x: Any) -> dict[str, Any]:
        features = encode(x)
        output = policy(features)
        output["value"] = value_of(features if shared else encode_value(x))["pred"]
        return output

    return act


def _qac_actor(model: QAC) -> Function:
    if model.action_space == "regression":
        head = compiled(model.actor_head)
        return _encoded(model.actor_encoder, lambda x: {"action": head(x)["pred"]})
    return _encoded(model.actor_encoder, _policy(model.actor_head, model.action_space))


def _discrete_qac_actor(model: DiscreteQAC) -> Function:
    return _encoded(model.actor_encoder, compiled(model.actor_head))


def _hybrid_qac_actor(model: HybridQAC) -> Function:
    type_of, args_of = compiled(model.type_head), compiled(model.args_head)
    return _encoded(
        model.actor_encoder, lambda x: {**type_of(x), "action_args": args_of(x)["pred"]}
    )


def _pdqn_arguments(model: PDQN) -> Function:
    args_of = compiled(model.args_head)
    return _encoded(model.args_encoder, lambda x: {"action_args": args_of(x)["pred"]})


def _pdqn_values(model: PDQN) -> Function:
    """Of {'state', 'action_args'}."""
    encode, q_of = compiled(model.encoder), compiled(model.head)
    if model.args_mask is not None:
        raise UnsupportedError("a pass per type")

    def value(x: Any) -> dict[str, Any]:
        args = x["action_args"]
        state, mask = split_mask(x["state"], model.wraps_obs)
        q = q_of(np.concatenate([encode(state), args], axis=-1))
        return {**q, "action_args": args, **mask}

    return value


def _pg(model: PG) -> Function:
    return _encoded(model.encoder, _policy(model.head, model.action_space))


def _ppg_critic(model: PPG) -> Function:
    value_of = compiled(model.aux_head)
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
