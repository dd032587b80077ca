"""One run has one owner: a second one is refused in a line, a dead one leaves no lock."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ding.entry import Run, serial_pipeline, train
from ding.entry.parallel import ParallelRun, parallel_pipeline
from ding.parallel.backend import ThreadBackend
from ding.pipeline.ownership import OWNER_NAME, Ownership
from ding.utils.errors import ConfigError, DingError
from ding.utils.limits import Limits
from entry.configs import pair


def test_second_owner_is_refused_and_told_who_is_the_first(tmp_path: Path) -> None:
    with Run(pair("dqn"), limits=Limits(env_step=80)) as run:
        run.begin()
        files = sorted(tmp_path.rglob("*"))
        with pytest.raises(DingError) as refused:
            serial_pipeline(pair("dqn"), resume=True)
        assert sorted(tmp_path.rglob("*")) == files
        train(run)
    told = str(refused.value)
    assert "\n" not in told
    assert f"'run' is being trained by process {os.getpid()} on {os.uname().nodename}" in told
    serial_pipeline(pair("dqn"), max_env_step=160, resume=True)


def test_refused_resume_leaves_the_run_free(tmp_path: Path) -> None:
    serial_pipeline(pair("dqn"), max_env_step=80)
    with pytest.raises(ConfigError, match="settings differ"):
        serial_pipeline(pair("dqn", policy={"nstep": 3}), resume=True)
    Ownership(tmp_path / "run").release()


def test_parallel_run_has_one_owner_too(tmp_path: Path) -> None:
    limits = Limits(env_step=600)
    with ParallelRun(pair("dqn"), 0, limits, backend=ThreadBackend()) as run:
        with pytest.raises(DingError, match="is being trained by process"):
            Ownership(run.directory)
        run.train()
        with pytest.raises(DingError, match="is being trained by process"):
            parallel_pipeline(pair("dqn"), resume=True, backend=ThreadBackend())
    Ownership(tmp_path / "run").release()


def test_lock_goes_with_its_owner_though_a_child_lives_on(tmp_path: Path) -> None:
    began, to_owner = os.pipe()
    stays, to_child = os.pipe()
    owner = os.fork()
    if owner == 0:
        Ownership(tmp_path)
        if os.fork() == 0:
            os.close(to_child)
            os.write(to_owner, b"x")
            os.read(stays, 1)  # Until the test is over.
            os._exit(0)
        signal.pause()
    os.read(began, 1)
    with pytest.raises(DingError, match=f"process {owner} on"):
        Ownership(tmp_path)
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    Ownership(tmp_path).release()
    assert str(os.getpid()) in (tmp_path / OWNER_NAME).read_text()
    for handle in (began, to_owner, stays, to_child):
        os.close(handle)
