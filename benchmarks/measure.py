"""Runs both sides in processes of their own that take turns, and compares what they say."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

HERE = Path(__file__).resolve().parent
PEERS = HERE / ".venv-peers"
TORCH = "torch==2.13.0"
REQUIREMENTS = (
    *("stable-baselines3==2.9.2", "sb3-contrib==2.9.2", "tianshou==2.0.1"),
    *("torchrl==0.14.1", "cpprb==11.0.0", "gymnasium==1.4.0", "numba", "tensorboard"),
)

Result = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)


class BenchmarkError(Exception):
    """A side failed, or the two did not do the same work."""


@dataclass(frozen=True)
class Entrant:
    side: str
    """'ding' or 'sb3'."""
    name: str
    threads: int = 1
    options: tuple[str, ...] = ()


class Command(NamedTuple):
    words: Sequence[str]
    threads: int = 1


class Worker:
    """A process that says when it waits and goes on when told; `with` ends all that it started."""

    def __init__(self, command: Sequence[str], *, directory: str, env: dict[str, str]) -> None:
        self._command = command
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed when it ends)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=directory,
            env=os.environ | {"PYTHONPATH": str(HERE.parent)} | env,
            start_new_session=True,
        )

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def line_with(self, *starts: str) -> str:
        """The next line that starts so; some libraries greet on standard output."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(starts):
                return line
        self._errors.seek(0)
        raise BenchmarkError(f"{' '.join(self._command)} failed:\n{self._errors.read()[-3000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10 if kind is None else 0)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._errors.close()


class Bench:
    """Starts processes of both sides; each works in an empty directory and on given threads."""

    def __init__(self, peers: str, directory: str, quick: bool) -> None:
        self.peers, self._directory, self._quick = peers, directory, quick

    def command(self, entrant: Entrant) -> Command:
        ours = entrant.side == "ding"
        module = "benchmarks.ding_work" if ours else "benchmarks.sb3_peer"
        options = [entrant.name, "--turns", "--threads", str(entrant.threads), *entrant.options]
        options += ["--quick"] if self._quick else []
        python = sys.executable if ours else self.peers
        return Command([python, "-m", module, *options], entrant.threads)

    def round(self, commands: Mapping[Key, Command]) -> dict[Key, Result]:
        """All do their work once, in turns (`work.Turns`); those that fail are left out.

        Who begins changes from turn to turn: always the first of two, a side was 5 % faster.
        """
        found: dict[Key, Result] = {}
        running: dict[Key, Worker] = {}
        with ExitStack() as stack:
            for key, command in commands.items():  # each is set up before the first turn
                running[key] = stack.enter_context(self._worker(*command))
                _next(running, key, found)
            order = list(commands)
            while running:
                for key in [key for key in order if key in running]:
                    running[key].go()
                    _next(running, key, found)
                order.reverse()
        return found

    def _worker(self, command: Sequence[str], threads: int) -> Worker:
        env = {
            "OMP_NUM_THREADS": str(threads),
            # Of this session alone: its first compilation is a cold one.
            "TORCHINDUCTOR_CACHE_DIR": str(Path(self._directory) / "inductor"),
        }
        return Worker(command, directory=self._directory, env=env)

    def start(self, what: str) -> Result:
        """Time until the first env step ('ding') or until torch is imported ('torch')."""
        command = [sys.executable, "-m", "benchmarks.start", str(time.monotonic()), what]
        return json.loads(self.output(command, threads=1))

    def output(self, command: Sequence[str], threads: int) -> str:
        """The line of JSON that the command prints."""
        with self._worker(command, threads) as worker:
            return worker.line_with("{", "[")


def _next(running: dict[Key, Worker], key: Key, found: dict[Key, Result]) -> None:
    """Wait until a turn is over."""
    try:
        line = running[key].line_with("turn", "{")
    except BenchmarkError as error:
        say(str(error))
        del running[key]
        return
    if line.startswith("{"):
        found[key] = json.loads(line)
        del running[key]


@contextmanager
def bench(peers: str | None, quick: bool) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as directory:
        # Workers run in a directory of their own; a link into an environment must stay one.
        yield Bench(str(Path(peers).absolute()) if peers else made_peers(), directory, quick)


def made_peers() -> str:
    """The interpreter of an environment that holds the peers, made at the first use."""
    python = PEERS / "bin" / "python"
    ready = PEERS / "ready"
    if not ready.exists():
        say(f"making {PEERS.name} for the peers ...")
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


def stamp() -> dict[str, Any]:
    """When, of what and where."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": now, "commit": commit(), "machine": machine()}


def keep_rows(path: Path, rows: Sequence[dict[str, Any]], order: Sequence[str] = ()) -> None:
    """Every row has its own stamp: what was not measured this time stays as it was."""
    stored = json.loads(path.read_text())["rows"] if path.exists() else []
    latest = {row["title"]: row for row in (*stored, *rows)}
    titles = [*(title for title in order if title in latest), *latest]
    in_order = [latest[title] for title in dict.fromkeys(titles)]
    path.write_text(json.dumps({"rows": in_order}, indent=1) + "\n")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


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
