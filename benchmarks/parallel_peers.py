"""TorchRL's Ray collector on the env that sleeps; prints env steps per second as a JSON line.

By an interpreter that has torchrl and ray:
python -m benchmarks.parallel_peers 2 --env-step 8000 --warm-up 2000
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.sleepy import SleepyCartPole

# Nothing of torchrl here: it imports Ray, which looks at once whom it lets in.

CHUNK = 256


def close_ray() -> None:
    """As our runs do: reachable from here alone, with a token that is not left in the home."""
    token = Path("token").absolute()
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def env() -> Any:
    from torchrl.envs import GymWrapper

    torch.set_num_threads(1)
    return GymWrapper(SleepyCartPole(), categorical_action_encoding=True)


def policy(spec: Any) -> Any:
    """Layers as those of our DQN, and epsilon-greedy actions."""
    from tensordict.nn import TensorDictModule, TensorDictSequential
    from torchrl.modules import EGreedyModule, QValueModule

    sizes = [4, 128, 128, 64, 2]
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    net = nn.Sequential(*layers[:-1])
    values = TensorDictModule(net, in_keys=["observation"], out_keys=["action_value"])
    return TensorDictSequential(values, QValueModule(spec=spec), EGreedyModule(spec=spec))


def rate(collectors: int, env_step: int, warm_up: int) -> float:
    """After the warm-up, when all processes have begun."""
    close_ray()
    from torchrl.collectors.distributed import RayCollector

    collector = RayCollector(
        [env] * collectors,
        policy(env().action_spec),
        frames_per_batch=CHUNK,
        total_frames=env_step,
        sync=False,
        # As ours: the operating system shares out the cores, and nothing else is started.
        remote_configs={"num_cpus": 0},
        ray_init_config={
            "include_dashboard": False,
            "log_to_driver": False,
            "num_cpus": 1,
            "_temp_dir": str(Path("ray").absolute()),
        },
    )
    steps, marks = 0, []
    for batch in collector:
        steps += batch.numel()
        if steps >= warm_up:
            marks.append((time.perf_counter(), steps))
    collector.shutdown()
    (began, first), (ended, last) = marks[0], marks[-1]
    return (last - first) / (ended - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collectors", type=int)
    parser.add_argument("--env-step", type=int, required=True)
    parser.add_argument("--warm-up", type=int, required=True)
    args = parser.parse_args()
    print(json.dumps({"rate": rate(args.collectors, args.env_step, args.warm_up)}))


if __name__ == "__main__":
    main()
