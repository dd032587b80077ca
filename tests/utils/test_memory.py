"""Freed blocks stay with the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ding.utils.memory import keep_freed_memory

COUNT_FAULTS = """
import resource, sys
import numpy as np
from ding.utils.memory import keep_freed_memory

kept = keep_freed_memory() if "keep" in sys.argv else False

def churn():
    blocks = [np.ones(1 << 17) for _ in range(4)]
    del blocks

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    churn()
before = faults()
for _ in range(20):
    churn()
print(int(kept), (faults() - before) // 20)
"""


def churned(*args: str, **env: str) -> tuple[bool, int]:
    """Whether freed memory is kept, and the page faults of taking 4 MiB again."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    output = subprocess.run(
        [sys.executable, "-c", COUNT_FAULTS, *args],
        env=plain | env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return bool(int(output[0])), int(output[1])


@pytest.mark.skipif(sys.platform != "linux", reason="knows glibc alone")
def test_kept_blocks_cause_no_page_faults() -> None:
    kept, faults = churned("keep")
    if not kept:
        pytest.skip("not glibc")
    assert faults < 10
    assert churned()[1] > 100


def test_limits_of_the_environment_stay() -> None:
    kept, _ = churned("keep", MALLOC_TRIM_THRESHOLD_="131072")
    assert not kept


def test_may_be_asked_for_again() -> None:
    assert keep_freed_memory() == keep_freed_memory()
