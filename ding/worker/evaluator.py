"""Evaluator: whole episodes with the policy's eval mode, and whether it has converged."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from easydict import EasyDict

from ding.config.schema import deep_merge_dicts, default_config_of, to_easydict
from ding.envs.agents import AGENT_RETURN, AgentsSpace
from ding.envs.base_env import VecStep
from ding.envs.manager.slot import evaluation_seeds
from ding.utils.batch import ByEnv, stacked_of
from ding.utils.errors import ConfigError, nearest
from ding.utils.log import WorkerLog, table
from ding.utils.registry import SERIAL_EVALUATOR_REGISTRY, class_of
from ding.worker.collector.recorder import summed_reward
from ding.worker.collector.waiting_envs import (
    await_obs,
    can_overlap,
    check_alive,
    check_answered,
    only_active,
)
from ding.worker.episode_returns import EpisodeReturns

# Seconds until a manager whose envs step out of turn is looked at again.
_PATIENCE = 0.1

STOP_METRICS = ("return", "win_rate", "unit_step_reward")


class EvalResult(NamedTuple):
    stop: bool
    reward: EpisodeReturns


class VectorEvalMonitor:
    """Returns of one evaluation, a fixed share from every env: short episodes count no more often.

    12 episodes in 5 envs: 3, 3, 2, 2, 2.
    """

    def __init__(self, env_num: int, n_episode: int) -> None:
        if n_episode < env_num:
            raise ValueError(f"n_episode = {n_episode} is less than the {env_num} envs; use fewer")
        share, extra = divmod(n_episode, env_num)
        self.each_env_episode = [share + (i < extra) for i in range(env_num)]
        self._reward: list[deque[float]] = [deque(maxlen=n) for n in self.each_env_episode]
        self._info: list[deque[dict[str, Any]]] = [deque(maxlen=n) for n in self.each_env_episode]

    def update_reward(self, env_id: int, reward: Any) -> None:
        self._reward[env_id].append(float(np.asarray(reward).sum()))

    def update_info(self, env_id: int, info: dict[str, Any]) -> None:
        self._info[env_id].append(info)

    def is_finished(self) -> bool:
        return all(self.is_env_finished(i) for i in range(len(self._reward)))

    def is_env_finished(self, env_id: int) -> bool:
        return len(self._reward[env_id]) == self.each_env_episode[env_id]

    def get_current_episode(self) -> int:
        return sum(map(len, self._reward))

    def get_latest_reward(self, env_id: int) -> float:
        return self._reward[env_id][-1]

    def get_episode_reward(self) -> list[float]:
        """Returns of the episodes, env after env."""
        return [reward for rewards in self._reward for reward in rewards]

    get_episode_return = get_episode_reward

    def get_episode_info(self) -> list[dict[str, Any]]:
        return [info for infos in self._info for info in infos]


class AgentReturns:
    """Returns of every agent in N envs, where each has its own reward; else nothing."""

    def __init__(self, n: int, action_space: Any) -> None:
        agents = action_space.agent_num if isinstance(action_space, AgentsSpace) else 0
        self._total = np.zeros((n, agents))

    def add(self, step: VecStep) -> None:
        if step.reward.shape[1:] == self._total.shape[1:]:
            self._total[step.env_id] += step.reward
        else:
            self._total = self._total[:, :0]

    def of(self, i: int) -> dict[str, float]:
        """By name, for the info of an episode of env i."""
        return {f"{AGENT_RETURN}{k}": float(x) for k, x in enumerate(self._total[i])}

    def clear(self, i: int) -> None:
        self._total[i] = 0.0


class BaseSerialEvaluator:
    """`should_eval`, `eval`; a new best mean saves `ckpt_best.pth.tar`."""

    config: ClassVar[dict[str, Any]] = dict(
        type="interaction",
        import_names=[],
        # Train iterations between two evaluations.
        eval_freq=1000,
        # Episodes of one evaluation; by default env.n_evaluator_episode.
        n_episode=None,
        # Converged when the metric reaches this; by default env.stop_value.
        stop_value=None,
        # Reaching it counts when as many episodes from other starts reach it too.
        confirm_stop=True,
        # 'return', 'win_rate' (mean of info['win']) or 'unit_step_reward' (return per step).
        stop_metric="return",
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        env: Any = None,
        policy: Any = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "evaluator",
    ) -> None:
        self._cfg: EasyDict = to_easydict(deep_merge_dicts(self.default_config(), cfg or {}))
        if self._cfg.stop_metric not in STOP_METRICS:
            metric = self._cfg.stop_metric
            raise ConfigError(
                f"policy.eval.evaluator.stop_metric = '{metric}'{nearest(metric, STOP_METRICS)}"
            )
        if self._cfg.eval_freq < 1:
            freq = self._cfg.eval_freq
            raise ConfigError(f"policy.eval.evaluator.eval_freq = {freq}: must be at least 1")
        self._log = WorkerLog(exp_name, instance_name, tb_logger)
        self._instance_name = instance_name
        self._last_eval_iter = -1
        self._seed: int | None = None
        self.best = -math.inf
        self.history: list[dict[str, float]] = []
        """One entry per evaluation: train_iter, envstep, and `EpisodeReturns.summary()`."""
        self._env: Any = None
        self._policy: Any = None
        self.reset(policy, env)

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    def reset(self, policy: Any = None, env: Any = None) -> None:
        if env is not None:
            self.reset_env(env)
        if policy is not None:
            self.reset_policy(policy)

    def reset_env(self, env: Any = None) -> None:
        if env is not None:
            self._env = env
        if self._env.closed:
            self._env.launch()
        else:
            self._env.reset()

    def reset_policy(self, policy: Any = None) -> None:
        if policy is not None:
            self._policy = policy
        self._policy.reset()

    def seed(self, seed: int) -> None:
        """Start episodes from a stream of this run seed alone; stops are confirmed from then on."""
        self._seed = seed
        self._env.seed(evaluation_seeds(seed, self._env.env_num), dynamic_seed=False)

    def should_eval(self, train_iter: int) -> bool:
        """Every `eval_freq` iterations, and once at iteration 0; asking again says no."""
        due = evaluation_due(train_iter, self._last_eval_iter, self._cfg.eval_freq)
        if due:
            self._last_eval_iter = train_iter
        return due

    def eval(
        self,
        save_ckpt_fn: Callable[[str], Any] | None = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
    ) -> EvalResult:
        """Play `n_episode` episodes; returns whether the stop value is reached, and the returns.

        A stop is confirmed by as many episodes from other starts, whose returns are then given.
        """
        n_episode = self._cfg.n_episode if n_episode is None else n_episode
        if n_episode is None:
            raise RuntimeError("how many episodes? pass n_episode, or set env.n_evaluator_episode")
        returns = self._episodes(n_episode, policy_kwargs or {})
        self._record(returns, train_iter, envstep)
        self._note_best(returns.mean_return, save_ckpt_fn)
        stop = self._reached(returns) and train_iter != 0
        if stop and self._cfg.confirm_stop and self._seed is not None:
            returns = self._from_other_starts(n_episode, train_iter, policy_kwargs or {})
            stop = self._reached(returns)
            again = f"{returns.mean_return:.6g} over as many episodes from other starts"
            self._log.info(f"stop value {'confirmed' if stop else 'not confirmed'}: {again}")
        return EvalResult(stop, returns)

    def _note_best(self, mean: float, save_ckpt_fn: Callable[[str], Any] | None) -> None:
        if mean > self.best:
            self.best = mean
            if save_ckpt_fn is not None:
                save_ckpt_fn("ckpt_best.pth.tar")

    def _episodes(self, n_episode: int, policy_kwargs: Mapping[str, Any]) -> EpisodeReturns:
        monitor = VectorEvalMonitor(self._env.env_num, n_episode)
        self.reset_env()
        self._policy.reset()
        self._play(monitor, policy_kwargs)
        return EpisodeReturns(monitor.get_episode_return(), monitor.get_episode_info())

    def _from_other_starts(
        self, n_episode: int, train_iter: int, policy_kwargs: Mapping[str, Any]
    ) -> EpisodeReturns:
        """The same from starts that no evaluation has seen: the usual ones were selected by."""
        assert self._seed is not None
        others = evaluation_seeds(self._seed, self._env.env_num, again=train_iter + 1)
        self._env.seed(others, dynamic_seed=False)
        try:
            return self._episodes(n_episode, policy_kwargs)
        finally:
            self.seed(self._seed)

    def _reached(self, returns: EpisodeReturns) -> bool:
        score, stop_value = self._score(returns), self._cfg.stop_value
        return stop_value is not None and score >= stop_value

    def _play(self, monitor: VectorEvalMonitor, policy_kwargs: Mapping[str, Any]) -> None:
        n = self._env.env_num
        total, length = np.zeros(n), np.zeros(n, dtype=np.int64)
        of_agents = AgentReturns(n, getattr(self._env, "action_space", None))
        active = np.ones(n, dtype=bool)
        while not monitor.is_finished():
            step = self._step(active, policy_kwargs)
            ids = step.env_id
            total[ids] += step.reward if step.reward.ndim == 1 else summed_reward(step.reward)
            length[ids] += 1
            of_agents.add(step)
            for k in np.flatnonzero(step.done | step.abnormal).tolist():
                i = int(ids[k])
                self._policy.reset([i])
                if not step.abnormal[k]:
                    info = dict(step.info[k])
                    monitor.update_reward(i, info.get("eval_episode_return", total[i]))
                    own = of_agents.of(i)
                    monitor.update_info(i, {"length": int(length[i]), **own, **info})
                    active[i] = not monitor.is_env_finished(i)
                elif "error" not in step.info[k]:
                    self._env.reset({i: None})
                total[i], length[i] = 0.0, 0
                of_agents.clear(i)

    def _step(self, active: np.ndarray, policy_kwargs: Mapping[str, Any]) -> VecStep:
        """Steps of envs that still play, as they come; at least one."""
        if not can_overlap(self._env):
            actions = self._actions(await_obs(self._env, active), policy_kwargs)
            step: VecStep = self._env.step(actions).stacked
            check_answered(self._env, actions.ids, step.env_id)
            return step
        while True:
            obs = only_active(self._env.waiting_obs, active)
            if len(obs):
                self._env.send(self._actions(obs, policy_kwargs))
            elif not self._env.in_flight:
                check_alive(self._env, active)
            steps = self._env.recv(_PATIENCE)
            if len(steps):
                return steps.stacked

    def _actions(self, obs: ByEnv, policy_kwargs: Mapping[str, Any]) -> ByEnv:
        env_id, output = stacked_of(self._policy.forward(obs, **policy_kwargs))
        return ByEnv(env_id, output["action"])

    def _score(self, returns: EpisodeReturns) -> float:
        """What is compared with the stop value."""
        if self._cfg.stop_metric == "win_rate":
            if returns.win_rate is None:
                raise ConfigError(
                    "stop_metric = 'win_rate' needs 'win' in the last info of episodes"
                )
            return returns.win_rate
        if self._cfg.stop_metric == "unit_step_reward":
            return returns.mean_return / float(np.mean(returns["length"]))
        return returns.mean_return

    def _record(self, returns: EpisodeReturns, train_iter: int, envstep: int) -> None:
        values = returns.summary()
        self.history.append({"train_iter": train_iter, "envstep": envstep, **values})
        counts = {"train_iter": train_iter, "envstep": envstep, "episodes": len(returns)}
        self._log.info(f"evaluation\n{table(counts | values)}")
        name = self._instance_name
        if train_iter >= 0:
            self._log.scalars({f"{name}_iter/{k}": v for k, v in values.items()}, train_iter)
        if envstep >= 0:
            self._log.scalars({f"{name}_step/{k}": v for k, v in values.items()}, envstep)

    def state_dict(self) -> dict[str, Any]:
        return {
            "last_eval_iter": self._last_eval_iter,
            "best": self.best,
            "history": [dict(entry) for entry in self.history],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._last_eval_iter, self.best = state["last_eval_iter"], state["best"]
        self.history = [dict(entry) for entry in state["history"]]

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._log.close()

    def __enter__(self) -> BaseSerialEvaluator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def evaluation_due(train_iter: int, last_iter: int, freq: int) -> bool:
    """Whether `freq` updates have passed since the last evaluation; below 0: there was none."""
    return last_iter < 0 or train_iter - last_iter >= freq


def create_serial_evaluator(cfg: Mapping[str, Any], **kwargs: Any) -> BaseSerialEvaluator:
    return class_of(SERIAL_EVALUATOR_REGISTRY, cfg)(cfg, **kwargs)
