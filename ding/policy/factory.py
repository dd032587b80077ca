"""Factory: policies by their registered names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ding.policy.base import Policy
from ding.utils.registry import POLICY_REGISTRY, class_of, policy_name


def create_policy(cfg: Mapping[str, Any], **kwargs: Any) -> Policy:
    """The policy that `cfg.type` names, built with `cfg` (and e.g. `model`, `enable_field`)."""
    return get_policy_cls(cfg)(cfg, **kwargs)


def get_policy_cls(cfg: Mapping[str, Any]) -> type[Policy]:
    return class_of(POLICY_REGISTRY, {**cfg, "type": policy_name(cfg)})


def register_policy(name: str, cls: type[Policy]) -> None:
    POLICY_REGISTRY.register(name)(cls)
