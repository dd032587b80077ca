"""Training in one call, for notebooks and scripts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ding.agent import Agent, load
from ding.agent.card import save_spaces
from ding.config import compile_config, read_config
from ding.entry.bc import clone
from ding.entry.first_run import task_of
from ding.entry.overrides import absolute, with_overrides
from ding.entry.predefined import default_config, predefined_config
from ding.entry.serial import train as train_run
from ding.envs import BaseEnv, DingEnvWrapper
from ding.envs.given import in_gymnasium, maker_of
from ding.pipeline import report
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import Run
from ding.policy import Policy
from ding.policy.bc import BehaviourCloningPolicy
from ding.utils.errors import ConfigError
from ding.utils.limits import Limits, checked_limit
from ding.utils.registry import ENV_REGISTRY

logger = logging.getLogger(__name__)

EnvLike = str | Path | Callable[..., Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class TrainedRun:
    """Result of a training."""

    policy: Policy
    """As the last update left it."""
    directory: Path
    result: dict[str, Any]
    """Content of `result.json`."""
    make_env: Callable[[], Any] | None = None
    """Makes the plain env, where `ding.train` was given a function or a class."""

    @property
    def best(self) -> float:
        """Best mean return of an evaluation."""
        return float(self.result["best_value"])

    @property
    def history(self) -> list[dict[str, float]]:
        """Evaluations: train_iter, envstep, reward_mean, reward_std, ..."""
        return list(self.result["curve"])

    def agent(self) -> Agent:
        """The best policy of the run, ready to act."""
        return load(self.directory)

    def evaluate(self, n: int = 10, seed: int = 0) -> np.ndarray:
        """Returns of `n` episodes of the best policy."""
        if self.make_env is None:
            return self.agent().evaluate(episodes=n, seed=seed)
        agent = self.agent()
        env = agent.wrap(self.make_env())
        try:
            return agent.evaluate(env, n, seed)
        finally:
            env.close()

    def plot(self, path: str | Path | None = None) -> Path:
        """Draw the learning curve to a file, by default `curve.png` of the run."""
        file = self.directory / "curve.png" if path is None else Path(path)
        goal, name = self.result["stop_value"], self.directory.name
        report.draw_curves(file, {f"seed {self.result['seed']}": self.history}, goal, name)
        return file

    def __repr__(self) -> str:
        steps = self.result["env_step"]
        return f"TrainedRun('{self.directory}', best {self.best:.1f} in {steps:,} env steps)"


def train(
    env: EnvLike,
    policy: str | None = None,
    steps: int | None = None,
    seed: int | None = None,
    callbacks: Iterable[Any] = (),
    **overrides: Any,
) -> TrainedRun:
    """Train a policy and return what it has come to.

    `env`: an id, a Gymnasium env class or a function that makes one, a registered `BaseEnv`, a
    config file, or [main_config, create_config]. `steps`: most env steps; without them the run goes
    on until its stop value. Overrides are config keys by dotted path, from the policy section on
    (`**{"learn.batch_size": 64}`) or from the top (`**{"env.collector_env_num": 4}`).
    """
    limit = None if steps is None else checked_limit("steps", steps)
    configs = configs_of(env, policy, limit)
    main, create = with_overrides(*configs[:2], absolute(overrides), source="argument")
    if limit is None and goal_of(main, create) is None:
        raise ConfigError("how long? pass steps, or set **{'env.stop_value': ...} to reach")
    return train_configs(main, create, limit, seed, make_env=configs[2], callbacks=callbacks)


def goal_of(main: Any, create: Any) -> float | None:
    """The return that ends the training, if there is one; the config is checked on the way."""
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    goal = float(cfg.env.stop_value)
    return goal if report.is_goal(goal) else None


def train_configs(
    main: Any,
    create: Any,
    steps: int | None,
    seed: int | None,
    *,
    make_env: Callable[[], Any] | None = None,
    callbacks: Iterable[Any] = (),
    resume: str | Path | bool = False,
) -> TrainedRun:
    """Train what the configs describe; one that learns from demonstrations clones them."""
    limits = Limits() if steps is None else Limits(env_step=steps)
    setting = None
    if make_env is not None:
        cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
        setting = _setting(make_env, cfg.env)
    with Run(
        [main, create], seed, env_setting=setting, limits=limits, callbacks=callbacks, resume=resume
    ) as run:
        if make_env is not None:
            _note_spaces(make_env, run.directory)
        clones = isinstance(run.policy, BehaviourCloningPolicy)
        result = clone(run) if clones else train_run(run)
    return TrainedRun(run.policy, run.directory, result, make_env)


def configs_of(
    env: EnvLike, policy: str | None, steps: int | None, say: Callable[[str], None] = logger.info
) -> tuple[Any, Any, Callable[[], Any] | None]:
    """main_config, create_config, and what makes the env if no config can."""
    if isinstance(env, (list, tuple)):
        if len(env) != 2:
            raise ConfigError("ding.train takes [main_config, create_config]")
        return _with_policy(env[0], env[1], policy)
    if isinstance(env, Path) or (isinstance(env, str) and env.endswith((".py", ".yaml", ".yml"))):
        return _with_policy(*read_config(env), policy)
    if policy is None:
        raise ConfigError("which policy? for example ding.train('CartPole-v1', 'dqn')")
    if isinstance(env, str):
        return (*predefined_config(env, policy, steps, say), None)
    return _of_callable(env, policy.lower(), steps, say)


def _with_policy(main: Any, create: Any, policy: str | None) -> tuple[Any, Any, None]:
    named = create.get("policy", {}).get("type") or main.get("policy", {}).get("type")
    if policy is not None and policy != named:
        raise ConfigError(
            f"policy = '{policy}', but the config is for '{named}': leave out the argument"
        )
    return main, create, None


def _of_callable(
    env: Any, policy: str, steps: int | None, say: Callable[[str], None]
) -> tuple[Any, Any, Callable[[], Any] | None]:
    if isinstance(env, BaseEnv):
        raise ConfigError(
            "ding.train makes several envs: pass the class, or a function that makes one, "
            f"instead of the env {env}"
        )
    if not (callable(env) or isinstance(env, gym.Env)):
        raise ConfigError(f"ding.train takes no {type(env).__name__} as an env")
    name = getattr(env, "__name__", type(env).__name__).strip("<>")
    if isinstance(env, type) and issubclass(env, BaseEnv):
        return _of_base_env(env, policy, steps, say)
    make_env = partial(_made, env)
    probe = make_env()
    if not isinstance(probe, gym.Env):
        raise ConfigError(f"{name}() must make a Gymnasium env, it made {type(probe).__name__}")
    main = _default(name, policy, DingEnvWrapper(probe), steps, say)
    return main, dict(env_manager=dict(type="base"), policy=dict(type=policy)), make_env


def _made(env: Any) -> Any:
    """An env of those that a class, a function or an env stands for."""
    make = maker_of(env)
    return None if make is None else in_gymnasium(make())


def _default(
    name: str, policy: str, probe: BaseEnv, steps: int | None, say: Callable[[str], None]
) -> dict[str, Any]:
    try:
        task = task_of(probe, policy, steps)
    finally:
        probe.close()
    return default_config(name, policy, task, say)


def _of_base_env(
    cls: type[BaseEnv], policy: str, steps: int | None, say: Callable[[str], None]
) -> tuple[Any, Any, None]:
    place = f"{cls.__module__}:{cls.__qualname__}"
    name = next((n for n in ENV_REGISTRY.query() if ENV_REGISTRY.get(n) is cls), None)
    if name is None:
        raise ConfigError(
            f"{place} has no name that a config could have: put @ENV_REGISTRY.register('its_name') "
            "(ding.utils) above the class"
        )
    main = _default(name, policy, cls({}), steps, say)
    named = dict(type=name, import_names=[] if cls.__module__ == "__main__" else [cls.__module__])
    return main, dict(env=named, env_manager=dict(type="base"), policy=dict(type=policy)), None


def _setting(make_env: Callable[[], Any], env_cfg: Any) -> EnvSetting:
    """Envs of a function, each with the config of one."""
    return (
        partial(DingEnvWrapper, make_env),
        DingEnvWrapper.create_collector_env_cfg(env_cfg),
        DingEnvWrapper.create_evaluator_env_cfg(env_cfg),
    )


def _note_spaces(make_env: Callable[[], Any], directory: Path) -> None:
    env = make_env()
    save_spaces(directory, env.observation_space, env.action_space)
    env.close()
