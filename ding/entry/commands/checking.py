"""`ding check`: a few random episodes of an env through the checks that a training makes."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ding.entry.commands.options import (
    count,
    import_from_here,
    is_place,
    object_at,
    terminal_width,
    whole,
)
from ding.entry.commands.table import Say
from ding.utils.errors import DingError, UsageError

_FILES = (".py", ".yaml", ".yml")
_WIDTH, _INDENT = 100, 14


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "env", metavar="module:Class | ID | FILE", help="a Gymnasium env, a BaseEnv or a config"
    )
    p.add_argument("--episodes", type=count, default=3, metavar="N", help="how many (3)")
    p.add_argument(
        "--steps", type=count, default=10_000, metavar="N", help="most steps of an episode (1e4)"
    )
    p.add_argument("-s", "--seed", type=whole, default=0, metavar="K", help="of the env (0)")


@dataclass
class Findings:
    """Findings of random episodes."""

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    truncated: int = 0
    outside: float | None = None
    """An observed number that the observation space excludes."""
    seconds: float = 0.0


def run(args: argparse.Namespace, say: Say) -> int:
    from gymnasium.utils.env_checker import data_equivalence

    from ding.envs import BaseEnvManager

    import_from_here()
    make_env = _maker(args.env)
    cfg = {"flight_dir": None, "max_retry": 1, "episode_num": float("inf")}
    with BaseEnvManager([make_env], cfg) as manager:
        fitting = " ".join(_fitting(manager)) or "none takes such actions"
        say(_row("observations", str(manager.observation_space)))
        say(_row("actions", str(manager.action_space)))
        say(_row("policies", fitting))
        manager.seed(args.seed, dynamic_seed=False)
        first = _first_obs(make_env, args.seed)
        findings = _played(manager, args.episodes, args.steps)
        for name, text in _report(findings):
            say(_row(name, text))
        wrong = list(_wrong(findings, args.steps))
        if not data_equivalence(first, _first_obs(make_env, args.seed)):
            wrong.append(
                "reset(seed=...) observes something else each time: no run can be repeated"
            )
        for line in wrong:
            say(_row("WRONG", line))
    say(f"{len(wrong)} things to mend" if wrong else "nothing wrong found")
    return 1 if wrong else 0


def _row(name: str, text: str) -> str:
    indent = f"{name:{_INDENT}}"
    width = min(terminal_width(), _WIDTH)
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=" " * _INDENT)


def _maker(name: str) -> Callable[[], Any]:
    """Maker of the env, as a training would have it."""
    from ding.envs import BaseEnv, DingEnvWrapper

    if name.endswith(_FILES):
        return _maker_of_config(name)
    if not is_place(name):
        import gymnasium as gym

        from ding.envs.packages import register_package
        from ding.utils.errors import nearest

        register_package(name)
        if name not in gym.registry:
            raise UsageError(f"unknown env '{name}'{nearest(name, gym.registry)} (ding list envs)")
        return partial(DingEnvWrapper, {"env_id": name})
    found = object_at(name)
    if isinstance(found, type) and issubclass(found, BaseEnv):
        return partial(found, {})
    if not callable(found):
        raise DingError(f"'{name}' is neither a class nor a function that makes an env")
    return lambda: DingEnvWrapper(_gymnasium_env(found, name))


def _gymnasium_env(make: Callable[[], Any], name: str) -> Any:
    import gymnasium as gym

    from ding.envs.given import in_gymnasium, is_adapted

    env = in_gymnasium(make())
    if not isinstance(env, gym.Env):
        raise DingError(f"{name}() must make a Gymnasium env, it made {type(env).__name__}")
    if not is_adapted(env):
        _check_calls(env, name)
    return env


def _check_calls(env: Any, name: str) -> None:
    """Refuse what reset and step of the former Gym return."""
    first = env.reset(seed=0)
    if not (isinstance(first, tuple) and len(first) == 2 and isinstance(first[1], dict)):
        raise DingError(
            f"{name}.reset() must return (obs, info) with a dict as info, it returned "
            f"{type(first).__name__}: that was the former Gym"
        )
    step = env.step(env.action_space.sample())
    if not (isinstance(step, tuple) and len(step) == 5):
        found = f"{len(step)} values" if isinstance(step, tuple) else type(step).__name__
        raise DingError(
            f"{name}.step() must return (obs, reward, terminated, truncated, info), it returned "
            f"{found}: the former Gym had one 'done'"
        )


def _maker_of_config(name: str) -> Callable[[], Any]:
    from ding.entry.commands.configs import compiled_of
    from ding.envs import get_vec_env_setting

    env_fn, cfgs, _ = get_vec_env_setting(compiled_of(name).env)
    return partial(env_fn, cfg=(cfgs or [{}])[0])


def _fitting(manager: Any) -> Iterator[str]:
    """Names of the policies that take such actions."""
    from ding.pipeline.spaces import action_kind
    from ding.utils.registry import POLICY_REGISTRY

    kind = action_kind(manager.action_space)
    for name in POLICY_REGISTRY.query():
        if kind in (POLICY_REGISTRY.get(name).action_kinds or ()):
            yield name


def _first_obs(make_env: Callable[[], Any], seed: int) -> Any:
    env = make_env()
    try:
        env.seed(seed, dynamic_seed=False)
        return env.reset()
    finally:
        env.close()


def _played(manager: Any, episodes: int, most_steps: int) -> Findings:
    from ding.pipeline.spaces import outside

    findings = Findings()
    began = time.monotonic()
    manager.launch()
    total, length = 0.0, 0
    while len(findings.returns) < episodes:
        step = manager.step(manager.random_action())[0]
        reward = float(np.sum(step.reward))
        total, length = total + reward, length + 1
        findings.rewards.append(reward)
        if findings.outside is None:
            findings.outside = outside(step.obs, manager.observation_space)
        if step.done or length >= most_steps:
            findings.returns.append(total)
            findings.lengths.append(length)
            findings.truncated += bool(step.done and step.info.get("truncated"))
            total, length = 0.0, 0
            if not step.done:
                manager.reset()
    findings.seconds = time.monotonic() - began
    return findings


def _report(findings: Findings) -> Iterator[tuple[str, str]]:
    lengths, returns, rewards = findings.lengths, findings.returns, findings.rewards
    ends = f"{min(lengths)} to {max(lengths)} steps, {findings.truncated} cut off"
    yield "episodes", f"{len(returns)} at random, {ends}"
    yield "returns", f"{min(returns):.4g} to {max(returns):.4g}, mean {np.mean(returns):.4g}"
    yield "rewards", f"{min(rewards):.4g} to {max(rewards):.4g} a step"
    yield "speed", f"{sum(lengths) / max(findings.seconds, 1e-9):,.0f} steps/s in one env"


def _wrong(findings: Findings, most_steps: int) -> Iterator[str]:
    if findings.outside is not None:
        yield f"an observation holds {findings.outside:g}, outside its space: correct the bounds"
    if max(findings.lengths) >= most_steps:
        yield (
            f"no end after {most_steps:,} steps: give the env a time limit (wrapper time_limit), "
            "or look further with --steps"
        )
    if not any(findings.rewards):
        yield "every reward was 0: random play meets none, so there is little to learn from"
