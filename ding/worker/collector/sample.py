"""Collects a given number of training samples."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ding.envs.base_env import VecStep
from ding.utils.batch import Batch, Rows, columns_of, concat, length, take
from ding.utils.errors import ConfigError
from ding.worker.collector.base import ISerialCollector, attribute_of

logger = logging.getLogger(__name__)


class SampleCollector(ISerialCollector):
    """`collect(n_sample)` gives exactly that many samples, from as few env steps as possible.

    Off-policy nothing is wasted: an n-step sample waits until its steps are there, and what is left
    over comes with the next collect. On-policy the leftovers are dropped.
    """

    config: ClassVar[dict[str, Any]] = dict(
        type="sample",
        import_names=[],
        # Accepted for older configs: observations are always copied into columns.
        deepcopy_obs=False,
        # Accepted for older configs: samples are stacked columns already.
        transform_obs=False,
        # Train iterations between two entries in the log.
        collect_print_freq=100,
    )

    def reset_policy(self, policy: Any = None) -> None:
        super().reset_policy(policy)
        self._n_sample = attribute_of(self._policy, "n_sample", None)
        self._unroll_len = int(attribute_of(self._policy, "unroll_len", 1) or 1)
        self._takes_all_envs = bool(attribute_of(self._policy, "takes_all_envs", False))
        # Single steps need not wait for later ones: replay sums their rewards on drawing.
        gives_steps = attribute_of(self._policy, "gives_single_steps", False)
        self._nstep = 1 if gives_steps else int(attribute_of(self._policy, "nstep", 1) or 1)
        self._on_policy = bool(attribute_of(self._policy, "on_policy", False))
        self._whole_episodes = bool(attribute_of(self._policy, "traj_len_inf", False))
        # A sample's later steps are waited for, unless the policy is another one by then.
        self._waits = self._nstep > 1 and not self._on_policy
        self._told_surplus = False

    def _forget(self) -> None:
        self._surplus: Batch | None = None

    def collect(
        self,
        n_sample: int | None = None,
        train_iter: int = 0,
        drop_extra: bool = True,
        random_collect: bool = False,
        record_random_collect: bool = True,
        policy_kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Samples of the policy, a list of exactly `n_sample` dicts (more if not `drop_extra`)."""
        self._check_ready()
        n_sample = self._wanted(n_sample)
        kwargs = policy_kwargs or {}
        envstep = self.envstep
        parts = [] if self._surplus is None else [self._surplus]
        n = sum(map(length, parts))
        while n < n_sample:
            self._run(self._steps_for(n_sample - n), kwargs)
            part = self._samples(train_iter)
            if part is not None:
                parts.append(part)
                n += len(part["collect_iter"])
        if random_collect and not record_random_collect:
            self._recorder.envstep = envstep
        if self._on_policy:
            self._pending.disown()  # the policy learns now: what is under way is not its own
        columns = self._cut(concat(parts), n, n_sample, drop_extra)
        self._log_progress(train_iter)
        return Rows(columns)

    def _wanted(self, n_sample: int | None) -> int:
        n_sample = self._n_sample if n_sample is None else n_sample
        if n_sample is None:
            raise RuntimeError("how many samples? pass n_sample, or set policy.collect.n_sample")
        if n_sample < 1:
            raise ConfigError(f"n_sample = {n_sample}: must be at least 1")
        if self._on_policy and n_sample % self._env.env_num and not self._told_surplus:
            self._told_surplus = True
            logger.warning(
                "n_sample = %d is no multiple of the %d envs: on-policy collecting drops the rest",
                n_sample,
                self._env.env_num,
            )
        return n_sample

    def _steps_for(self, missing: int) -> int:
        """Steps of all envs together until that many samples may be there."""
        per_env = max(self._unroll_len, math.ceil(missing / self._env.env_num))
        return per_env * self._env.env_num if self._unroll_len > 1 else missing

    def _run(self, n_step: int, kwargs: Mapping[str, Any]) -> None:
        """Take at least `n_step` env steps; if asked for, until an episode is over too."""
        self._store.reserve(math.ceil(n_step / self._env.env_num) + self._nstep)
        taken = 0
        whole, store = self._whole_episodes, self._store
        # Where steps overlap, stopping costs more: not before there are as many n-step samples.
        by_samples = self._turns is not None and self._waits and not whole

        def enough(step: VecStep) -> bool:
            nonlocal taken
            taken += len(step.env_id)
            if by_samples:
                return store.n_ready(self._nstep) >= n_step
            return taken >= n_step and not (whole and not store.finished.any())

        exact = self._on_policy and not whole
        budget = n_step if exact else math.inf
        # Off-policy, an action may as well be of the weights before or amid the next update.
        self._advance(
            enough,
            kwargs,
            budget=budget,
            wait=self._on_policy,
            may_defer=not (whole or by_samples),
        )

    def _samples(self, train_iter: int) -> Batch | None:
        """Training samples of what is stored; steps that must wait stay stored."""
        if not self._store.count.any():
            return None
        steps = self._store.flat()
        if self._whole_episodes:
            ready = self._store.ready(int(self._store.count.max()) + 1)
            samples = self._get_train_sample(take(steps, ready))
            self._store.keep_tail(int(self._store.count.max()) + 1)
        else:
            samples = self._train_samples(steps)
        n = length(samples)
        if n == 0:
            return None
        samples["collect_iter"] = np.full(n, train_iter, dtype=np.int64)
        return samples

    def _train_samples(self, steps: Batch) -> Batch:
        samples = self._get_train_sample(steps)
        if self._waits and length(samples) == length(steps):
            samples = take(samples, self._store.ready(self._nstep))
            self._store.keep_tail(self._nstep)
        else:
            self._store.clear()
        return samples

    def _get_train_sample(self, steps: Batch) -> Batch:
        """What the policy makes of the steps, all at once or trajectory by trajectory."""
        if self._takes_all_envs:
            return columns_of(self._policy.get_train_sample(Rows(steps)))
        stops = (np.flatnonzero(steps["end"]) + 1).tolist()
        pieces = [take(steps, slice(a, b)) for a, b in pairwise([0, *stops])]
        samples = [self._policy.get_train_sample(Rows(piece)) for piece in pieces]
        return concat([columns_of(part) for part in samples if len(part)] or [{}])

    def _cut(self, columns: Batch, n: int, n_sample: int, drop_extra: bool) -> Batch:
        self._surplus = None
        if not drop_extra or n == n_sample:
            return columns
        if not self._on_policy:
            self._surplus = take(columns, slice(n_sample, n))
        return take(columns, slice(0, n_sample))

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"surplus": self._surplus}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._surplus = state["surplus"]
