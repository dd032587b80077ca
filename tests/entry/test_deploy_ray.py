"""The sbatch script with a real Ray on two nodes that have networks and processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from ding.entry.deploy import Deployment, sbatch_text

pytestmark = pytest.mark.skipif(
    "DING_CLUSTER_TESTS" not in os.environ
    or find_spec("ray") is None
    or os.geteuid() != 0
    or not shutil.which("ip"),
    reason="make test-cluster; needs Ray, and root for the networks of pretended nodes",
)

SCONTROL = """#!/bin/bash
tr , '\\n' <<<"$3"
"""
# In a process space of its own Ray neither sees nor ends what runs beside it.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do
    case $1 in --nodelist=*) node=${1#*=} ;; esac
    shift
done
ip netns exec "$node" unshare --mount --pid --fork --kill-child --mount-proc \\
    bash -c 'mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray && "$@"; exit $?' "$node" "$@" &
trap 'kill -KILL $!' TERM
wait $!
"""
DING = f"""#!{sys.executable}
import json, os, sys, time
import ray

@ray.remote(num_cpus=0)
def place():
    return os.getcwd(), ray.util.get_node_ip_address(), os.environ["RAY_AUTH_MODE"]

ray.init(address="auto", log_to_driver=False)
while len(ray.nodes()) < 2:
    time.sleep(0.1)
told = dict(
    words=sys.argv[1:],
    nodes={{one["NodeManagerAddress"]: one["Resources"] for one in ray.nodes()}},
    place=ray.get(place.options(resources={{"ding_collector": 1}}).remote(), timeout=60),
)
with open("told.json", "w") as file:
    json.dump(told, file)
sys.exit(3)
"""


def ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def nodes() -> Iterator[dict[str, str]]:
    """Two joined networks and their addresses."""
    found = {f"ding{os.getpid()}{letter}": f"10.99.7.{i}" for i, letter in enumerate("ab", 1)}
    first, second = found
    try:
        for name in found:
            ip("netns", "add", name)
        veth = ("type", "veth", "peer", "name", "veth0")
        ip("link", "add", "veth0", "netns", first, *veth, "netns", second)
        for name, address in found.items():
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "veth0")
            ip("-n", name, "link", "set", "veth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no networks can be made here: {error.stderr}")
    else:
        yield found
    finally:
        for name in found:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def test_ray_starts_on_both_nodes_and_ends(nodes: dict[str, str], tmp_path: Path) -> None:
    for name, text in {"scontrol": SCONTROL, "srun": SRUN, "ding": DING}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    Path("x.py.pkl").touch()
    token = Path("x.py.pkl.token")
    token.touch(mode=0o600)
    token.write_text("0123456789abcdef" * 4)
    Path("launch.sbatch").write_text(
        sbatch_text(Deployment(config="x.py.pkl", name="a", collector_num=3, cpus=1))
    )
    with Path("out.txt").open("w") as out:
        done = subprocess.run(
            ["bash", "launch.sbatch"],
            env={
                **os.environ,
                "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "SLURM_JOB_ID": "17",
                "SLURM_JOB_NODELIST": ",".join(nodes),
            },
            stdout=out,
            stderr=out,
            timeout=150,
        )
    text = Path("out.txt").read_text()
    assert done.returncode == 3, text
    assert token.read_text() not in text
    told = json.loads(Path("told.json").read_text())
    config = str(tmp_path / "x.py.pkl")
    words = ["-m", "dist", "--module", "coordinator", "--address", "auto", "-c", config]
    assert told["words"] == words
    head, other = (told["nodes"][address] for address in nodes.values())
    assert head["CPU"] == other["CPU"] == 1
    assert not {"ding_learner", "ding_collector"} & set(head)
    assert (other["ding_learner"], other["ding_collector"]) == (1, 3)
    assert told["place"] == [str(tmp_path), list(nodes.values())[1], "token"]
    until = time.monotonic() + 10
    while any(ip("netns", "pids", name) for name in nodes):
        assert time.monotonic() < until, "Ray was left behind"
        time.sleep(0.1)
