"""What Stable-Baselines3's defaults reach in the suite, seed by seed, in `sb3.json`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ding.utils.errors import DingError
from ledger.defaults import DefaultTask
from ledger.outcome import Outcome
from ledger.tasks import FRESH_EPISODES, FRESH_SEED

FILE = Path(__file__).with_name("sb3.json")
POLICIES = ("dqn", "ppo", "a2c", "sac", "td3")

Stored = dict[str, list[dict[str, Any]]]


def stored() -> Stored:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def outcomes(task: DefaultTask) -> list[Outcome]:
    """In the form of our own results, to be summed up alike."""
    keep = ("seed", "mean", "error", "seconds")
    return [
        Outcome(steps=task.limit, commit="", date="", **{key: one[key] for key in keep})
        for one in stored().get(task.name, [])
    ]


def train(jobs: Iterable[tuple[DefaultTask, int]], python: str, say: Callable[[str], None]) -> None:
    """Train what is missing, one after the other; each seed is stored when it ends."""
    for task, seed in jobs:
        have = {one["seed"] for one in stored().get(task.name, [])}
        if task.policy in POLICIES and seed not in have:
            found = _trained(task, seed, python)
            _keep(task.name, found)
            say(f"{task.name} seed {seed}: SB3 {found['mean']} ± {found['error']}")


def _trained(task: DefaultTask, seed: int, python: str) -> dict[str, Any]:
    job = {
        "env": task.env,
        "policy": task.policy,
        "steps": task.limit,
        "seed": seed,
        "first": FRESH_SEED + seed * FRESH_EPISODES,
        "episodes": FRESH_EPISODES,
        "step_limit": task.step_limit(),
    }
    script, started = str(Path(__file__).with_name("sb3_defaults.py")), time.monotonic()
    done = subprocess.run(
        [python, script, json.dumps(job)],
        env={"OMP_NUM_THREADS": "1", **os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DingError(f"{task.name} seed {seed}: Stable-Baselines3 failed: {reason}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return {"seed": seed, **found, "seconds": round(time.monotonic() - started, 1)}


def _keep(name: str, found: dict[str, Any]) -> None:
    content = stored()
    content.setdefault(name, []).append(found)
    lines = [f'"{key}": {json.dumps(content[key])}' for key in sorted(content)]
    FILE.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
