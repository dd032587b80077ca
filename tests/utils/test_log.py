"""Logs of workers: what is read back, and disks that take no more."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tensorboardX.proto import event_pb2

from ding.utils.log import WorkerLog


@contextmanager
def disk_that_takes(n_bytes: int) -> Iterator[None]:
    """Every file may grow to that size only; the system refuses the rest."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def scalars_in(directory: Path) -> list[tuple[str, int, float]]:
    (path,) = directory.glob("events.out.tfevents*")
    raw, found, at = path.read_bytes(), [], 0
    while at < len(raw):
        length = int.from_bytes(raw[at : at + 8], "little")
        event = event_pb2.Event.FromString(raw[at + 12 : at + 12 + length])
        found += [(v.tag, event.step, v.simple_value) for v in event.summary.value]
        at += length + 16
    return found


def test_scalars_are_on_the_disk_at_once(tmp_path: Path) -> None:
    log = WorkerLog(str(tmp_path), "learner")
    log.scalars({"loss": 0.5, "grad": 2.0}, 3)
    assert scalars_in(log.directory) == [("loss", 3, 0.5), ("grad", 3, 2.0)]
    log.close()


def test_full_disk_loses_the_log_and_not_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = WorkerLog(str(tmp_path), "learner")
    log.scalars({"loss": 0.5}, 0)
    log.info("begins")
    with disk_that_takes(200):
        for step in range(1, 200):
            log.scalars({"loss": 0.5}, step)
            log.info("a line of some length")
        log.close()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "no more numbers for TensorBoard" in told[0] and "File too large" in told[0]
    assert "learner_logger.txt" in told[1] and "the training goes on" in told[1]


def test_directory_that_cannot_be_made_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "log").write_text("a file in the way")
    log = WorkerLog(str(tmp_path), "learner")
    for step in range(3):
        log.scalars({"loss": 0.5}, step)
        log.info("line")
    log.close()
    assert len(caplog.records) == 2


def test_clock_put_back_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = WorkerLog(str(tmp_path), "learner")
    log.scalars({"loss": 0.0}, 0)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 10**7)
    for step in range(1, 50):
        log.scalars({"loss": 0.0}, step)
    assert [step for _, step, _ in scalars_in(log.directory)] == list(range(50))
    log.close()
