"""Self-play: the serial loop, with battle workers in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from ding.entry.serial import train
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike, Run
from ding.policy import Policy
from ding.utils.errors import ConfigError
from ding.utils.limits import limits_of
from ding.utils.registry import SERIAL_EVALUATOR_REGISTRY, class_of
from ding.worker import BattleEvaluator, get_serial_collector_cls
from ding.worker.battle.collector import BattleCollector


def serial_pipeline_selfplay(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    seed: int | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    dynamic_seed: bool = True,
    resume: str | Path | bool = False,
) -> Policy:
    """Train a policy against itself, its past or bots, and return it."""
    limits = limits_of(max_train_iter, max_env_step)
    with Run(
        input_cfg,
        seed,
        env_setting=env_setting,
        model=model,
        limits=limits,
        dynamic_seed=dynamic_seed,
        resume=resume,
    ) as run:
        check_is_selfplay(run.cfg)
        train(run)
    return run.policy


def check_is_selfplay(cfg: Any) -> None:
    """Refuse configs whose workers play no games of two."""
    collector, evaluator = cfg.policy.collect.collector, cfg.policy.eval.evaluator
    if not issubclass(get_serial_collector_cls(collector), BattleCollector):
        raise ConfigError(
            f"policy.collect.collector.type = '{collector.type}': self-play needs 'sample_1v1' or "
            "'episode_1v1'"
        )
    if not issubclass(class_of(SERIAL_EVALUATOR_REGISTRY, evaluator), BattleEvaluator):
        raise ConfigError(
            f"policy.eval.evaluator.type = '{evaluator.type}': self-play needs 'battle_interaction'"
        )
