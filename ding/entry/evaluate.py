"""Evaluation of a trained policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ding.entry.trained import load_weights, prepared
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike
from ding.utils.files import check_can_write
from ding.worker import EvalResult, create_serial_evaluator


def eval(
    input_cfg: ConfigLike,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    state_dict: Mapping[str, Any] | None = None,
    load_path: str | Path | None = None,
    replay_path: str | Path | None = None,
) -> float:
    """Mean return of a trained policy; `replay_path` is where videos of the episodes go."""
    reward = evaluate(
        input_cfg,
        seed,
        env_setting=env_setting,
        model=model,
        state_dict=state_dict,
        load_path=load_path,
        replay_path=replay_path,
    ).reward
    return sum(reward) / len(reward)


def evaluate(
    input_cfg: ConfigLike,
    seed: int = 0,
    *,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    state_dict: Mapping[str, Any] | None = None,
    load_path: str | Path | None = None,
    replay_path: str | Path | None = None,
) -> EvalResult:
    """The same with the returns of all episodes."""
    cfg, env, policy = prepared(input_cfg, seed, env_setting, model, evaluating=True)
    with env:
        load_weights(policy, policy.eval_mode, state_dict, cfg, load_path)
        if replay_path is not None:
            check_can_write(replay_path, "--replay-path")
            env.enable_save_replay(str(replay_path))
        with create_serial_evaluator(
            cfg.policy.eval.evaluator, env=env, policy=policy.eval_mode, exp_name=cfg.exp_name
        ) as evaluator:
            return evaluator.eval()
