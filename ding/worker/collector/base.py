"""What both collectors share: envs, policy, one step of all of them, counters and logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from easydict import EasyDict

from ding.config.schema import deep_merge_dicts, default_config_of, to_easydict
from ding.envs.base_env import VecStep
from ding.utils.batch import Batch, ByEnv, stack, stacked_of, take
from ding.utils.log import WorkerLog, table
from ding.utils.registry import SERIAL_COLLECTOR_REGISTRY, class_of
from ding.worker.collector.trajectory import TrajectoryStore


class ISerialCollector(ABC):
    """Env manager + collect mode + the loop between them. Returns data, stores nothing."""

    config: ClassVar[dict[str, Any]] = {}

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
        self._log = WorkerLog(exp_name, instance_name, tb_logger)
        self._instance_name = instance_name
        self.envstep = 0
        """Env steps taken so far."""
        self.dropped_steps = 0
        """Env steps whose trajectory was abnormal and is in no sample."""
        self._episode_count = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=100)
        self._logged_iter = 0
        self._env: Any = None
        self._policy: Any = None
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
        if env is not None:
            self._env = env
            if env.closed:
                env.launch()
            else:
                env.reset()
        else:
            self._env.reset()
        n = self._env.env_num
        self._store = TrajectoryStore(n)
        self._return = np.zeros(n, dtype=np.float64)
        self._length = np.zeros(n, dtype=np.int64)
        self._forget()

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
            self._rows = attribute_of(policy, "process_rows", False)
        self._check_ready()
        self._policy.reset()
        self._store.clear()
        self._forget()

    def _check_ready(self) -> None:
        for name, part in (("env", self._env), ("policy", self._policy)):
            if part is None:
                raise RuntimeError(f"the collector has no {name}: call reset_{name}({name}) first")

    def _forget(self) -> None:
        """Drop what was collected but not handed out."""

    # --- one step ------------------------------------------------------------------------------

    def _step(self, obs: ByEnv, policy_kwargs: Mapping[str, Any]) -> VecStep:
        """Act in these envs and store the transitions."""
        env_id, output = stacked_of(self._policy.forward(obs, **policy_kwargs))
        if env_id is not obs.ids:
            env_id, output = _in_order(obs.ids, env_id, output)
        stacked_obs = obs.stacked
        timesteps = self._env.step(ByEnv(env_id, output["action"]))
        step: VecStep = timesteps.stacked
        if step.env_id is not env_id and not np.array_equal(step.env_id, env_id):
            at = _positions(env_id, step.env_id)
            stacked_obs, output = take(stacked_obs, at), take(output, at)
        if True in step.abnormal.tolist():
            return self._drop_abnormal(stacked_obs, output, step)
        self._remember(stacked_obs, output, step)
        return step

    def _remember(self, obs: Any, output: Any, step: VecStep) -> None:
        transition = self._transition(obs, output, step)
        transition["done"] = step.done
        transition["truncated"] = step.truncated
        self._store.append(step.env_id, transition, step.done)
        self._count_step(step)

    def _transition(self, obs: Any, output: Any, step: VecStep) -> Batch:
        if not self._rows:
            return dict(self._policy.process_transition(obs, output, step))
        rows = [
            self._policy.process_transition(take(obs, i), take(output, i), _one(step, i))
            for i in range(len(step.env_id))
        ]
        return stack([dict(row) for row in rows])

    def _count_step(self, step: VecStep) -> None:
        ids = step.env_id
        self.envstep += len(ids)
        index: Any = slice(None) if self._store.is_all(ids) else ids
        self._return[index] += step.reward
        self._length[index] += 1
        if True in step.done.tolist():
            ended = ids[step.done]
            for i in ended.tolist():
                self._recent.append((float(self._return[i]), int(self._length[i])))
            self._episode_count += len(ended)
            self._return[ended] = 0.0
            self._length[ended] = 0
            self._policy.reset(ended.tolist())

    def _drop_abnormal(self, obs: Any, output: Any, step: VecStep) -> VecStep:
        """Forget the episodes that broke; the other envs' steps count as ever."""
        broken = step.env_id[step.abnormal].tolist()
        for i in broken:
            self.dropped_steps += self._store.drop_unfinished(i) + 1
            self._return[i], self._length[i] = 0.0, 0
        self._policy.reset(broken)
        self.envstep += len(broken)
        self._log.info(f"abnormal step in env {broken}: their episodes are dropped")
        # After a failure (`error` says which) the manager has reset the env; here the env told.
        infos = zip(step.env_id.tolist(), step.info, strict=True)
        told = [i for i, info in infos if info.get("abnormal") and "error" not in info]
        if told:
            self._env.reset(dict.fromkeys(told))
        good = np.flatnonzero(~step.abnormal)
        rest = _rows_of(step, good)
        if len(good):
            self._remember(take(obs, good), take(output, good), rest)
        return rest

    # --- logs and state ------------------------------------------------------------------------

    @property
    def episode_count(self) -> int:
        return self._episode_count

    @property
    def recent_return(self) -> float | None:
        """Mean return of the last 100 episodes, as far as there are any."""
        return float(np.mean([r for r, _ in self._recent])) if self._recent else None

    def _log_progress(self, train_iter: int) -> None:
        if train_iter - self._logged_iter < self._cfg.collect_print_freq or not self._recent:
            return
        self._logged_iter = train_iter
        returns, lengths = zip(*self._recent, strict=True)
        values = {
            "episode_count": self._episode_count,
            "envstep_count": self.envstep,
            "reward_mean": float(np.mean(returns)),
            "reward_std": float(np.std(returns)),
            "reward_max": float(np.max(returns)),
            "reward_min": float(np.min(returns)),
            "avg_episode_length": float(np.mean(lengths)),
        }
        self._log.info(f"collecting, train iter {train_iter}\n{table(values)}")
        name = self._instance_name
        self._log.scalars({f"{name}_iter/{k}": v for k, v in values.items()}, train_iter)
        self._log.scalars({f"{name}_step/{k}": v for k, v in values.items()}, self.envstep)

    def state_dict(self) -> dict[str, Any]:
        return {
            "envstep": self.envstep,
            "dropped_steps": self.dropped_steps,
            "episode_count": self._episode_count,
            "recent": [list(pair) for pair in self._recent],
            "logged_iter": self._logged_iter,
            "return": self._return.copy(),
            "length": self._length.copy(),
            "store": self._store.state_dict(),
            "env": self._env.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.envstep, self.dropped_steps = state["envstep"], state["dropped_steps"]
        self._episode_count, self._logged_iter = state["episode_count"], state["logged_iter"]
        self._recent.clear()
        self._recent.extend((r, n) for r, n in state["recent"])
        self._env.load_state_dict(state["env"])
        if state["env"]["envs"] is None:
            return  # the envs could not be saved: their episodes start anew
        self._return[:], self._length[:] = state["return"], state["length"]
        self._store.load_state_dict(state["store"])

    def close(self) -> None:
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


def only_active(obs: ByEnv, active: np.ndarray) -> ByEnv:
    """The observations of the envs that still play."""
    chosen = active[obs.ids]
    if chosen.all():
        return obs
    return ByEnv(obs.ids[chosen], take(obs.stacked, np.flatnonzero(chosen)))


def _in_order(asked: np.ndarray, env_id: np.ndarray, output: Any) -> tuple[np.ndarray, Any]:
    """The policy's answers in the order of the envs that it was asked for."""
    if sorted(env_id.tolist()) != sorted(asked.tolist()):
        raise RuntimeError(
            f"the policy was asked for actions of envs {asked.tolist()}, but its forward gave "
            f"some for {env_id.tolist()}; it must return {{env_id: output}} for all of them"
        )
    return asked, take(output, _positions(env_id, asked))


def _positions(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]


def _one(step: VecStep, i: int) -> Any:
    from ding.envs.base_env import BaseEnvTimestep

    return BaseEnvTimestep(take(step.obs, i), step.reward[i], bool(step.done[i]), step.info[i])


def _rows_of(step: VecStep, index: np.ndarray) -> VecStep:
    return VecStep(
        obs=take(step.obs, index),
        reward=step.reward[index],
        done=step.done[index],
        info=[step.info[i] for i in index.tolist()],
        truncated=step.truncated[index],
        abnormal=step.abnormal[index],
        env_id=step.env_id[index],
    )
