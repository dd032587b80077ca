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

MOST_VIDEOS = 5


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
    """The same with the returns of all episodes; the first of each env, but few, become videos."""
    weights = (state_dict, load_path)
    given = (input_cfg, seed, env_setting, model)
    if replay_path is not None:
        check_can_write(replay_path, "--replay-path")
        _played(*given, weights, most_envs=MOST_VIDEOS, videos=str(replay_path))
    return _played(*given, weights)


def _played(
    input_cfg: ConfigLike,
    seed: int,
    env_setting: EnvSetting | None,
    model: nn.Module | None,
    weights: tuple[Mapping[str, Any] | None, str | Path | None],
    *,
    most_envs: int | None = None,
    videos: str | None = None,
) -> EvalResult:
    """An evaluation; with `videos` of one episode in each env."""
    cfg, env, policy = prepared(
        input_cfg, seed, env_setting, model, evaluating=True, most_envs=most_envs
    )
    with env:
        state_dict, load_path = weights
        load_weights(policy, policy.eval_mode, state_dict, cfg, load_path)
        if videos is not None:
            env.enable_save_replay(videos)
            cfg.policy.eval.evaluator.n_episode = env.env_num
        with create_serial_evaluator(
            cfg.policy.eval.evaluator, env=env, policy=policy.eval_mode, exp_name=cfg.exp_name
        ) as evaluator:
            return evaluator.eval()
