"""Training with collectors, buffer, learner and evaluator each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ding.config import compile_config, read_config
from ding.config.compile import save_compiled
from ding.config.tree import plain_dict
from ding.entry.head_start import ALONE_SECONDS, StartingRay
from ding.entry.parallel_config import check_parallel, timeout_name, translated
from ding.parallel.backend import Backend, InlineBackend
from ding.parallel.checkpointing import MANIFEST, Saved, load_manifest
from ding.parallel.coordinator import Coordinator
from ding.parallel.fleet import Fleet
from ding.parallel.worker_pool import Worker
from ding.pipeline.blueprint import Blueprint
from ding.pipeline.evaluation import Evaluated
from ding.pipeline.fitting import fit_to_env
from ding.pipeline.interrupt import Interrupt
from ding.pipeline.naming import name_with_seed
from ding.pipeline.ownership import Ownership
from ding.pipeline.progress import Progress, Scalars
from ding.pipeline.report import Outcome
from ding.pipeline.run import ConfigLike, read_input, threads_for
from ding.pipeline.state import check_same_config, discard, find_run
from ding.policy import create_policy
from ding.utils.errors import CheckpointError
from ding.utils.limits import Limits, limits_of
from ding.utils.log import WorkerLog

# Env steps of one collect: far more than a call costs, few enough for weights to be new.
_CHUNK_STEPS = 256


def parallel_pipeline(
    input_cfg: ConfigLike,
    seed: int | None = None,
    *,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
    backend: Backend | None = None,
) -> dict[str, Any]:
    """Train what a config describes, a serial one or one for parallel runs; returns the result.

    Everything lives on this machine, reachable from here alone. `backend` says where services are
    put. By default the run begins in this process and, if it is not done in a few seconds, goes on
    with Ray actors (`system_config.coordinator.head_start`).
    """
    limits = limits_of(max_train_iter, max_env_step)
    with ParallelRun(input_cfg, seed, limits, resume, backend) as run:
        return run.train()


class ParallelRun:
    def __init__(
        self,
        input_cfg: ConfigLike,
        seed: int | None = None,
        limits: Limits | None = None,
        resume: str | Path | bool = False,
        backend: Backend | None = None,
        *,
        start: Callable[[Fleet], Backend] | None = None,
        or_begin: bool = False,
    ) -> None:
        """`start` makes the backend once the config is known to be right.

        `or_begin`: if there is nothing to resume, begin. Jobs that are queued again need that.
        """
        main, create, fleet = translated(*read_input(input_cfg))
        self.cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
        self.cfg.exp_name = name_with_seed(self.cfg.exp_name, self.cfg.seed)
        self.seed, self.fleet, self.limits = self.cfg.seed, fleet, limits or Limits()
        check_parallel(self.cfg, fleet)
        self._fit_model()
        self._saved: Saved | None = None
        self._told: Evaluated | None = None
        found = self._find(resume, or_begin)
        self._is_new = found is None
        if found is None:
            save_compiled(self.cfg)
        self.directory = found or Path(self.cfg.exp_name)
        self._ownership = Ownership(self.directory)
        try:
            if found is not None:
                self._take_up(found)
            policy = create_policy(self.cfg.policy, enable_field=["command"])
            self._command = policy.command_mode
            self._blueprint = Blueprint(self.cfg, self.seed, threads_for(policy, self.cfg.policy))
            self.progress = Progress(
                str(self.directory),
                self.limits,
                training_returns=lambda: self.coordinator.training_returns,
            )
            self._scalars = Scalars(WorkerLog(str(self.directory), "coordinator"))
            self._interrupt = Interrupt(self.progress.message)
            for line in self._advice:
                self.progress.message(line)
            self._backend = backend if start is None else start(self.fleet)
            self._starting: StartingRay | None = None
            if self._backend is None:
                delay = ALONE_SECONDS if self._begins_here else 0.0
                shown = self.fleet.dashboard
                self._starting = StartingRay(self._service_names, delay, dashboard=shown)
        except BaseException:
            self._discard()
            raise

    def _fit_model(self) -> None:
        with Blueprint(self.cfg, self.seed).envs(self.seed, to_evaluate=False) as manager:
            self._advice = fit_to_env(self.cfg, manager, self.limits)

    def _find(self, resume: str | Path | bool, or_begin: bool) -> Path | None:
        """The run to go on with."""
        if resume is False:
            return None
        try:
            return find_run(self.cfg.exp_name if resume is True else str(resume), (MANIFEST,))
        except CheckpointError:
            if or_begin:
                return None
            raise

    def _take_up(self, directory: Path) -> None:
        self._saved = load_manifest(directory)
        saved_main, _ = read_config(directory / "total_config.py")
        check_same_config(plain_dict(saved_main), plain_dict(self.cfg))
        self.cfg.exp_name = str(directory)
        if self.limits == Limits():
            self.limits = Limits(**self._saved.limits)

    @property
    def _begins_here(self) -> bool:
        return self.fleet.head_start and self._saved is None

    @property
    def _service_names(self) -> list[str]:
        learners, collectors = self.fleet.learner_num, self.fleet.collector_num
        names = ["learner"] if learners == 1 else [f"learner{i}" for i in range(learners)]
        names += ["evaluator", *(f"collector{i}" for i in range(collectors))]
        return names if self.cfg.policy.on_policy else [*names, "buffer"]

    def train(self) -> dict[str, Any]:
        if self._starting is not None:
            if self._begins_here:
                self._begin_here(self._starting)
                if self.coordinator.is_done or self._interrupt.asked:
                    return self._concluded(self.coordinator)
                self._saved = load_manifest(self.directory)
            self._backend = self._starting.taken()
        assert self._backend is not None
        if self._backend.dashboard is not None:
            self.progress.message(f"Ray's dashboard: {self._backend.dashboard}")
        chunk = _chunk_of(self.cfg.policy)
        self._coordinate(self._backend, self.fleet, chunk, lambda: self._interrupt.asked)
        return self._concluded(self.coordinator)

    def _begin_here(self, starting: StartingRay) -> None:
        """Do what a serial run does until the processes have started; then all of it is saved."""
        alone = replace(self.fleet, collector_num=1, learner_num=1, in_step=True)
        here, n_sample = InlineBackend(), self.cfg.policy.collect.n_sample or 1
        try:
            self._coordinate(
                here, alone, n_sample, lambda: self._interrupt.asked or starting.is_over
            )
        finally:
            here.close()

    def _coordinate(
        self, backend: Backend, fleet: Fleet, chunk: int, interrupted: Callable[[], bool]
    ) -> None:
        self.coordinator = Coordinator(
            backend,
            self._blueprint,
            self._command,
            self.limits,
            fleet,
            chunk=chunk,
            saved=self._saved,
            on_news=self._follow,
            on_hung=self._tell_hung,
            tell=self.progress.message,
            interrupted=interrupted,
        )
        self.coordinator.run()

    def _follow(self, coordinator: Coordinator) -> None:
        ledger, found = coordinator.ledger, coordinator.found
        if found.returns and found is not self._told:
            self._told = found
            self.progress.evaluated(found)
        n, restarts = len(coordinator.collectors), sum(ledger.restarts.values())
        busy = n - len(coordinator.pool.idle)
        note = f"collecting {busy}/{n}, queued {coordinator.queued}, lag {ledger.lag.last}"
        if restarts:
            note += f", restarts {restarts}"
        self.progress.update(ledger.env_steps, ledger.updates, note, coordinator.phase)
        self._scalars.write(
            {
                "env_step": ledger.env_steps,
                "train_iter": ledger.updates,
                "collectors": n,
                "collecting": busy,
                "queued_chunks": coordinator.queued,
                "lost_chunks": ledger.chunks.lost,
                "stale_chunks": ledger.chunks.stale,
                "policy_lag": ledger.lag.last,
                "restarts": restarts,
            }
        )

    def _tell_hung(self, worker: Worker, limit: float) -> None:
        self.progress.message(
            f"{worker.name} has not answered for {limit:g} s: it is ended and replaced; if it was "
            f"only slow, raise system_config.coordinator.{timeout_name(worker.role)}"
        )

    def _concluded(self, coordinator: Coordinator) -> dict[str, Any]:
        ledger, found = coordinator.ledger, coordinator.found
        outcome = Outcome(
            directory=self.directory,
            seed=self.seed,
            found=found,
            interrupted=self._interrupt.asked and not coordinator.is_done,
            env_step=ledger.env_steps,
            train_iter=ledger.updates,
            stop_value=self.cfg.env.stop_value,
            seconds=coordinator.saving.seconds,
            dropped_steps=ledger.dropped_steps,
        )
        return outcome.conclude(self.progress.message, {"ledger": ledger.plain()})

    def __enter__(self) -> ParallelRun:
        self._interrupt.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._interrupt.__exit__()
        self.progress.close()
        self._scalars.close()
        if self._backend is not None:
            self._backend.close()
        elif self._starting is not None:
            self._starting.abandon()
        if kind is not None:
            self._discard()
        self._ownership.release()

    def _discard(self) -> None:
        """What failed before its first stored sample leaves only records of failed envs."""
        coordinator = getattr(self, "coordinator", None)
        self._ownership.release()
        has_begun = self._saved is not None or (coordinator and coordinator.ledger.samples)
        if self._is_new and not has_begun:
            discard(self.directory)


def _chunk_of(policy: Any) -> int:
    """Samples of one collect; a sample may be an unroll of many steps."""
    unroll_len = int(policy.collect.get("unroll_len", 1) or 1)
    return max(policy.collect.n_sample or 0, -(-_CHUNK_STEPS // unroll_len))
