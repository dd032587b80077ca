"""What `benchmarks.updates` compares and how: the work, our side, the rows and the table."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import updates, updates_work
from benchmarks.measure import BenchmarkError, keep_rows
from benchmarks.updates_ding import Ours
from benchmarks.updates_work import JOBS, measured, piece_of, steps_of, trained, updates_per_call


def result(seconds: float, n_parameter: int = 7) -> dict[str, Any]:
    work = dict(env_steps=0, updates=400, n_parameter=n_parameter)
    return dict(seconds=seconds, cpu_seconds=2 * seconds, **work)


def test_all_calls_make_whole_pieces() -> None:
    assert updates_per_call(JOBS["ppo"]) == 4 * 1024 // 256
    assert updates_per_call(JOBS["a2c"]) == 1
    assert all(piece_of(job) % updates_per_call(job) == 0 for job in JOBS.values())


@pytest.mark.parametrize(("name", "n"), [("dqn", 100_000), ("sac", 100_000), ("a2c", 64)])
def test_steps_follow_each_other_and_are_the_same_each_time(name: str, n: int) -> None:
    steps, again = steps_of(JOBS[name]), steps_of(JOBS[name])
    assert {len(column) for column in steps.values()} == {n}
    assert (steps["next_obs"][:-1] == steps["obs"][1:]).all()
    assert all((steps[key] == again[key]).all() for key in steps)
    assert steps["action"].dtype == (np.float32 if name == "sac" else np.int64)
    assert {steps[key].dtype.name for key in ("obs", "reward", "next_obs")} == {"float32"}


def test_optimizers_count_what_was_trained() -> None:
    frozen = torch.nn.Parameter(torch.ones(5), requires_grad=False)
    slow, fast = (torch.nn.Parameter(torch.ones(n)) for n in (2, 3))
    optimizers = [torch.optim.Adam([slow, frozen]), torch.optim.Adam([fast])]
    assert trained(optimizers) == (5, 0)
    for parameter in (slow, fast):
        parameter.grad = torch.ones_like(parameter)
    optimizers[0].step()
    for _ in range(3):
        optimizers[1].step()
    assert trained(optimizers) == (5, 3)


def test_a_piece_is_the_median_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer = torch.optim.Adam([parameter])
    side = SimpleNamespace(call=optimizer.step, optimizers=lambda: [optimizer])
    times = iter([0.0, 9.0, *(0.0, 8.0), *(0.0, 1.0), *(0.0, 3.0)])
    clock = updates_work.now

    def now() -> Any:
        wall = next(times)
        return type(clock())(wall, 10 * wall)

    monkeypatch.setattr(updates_work, "now", now)
    found = measured(side, JOBS["a2c"], quick=True)
    assert (found["seconds"], found["cpu_seconds"]) == (2.0, 20.0)
    assert (found["first_call_seconds"], found["updates"], found["n_parameter"]) == (9.0, 400, 1)


def linear(*sizes: int) -> int:
    return sum((a + 1) * b for a, b in pairwise(sizes))


PARAMETERS = {
    "dqn": linear(4, 128, 128, 64, 2),
    "qrdqn": linear(4, 128, 128, 64, 2 * 32),
    "c51": linear(4, 128, 128, 64, 2 * 51),
    "iqn": linear(4, 128, 128, 64, 2) + linear(64, 64),
    "ppo": linear(4, 64, 64, 2) + linear(4, 64, 64, 1),
    "a2c": linear(4, 64, 64, 2) + linear(4, 64, 64, 1),
    "sac": linear(3, 256, 256, 2) + 2 * linear(4, 256, 256, 1) + 1,
    "td3": linear(3, 256, 256, 1) + 2 * linear(4, 256, 256, 1),
    "ddpg": linear(3, 256, 256, 1) + linear(4, 256, 256, 1),
}


@pytest.mark.parametrize("name", list(JOBS))
def test_a_call_of_ours_makes_the_updates_it_says(name: str, tmp_path: Path) -> None:
    side = Ours(name, compiled=False, directory=str(tmp_path))
    with side.run:
        side.call()
        assert trained(side.optimizers()) == (PARAMETERS[name], updates_per_call(JOBS[name]))
        assert side.run.learner.train_iter == updates_per_call(JOBS[name])


def test_row_is_measured_against_the_faster_peer() -> None:
    results = {
        "ours": [result(1.0), result(2.0), result(1.0)],
        "compiled": [result(0.5), result(0.5), result(0.5)],
        "sb3": [result(2.0), result(3.0), result(1.8)],
        "tianshou": [result(4.0), result(4.0), result(4.0)],
    }
    row = updates.row_of("dqn", results)
    assert row["faster_peer"] == "sb3"
    assert row["ratio"] == pytest.approx(dict(middle=1.8, low=1.5, high=2.0, cpu=1.8))
    assert row["ratio_compiled"]["middle"] == pytest.approx(4.0)
    assert row["rate"]["compiled"] == 800.0
    line = updates.table([row]).splitlines()[-1]
    assert line.startswith("dqn") and "1.80 [1.50, 2.00]" in line and line.endswith("met (sb3)")


def test_row_without_compiled_and_below_the_goal() -> None:
    row = updates.row_of("c51", {"ours": [result(1.0)], "tianshou": [result(1.2)]})
    assert row["ratio_compiled"] is None
    assert updates.table([row]).splitlines()[-1].endswith("MISSED (tianshou)")


def test_other_work_is_refused() -> None:
    results = {"ours": [result(1.0)], "tianshou": [result(1.2, n_parameter=8)]}
    with pytest.raises(BenchmarkError, match="n_parameter 7 here, 8 there"):
        updates.row_of("c51", results)


def test_rows_are_kept_until_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "updates.json"
    keep_rows(path, [dict(title="sac", ratio=1), dict(title="dqn", ratio=1)], tuple(JOBS))
    keep_rows(path, [dict(title="sac", ratio=2)], tuple(JOBS))
    rows = json.loads(path.read_text())["rows"]
    assert rows == [dict(title="dqn", ratio=1), dict(title="sac", ratio=2)]


def test_a_side_that_fails_is_left_out() -> None:
    class Runner:
        peers = "python-of-peers"

        def round(self, commands: dict[str, Any]) -> dict[str, Any]:
            return {side: result(1.0) for side in commands if side != "sb3"}

    runner: Any = Runner()
    results = updates.measure(runner, "dqn", repeats=2, quick=True)
    assert {side: len(rounds) for side, rounds in results.items()} == {
        "ours": 2,
        "compiled": 2,
        "tianshou": 2,
    }
