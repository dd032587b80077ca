"""Networks, the wrappers that sample from them, and their NumPy twins."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from ding.model.actor_critic import QAC, VAC, DiscreteQAC
from ding.model.dqn import DQN
from ding.model.encoder import ConvEncoder, DictEncoder, FCEncoder, encoder_for
from ding.model.head import (
    DiscreteHead,
    DuelingHead,
    MultiHead,
    RegressionHead,
    ReparameterizationHead,
)
from ding.model.numpy_forward import numpy_forward, numpy_policy
from ding.model.wrapper import IModelWrapper, model_wrap, register_wrapper
from ding.utils.errors import ConfigError, nearest
from ding.utils.registry import MODEL_REGISTRY, class_of

__all__ = [
    "DQN",
    "QAC",
    "VAC",
    "ConvEncoder",
    "DictEncoder",
    "DiscreteHead",
    "DiscreteQAC",
    "DuelingHead",
    "FCEncoder",
    "IModelWrapper",
    "MultiHead",
    "RegressionHead",
    "ReparameterizationHead",
    "create_model",
    "encoder_for",
    "get_model_cls",
    "model_wrap",
    "numpy_forward",
    "numpy_policy",
    "register_wrapper",
]


def get_model_cls(cfg: Mapping[str, Any]) -> Any:
    if not cfg.get("type"):
        raise ConfigError(f"model config lacks 'type'{nearest('', MODEL_REGISTRY.query())}")
    return class_of(MODEL_REGISTRY, cfg)


def create_model(cfg: Mapping[str, Any], **kwargs: Any) -> nn.Module:
    """The model that `{type, import_names, **constructor arguments}` describes."""
    model_cls = get_model_cls(cfg)
    arguments = {k: v for k, v in cfg.items() if k not in ("type", "import_names")} | kwargs
    _check_arguments(model_cls, arguments)
    return model_cls(**arguments)


def _check_arguments(model_cls: Any, arguments: Mapping[str, Any]) -> None:
    parameters = inspect.signature(model_cls).parameters
    names = {n for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in arguments:
        if name not in names and not open_ended:
            where = f"{model_cls.__name__} has no argument"
            raise ConfigError(f"unknown model key '{name}': {where} '{name}'{nearest(name, names)}")
    for name in sorted(names - arguments.keys()):
        if parameters[name].default is inspect.Parameter.empty:
            raise ConfigError(f"model config of {model_cls.__name__} lacks '{name}'")
