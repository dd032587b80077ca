"""Networks of users: those that give tensors are adapted, those that cannot fit say why."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor, nn

from ding.policy.factory import get_policy_cls
from ding.utils.batch import stack, tree_map
from ding.utils.errors import ConfigError

_EXPECTED = {
    "dqn": "forward(obs) -> {'logit': (B, actions)}, or that tensor alone",
    "vac": "forward(obs, mode) -> {'logit': (B, actions), 'value': (B,)}, or without mode that "
    "dict or the pair (logit, value)",
}
"""What policies with these models want of a network, for one discrete action."""
_EXPECTED_QAC = (
    "forward(obs, mode='compute_actor'), which gives {'logit': {'mu', 'sigma'}} or {'action'}, and "
    "forward({'obs', 'action'}, mode='compute_critic'), which gives {'q_value'}"
)
"""The same for one continuous action."""


class QOfTensor(nn.Module):
    """A network that gives the values of actions alone."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Any) -> dict[str, Any]:
        return {"logit": self.net(x)}


class ActorCriticOfPair(nn.Module):
    """A network without modes that gives logits and values, as a dict or as a pair."""

    modes = ("compute_actor", "compute_critic", "compute_actor_critic")

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Any, mode: str = "compute_actor") -> dict[str, Any]:
        given = self.net(x)
        if isinstance(given, Mapping):
            logit, value = given["logit"], given["value"]
        else:
            logit, value = given
        value = value.squeeze(-1) if value.ndim == logit.ndim else value
        both = {"logit": logit, "value": value}
        wanted = {"compute_actor": ["logit"], "compute_critic": ["value"]}.get(mode, both)
        return {key: both[key] for key in wanted}


def fitted_model(
    model: Any, policy_cfg: Mapping[str, Any], obs_space: Any, action_space: Any
) -> Any:
    """The network that a user gave, adapted if need be, after a look at what it gives."""
    if not isinstance(model, nn.Module) or policy_cfg["cuda"]:
        return model
    kind = get_policy_cls(policy_cfg)._model_name(policy_cfg)
    if kind == "qac" and isinstance(action_space, gym.spaces.Box):
        _check_qac(model)
    if type(action_space) is not gym.spaces.Discrete or kind not in _EXPECTED:
        return model
    takes_mode = "mode" in inspect.signature(model.forward).parameters
    if kind == "vac" and not takes_mode:
        model = ActorCriticOfPair(model)
    obs_space = deepcopy(obs_space)
    obs_space.seed(0)
    obs = tree_map(torch.from_numpy, stack([obs_space.sample() for _ in range(2)]))
    options = {"mode": "compute_actor_critic"} if kind == "vac" else {}
    said = f"the network {type(getattr(model, 'net', model)).__name__} must have "
    try:
        with torch.no_grad():
            output = deepcopy(model).eval()(obs, **options)
    except (RuntimeError, TypeError, ValueError, KeyError) as error:
        raise ConfigError(
            f"{said}{_EXPECTED[kind]}, for observations of {obs_space}; a call with two of them "
            f"fails: {type(error).__name__}: {error}"
        ) from error
    if kind == "dqn" and isinstance(output, Tensor):
        model, output = QOfTensor(model), {"logit": output}
    wanted = (2, int(action_space.n))
    found = output.get("logit") if isinstance(output, Mapping) else output
    if not isinstance(found, Tensor) or tuple(found.shape) != wanted:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ConfigError(
            f"{said}{_EXPECTED[kind]}; for two observations the logit must be {wanted}, since the "
            f"actions are {action_space}, but it is {shape}"
        )
    return model


def _check_qac(model: nn.Module) -> None:
    if "mode" not in inspect.signature(model.forward).parameters:
        raise ConfigError(
            f"the network {type(model).__name__} must have {_EXPECTED_QAC}; its forward takes no "
            "'mode'"
        )
