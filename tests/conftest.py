"""Every test has a directory and a torch thread of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Two on a busy machine take many times as long for networks of this size."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Compiling takes up to a minute: DQN, PPO and SAC always do it here, others if asked."""
    if shutil.which("g++") is None:
        no_compiler = pytest.mark.skip(reason="compiling needs g++")
        for item in items:
            if item.get_closest_marker("compiles"):
                item.add_marker(no_compiler)
    if os.environ.get("DING_COMPILE_TESTS"):
        return
    skip = pytest.mark.skip(reason="slow; `make test-compile` runs it")
    for item in items:
        in_policy = item.path.parent.name == "policy" and item.path.name != "test_policy.py"
        if in_policy and "test_compiled" in item.name:
            item.add_marker(skip)
