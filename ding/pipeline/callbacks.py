"""Callbacks: users' objects and functions that are told what happens in a run, and may end it.

| method | called | with |
|---|---|---|
| `step` | after every collect and the updates on it | run |
| `update` | after every update | run, metrics |
| `episode` | when a collected episode ends | run, return, length |
| `evaluation` | after every evaluation | run, returns |
| `checkpoint` | when a checkpoint was written | run, path |
| `end` | when the result is there | run, result |

An object has any of them; a function stands for `step`. One that returns False ends the run, which
then evaluates and saves as at any other end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ding.utils.batch import ByEnv, stack, stacked_of, take
from ding.utils.errors import ConfigError, DingError, nearest
from ding.worker.learner.hooks import LearnerHook

EVENTS = ("step", "update", "episode", "evaluation", "checkpoint", "end")


class Callbacks:
    """All callbacks of one run."""

    def __init__(self, run: Any, given: Iterable[Any] = ()) -> None:
        self._run = run
        self._listeners: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}
        self._ended: list[tuple[float, int]] = []
        for one in given:
            for event, listener in _methods(_resolved(one)).items():
                self._listeners[event].append(listener)

    def listens(self, event: str) -> bool:
        return bool(self._listeners[event])

    def attach(self, learner: Any, collector: Any) -> None:
        """Listen to the workers that know of updates, checkpoints and episodes."""
        if self.listens("update"):
            learner.register_hook(_UpdateHook(self))
        if self.listens("checkpoint"):
            learner.on_checkpoint = lambda path: self.call("checkpoint", path)
        if self.listens("episode"):
            collector.on_episode(lambda return_, length: self._ended.append((return_, length)))

    def deliver_episodes(self) -> None:
        """Tell of episodes that have ended; not while collecting, when no run can be saved."""
        ended, self._ended = self._ended, []
        for return_, length in ended:
            self.call("episode", return_, length)

    def call(self, event: str, *args: Any) -> None:
        """Tell those who listen; when one raises, the run is saved first."""
        for listener in self._listeners[event]:
            try:
                answer = listener(self._run, *args)
            except Exception:
                self._run.save(wait=True)
                raise
            if answer is False:
                self._run.ended = True


class _UpdateHook(LearnerHook):
    def __init__(self, callbacks: Callbacks) -> None:
        super().__init__("callbacks", priority=1000)
        self._callbacks = callbacks

    def __call__(self, engine: Any) -> None:
        self._callbacks.call("update", dict(engine.learn_info))


def _resolved(given: Any) -> Any:
    """A callback, or the one that 'module:name' stands for; a class is made without arguments."""
    if isinstance(given, str):
        module, _, name = given.partition(":")
        try:
            given = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError(
                f"callbacks: cannot find '{given}': {error}; write 'module:name'"
            ) from error
    return given() if isinstance(given, type) else given


def _methods(callback: Any) -> dict[str, Callable[..., Any]]:
    found = {e: getattr(callback, e) for e in EVENTS if callable(getattr(callback, e, None))}
    if not found and callable(callback):
        return {"step": callback}
    if not found:
        names = [name for name in dir(callback) if not name.startswith("_")]
        hint = nearest(names[0], EVENTS) if names else ""
        raise ConfigError(
            f"callback {callback!r} is no function and has none of the methods "
            f"{', '.join(EVENTS)}{hint}"
        )
    return found


class EarlyStopping:
    """End when `patience` evaluations in a row were no better than the best before them."""

    def __init__(self, patience: int = 10, min_delta: float = 0.0) -> None:
        if patience < 1:
            raise DingError(f"EarlyStopping: patience = {patience}: must be at least 1")
        self.patience, self.min_delta = patience, min_delta

    def evaluation(self, run: Any, returns: Sequence[float]) -> bool:
        means = [entry["reward_mean"] for entry in run.evaluator.history]
        best, since = -np.inf, 0
        for mean in means:
            better = mean > best + self.min_delta
            best, since = (mean, 0) if better else (best, since + 1)
        return since < self.patience


class SaveEvery:
    """Write `ckpt/step_<env steps>.pth.tar` every so many env steps."""

    def __init__(self, steps: int) -> None:
        self._due = _Every(steps)

    def step(self, run: Any) -> None:
        if self._due(run.collector.envstep):
            run.learner.save_checkpoint(f"step_{run.collector.envstep}.pth.tar")


class VideoEvery:
    """Record an episode every so many env steps, in `video/` of the run."""

    def __init__(self, steps: int) -> None:
        self._due = _Every(steps)

    def step(self, run: Any) -> None:
        if not self._due(run.collector.envstep):
            return
        env_fn, cfgs = run.blueprint.one_evaluator_env()
        env = env_fn(cfg=cfgs[0])
        env.seed(run.seed, dynamic_seed=False)
        env.enable_save_replay(str(Path(run.directory) / "video"))
        try:
            _play(env, run.policy.eval_mode)
        finally:
            env.close()


def _play(env: Any, mode: Any) -> None:
    """One episode with a policy's eval mode."""
    ids, obs, over = np.arange(1), env.reset(), False
    mode.reset()
    while not over:
        action = take(stacked_of(mode.forward(ByEnv(ids, stack([obs]))))[1]["action"], 0)
        is_whole = env.python_actions and isinstance(action, np.integer)
        obs, _, over, _ = env.step(int(action) if is_whole else action)
    mode.reset()


class _Every:
    """True once in every `steps` env steps, at the first look after they have passed."""

    def __init__(self, steps: int) -> None:
        if steps < 1:
            raise DingError(f"steps = {steps}: must be at least 1")
        self._steps, self._last = steps, 0

    def __call__(self, env_step: int) -> bool:
        period = env_step // self._steps
        due, self._last = period > self._last, period
        return due
