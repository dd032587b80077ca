"""Sample collector: a given number of training samples."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ding.envs.base_env import VecStep
from ding.policy.needs import Needs
from ding.utils.batch import Batch, Rows, columns_of, concat, length, take
from ding.utils.errors import ConfigError
from ding.worker.collector.base import ISerialCollector
from ding.worker.collector.recorder import Recorder

logger = logging.getLogger(__name__)


class Sampler:
    """Training samples of one policy, made of the steps that its recorder stores."""

    def __init__(self, recorder: Recorder, policy: Any) -> None:
        self._recorder, self._policy = recorder, policy
        self._parts: list[Batch] = []
        self.available = 0
        """Samples that were made and not handed out."""
        self.needs = Needs.of(policy)
        # A sample's later steps are waited for, unless the policy is another one by then.
        self.waits = self.needs.nstep > 1 and not self.needs.on_policy

    def make(self, train_iter: int) -> None:
        """Make samples of the stored steps; those whose later steps are missing stay stored."""
        store = self._recorder.store
        if not store.count.any():
            return
        steps = store.flat()
        if self.needs.traj_len_inf:
            horizon = int(store.count.max()) + 1  # Only an episode's end is nearer than that.
            samples = self._train_samples(take(steps, store.complete(horizon)))
            store.keep_tail(horizon)
        else:
            samples = self._train_samples(steps)
            if self.waits and length(samples) == length(steps):
                samples = take(samples, store.complete(self.needs.nstep))
                store.keep_tail(self.needs.nstep)
            else:
                store.clear()
        n = length(samples)
        if n:
            samples["collect_iter"] = np.full(n, train_iter, dtype=np.int64)
            self._parts.append(samples)
            self.available += n

    def _train_samples(self, steps: Batch) -> Batch:
        """Samples that the policy makes of the steps, all at once or by trajectory."""
        if self.needs.takes_all_envs:
            return columns_of(self._policy.get_train_sample(Rows(steps)))
        stops = (np.flatnonzero(steps["end"]) + 1).tolist()
        pieces = [take(steps, slice(a, b)) for a, b in pairwise([0, *stops])]
        samples = [self._policy.get_train_sample(Rows(piece)) for piece in pieces]
        return concat([columns_of(part) for part in samples if len(part)] or [{}])

    def hand_out(self, n_sample: int | None) -> Rows:
        """Take `n_sample` samples out, or None for all; off-policy the rest is kept for later."""
        parts, n = self._parts, self.available
        self._parts, self.available = [], 0
        columns = parts[0] if len(parts) == 1 else concat(parts)
        if n_sample is None or n == n_sample:
            return Rows(columns)
        if not self.needs.on_policy:
            self._parts.append(take(columns, slice(n_sample, n)))
            self.available = n - n_sample
        return Rows(take(columns, slice(0, n_sample)))

    def state_dict(self) -> dict[str, Any]:
        return {"surplus": concat(self._parts) if self._parts else None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        surplus = state["surplus"]
        self._parts = [] if surplus is None else [surplus]
        self.available = sum(map(length, self._parts))


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

    _sampler: Sampler

    def _forget(self) -> None:
        self._warned_surplus = False
        if self._policy is not None:
            self._sampler = Sampler(self._recorder, self._policy)

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
        n_sample = self._checked(n_sample)
        kwargs = policy_kwargs or {}
        sampler, envstep = self._sampler, self._recorder.envstep
        while sampler.available < n_sample:
            self._run(n_sample - sampler.available, kwargs)
            sampler.make(train_iter)
        if random_collect and not record_random_collect:
            self._recorder.envstep = envstep
        if sampler.needs.on_policy:
            # The policy learns now: steps that are under way are not its own.
            self._recorder.partial.mark_stale()
        self._log_progress(train_iter)
        return sampler.hand_out(n_sample if drop_extra else None)

    def _checked(self, n_sample: int | None) -> int:
        if self._policy is None:
            self._check_complete()
        n_sample = self._sampler.needs.n_sample if n_sample is None else n_sample
        if n_sample is None:
            raise RuntimeError("how many samples? pass n_sample, or set policy.collect.n_sample")
        if n_sample < 1:
            raise ConfigError(f"n_sample = {n_sample}: must be at least 1")
        surplus = self._sampler.needs.on_policy and n_sample % self._env_num
        if surplus and not self._warned_surplus:
            self._warned_surplus = True
            logger.warning(
                "n_sample = %d is no multiple of the %d envs: on-policy collecting drops the rest",
                n_sample,
                self._env_num,
            )
        return n_sample

    def _run(self, missing: int, kwargs: Mapping[str, Any]) -> None:
        """Take env steps for that many samples; if asked for, until an episode is over too."""
        sampler, store, env_num = self._sampler, self._store, self._env_num
        per_env, n_step = math.ceil(missing / env_num), missing
        if sampler.needs.unroll_len > 1:
            per_env = max(sampler.needs.unroll_len, per_env)
            n_step = per_env * env_num
        store.reserve(per_env + sampler.needs.nstep)
        taken, whole, on_policy = 0, sampler.needs.traj_len_inf, sampler.needs.on_policy
        # Where steps overlap, stopping costs more: not before there are as many n-step samples.
        by_samples = self._overlapped is not None and sampler.waits and not whole

        def enough(step: VecStep) -> bool:
            nonlocal taken
            taken += len(step.env_id)
            if by_samples:
                return store.n_complete(sampler.needs.nstep) >= n_step
            return taken >= n_step and not (whole and not store.finished.any())

        # Off-policy, an action may as well be of the weights before or amid the next update.
        self._advance(
            enough,
            kwargs,
            budget=n_step if on_policy and not whole else math.inf,
            wait=on_policy,
            may_defer=not (whole or by_samples),
        )

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | self._sampler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._sampler.load_state_dict(state)
