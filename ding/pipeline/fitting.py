"""Fitting: a config and its env made one, and what can't work refused, before a run is made."""

from __future__ import annotations

from typing import Any

from ding.pipeline.budget import budget_advice, check_budget
from ding.pipeline.spaces import advice, fit_model_to_env, fit_reward_model_to_env
from ding.utils.limits import Limits


def fit_to_env(cfg: Any, env: Any, limits: Limits, *, has_model: bool = False) -> list[str]:
    """Complete the config by what the env says; returns advice to the user, a line each.

    `has_model`: the user gave a model, which is then not the config's to describe.
    """
    fit_model_to_env(cfg.policy, env, has_model=has_model)
    fit_reward_model_to_env(cfg, env)
    check_budget(cfg.policy, limits)
    longest = getattr(env, "step_limit", None)
    return [*advice(cfg.policy, env), *budget_advice(cfg.policy, limits, longest)]
