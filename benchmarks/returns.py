"""`python -m benchmarks.returns`: returns and losses by kernels against the plain torch loops.

Prints one table and writes benchmarks/returns.json. Processor time of one thread, the least of many
calls. The plain loop is the reference that tests compare the kernels with.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

import ding
from benchmarks.measure import HERE, stamp
from ding.rl_utils import (
    compute_q_retraces,
    gae,
    gae_data,
    generalized_lambda_returns,
    quantile_huber,
    upgo_returns,
    vtrace_nstep_return,
)

SIZES = ((512, 8), (512, 64), (2048, 8), (2048, 64))
GOALS = {False: 30.0, True: 8.0}
TOLERANCE = 1e-5
QUANTILES = ((64, 32), (64, 200))

Compute = Callable[[], Tensor]


@dataclass(frozen=True)
class Case:
    name: str
    size: tuple[int, ...]
    compute: Compute
    inputs: tuple[Tensor, ...]
    """Those that may want a gradient."""
    goal: bool = True
    """Whether the goals are of this function."""


def cases(steps: int, width: int) -> list[Case]:
    torch.manual_seed(0)
    value = torch.randn(steps + 1, width)
    reward, rho = torch.randn(steps, width), (2 * torch.rand(steps, width)).clamp(max=1)
    now, later = value[:-1].clone(), value[1:].clone()
    done = torch.rand(steps, width) < 0.02
    q = torch.randn(steps + 1, width, 4)
    action, alive = torch.randint(4, (steps, width)), (~done).float()
    ratio = torch.rand(steps, width, 4) * 2
    size = (steps, width)
    return [
        Case("GAE", size, lambda: gae(gae_data(now, later, reward, done, None)), (now, reward)),
        Case(
            "TD(lambda)",
            size,
            lambda: generalized_lambda_returns(value, reward, 0.99, 0.95, done),
            (value, reward),
        ),
        Case(
            "V-trace",
            size,
            lambda: vtrace_nstep_return(rho, rho, reward, value),
            (value, reward),
        ),
        Case("UPGO", size, lambda: upgo_returns(reward, value), (value, reward)),
        Case(
            "retrace",
            size,
            lambda: compute_q_retraces(q, value.unsqueeze(-1), reward, action, alive, ratio),
            (value, reward),
            goal=False,
        ),
    ]


def quantile_case(batch: int, n: int) -> Case:
    q, target, tau = torch.randn(batch, n), torch.randn(batch, n), torch.rand(1, n)
    return Case(
        "quantile loss", (batch, n), lambda: quantile_huber(q, target, tau), (q,), goal=False
    )


def least(call: Callable[[], Any], seconds: float) -> float:
    """Microseconds of processor time."""
    call()
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
    return best * 1e6


@contextmanager
def kernels(on: bool) -> Iterator[None]:
    before, ding.enable_hpc_rl = ding.enable_hpc_rl, on
    try:
        yield
    finally:
        ding.enable_hpc_rl = before


def measured(case: Case, grad: bool, seconds: float) -> dict[str, Any]:
    for tensor in case.inputs:
        tensor.requires_grad_(grad)

    def run() -> list[Tensor]:
        out = case.compute()
        return [out, *torch.autograd.grad(out.sum(), case.inputs)] if grad else [out]

    with kernels(on=False):
        expected, plain = run(), least(run, seconds)
    with kernels(on=True):
        found, kernel = run(), least(run, seconds)
    pairs = zip(expected, found, strict=True)
    # Relative to the size of the numbers where they are large: sums over thousands of steps.
    apart = max(((a - b).abs() / b.abs().clamp_min(1)).max().item() for a, b in pairs)
    return {
        "function": case.name,
        "size": case.size,
        "gradient": grad,
        "plain_us": plain,
        "kernel_us": kernel,
        "ratio": plain / kernel,
        "apart": apart,
        "goal": GOALS[grad] if case.goal else None,
    }


LOADING = """
import json, time, torch
wall, cpu = time.perf_counter(), time.process_time()
from ding.rl_utils import gae, gae_data
x = torch.zeros(512, 8)
packages = time.perf_counter(), time.process_time()
gae(gae_data(x, x, x, x, x))
print(json.dumps([time.perf_counter() - packages[0], time.process_time() - packages[1]]))
"""


@dataclass(frozen=True)
class Loading:
    """Of the first kernel in a process: numba, and the machine code from its cache."""

    seconds: float
    cpu_seconds: float


def loading() -> Loading:
    """The better of two new processes; the first may have had to compile."""
    found = []
    for _ in range(2):
        command = [sys.executable, "-c", LOADING]
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return Loading(*min(found))


def table(rows: list[dict[str, Any]]) -> str:
    layout = "{:<15}{:<11}{:<6}{:>11}{:>11}{:>8}{:>10}{:>6}  {}"
    head = layout.format("", "size", "", "plain us", "kernel us", "ratio", "apart", "goal", "")
    return "\n".join([head, "-" * len(head), *(_line(layout, row) for row in rows)])


def _line(layout: str, row: dict[str, Any]) -> str:
    goal, verdict = row["goal"], ""
    if goal is not None:
        verdict = "met" if row["ratio"] >= goal and row["apart"] <= TOLERANCE else "MISSED"
    return layout.format(
        row["function"],
        "x".join(map(str, row["size"])),
        "grad" if row["gradient"] else "",
        f"{row['plain_us']:,.0f}",
        f"{row['kernel_us']:,.0f}",
        f"{row['ratio']:.0f}x",
        f"{row['apart']:.0e}",
        f"{goal:g}" if goal is not None else "",
        verdict,
    )


def main(quick: bool = False) -> None:
    seconds = 0.1 if quick else 0.5
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    about = stamp()
    every = [case for size in SIZES for case in cases(*size)]
    every += [quantile_case(*size) for size in QUANTILES]
    rows = [measured(case, grad, seconds) for grad in (False, True) for case in every]
    torch.set_num_threads(threads)
    load = loading()
    result = about | {"rows": rows, "loading": asdict(load)}
    (HERE / "returns.json").write_text(json.dumps(result, indent=1) + "\n")
    print(table(rows))
    print(f"\nfirst kernel of a process: {load.seconds:.2f} s (cpu {load.cpu_seconds:.2f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.returns", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="rough numbers")
    main(parser.parse_args().quick)
