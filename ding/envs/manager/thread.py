"""Thread executor: many envs at once, in threads; for clients of simulators elsewhere."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any, ClassVar

from ding.envs.manager.process import AsyncSubprocessEnvManager, SubprocessEnvManager
from ding.envs.manager.workers.shared_block import Fd
from ding.envs.manager.workers.worker import EnvWorker, WorkerSetup
from ding.envs.manager.workers.worker_pool import PoolPlan


class WorkerThread:
    """A worker in a thread; one that hangs cannot be killed, only abandoned."""

    def __init__(self, setup: WorkerSetup) -> None:
        fds = [os.dup(fd.number) for fd in (setup.commands, setup.answers, setup.pickles)]
        commands, answers, pickles = map(Fd, fds)
        self.sentinel, ended = os.pipe()
        self._worker = EnvWorker(
            replace(setup, commands=commands, answers=answers, pickles=pickles)
        )
        name = f"env-worker-{setup.index}"
        self._thread = threading.Thread(
            target=_run, args=(self._worker, [*fds, ended]), name=name, daemon=True
        )
        self._thread.start()

    def kill(self) -> None:
        self._worker.abandoned = True

    def join(self, timeout: float) -> bool:
        if not self._worker.abandoned:
            self._thread.join(timeout)
        return self._worker.abandoned or not self._thread.is_alive()

    def how_it_ended(self) -> str:
        return "ended"

    def close(self) -> None:
        os.close(self.sentinel)


def _run(worker: EnvWorker, fds: list[int]) -> None:
    try:
        worker.run()
    finally:
        for fd in fds:
            os.close(fd)


class ThreadEnvManager(SubprocessEnvManager):
    """As the async subprocess manager, but in this process: `context` does not matter."""

    config: ClassVar[dict[str, Any]] = {**AsyncSubprocessEnvManager.config, "envs_per_worker": 1}
    overlaps: ClassVar[bool] = True

    def _start_pool(self, plan: PoolPlan) -> None:
        super()._start_pool(replace(plan, context="thread", start=WorkerThread))

    def _envs_per_worker(self) -> int:
        wanted = self._cfg["envs_per_worker"]
        return 1 if wanted == "auto" else super()._envs_per_worker()
