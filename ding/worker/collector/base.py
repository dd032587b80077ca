"""What both collectors share: envs, policy, one step of all of them, counters and logs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from easydict import EasyDict

from ding.config.schema import deep_merge_dicts, default_config_of, to_easydict
from ding.envs.base_env import VecStep
from ding.utils.batch import ByEnv, rows_of, stacked_of, tree_map
from ding.utils.log import WorkerLog, table
from ding.utils.registry import SERIAL_COLLECTOR_REGISTRY, class_of
from ding.worker.collector.config import CollectorConfig, check_overlap
from ding.worker.collector.ready import (
    can_overlap,
    check_alive,
    check_answered,
    in_order,
    only_active,
    ready_of,
    rows_at,
)
from ding.worker.collector.recorder import Recorder
from ding.worker.collector.turns import Turns

# Seconds after which a thread that waits for envs looks whether the others have given up.
_PATIENCE = 0.1
_PAUSE = 0.0005


@dataclass
class _Run:
    """One stretch of steps, and what ends it."""

    enough: Callable[[VecStep], bool]
    policy_kwargs: Mapping[str, Any]
    active: np.ndarray | None
    budget: float
    may_defer: bool
    """`enough` does not look at what is stored: that can wait until the envs have their actions."""
    taken: int = 0
    patience: float = 0.0  # The first look takes only what has come since the last run.


class ISerialCollector(ABC):
    """Env manager + collect mode + the loop between them. Returns data, stores nothing."""

    config_class: ClassVar[type] = CollectorConfig
    config: ClassVar[dict[str, Any]] = {}
    _some_stand_still = False

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        env: Any = None,
        policy: Any = None,
        tb_logger: Any = None,
        exp_name: str = "default_experiment",
        instance_name: str = "collector",
    ) -> None:
        self._cfg: EasyDict = to_easydict(deep_merge_dicts(self.default_config(), cfg or {}))
        check_overlap(self._cfg.overlap)
        self._log = WorkerLog(exp_name, instance_name, tb_logger)
        self._instance_name = instance_name
        self._recorder = Recorder(self._log)
        self._episodes = self._recorder.episodes
        self._logged_iter = 0
        self._env: Any = None
        self._policy: Any = None
        self._turns: Turns | None = None
        self.reset(policy, env)

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    @abstractmethod
    def collect(self, *args: Any, **kwargs: Any) -> list[Any]: ...

    # --- swapping envs and policies ------------------------------------------------------------

    def reset(self, policy: Any = None, env: Any = None) -> None:
        if env is not None:
            self.reset_env(env)
        if policy is not None:
            self.reset_policy(policy)

    def reset_env(self, env: Any = None) -> None:
        """Collect from another env manager from now on, or begin new episodes in this one."""
        if env is None and self._env is None:
            raise RuntimeError("there is no env to reset; set one: reset_env(env_manager)")
        if env is None or env is self._env:
            self._drain()
        if env is None:
            self._env.reset()
        else:
            self._set_env(env)
        self._recorder.begin(self._env)
        self._store, self._pending = self._recorder.store, self._recorder.pending
        # Chosen to act, and their steps have not come.
        self._busy = np.zeros(self._env.env_num, dtype=bool)
        self._forget()

    def _set_env(self, env: Any) -> None:
        if self._turns is not None:
            self._turns.close()
        self._env, self._turns = env, None
        self._copies_obs = env.gives_views
        self._counts_waiting = hasattr(type(env), "waiting_num")
        # Views would change under what is to be stored later.
        self._can_defer = getattr(type(env), "steps_elsewhere", False) and not env.gives_views
        if can_overlap(env):
            overlap = self._cfg.overlap
            self._turns = Turns(None if overlap == "auto" else overlap, env.env_num)
        if env.closed:
            env.launch()
        else:
            env.reset()

    def reset_policy(self, policy: Any = None) -> None:
        """Collect with another collect mode from now on."""
        if self._env is None:
            raise RuntimeError("set an env first: reset_env(env_manager)")
        if policy is not None:
            if not hasattr(policy, "process_transition"):
                raise TypeError(
                    f"a collector needs a collect mode (policy.collect_mode), got {type(policy)}"
                )
            self._policy = policy
            self._recorder.set_policy(
                policy,
                by_row=attribute_of(policy, "process_rows", False),
                observe=attribute_of(policy, "statistics_observer", None),
                links_steps=attribute_of(policy, "links_steps", False),
            )
        self._check_ready()
        if self._turns is not None:
            self._turns.close()  # how many threads pay off is another question now
        self._policy.reset()
        self._pending.disown()
        self._store.clear()
        self._forget()

    def _check_ready(self) -> None:
        for name, part in (("env", self._env), ("policy", self._policy)):
            if part is None:
                raise RuntimeError(f"the collector has no {name}: call reset_{name}({name}) first")

    def _forget(self) -> None:
        """Drop what was collected but not handed out."""

    # --- many steps ----------------------------------------------------------------------------

    def _advance(
        self,
        enough: Callable[[VecStep], bool],
        policy_kwargs: Mapping[str, Any],
        active: np.ndarray | None = None,
        budget: float = np.inf,
        wait: bool = True,
        may_defer: bool = False,
    ) -> None:
        """Step envs until `enough` says so of the steps that came last.

        `active` names the envs that may act. Where steps overlap, `budget` limits how many are
        begun, so that none is still under way at the end; without `wait` the policy may still be
        asked for the next ones.
        """
        if self._turns is None:
            over = False
            try:
                while not over:
                    obs = ready_of(self._env, active)
                    over = enough(self._step(obs, policy_kwargs, may_defer))
            finally:
                self._recorder.store_deferred()
            return
        run = _Run(enough, policy_kwargs, active, budget, may_defer and budget == np.inf)
        try:
            self._turns.run(partial(self._lead, run), partial(self._act, run), wait=wait)
        except BaseException:
            with suppress(Exception):  # The first error matters.
                self._recorder.store_deferred()
            self._recorder.forget_deferred()
            if not self._env.closed:  # Nobody will act for the envs that wait now.
                self._busy[self._env.waiting_obs.ids] = False
            raise

    def _lead(self, run: _Run) -> ByEnv | None:
        """Store the steps that come; the envs to act for next, or None if that was enough."""
        self._recorder.store_deferred()
        steps = self._env.recv(run.patience)
        run.patience = _PATIENCE
        if len(steps):
            step: VecStep = steps.stacked
            if run.may_defer and self._only_these_wait(step):
                self._recorder.defer_arrived(step)
                run.taken += len(step.env_id)
                if not run.enough(step):
                    return ByEnv(step.env_id, step.obs)  # They count as busy all the time.
                self._recorder.store_deferred()
                self._busy[step.env_id] = False
                return None
            step = self._receive(step)
            run.taken += len(step.env_id)
            if run.enough(step):
                return None
        elif not self._busy.any():
            check_alive(self._env, run.active)
        obs = self._choose(run)
        if not len(obs) and not len(steps):
            time.sleep(_PAUSE)  # A manager need not wait while it has nothing to wait for.
        return obs

    def _only_these_wait(self, step: VecStep) -> bool:
        """Whether nothing ended in this step and no other env needs an action: most often."""
        if not self._counts_waiting or self._pending.any_stale:
            return False
        if True in step.done.tolist() or True in step.abnormal.tolist():
            return False
        # Whoever waits has just stepped, or a thread is asking the policy for it.
        return bool(np.count_nonzero(self._busy) - self._env.in_flight == self._env.waiting_num)

    def _choose(self, run: _Run) -> ByEnv:
        free = ~self._busy if run.active is None else run.active & ~self._busy
        obs = only_active(self._env.waiting_obs, free)
        if run.budget < np.inf:
            room = int(run.budget) - run.taken - int(self._busy.sum())
            behind = np.argsort(self._store.count[obs.ids], kind="stable")
            obs = rows_at(obs, np.sort(behind[: max(room, 0)]))
        self._busy[obs.ids] = True
        return obs

    def _act(self, run: _Run, obs: ByEnv) -> None:
        """Ask the policy and let the envs step; runs beside other threads that do the same."""
        env_id, output = self._forward(obs, run.policy_kwargs)
        self._recorder.store_deferred()  # What these envs did before is needed no longer then.
        self._pending.put(env_id, obs.stacked, output)
        self._env.send(ByEnv(env_id, output["action"]))

    def _drain(self) -> None:
        """Take in the steps that are under way."""
        if self._turns is not None:
            self._turns.settle()
        while self._turns is not None and not self._env.closed and self._env.in_flight:
            steps = self._env.recv(_PATIENCE)
            if len(steps):
                self._receive(steps.stacked)

    # --- one step ------------------------------------------------------------------------------

    def _forward(self, obs: ByEnv, policy_kwargs: Mapping[str, Any]) -> tuple[np.ndarray, Any]:
        env_id, output = stacked_of(self._policy.forward(obs, **policy_kwargs))
        if env_id is not obs.ids:
            return in_order(obs.ids, env_id, output)
        return env_id, output

    def _step(self, obs: ByEnv, policy_kwargs: Mapping[str, Any], may_defer: bool) -> VecStep:
        """Act in these envs and store the transitions, maybe only while they step again."""
        env_id, output = self._forward(obs, policy_kwargs)
        acted_on = tree_map(np.copy, obs.stacked) if self._copies_obs else obs.stacked
        actions = ByEnv(env_id, output["action"])
        meanwhile = (
            {"meanwhile": self._recorder.store_deferred} if self._recorder.has_deferred else {}
        )
        timesteps = self._env.step(actions, **meanwhile)
        step: VecStep = timesteps.stacked
        as_asked = step.env_id is env_id or np.array_equal(step.env_id, env_id)
        if not as_asked and self._some_stand_still:
            check_answered(self._env, env_id, step.env_id)
        if not as_asked or True in step.abnormal.tolist():
            self._pending.put(env_id, acted_on, output)
            return self._receive(step)
        # A policy that is asked row by row may be an older one, which remembers its last forward.
        can_wait = may_defer and self._can_defer and not self._recorder.by_row
        if can_wait and True not in step.done.tolist():
            self._recorder.defer(acted_on, output, step)
        else:
            self._recorder.remember(acted_on, output, step)
        return step

    def _receive(self, step: VecStep) -> VecStep:
        """Store steps, whenever they were acted for; returns those that are stored."""
        self._busy[rows_of(step.env_id)] = False
        return self._recorder.receive(step)

    # --- logs and state ------------------------------------------------------------------------

    @property
    def action_space(self) -> Any:
        return self._env.action_space

    @property
    def envstep(self) -> int:
        """Env steps taken so far."""
        return self._recorder.envstep

    @property
    def dropped_steps(self) -> int:
        """Env steps whose trajectory was abnormal and is in no sample."""
        return self._recorder.dropped_steps

    @property
    def stale_steps(self) -> int:
        """Env steps that came after the policy they were acted for with was gone; in no sample."""
        return self._recorder.stale_steps

    @property
    def episode_count(self) -> int:
        return self._episodes.count

    @property
    def recent_return(self) -> float | None:
        """Mean return of the last 100 episodes, as far as there are any."""
        return self._episodes.mean_return

    def number_episodes_from(self, first: int) -> None:
        """Let episode ids begin here; those of several collectors of one buffer must differ."""
        self._recorder.number_episodes_from(first)

    def take_statistics(self) -> dict[str, Any]:
        """Statistics for the policy's normalisers, gathered since the last call."""
        return attribute_of(self._policy, "statistics", {})

    def _log_progress(self, train_iter: int) -> None:
        due = train_iter - self._logged_iter >= self._cfg.collect_print_freq
        if not due or not self._episodes.count:
            return
        self._logged_iter = train_iter
        counts = {"episode_count": self._episodes.count, "envstep_count": self.envstep}
        values = counts | self._episodes.summary()
        self._log.info(f"collecting, train iter {train_iter}\n{table(values)}")
        name = self._instance_name
        self._log.scalars({f"{name}_iter/{k}": v for k, v in values.items()}, train_iter)
        self._log.scalars({f"{name}_step/{k}": v for k, v in values.items()}, self.envstep)

    def state_dict(self) -> dict[str, Any]:
        self._drain()
        return {
            **self._recorder.state_dict(),
            "logged_iter": self._logged_iter,
            "env": self._env.state_dict(),
            # What the policy remembers of the running episodes.
            "memory": attribute_of(self._policy, "memory", None),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._logged_iter = state["logged_iter"]
        self._env.load_state_dict(state["env"])
        self._busy[:] = False
        # If the envs could not be saved their episodes start anew.
        running = state["env"]["envs"] is not None
        self._recorder.load_state_dict(state, running=running)
        if running and state["memory"]:
            self._policy.set_attribute("memory", state["memory"])

    def close(self) -> None:
        if self._turns is not None:
            self._turns.close()
        if self._env is not None:
            self._env.close()
        self._log.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def create_serial_collector(cfg: Mapping[str, Any], **kwargs: Any) -> ISerialCollector:
    return get_serial_collector_cls(cfg)(cfg, **kwargs)


def get_serial_collector_cls(cfg: Mapping[str, Any]) -> type[ISerialCollector]:
    return class_of(SERIAL_COLLECTOR_REGISTRY, cfg)


def attribute_of(policy: Any, name: str, default: Any) -> Any:
    """A setting of the policy; modes that users put together may not know it."""
    try:
        return policy.get_attribute(name)
    except (NotImplementedError, AttributeError):
        return default
