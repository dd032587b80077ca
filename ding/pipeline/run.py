"""Run: env managers, policy and workers of one training run, put together from its config."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ding.config import compile_config, read_config_with_system
from ding.config.compile import save_compiled
from ding.config.tree import plain_dict
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.batches import ReplayBatches
from ding.pipeline.blueprint import Blueprint
from ding.pipeline.budget import check_learned
from ding.pipeline.callbacks import Callbacks
from ding.pipeline.evaluation import Evaluated, evaluate
from ding.pipeline.fitting import fit_to_env
from ding.pipeline.interrupt import Interrupt
from ding.pipeline.learning import train_on
from ding.pipeline.naming import name_with_seed
from ding.pipeline.ownership import Ownership
from ding.pipeline.progress import TRAINING_EPISODES, Progress
from ding.pipeline.report import Outcome
from ding.pipeline.source import Collected, CollectorSource
from ding.pipeline.spaces import outside
from ding.pipeline.state import StateKeeper, check_same_config, discard, find_run, load_state
from ding.policy import Policy, create_policy
from ding.policy.user_model import fitted_model
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError, DingError
from ding.utils.limits import Limits
from ding.utils.registry import COMMANDER_REGISTRY, class_of
from ding.utils.seed import rng_state, set_pkg_seed, set_rng_state

ConfigLike = str | Path | Sequence[Mapping[str, Any]] | Mapping[str, Any]

_THREADS_FROM_FLOPS = 2e8


def read_input(input_cfg: ConfigLike) -> tuple[Any, Any, Any]:
    """main_config, create_config and system_config (empty if missing) of a path or of dicts."""
    if isinstance(input_cfg, (str, Path)):
        return read_config_with_system(input_cfg, required=False)
    if isinstance(input_cfg, Mapping) and "type" in input_cfg.get("policy", {}):
        return input_cfg, {}, {}  # it names its parts itself
    if not isinstance(input_cfg, (list, tuple)) or len(input_cfg) not in (2, 3):
        raise ConfigError(
            "a pipeline takes the path of a config file, [main_config, create_config] (in parallel "
            "runs with a system_config as the third), or one config with its policy.type"
        )
    main, create, *system = input_cfg
    return main, create, system[0] if system else {}


class Run:
    """Env managers, policy and workers of one serial run; `with` closes them all."""

    def __init__(  # noqa: PLR0913 (everything a run depends on)
        self,
        input_cfg: ConfigLike,
        seed: int | None = None,
        *,
        env_setting: EnvSetting | None = None,
        model: nn.Module | None = None,
        limits: Limits | None = None,
        dynamic_seed: bool = True,
        resume: str | Path | bool = False,
        on_policy_only: bool = False,
        callbacks: Iterable[Any] = (),
    ) -> None:
        main, create, _ = read_input(input_cfg)
        self.cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
        self.cfg.exp_name = name_with_seed(self.cfg.exp_name, self.cfg.seed)
        if on_policy_only and not self.cfg.policy.on_policy:
            name = self.cfg.policy.type
            raise ConfigError(f"policy '{name}' learns off-policy; use serial_pipeline (-m serial)")
        self.seed, self.limits = self.cfg.seed, limits or Limits()
        self.callbacks = Callbacks(self, [*self.cfg.callbacks, *callbacks])
        self.found = Evaluated()
        self.ended = False
        """A callback has ended the run."""
        self._told_bounds = False
        self._seconds, self._started = 0.0, time.monotonic()
        self._last_saved = time.monotonic()
        self._closing = ExitStack()
        set_pkg_seed(self.seed, use_cuda=self.cfg.policy.cuda)
        self.blueprint = Blueprint(self.cfg, self.seed, env_setting=env_setting)
        collector_env, evaluator_env = self._make_envs(dynamic_seed)
        try:
            advice = fit_to_env(self.cfg, collector_env, self.limits, has_model=model is not None)
            spaces = collector_env.observation_space, collector_env.action_space
            model = fitted_model(model, self.cfg.policy, *spaces)
            state = self._open_directory(resume)
        except BaseException:
            self._closing.close()
            raise
        self._is_new = state is None
        try:
            self.progress = Progress(
                str(self.directory),
                self.limits,
                training_returns=lambda: self.collector.last_returns(TRAINING_EPISODES),
            )
            self._interrupt = Interrupt(self.progress.message)
            self.policy: Policy = create_policy(self.cfg.policy, model=model)
            torch.set_num_threads(threads_for(self.policy, self.cfg.policy))
            self._make_workers(collector_env, evaluator_env, state)
            self.callbacks.attach(self.learner, self.collector)
            if state is not None:
                self._restore(state)
            for line in advice:
                self.progress.message(line)
        except BaseException:
            self._discard()
            raise

    # --- putting together ----------------------------------------------------------------------

    def _make_envs(self, dynamic_seed: bool) -> tuple[Any, Any]:
        managers = []
        for to_evaluate in (False, True):
            manager = self.blueprint.envs(
                self.seed, to_evaluate=to_evaluate, dynamic_seed=dynamic_seed
            )
            self._closing.callback(manager.close)
            managers.append(manager)
        return managers[0], managers[1]

    def _open_directory(self, resume: str | Path | bool) -> dict[str, Any] | None:
        """Make the directory of a new run, or find that of the run to go on with."""
        if resume is False:
            save_compiled(self.cfg)
            self.directory = Path(self.cfg.exp_name)
            self._closing.callback(Ownership(self.directory).release)
            return None
        self.directory = find_run(self.cfg.exp_name if resume is True else str(resume))
        self._closing.callback(Ownership(self.directory).release)
        state = load_state(self.directory)
        check_same_config(state["config"], plain_dict(self.cfg))
        self.cfg.exp_name = str(self.directory)
        for leftover in (self.directory / "ckpt").glob(".*.tmp"):
            leftover.unlink()
        if self.limits == Limits():
            self.limits = Limits(**state["limits"])
        return state

    def _make_workers(
        self, collector_env: Any, evaluator_env: Any, resumed: dict[str, Any] | None
    ) -> None:
        self.learner = self.blueprint.learner(self.policy)
        self.collector = self.blueprint.collector(self.policy, collector_env)
        self.evaluator = self.blueprint.evaluator(self.policy, evaluator_env)
        self.source = CollectorSource(self.collector, self.policy.collect_mode)
        self.parts = self.blueprint.parts()
        self._closing.callback(self.parts.close)
        self.buffer, self.batches = self.parts.buffer, self.parts.batches
        self._states = StateKeeper(self.directory, self.buffer, resumed)
        self._closing.callback(self._states.finish)
        for worker in (self.learner, self.collector, self.evaluator):
            self._closing.callback(worker.close)
        commander = self.cfg.policy.other.commander
        self.commander = class_of(COMMANDER_REGISTRY, commander)(
            commander,
            self.learner,
            self.collector,
            self.evaluator,
            self.buffer,
            self.policy.command_mode,
            exp_name=self.cfg.exp_name,
        )
        self._closing.callback(self.commander.close)

    # --- parts of the loop ---------------------------------------------------------------------

    @property
    def interrupted(self) -> bool:
        return self._interrupt.asked

    @property
    def stop(self) -> bool:
        """Whether the stop value is reached."""
        return self.found.stop

    @property
    def finished(self) -> bool:
        reached = self.limits.reached(self.learner.train_iter, self.collector.envstep)
        return self.stop or self.ended or self.interrupted or reached

    def begin(self) -> None:
        """Load what the config says, and fill the buffer by random actions if it asks for it."""
        self.show_counts()
        if not self._is_new:
            return
        load_path = self.cfg.policy.load_path
        if load_path:
            self.learner.load_checkpoint(load_path)
        self.learner.call_hook("before_run")
        if isinstance(self.batches, ReplayBatches):
            self._learn_from(self.batches.draw(self.batches.pretrain, self.learner), [])
            with self.progress.during("warm-up"):
                for chunk in self.source.warm_up(self.cfg.policy.random_collect_size):
                    self.batches.add(chunk.samples, self.collector.envstep)
                    self.learner.merge_statistics(chunk.statistics)
                    self.show_counts()
            self.progress.measure_from_here()
        self.save(wait=True)  # a run can be resumed from its first step on

    def show_counts(self) -> None:
        self.progress.update(self.collector.envstep, self.learner.train_iter)

    def evaluate_if_due(self) -> bool:
        """Evaluate every `eval_freq` updates; True when the run is to end."""
        if not self.evaluator.should_eval(self.learner.train_iter):
            return False
        self._evaluate()
        return self.stop or self.ended

    def _evaluate(self) -> None:
        learner = self.learner
        save, envstep = learner.save_checkpoint, self.collector.envstep
        with self.progress.during("evaluating"):
            self.found = evaluate(self.evaluator, save, learner.train_iter, envstep)
        if self.found.is_best:
            self.parts.save("best")
        self.progress.evaluated(self.found)
        self.callbacks.call("evaluation", self.found.returns)

    def learn(self, collected: Collected) -> None:
        """Update the policy on what the new samples give to learn from."""
        self.callbacks.deliver_episodes()
        if self._is_new and not self.learner.train_iter and isinstance(collected.samples, Rows):
            self._warn_of_bounds(collected.samples.columns)
        batches = self.batches.after(collected.samples, self.collector.envstep, self.learner)
        self._learn_from(batches, [collected.statistics] if collected.statistics else [])
        self.callbacks.call("step")

    def _warn_of_bounds(self, samples: Mapping[str, Any]) -> None:
        """Say once that the env gives numbers outside the space that it declares."""
        if self._told_bounds:
            return
        found = outside(samples.get("obs"), self.collector.observation_space, slack=1.0)
        if found is not None:
            self._told_bounds = True
            self.progress.message(
                f"an observation holds {found:g}, outside the env's observation_space: correct its "
                "bounds (ding check ENV looks further)"
            )

    def _learn_from(self, batches: Iterable[Any], statistics: Sequence[Any]) -> None:
        envstep, on_policy = self.collector.envstep, self.cfg.policy.on_policy
        updates = train_on(self.learner, batches, envstep, statistics, on_policy=on_policy)
        for priority_info in updates:
            self.batches.feed_back(priority_info)

    # --- state ---------------------------------------------------------------------------------

    def save_if_due(self) -> None:
        due = time.monotonic() - self._last_saved >= self.cfg.checkpoint_seconds
        if not self._states.is_busy and due:
            self.save()

    def save(self, wait: bool = False) -> None:
        """Everything needed to go on exactly here; the buffer's part in the background."""
        with self.progress.during("saving"):
            self._save(wait)

    def _save(self, wait: bool) -> None:
        state = {
            "config": plain_dict(self.cfg),
            "limits": asdict(self.limits),
            "seconds": self.seconds,
            "found": asdict(self.found),
            "rng": rng_state(),
            "policy_rng": self.policy.rng.bit_generator.state,
            "learner": self.learner.state_dict(),
            "collector": self.collector.state_dict(),
            "parts": self.parts.state_dict(),
        }
        self._states.save(state)
        if wait:
            self._states.finish()
        self._last_saved = time.monotonic()

    def _restore(self, state: dict[str, Any]) -> None:
        self._seconds, self.found = state["seconds"], Evaluated(**state["found"])
        self.learner.load_state_dict(state["learner"])
        self.collector.load_state_dict(state["collector"])
        if self.found.history:
            self.evaluator.load_state_dict(self.found.state)
        if self.buffer is not None:
            self.buffer.load_state_dict(state["buffer"])
        self.parts.load_state_dict(state["parts"])
        self.policy.rng.bit_generator.state = state["policy_rng"]
        set_rng_state(state["rng"])
        self.progress.message(f"resumed {self.directory} at {self.collector.envstep:,} env steps")

    @property
    def seconds(self) -> float:
        """Time of this run, with what it took before it was resumed."""
        return self._seconds + time.monotonic() - self._started

    # --- end -----------------------------------------------------------------------------------

    def finish(self) -> dict[str, Any]:
        """Last evaluation, checkpoint, result and picture."""
        if self.interrupted:
            self.save(wait=True)
            self.learner.save_checkpoint()
        else:
            if not (self.learner.train_iter or self.stop or self.ended):
                n_stored = None if self.buffer is None else self.buffer.count()
                check_learned(self.cfg.policy, self.limits, self.collector.envstep, n_stored)
            if not self.found.is_of(self.learner.train_iter):
                self._evaluate()  # what is reported is the policy as it is left behind
            self.learner.call_hook("after_run")
            self.parts.save("last")
            self.save(wait=True)
        return self._report()

    def _report(self) -> dict[str, Any]:
        outcome = Outcome(
            directory=self.directory,
            seed=self.seed,
            found=self.found,
            interrupted=self.interrupted,
            env_step=self.collector.envstep,
            train_iter=self.learner.train_iter,
            stop_value=self.cfg.env.stop_value,
            seconds=self.seconds,
            dropped_steps=self.collector.dropped_steps,
        )
        result = outcome.conclude(self.progress.message)
        self.callbacks.call("end", result)
        return result

    def __enter__(self) -> Run:
        self._interrupt.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._interrupt.__exit__()
        self.progress.close()
        if kind is not None and issubclass(kind, DingError):
            self._discard()
        self._closing.close()

    def _discard(self) -> None:
        """Close all; what failed before its first env step leaves only records of failed envs."""
        self._closing.close()
        collector = getattr(self, "collector", None)
        if self._is_new and (collector is None or not collector.envstep):
            discard(self.directory)


def threads_for(policy: Policy, policy_cfg: Any) -> int:
    """Torch threads of the config, or what pays off: a small network is slower on two than on one.

    Never more than OMP_NUM_THREADS, which says that other processes want their share.
    """
    threads = policy_cfg.learn.get("threads")
    if threads is not None:
        return threads
    n_parameter = sum(p.numel() for p in policy._model.parameters())
    flops = 6 * n_parameter * policy_cfg.learn.batch_size
    if flops < _THREADS_FROM_FLOPS:
        return 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return int(allowed) if allowed.isdigit() and int(allowed) else os.cpu_count() or 1
