"""Factory: policies by their registered names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ding.policy.base import Policy
from ding.utils.registry import POLICY_REGISTRY, class_of


def create_policy(cfg: Mapping[str, Any], **kwargs: Any) -> Policy:
    """The policy that `cfg.type` names, built with `cfg` (and e.g. `model`, `enable_field`)."""
    return get_policy_cls(cfg)(cfg, **kwargs)


def get_policy_cls(cfg: Mapping[str, Any]) -> type[Policy]:
    # Older configs and code name the version with a command mode; here every policy has one.
    name = str(cfg["type"])
    return class_of(POLICY_REGISTRY, {**cfg, "type": name.removesuffix("_command")})


def register_policy(name: str, cls: type[Policy]) -> None:
    POLICY_REGISTRY.register(name)(cls)
