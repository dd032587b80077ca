"""Base of the collectors: envs, policy, the loop between them, counters and logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from easydict import EasyDict

from ding.config.schema import deep_merge_dicts, default_config_of, to_easydict
from ding.envs.base_env import VecStep
from ding.policy.needs import attribute_of
from ding.utils.batch import ByEnv, stacked_of, tree_map
from ding.utils.errors import ConfigError
from ding.utils.log import WorkerLog, table
from ding.utils.registry import SERIAL_COLLECTOR_REGISTRY, class_of
from ding.worker.collector.overlapped_inference import OverlappedInference, Stretch
from ding.worker.collector.recorder import Recorder
from ding.worker.collector.waiting_envs import await_obs, can_overlap, check_answered, in_order


@dataclass(frozen=True, kw_only=True)
class CollectorConfig:
    """Settings that all collectors have."""

    overlap: int | Literal["auto"] = "auto"
    """Policy forwards that may run at once, each for the envs that wait; 'auto' adds threads while
    the policy only waits (for a device or a service). For managers whose envs step out of turn."""


class ISerialCollector(ABC):
    """Loop between an env manager and a collect mode; subclasses say what `collect` returns."""

    config_class: ClassVar[type] = CollectorConfig
    config: ClassVar[dict[str, Any]] = {}
    recorder_class: ClassVar[type[Recorder]] = Recorder
    _some_stand_still = False

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        env: Any = None,
        policy: Any = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "collector",
    ) -> None:
        self._cfg: EasyDict = to_easydict(deep_merge_dicts(self.default_config(), cfg or {}))
        overlap = self._cfg.overlap
        if overlap != "auto" and not (isinstance(overlap, int) and overlap >= 1):
            raise ConfigError(
                f"policy.collect.collector.overlap = {overlap!r}: 'auto' or a number from 1 on"
            )
        self._log = WorkerLog(exp_name, instance_name, tb_logger)
        self._instance_name = instance_name
        self._recorder = self.recorder_class(self._log)
        self._episodes = self._recorder.episodes
        self._logged_iter = 0
        self._env: Any = None
        self._policy: Any = None
        self._overlapped: OverlappedInference | None = None
        self.reset(policy, env)

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    @abstractmethod
    def collect(self, *args: Any, **kwargs: Any) -> Any: ...

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
        self._store = self._recorder.store
        if self._overlapped is not None:
            self._overlapped.restart()
        self._forget()

    def _set_env(self, env: Any) -> None:
        if self._overlapped is not None:
            self._overlapped.close()
        self._env, self._overlapped = env, None
        self._env_num: int = env.env_num
        self._copies_obs = env.gives_views
        # Views would change under steps that are stored later.
        self._can_defer = getattr(type(env), "steps_elsewhere", False) and not env.gives_views
        if can_overlap(env):
            self._overlapped = OverlappedInference(
                env, self._recorder, self._forward, self._cfg.overlap
            )
        if env.closed:
            env.launch()
        else:
            env.reset()

    def reset_policy(self, policy: Any = None) -> None:
        """Collect with another collect mode from now on."""
        if self._env is None:
            raise RuntimeError("set an env first: reset_env(env_manager)")
        if policy is not None:
            self._check_mode(policy)
            self._policy = policy
            self._recorder.set_policy(policy)
        self._check_complete()
        if self._overlapped is not None:
            self._overlapped.close()  # Another number of threads may pay off now.
        self._policy.reset()
        self._recorder.clear()
        self._forget()

    def _check_mode(self, policy: Any) -> None:
        if not hasattr(policy, "process_transition"):
            raise TypeError(
                f"a collector needs a collect mode (policy.collect_mode), got {type(policy)}"
            )

    def _check_complete(self) -> None:
        for name, part in (("env", self._env), ("policy", self._policy)):
            if part is None:
                raise RuntimeError(f"the collector has no {name}: call reset_{name}({name}) first")

    def _forget(self) -> None:
        """Drop samples that were collected but not handed out."""

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
        if self._overlapped is not None:
            may_defer = may_defer and budget == np.inf
            stretch = Stretch(enough, policy_kwargs, active, budget, may_defer)
            self._overlapped.run(stretch, wait=wait)
            return
        over = False
        try:
            while not over:
                obs = self._env.ready_obs
                if active is not None or not len(obs.ids):
                    obs = await_obs(self._env, active)
                over = enough(self._step(obs, policy_kwargs, may_defer))
        finally:
            if self._recorder.deferred:
                self._recorder.store_deferred()

    def _drain(self) -> None:
        """Take in the steps that are under way."""
        if self._overlapped is not None:
            self._overlapped.drain()

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
        if self._recorder.deferred:
            timesteps = self._env.step(actions, meanwhile=self._recorder.store_deferred)
        else:
            timesteps = self._env.step(actions)
        step: VecStep = timesteps.stacked
        as_asked = step.env_id is env_id or np.array_equal(step.env_id, env_id)
        if not as_asked and self._some_stand_still:
            check_answered(self._env, env_id, step.env_id)
        if not as_asked or True in step.abnormal.tolist():
            self._recorder.partial.put(env_id, acted_on, output)
            return self._recorder.receive(step)
        # A policy that is asked row by row may be an older one, which remembers its last forward.
        can_wait = may_defer and self._can_defer and not self._recorder.needs.process_rows
        if can_wait and True not in step.done.tolist():
            self._recorder.defer(acted_on, output, step)
        else:
            self._recorder.remember(acted_on, output, step)
        return step

    # --- logs and state ------------------------------------------------------------------------

    @property
    def env(self) -> Any:
        """The env manager."""
        return self._env

    @property
    def observation_space(self) -> Any:
        return self._env.observation_space

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

    def last_returns(self, n: int) -> list[float]:
        """Returns of the last `n` episodes, of 100 at most."""
        return self._episodes.last_returns(n)

    def on_episode(self, listener: Callable[[float, int], None]) -> None:
        """Let `listener` be called with return and length of every episode that ends."""
        self._episodes.on_end = listener

    def number_episodes_from(self, first: int) -> None:
        """Let episode ids begin here; those of several collectors of one buffer must differ."""
        self._recorder.number_episodes_from(first)

    def take_statistics(self) -> dict[str, Any]:
        """Statistics for the policy's normalisers, gathered since the last call."""
        if not self._recorder.observes:
            return {}
        return self._policy.get_attribute("statistics")

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
        if self._overlapped is not None:
            self._overlapped.restart()
        # If the envs could not be saved their episodes start anew.
        running = state["env"]["envs"] is not None
        self._recorder.load_state_dict(state, running=running)
        if running and state["memory"]:
            self._policy.set_attribute("memory", state["memory"])

    def close(self) -> None:
        if self._overlapped is not None:
            self._overlapped.close()
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
