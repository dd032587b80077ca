"""Runs both sides turn by turn, each time in a new process, and compares what they say."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = HERE / ".venv-peers"
TORCH = "torch==2.13.0"
REQUIREMENTS = (
    *("stable-baselines3==2.9.2", "tianshou==2.0.1", "torchrl==0.14.1", "cpprb==11.0.0"),
    *("gymnasium==1.4.0", "numba", "tensorboard"),
)

Result = dict[str, Any]


class BenchmarkError(Exception):
    """A side failed, or the two did not do the same work."""


@dataclass(frozen=True)
class Entrant:
    side: str
    """'ding' or 'sb3'."""
    name: str
    threads: int = 1
    options: tuple[str, ...] = ()


class Bench:
    """Starts processes of both sides; each works in an empty directory and on given threads."""

    def __init__(self, peers: str, directory: str, quick: bool) -> None:
        self.peers, self._directory, self._quick = peers, directory, quick

    def run(self, entrant: Entrant) -> Result:
        ours = entrant.side == "ding"
        module = "benchmarks.ding_work" if ours else "benchmarks.sb3_peer"
        options = [entrant.name, "--threads", str(entrant.threads), *entrant.options]
        options += ["--quick"] if self._quick else []
        python = sys.executable if ours else self.peers
        return json.loads(self.output([python, "-m", module, *options], entrant.threads))

    def start(self, what: str) -> Result:
        """Time until the first env step ('ding') or until torch is imported ('torch')."""
        command = [sys.executable, "-m", "benchmarks.start", str(time.monotonic()), what]
        return json.loads(self.output(command, threads=1))

    def output(self, command: Sequence[str], threads: int) -> str:
        """The last line that the command prints."""
        env = os.environ | {
            "PYTHONPATH": str(HERE.parent),
            "OMP_NUM_THREADS": str(threads),
            # Of this session alone: its first compilation is a cold one.
            "TORCHINDUCTOR_CACHE_DIR": str(Path(self._directory) / "inductor"),
        }
        done = subprocess.run(
            command, cwd=self._directory, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or not done.stdout.strip():
            raise BenchmarkError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        return done.stdout.strip().splitlines()[-1]


@contextmanager
def bench(peers: str | None, quick: bool) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as directory:
        yield Bench(peers or made_peers(), directory, quick)


def made_peers() -> str:
    """The interpreter of an environment that holds the peers, made at the first use."""
    python = PEERS / "bin" / "python"
    ready = PEERS / "ready"
    if not ready.exists():
        print(f"making {PEERS.name} for the peers ...", file=sys.stderr, flush=True)
        venv.create(PEERS, with_pip=True, clear=True)
        for packages in ((TORCH,), (TORCH, *REQUIREMENTS)):
            install = [str(python), "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(install, check=True)
        ready.touch()
    return str(python)


def check_same_work(ours: Result, peer: Result) -> None:
    for key in ("env_steps", "updates", "n_parameter"):
        if ours[key] != peer[key]:
            raise BenchmarkError(f"not the same work: {key} {ours[key]} here, {peer[key]} there")


def rate(result: Result, unit: str) -> float:
    return result[unit] / result["seconds"]


@dataclass(frozen=True)
class Ratio:
    """Of rates that were measured in the same round."""

    middle: float
    low: float
    high: float
    cpu: float
    """Of rates per second of processor time: less disturbed by other programs."""


def ratio_of(ours: Sequence[Result], peer: Sequence[Result]) -> Ratio:
    pairs = list(zip(ours, peer, strict=True))
    wall = [b["seconds"] / a["seconds"] for a, b in pairs]
    cpu = [b["cpu_seconds"] / a["cpu_seconds"] for a, b in pairs]
    return Ratio(median(wall), min(wall), max(wall), median(cpu))


def machine() -> dict[str, Any]:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        model = named[0] if named else model
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def commit() -> str | None:
    """Hash of what is checked out, with a mark if files differ from it; None outside of git."""

    def git(*args: str) -> subprocess.CompletedProcess[str]:
        command = ["git", *args]
        return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)

    head = git("rev-parse", "--short", "HEAD")
    if head.returncode != 0:
        return None
    changed = git("status", "--porcelain", "--untracked-files=no").stdout.strip()
    return head.stdout.strip() + ("+changes" if changed else "")
