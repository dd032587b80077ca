"""Established entries of trainings with a reward model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from ding.entry.serial import train
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike, Run
from ding.policy import Policy
from ding.utils.errors import ConfigError
from ding.utils.limits import Limits, limits_of
from ding.utils.registry import REWARD_MODEL_REGISTRY


def serial_pipeline_reward_model_offpolicy(
    input_cfg: ConfigLike,
    seed: int | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
) -> Policy:
    """Train off-policy on rewards that the config's reward model gives."""
    limits = limits_of(max_train_iter, max_env_step)
    options: dict[str, Any] = dict(env_setting=env_setting, model=model, resume=resume)
    return _trained(input_cfg, seed, limits, on_policy=False, **options)


def serial_pipeline_reward_model_onpolicy(
    input_cfg: ConfigLike,
    seed: int | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
) -> Policy:
    """Train on-policy on rewards that the config's reward model gives."""
    limits = limits_of(max_train_iter, max_env_step)
    options: dict[str, Any] = dict(env_setting=env_setting, model=model, resume=resume)
    return _trained(input_cfg, seed, limits, on_policy=True, **options)


def _trained(
    input_cfg: ConfigLike, seed: int | None, limits: Limits, *, on_policy: bool, **options: Any
) -> Policy:
    with Run(input_cfg, seed, limits=limits, **options) as run:
        check_has_reward_model(run.cfg)
        if run.cfg.policy.on_policy != on_policy:
            learns, entry = ("on", "onpolicy") if run.cfg.policy.on_policy else ("off", "offpolicy")
            raise ConfigError(
                f"policy '{run.cfg.policy.type}' learns {learns}-policy; use "
                f"serial_pipeline_reward_model_{entry}"
            )
        train(run)
    return run.policy


def check_has_reward_model(cfg: Any) -> None:
    if cfg.get("reward_model") is None:
        known = ", ".join(REWARD_MODEL_REGISTRY.query())
        raise ConfigError(
            "the config has no reward_model; add main_config.reward_model = dict(type=...) with "
            f"one of: {known}"
        )
