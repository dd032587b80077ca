"""One turn of one entrant in a process of its own.

Prints `ready`, waits for a line to come, works, and prints what it measured as a JSON line.

python -m benchmarks.collector.turn race sync small --reset-scale 5 --collects 30
python -m benchmarks.collector.turn overhead gymnasium "64 floats" --seconds 2
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import warnings
from typing import Any

from benchmarks.collector.limit import limit_seconds
from benchmarks.collector.rigs import Rig, overhead_rig, race_rig
from benchmarks.collector.workload import LOADS, N_SAMPLE, WARM_UP, Infer, load_of

_SLICES = 5
_PATIENCE = 2.0


def await_go() -> None:
    print("ready", flush=True)
    if not sys.stdin.readline():
        raise SystemExit("nobody is waiting any more")


def race(args: argparse.Namespace) -> tuple[Rig, dict[str, Any]]:
    load = load_of(args.load, args.reset_scale)
    infer = Infer(load)
    rig = race_rig(args.entrant, load, infer)
    await_go()
    for _ in range(WARM_UP):
        rig.work()
    calls, start = infer.calls, time.perf_counter()
    samples = sum(rig.work() for _ in range(args.collects))
    # Some collect a little more than they are asked for: the time is that of the samples asked for.
    seconds = (time.perf_counter() - start) * args.collects * N_SAMPLE / samples
    limit = limit_seconds(load, args.collects)
    return rig, {
        "seconds": seconds,
        "samples": samples,
        "inferences": infer.calls - calls,
        "limit": limit,
        "ratio": seconds / limit,
    }


def overhead(args: argparse.Namespace) -> tuple[Rig, dict[str, Any]]:
    rig = overhead_rig(args.entrant, load_of(args.load))
    await_go()
    _rate(rig, args.seconds / _SLICES)
    rates = [_rate(rig, args.seconds / _SLICES) for _ in range(_SLICES)]
    return rig, {"steps_per_second": sorted(rates)[_SLICES // 2], "slices": rates}


def _rate(rig: Rig, seconds: float) -> float:
    start, steps = time.perf_counter(), 0
    while (spent := time.perf_counter() - start) < seconds:
        steps += rig.work()
    return steps / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("race", "overhead"))
    parser.add_argument("entrant")
    parser.add_argument("load", choices=LOADS)
    parser.add_argument("--reset-scale", type=float, default=1.0)
    parser.add_argument("--collects", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2.0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rig, found = (race if args.what == "race" else overhead)(args)
    found["load"] = round(os.getloadavg()[0], 2)
    print(json.dumps(found), flush=True)
    # Not all libraries manage to close, or soon; what then is left is killed from outside.
    closing = threading.Thread(target=rig.close, daemon=True)
    closing.start()
    closing.join(_PATIENCE)
    os._exit(0)


if __name__ == "__main__":
    main()
