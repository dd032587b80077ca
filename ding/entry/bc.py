"""Behaviour cloning: passes over demonstrations until those held out are met no better."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from ding.data.demo_formats import load_demonstrations
from ding.data.demonstrations import Demonstrations
from ding.entry.demo_data import env_name
from ding.pipeline.run import ConfigLike, Run
from ding.policy import Policy
from ding.policy.bc import BehaviourCloningPolicy
from ding.policy.normaliser import ObsNormaliser
from ding.utils.batch import Batch, Rows, take
from ding.utils.errors import ConfigError
from ding.utils.limits import limits_of

_BY_EPISODES = 10
"""From so many on whole episodes are held out: steps of one episode resemble each other."""


def serial_pipeline_bc(
    input_cfg: ConfigLike,
    seed: int | None = None,
    data_path: str | Path | Demonstrations | None = None,
    model: nn.Module | None = None,
    max_iter: float = 1e6,
    resume: str | Path | bool = False,
) -> tuple[Policy, bool]:
    """Clone the actions of demonstrations; returns the policy and whether it reached the goal.

    Without a path the config says it: `policy.collect.data_path`.
    """
    limits = limits_of(max_iter)
    with Run(input_cfg, seed, model=model, limits=limits, resume=resume) as run:
        clone(run, data_path)
    return run.policy, run.stop


def check_collects(run: Run) -> None:
    """Refuse to let a policy learn from its own steps that should learn from another's."""
    if isinstance(run.policy, BehaviourCloningPolicy):
        raise ConfigError(
            f"policy '{run.cfg.policy.type}' learns from demonstrations; use serial_pipeline_bc "
            "(-m serial_bc)"
        )


def cloning_policy(run: Run) -> BehaviourCloningPolicy:
    """The run's policy, if it is one that clones."""
    if not isinstance(run.policy, BehaviourCloningPolicy):
        raise ConfigError(
            f"policy '{run.cfg.policy.type}' does not learn from demonstrations alone; 'bc' does"
        )
    return run.policy


def clone(run: Run, source: str | Path | Demonstrations | None = None) -> dict[str, Any]:
    """Train a run's policy on demonstrations to the end; returns the result."""
    cloning_policy(run)
    demonstrations = fitting(run, _given(run, source))
    run.begin()
    passes = Passes(run, demonstrations)
    passes.normalise()
    passes.run_all(run.cfg.policy.learn.train_epoch)
    return run.finish()


def _given(run: Run, source: str | Path | Demonstrations | None) -> Demonstrations:
    policy = run.cfg.policy
    found = source or policy.collect.data_path or policy.learn.data_path
    if found is None:
        raise ConfigError("which demonstrations? set policy.collect.data_path, or pass data_path")
    return found if isinstance(found, Demonstrations) else load_demonstrations(found)


def fitting(run: Run, demonstrations: Demonstrations) -> Demonstrations:
    """The demonstrations, if they are of the run's env and can be met by its network."""
    collector, cfg = run.collector, run.cfg
    space = collector.action_space
    demonstrations.check(collector.observation_space, space, env_name(cfg.env))
    if cfg.policy.continuous and np.abs(demonstrations.columns["action"]).max() > 1:
        raise ConfigError(
            f"the actions reach beyond [-1, 1] ({space}), which no network of policy "
            f"'{cfg.policy.type}' gives; set env.act_scale = True, and demonstrations of that scale"
        )
    return demonstrations


class Passes:
    """Shuffled passes of a run over its demonstrations, a part of them held out.

    The order depends on the seed and the number of the pass alone, so a run can be resumed.
    """

    def __init__(self, run: Run, demonstrations: Demonstrations) -> None:
        self._run, self._policy, self._seed = run, cloning_policy(run), run.seed
        columns = demonstrations.columns
        self._columns: Batch = {name: columns[name] for name in ("obs", "action")}
        learn = run.cfg.policy.learn
        self._batch_size = learn.batch_size
        self._train, held_out = split(demonstrations, learn.held_out, run.seed)
        self._held_out = Rows(take(self._columns, held_out))
        if len(self._train) < self._batch_size:
            raise ConfigError(
                f"policy.learn.batch_size = {self._batch_size} is more than the {len(self._train)} "
                "steps to learn from"
            )
        run.progress.message(
            f"{demonstrations.n_episode} episodes, {demonstrations.n_step} steps, return mean "
            f"{demonstrations.returns.mean():.2f}; {len(held_out)} steps held out"
        )

    def normalise(self) -> None:
        """Moments of the observations that are learned from, for a policy that normalises."""
        policy = self._run.cfg.policy
        if policy.obs_norm and self._run.learner.train_iter == 0:
            normaliser = ObsNormaliser(policy.obs_norm_range)
            normaliser.gather(take(self._columns["obs"], self._train))
            self._run.learner.merge_statistics({"obs_norm": normaliser.take_gathered()})

    def run_all(self, n_epoch: int, first_iter: int = 0) -> None:
        """Passes from the one that `first_iter` updates began with, until the run or patience ends.

        The weights that met the held-out part best are those that stay.
        """
        run, policy = self._run, self._policy
        n_batch = len(self._train) // self._batch_size
        done = run.learner.train_iter - first_iter
        note = ""
        for epoch in range(done // n_batch, n_epoch):
            run.learner.policy.set_attribute("epoch", epoch)
            for batch in self._batches(first_iter + epoch, done - epoch * n_batch):
                if run.evaluate_if_due() or run.finished:
                    return
                run.save_if_due()
                envstep = run.collector.envstep  # None, unless somebody collects in between.
                run.learner.train(batch, envstep)
                run.progress.update(envstep, run.learner.train_iter, f"epoch {epoch + 1}{note}")
            done = (epoch + 1) * n_batch
            metrics = policy.held_out(self._held_out)
            policy.early_stop.note(metrics["loss"])
            note = f", held out: {', '.join(f'{k} {v:.4f}' for k, v in metrics.items())}"
            if policy.early_stop.over:
                break
        policy.early_stop.restore()
        run.progress.message(f"{epoch + 1} epochs, best held-out loss {policy.early_stop.best:.4f}")

    def _batches(self, number: int, skipped: int) -> Iterator[Rows]:
        """One pass in random order without its first batches; what is left over is dropped."""
        order = np.random.default_rng([self._seed, number]).permutation(self._train)
        size = self._batch_size
        for start in range(max(skipped, 0) * size, len(order) - size + 1, size):
            yield Rows(take(self._columns, order[start : start + size]))


def split(demonstrations: Demonstrations, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps to learn from and steps held out: whole episodes, or single steps of only a few."""
    rng = np.random.default_rng([seed, demonstrations.n_step])
    by_episodes = demonstrations.n_episode >= _BY_EPISODES
    n = demonstrations.n_episode if by_episodes else demonstrations.n_step
    if n < 2:
        raise ConfigError(f"one step is too little to learn from: '{demonstrations.origin.name}'")
    is_held_out = np.zeros(n, bool)
    is_held_out[rng.permutation(n)[: max(1, round(share * n))]] = True
    if by_episodes:
        is_held_out = is_held_out[demonstrations.episode_id]
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
