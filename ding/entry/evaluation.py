"""Evaluation of a trained policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from ding.agent.bundle import is_bundle
from ding.agent.load import CONFIG, best_checkpoint, run_of
from ding.config import compile_config, override, read_config
from ding.entry.trained import load_weights, prepared
from ding.envs import DingEnvWrapper, get_env_cls
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike
from ding.utils.files import check_can_write
from ding.worker import EvalResult, create_serial_evaluator
from ding.worker.episode_returns import EpisodeReturns

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


@dataclass(frozen=True)
class OwnEnvRun:
    """A trained policy of a run whose env is a `BaseEnv` of its own kind: agents, games."""

    checkpoint: Path
    main: Any
    create: Any

    def evaluate(self, episodes: int, seed: int, videos: Path | None = None) -> EpisodeReturns:
        """Episodes in as many envs at once as the run evaluates in, all of them with `videos`."""
        count = {
            "env.n_evaluator_episode": episodes,
            "env.evaluator_env_num": min(episodes, self.main["env"]["evaluator_env_num"]),
            "policy.eval.evaluator.n_episode": episodes,
        }
        configs = [override(self.main, count), self.create]
        return evaluate(configs, seed, load_path=self.checkpoint, replay_path=videos).reward


def own_env_run(path: Path) -> OwnEnvRun | None:
    """The run of this directory or checkpoint; None if its env is one of Gymnasium, or a bundle."""
    if not path.exists() or (path.is_file() and is_bundle(path)):
        return None
    checkpoint = best_checkpoint(path) if path.is_dir() else path
    directory = run_of(checkpoint)
    main, create = read_config(directory / CONFIG)
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False, seed=main["seed"])
    if "type" not in cfg.env or issubclass(get_env_cls(cfg.env), DingEnvWrapper):
        return None
    return OwnEnvRun(checkpoint, override(main, {"exp_name": str(directory)}), create)
