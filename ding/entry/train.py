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
from ding.config import compile_config, override, read_config
from ding.entry.first_run import task_of
from ding.entry.predefined import default_config, predefined_config
from ding.entry.serial import train as train_run
from ding.envs import BaseEnv, DingEnvWrapper
from ding.envs.given import in_gymnasium, maker_of
from ding.pipeline import report
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import Run
from ding.policy import Policy
from ding.utils.errors import ConfigError
from ding.utils.limits import Limits
from ding.utils.registry import ENV_REGISTRY

logger = logging.getLogger(__name__)

_SECTIONS = ("env", "policy", "reward_model")
_TOP = ("exp_name", "checkpoint_seconds", "callbacks")
EnvLike = str | Path | Callable[..., Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class TrainedRun:
    """What a training has come to."""

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
    seed: int = 0,
    callbacks: Iterable[Any] = (),
    **overrides: Any,
) -> TrainedRun:
    """Train a policy and return what it has come to.

    `env`: an id, a Gymnasium env class or a function that makes one, a registered `BaseEnv`, a
    config file, or [main_config, create_config]. `steps`: most env steps; without them the run goes
    on until its stop value. Overrides are config keys by dotted path, from the policy section on
    (`**{"learn.batch_size": 64}`) or from the top (`**{"env.collector_env_num": 4}`).
    """
    main, create, make_env = _configs(env, policy, None if steps is None else int(steps))
    main = override(main, _absolute(overrides), source="argument")
    cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
    if steps is None and not np.isfinite(cfg.env.stop_value):
        raise ConfigError("how long? pass steps, or set **{'env.stop_value': ...} to reach")
    limits = Limits() if steps is None else Limits(env_step=int(steps))
    setting = None if make_env is None else _setting(make_env, cfg.env)
    with Run([main, create], seed, env_setting=setting, limits=limits, callbacks=callbacks) as run:
        if make_env is not None:
            _note_spaces(make_env, run.directory)
        result = train_run(run)
    return TrainedRun(run.policy, run.directory, result, make_env)


def _absolute(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides by their path from the top."""
    given: dict[str, Any] = {}
    for path, value in overrides.items():
        top = path in _TOP or path.split(".")[0] in _SECTIONS
        given[path if top else f"policy.{path}"] = value
    return given


def _configs(
    env: EnvLike, policy: str | None, steps: int | None
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
        return (*predefined_config(env, policy, steps, logger.info), None)
    return _of_callable(env, policy.lower(), steps)


def _with_policy(main: Any, create: Any, policy: str | None) -> tuple[Any, Any, None]:
    named = create.get("policy", {}).get("type") or main.get("policy", {}).get("type")
    if policy is not None and policy != named:
        raise ConfigError(
            f"policy = '{policy}', but the config is for '{named}': leave out the argument"
        )
    return main, create, None


def _of_callable(
    env: Any, policy: str, steps: int | None
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
        return _of_base_env(env, policy, steps)
    make_env = partial(_made, env)
    probe = make_env()
    if not isinstance(probe, gym.Env):
        raise ConfigError(f"{name}() must make a Gymnasium env, it made {type(probe).__name__}")
    main = _default(name, policy, DingEnvWrapper(probe), steps)
    return main, dict(env_manager=dict(type="base"), policy=dict(type=policy)), make_env


def _made(env: Any) -> Any:
    """An env of those that a class, a function or an env stands for."""
    make = maker_of(env)
    return None if make is None else in_gymnasium(make())


def _default(name: str, policy: str, probe: BaseEnv, steps: int | None) -> dict[str, Any]:
    try:
        task = task_of(probe, policy, steps)
    finally:
        probe.close()
    return default_config(name, policy, task, logger.info)


def _of_base_env(cls: type[BaseEnv], policy: str, steps: int | None) -> tuple[Any, Any, None]:
    place = f"{cls.__module__}:{cls.__qualname__}"
    name = next((n for n in ENV_REGISTRY.query() if ENV_REGISTRY.get(n) is cls), None)
    if name is None:
        raise ConfigError(
            f"{place} has no name that a config could have: put @ENV_REGISTRY.register('its_name') "
            "(ding.utils) above the class"
        )
    main = _default(name, policy, cls({}), steps)
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
