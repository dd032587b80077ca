"""The soak: a training run in which envs keep breaking, and what it leaves behind.

python -m benchmarks.collector.soak RUN_DIRECTORY '{"n_fault": 30}'    # one run; prints a JSON line
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.collector.faults import COUNTED_AS, FaultLog, FaultyCartPole
from ding.entry import Run, train
from ding.utils.limits import Limits
from dizoo.classic_control.cartpole.config import cartpole_dqn_config

HERE = Path(__file__).resolve().parent
SHARED = Path("/dev/shm")
MARK = "DING_SOAK_MARK"
_GONE_WITHIN = 5.0

NOTES = """\
DQN on CartPole-v0 in 8 processes. The envs write every fault to a file before they break; the
manager has to count each under its kind, training has to go on and to reach the return."""


@dataclass(frozen=True, kw_only=True)
class Soak:
    n_fault: int = 1000
    gap: float = 100.0
    """Mean steps of one env between two faults."""
    manager: str = "async_subprocess"
    envs_per_worker: int = 1
    step_timeout: float = 1.0
    goal: float = 195.0
    max_env_step: int = 400_000
    seed: int = 0


class SoakRun(Run):
    """Ends when the return is reached after all faults happened and are accounted for."""

    def __init__(self, soak: Soak, log: FaultLog, directory: Path) -> None:
        self.soak, self.log = soak, log
        main, create = config_of(soak, directory)
        super().__init__(
            (main, create),
            soak.seed,
            env_setting=(FaultyCartPole, *env_cfgs(soak, log)),
            limits=Limits(env_step=soak.max_env_step),
        )

    @property
    def faults(self) -> Counter[str]:
        return self.collector._env.faults

    def evaluate_if_due(self) -> bool:
        evaluated = len(self.evaluator.history)
        super().evaluate_if_due()
        history = self.evaluator.history
        return (
            len(history) > evaluated
            and history[-1]["reward_mean"] >= self.soak.goal
            and self.log.full
            and not missing(self.log.injected(), self.faults)
        )


def missing(injected: Counter[str], faults: Counter[str]) -> dict[str, int]:
    """Faults that were injected but not counted, by kind."""
    return {kind: n - faults[kind] for kind, n in injected.items() if faults[kind] < n}


def config_of(soak: Soak, directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    main: dict[str, Any] = deepcopy(cartpole_dqn_config.main_config)
    main["exp_name"] = str(directory / "run")
    main["env"] |= dict(
        stop_value=math.inf,
        n_evaluator_episode=20,
        manager=dict(
            envs_per_worker=soak.envs_per_worker,
            max_retry=20,
            retry_type="renew",
            step_timeout=soak.step_timeout,
            reset_timeout=30.0,
        ),
    )
    main["policy"]["collect"]["n_sample"] = 32
    main["policy"]["learn"]["update_per_collect"] = 4
    main["policy"]["eval"]["evaluator"]["eval_freq"] = 400
    create: dict[str, Any] = deepcopy(cartpole_dqn_config.create_config)
    create["env_manager"]["type"] = soak.manager
    return main, create


def env_cfgs(soak: Soak, log: FaultLog) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Collecting envs break, evaluating ones do not."""
    fault = dict(log=str(log.path), limit=soak.n_fault, gap=soak.gap, seed=soak.seed)
    return [fault | dict(env=i) for i in range(8)], [{} for _ in range(5)]


def run(soak: Soak, directory: Path) -> dict[str, Any]:
    log = FaultLog(directory / "faults.log", soak.n_fault)
    soaked = SoakRun(soak, log, directory)
    with soaked:
        result = train(soaked)
        faults = Counter(soaked.faults)
    injected = log.injected()
    return {
        "injected": dict(injected),
        "injected_kinds": dict(Counter(kind for kind, _ in log.records())),
        "counted": dict(faults),
        "missing": missing(injected, faults),
        "reached": result["eval_value"] >= soak.goal,
        **{k: result[k] for k in ("eval_value", "env_step", "dropped_steps", "seconds")},
    }


# --- around it, in another process ---------------------------------------------------------------


def soak_and_check(soak: Soak) -> dict[str, Any]:
    """A soak in a new process, and what is left when it has ended; then one that is killed."""
    before = _segments()
    mark = uuid4().hex
    with tempfile.TemporaryDirectory() as directory:
        process = _start(soak, Path(directory), mark)
        out, errors = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"the soak failed:\n{errors[-3000:]}")
    found = json.loads(out.strip().splitlines()[-1])
    found |= _left(mark, before)
    found["after_parent_killed"] = _kill_the_parent(soak)
    return {"soak": asdict(soak)} | found


def _start(soak: Soak, directory: Path, mark: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.collector.soak", str(directory)]
    root = str(HERE.parent.parent)
    return subprocess.Popen(
        [*command, json.dumps(asdict(soak))],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1", MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _kill_the_parent(soak: Soak) -> dict[str, Any]:
    """SIGKILL in the midst of it."""
    before, mark = _segments(), uuid4().hex
    with tempfile.TemporaryDirectory() as directory:
        process = _start(soak, Path(directory), mark)
        log = FaultLog(Path(directory) / "faults.log", soak.n_fault)
        few = min(10, soak.n_fault)
        _until(lambda: len(log.records()) >= few or process.poll() is not None, seconds=120)
        workers = len(_marked(mark)) - 1
        process.kill()
        process.communicate()
        return {"workers": workers} | _left(mark, before)


def _left(mark: str, before: set[str]) -> dict[str, Any]:
    """Processes and shared memory that did not go away within some seconds."""
    _until(lambda: not _marked(mark) and _segments() <= before, seconds=_GONE_WITHIN)
    return {"processes_left": len(_marked(mark)), "segments_left": sorted(_segments() - before)}


def _until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


def _marked(mark: str) -> list[int]:
    """Processes that descend from the one with this mark, whoever their parent is now."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if wanted in environment.split(b"\0"):
                found.append(int(entry.name))
    return found


def _segments() -> set[str]:
    return {entry.name for entry in SHARED.iterdir()} if SHARED.exists() else set()


def table(found: dict[str, Any]) -> str:
    kinds = sorted({*COUNTED_AS.values(), *found["counted"]})
    lines = ["| fault | injected | counted |", "|---|---|---|"]
    lines += [
        f"| {kind} | {found['injected'].get(kind, 0)} | {found['counted'].get(kind, 0)} |"
        for kind in kinds
    ]
    killed = found["after_parent_killed"]
    return "\n".join(
        [
            *lines,
            "",
            f"{'every fault is accounted for' if not found['missing'] else 'NOT COUNTED'}; "
            f"return {found['eval_value']:.1f} ({'reached' if found['reached'] else 'MISSED'}) "
            f"after {found['env_step']:,} env steps, {found['seconds']:.0f} s; dropped "
            f"{found['dropped_steps']:,} steps; left: {found['processes_left']} processes, "
            f"{len(found['segments_left'])} segments; after SIGKILL of the parent of "
            f"{killed['workers']} workers: {killed['processes_left']} processes, "
            f"{len(killed['segments_left'])} segments",
        ]
    )


def main() -> None:
    signal.alarm(3600)  # A hang must not last.
    directory, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    print(json.dumps(run(Soak(**options), directory)), flush=True)


if __name__ == "__main__":
    main()
