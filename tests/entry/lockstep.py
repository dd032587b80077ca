"""A serial run and the parallel one in lockstep, with generators by role: the same numbers.

Services make their generators in an order of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ding.entry import serial_pipeline
from ding.entry.parallel import ParallelRun
from ding.parallel.backend import InlineBackend
from ding.parallel.services import LearnerService
from ding.pipeline.run import Run
from ding.utils.limits import Limits
from ding.worker import BaseLearner

SEED = 3


@contextmanager
def generators(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One for all that a policy draws, one for the buffer, one for random actions."""
    policy = np.random.default_rng(11)

    def made(seed: int) -> Callable[[], np.random.Generator]:
        return lambda: np.random.default_rng(seed)

    with monkeypatch.context() as patch:
        patch.setattr("ding.policy.base.new_generator", lambda: policy)
        patch.setattr("ding.worker.buffer.ring.new_generator", made(12))
        patch.setattr("ding.policy.random_policy.new_generator", made(13))
        yield


def serial(config: list[dict[str, Any]], limits: Limits) -> tuple[dict[str, Any], list[Any]]:
    runs: list[Run] = []
    conclude = Run._report

    def report(run: Run) -> dict[str, Any]:
        runs.append(run)
        return conclude(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "_report", report)
        policy = serial_pipeline(
            config, SEED, max_env_step=limits.env_step, max_train_iter=limits.train_iter
        )
    return policy.acting_state().parts, runs[0].evaluator.history


def parallel(config: list[dict[str, Any]], limits: Limits) -> tuple[dict[str, Any], list[Any]]:
    """The coordinator with all services in this thread, in step as a serial run."""
    backend = InlineBackend()
    with ParallelRun(config, SEED, limits, backend=backend) as run:
        alone = replace(run.fleet, collector_num=1, learner_num=1, in_step=True)
        n_sample = run.cfg.policy.collect.n_sample
        run._coordinate(backend, alone, n_sample, lambda: False)
        learner = next(s for s in backend._services if isinstance(s._service, LearnerService))
        parts = learner._service._policy.acting_state().parts
        return parts, run.coordinator.found.state["history"]


def losses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Filled with the loss of every update from now on."""
    found: list[float] = []
    train = BaseLearner.train

    def noted(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = train(self, data, *args, **kwargs)
        found.extend(float(o["total_loss"]) for o in outputs if "total_loss" in o)
        return outputs

    monkeypatch.setattr(BaseLearner, "train", noted)
    return found


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in torch.utils._pytree.tree_leaves(tree)]
