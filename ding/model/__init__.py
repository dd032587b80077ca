"""Networks, the wrappers that sample from them, and their forward in NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from ding.model.actor_critic import QAC, VAC, DiscreteQAC
from ding.model.agent_actor_critic import MAVAC
from ding.model.agents import QMix
from ding.model.central import QTran, WQMix
from ding.model.collaq import CollaQ
from ding.model.coma import COMA
from ding.model.curiosity import ICMNetwork, InverseNetwork, RndNetwork
from ding.model.dqn import DQN
from ding.model.encoder import ConvEncoder, DictEncoder, FCEncoder, encoder_for
from ding.model.havac import HAVAC
from ding.model.head import (
    DiscreteHead,
    DuelingHead,
    MultiHead,
    RegressionHead,
    ReparameterizationHead,
)
from ding.model.hybrid import PDQN, HybridQAC, HybridVAC
from ding.model.maqac import ContinuousMAQAC, DiscreteMAQAC
from ding.model.mixers import DuplexMixer, FreeMixer, Mixer, MonotonicMixer, SumMixer
from ding.model.numpy_forward import NumpyForward
from ding.model.policy_gradient import ACER, PG, PPG
from ding.model.q_learning import BDQ, C51DQN, FQF, IQN, QRDQN, RainbowDQN, SQNModel
from ding.model.qac_dist import QACDIST
from ding.model.recurrent import DRQN, NGU, GTrXLDQN, RecurrentVAC
from ding.model.value_head import (
    BranchingHead,
    DistributionHead,
    FQFHead,
    PopArtVHead,
    QRDQNHead,
    QuantileHead,
    RainbowHead,
)
from ding.model.wrapper import IModelWrapper, model_wrap, register_wrapper
from ding.utils.errors import ConfigError, nearest
from ding.utils.registry import MODEL_REGISTRY, class_of

ContinuousQAC = QAC

__all__ = [
    "ACER",
    "BDQ",
    "C51DQN",
    "COMA",
    "DQN",
    "DRQN",
    "FQF",
    "HAVAC",
    "IQN",
    "MAVAC",
    "NGU",
    "PDQN",
    "PG",
    "PPG",
    "QAC",
    "QACDIST",
    "QRDQN",
    "VAC",
    "BranchingHead",
    "CollaQ",
    "ContinuousMAQAC",
    "ContinuousQAC",
    "ConvEncoder",
    "DictEncoder",
    "DiscreteHead",
    "DiscreteMAQAC",
    "DiscreteQAC",
    "DistributionHead",
    "DuelingHead",
    "DuplexMixer",
    "FCEncoder",
    "FQFHead",
    "FreeMixer",
    "GTrXLDQN",
    "HybridQAC",
    "HybridVAC",
    "ICMNetwork",
    "IModelWrapper",
    "InverseNetwork",
    "Mixer",
    "MonotonicMixer",
    "MultiHead",
    "NumpyForward",
    "PopArtVHead",
    "QMix",
    "QRDQNHead",
    "QTran",
    "QuantileHead",
    "RainbowDQN",
    "RainbowHead",
    "RecurrentVAC",
    "RegressionHead",
    "ReparameterizationHead",
    "RndNetwork",
    "SQNModel",
    "SumMixer",
    "WQMix",
    "create_model",
    "encoder_for",
    "get_model_cls",
    "model_wrap",
    "parameters_of",
    "register_wrapper",
]

_HYBRID: dict[type[nn.Module], type[nn.Module]] = {VAC: HybridVAC, QAC: HybridQAC}
"""Models for `action_space='hybrid'`, by the model that the config names."""


def get_model_cls(cfg: Mapping[str, Any]) -> Any:
    if not cfg.get("type"):
        raise ConfigError(f"model config lacks 'type'{nearest('', MODEL_REGISTRY.query())}")
    model_cls = class_of(MODEL_REGISTRY, cfg)
    return _HYBRID.get(model_cls, model_cls) if cfg.get("action_space") == "hybrid" else model_cls


def create_model(cfg: Mapping[str, Any], **kwargs: Any) -> nn.Module:
    """The model that `{type, import_names, **constructor arguments}` describes."""
    model_cls = get_model_cls({**cfg, **kwargs})
    arguments = {k: v for k, v in cfg.items() if k not in ("type", "import_names")} | kwargs
    _check_arguments(model_cls, arguments)
    return model_cls(**arguments)


def parameters_of(model_cls: Any) -> dict[str, inspect.Parameter]:
    """Arguments of the constructor, with those that it passes on to another model's."""
    parameters = dict(inspect.signature(model_cls).parameters)
    passes_on = getattr(model_cls, "options_of", None)
    if passes_on is None:
        return parameters
    return {**inspect.signature(passes_on).parameters, **parameters}


def _check_arguments(model_cls: Any, arguments: Mapping[str, Any]) -> None:
    passes_on = getattr(model_cls, "options_of", None)
    parameters = parameters_of(model_cls)
    names = {n for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    open_ended = passes_on is None and any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in arguments:
        if name not in names and not open_ended:
            where = f"{model_cls.__name__} has no argument"
            raise ConfigError(f"unknown model key '{name}': {where} '{name}'{nearest(name, names)}")
    for name in sorted(names - arguments.keys()):
        if parameters[name].default is inspect.Parameter.empty:
            raise ConfigError(f"model config of {model_cls.__name__} lacks '{name}'")
