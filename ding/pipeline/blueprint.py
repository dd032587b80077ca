"""Blueprint: all that the workers of a run are made from; the serial run and services share it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ding.envs import manager_of
from ding.envs.manager.slot import seed_after
from ding.pipeline.assemble import EnvSetting, Parts, assemble, env_setting_of
from ding.policy import create_policy
from ding.utils.seed import set_pkg_seed
from ding.worker import (
    BaseSerialEvaluator,
    create_learner,
    create_serial_collector,
    create_serial_evaluator,
)


@dataclass(frozen=True)
class Blueprint:
    cfg: Any
    """The compiled config, with the model fitted to the env."""
    seed: int
    threads: int = 1
    env_setting: EnvSetting | None = None
    """Envs that are not those of the config."""

    def seed_of(self, *words: int) -> int:
        """Another one for every service and every time that it is made anew."""
        return seed_after(self.seed, *words) if any(words) else self.seed

    @property
    def _envs(self) -> EnvSetting:
        return env_setting_of(self.cfg, self.env_setting)

    def envs(self, seed: int, *, to_evaluate: bool, dynamic_seed: bool = True) -> Any:
        """The manager of the envs of one collector, or of the evaluator, whose seeds repeat."""
        env_fn, *cfgs = self._envs
        manager = manager_of(self.cfg.env.manager, env_fn, cfgs[to_evaluate])
        manager.seed(seed, dynamic_seed=dynamic_seed and not to_evaluate)
        return manager

    def one_evaluator_env(self) -> tuple[Any, Any]:
        """Env function of the evaluator, and the config of one of its envs, in a list."""
        env_fn, _, cfgs = self._envs
        return env_fn, list(cfgs or [])[:1]

    def policy(self, field: str, seed: int) -> Any:
        """A policy for one use, in a process of its own."""
        torch.set_num_threads(self.threads if field == "learn" else 1)
        set_pkg_seed(seed, use_cuda=self.cfg.policy.cuda)
        return create_policy(self.cfg.policy, enable_field=[field])

    def learner(self, policy: Any, **place: Any) -> Any:
        cfg = self.cfg.policy.learn.learner
        return create_learner(cfg, policy=policy.learn_mode, exp_name=self.cfg.exp_name, **place)

    def collector(self, policy: Any, env: Any, **names: Any) -> Any:
        env.flights_under(Path(self.cfg.exp_name))
        return create_serial_collector(
            self.cfg.policy.collect.collector,
            env=env,
            policy=policy.collect_mode,
            exp_name=self.cfg.exp_name,
            **names,
        )

    def evaluator(self, policy: Any, env: Any) -> Any:
        env.flights_under(Path(self.cfg.exp_name))
        evaluator = create_serial_evaluator(
            self.cfg.policy.eval.evaluator,
            env=env,
            policy=policy.eval_mode,
            exp_name=self.cfg.exp_name,
        )
        if isinstance(evaluator, BaseSerialEvaluator):
            evaluator.seed(self.seed)
        return evaluator

    def parts(self) -> Parts:
        """Parts between collecting and learning."""
        return assemble(self.cfg, self.env_setting)
