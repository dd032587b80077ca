"""Training in one process. Every algorithm runs through the one loop here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike, Run
from ding.policy import Policy
from ding.utils.limits import limits_of


def train(run: Run) -> dict[str, Any]:
    """Collect and learn until a limit or the stop value is reached; returns the result."""
    run.begin()
    while not run.finished:
        if run.evaluate_if_due():
            break
        run.save_if_due()
        with run.progress.during("collecting"):
            collected = run.source.next(run.learner.train_iter, run.commander.step())
        with run.progress.during("learning"):
            run.learn(collected)
        run.show_counts()
    return run.finish()


def serial_pipeline(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    seed: int | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    dynamic_seed: bool = True,
    resume: str | Path | bool = False,
) -> Policy:
    """Train the policy that a config describes, on- or off-policy, and return it.

    Without a `seed` it is the config's own, or 0. `resume` goes on with the newest run of the
    config's name, or with the run in that directory.
    """
    limits = limits_of(max_train_iter, max_env_step)
    with Run(
        input_cfg,
        seed,
        env_setting=env_setting,
        model=model,
        limits=limits,
        dynamic_seed=dynamic_seed,
        resume=resume,
    ) as run:
        train(run)
    return run.policy


def serial_pipeline_onpolicy(
    input_cfg: ConfigLike,
    seed: int | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
) -> Policy:
    """The same for on-policy algorithms; refuses a config of an off-policy one."""
    limits = limits_of(max_train_iter, max_env_step)
    with Run(
        input_cfg,
        seed,
        env_setting=env_setting,
        model=model,
        limits=limits,
        resume=resume,
        on_policy_only=True,
    ) as run:
        train(run)
    return run.policy
