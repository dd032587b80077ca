"""Launch files: what is in them, and what the script does on nodes that are only pretended."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ding.entry.deploy import Deployment, rayjob_manifest, rayjob_text, sbatch_text
from ding.utils.errors import DingError

SCHEMA = json.loads((Path(__file__).parent / "rayjob_schema.json").read_text())

# Stand-ins for the commands of a cluster: nodes n0, n1, ... have the addresses 10.0.0.10, ...
COMMANDS = {
    "scontrol": """[[ "$1 $2" == "show hostnames" ]] && tr , '\\n' <<<"$3" """,
    "srun": """
        while [[ $1 == --* ]]; do
            case $1 in --nodelist=*) export NODE=${1#*=} ;; esac
            shift
        done
        exec "$@" """,
    "hostname": """
        case $1 in
        --ip-address) echo "${NAMED_IP-127.0.1.1 10.0.0.1${NODE#n}}" ;;
        *) echo "192.168.0.1${NODE#n} ${OWN_IP-10.0.0.1${NODE#n}} fd00::1" ;;
        esac""",
    "ray": """
        printf '%s\\n' "$NODE $*" >>calls.txt
        while [[ $1 != --address ]]; do shift; done
        if [[ $2 != *".1${NODE#n}:"* ]]; then
            exec sleep 60
        fi
        while (($(wc -l <calls.txt) < NODES)); do sleep 0.05; done
        while [[ $1 != -- ]]; do shift; done
        shift
        [[ -n ${RAY_BROKEN-} ]] || "$@" """,
    "ding": """
        printf '%s\\n' "$@" >ding.txt
        env >environment.txt
        exit "${CODE-0}" """,
}


def deployment(**changes: Any) -> Deployment:
    return Deployment(**{"config": "x.py.pkl", "name": "cartpole", **changes})


class Cluster:
    """Runs a script as SLURM would, on nodes that are names only."""

    def __init__(self, directory: Path) -> None:
        self._bin = directory / "bin"
        self._bin.mkdir()
        for name, text in COMMANDS.items():
            (self._bin / name).write_text(f"#!/bin/bash\n{text}\n")
            (self._bin / name).chmod(0o755)

    def run(self, text: str, nodes: int = 3, **settings: str) -> subprocess.CompletedProcess[str]:
        Path("launch.sbatch").write_text(text)
        Path("calls.txt").unlink(missing_ok=True)
        # It takes longer than 30 s if a step is left behind: that has the same output.
        return subprocess.run(
            ["bash", "launch.sbatch"],
            env={
                **os.environ,
                "PATH": f"{self._bin}:{os.environ['PATH']}",
                "SLURM_JOB_ID": "17",
                "NODES": str(nodes),
                "SLURM_JOB_NODELIST": ",".join(f"n{i}" for i in range(nodes)),
                **settings,
            },
            capture_output=True,
            text=True,
            timeout=30,
        )

    def offers(self) -> dict[str, tuple[int, int]]:
        """Learners and collectors that every node has room for."""
        found = {}
        for line in Path("calls.txt").read_text().splitlines():
            given = json.loads(re.findall(r"--resources ({.*?})", line)[0])
            found[line.split()[0]] = (given["ding_learner"], given["ding_collector"])
        return found


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    Path("x.py.pkl").touch()
    return Cluster(tmp_path)


# --- SLURM -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "learner_num", "collector_num", "expected"),
    [
        (1, 1, 2, [(1, 2)]),
        (2, 1, 2, [(0, 0), (1, 2)]),
        (2, 2, 3, [(0, 0), (2, 3)]),
        (3, 1, 2, [(0, 0), (1, 0), (0, 2)]),
        (3, 2, 2, [(0, 0), (2, 0), (0, 2)]),
        (4, 1, 2, [(0, 0), (1, 0), (0, 1), (0, 1)]),
        (4, 1, 5, [(0, 0), (1, 0), (0, 3), (0, 3)]),
        (5, 2, 2, [(0, 0), (1, 0), (1, 0), (0, 1), (0, 1)]),
    ],
)
def test_roles_are_spread_over_the_nodes(
    cluster: Cluster,
    nodes: int,
    learner_num: int,
    collector_num: int,
    expected: list[tuple[int, int]],
) -> None:
    text = sbatch_text(deployment(learner_num=learner_num, collector_num=collector_num))
    result = cluster.run(text, nodes)
    assert result.returncode == 0, result.stderr
    assert cluster.offers() == {f"n{i}": offer for i, offer in enumerate(expected)}


def test_named_hosts_get_their_roles(cluster: Cluster) -> None:
    hosts = deployment(
        learner_hosts=("n2",), collector_hosts=("n0", "n2"), learner_num=1, collector_num=3
    )
    text = sbatch_text(hosts)
    assert "#SBATCH --nodes=3\n#SBATCH --nodelist=n0,n2\n" in text
    assert cluster.run(text).returncode == 0
    assert cluster.offers() == {"n1": (0, 0), "n0": (0, 2), "n2": (1, 2)}
    result = cluster.run(sbatch_text(hosts).replace("(n0 n2)", "(n0 n1 n2)"))
    assert result.returncode == 1 and "no node is left for the coordinator" in result.stderr


def test_what_is_run_where(cluster: Cluster) -> None:
    Path("my dir").mkdir()
    config = Path("my dir/it's $HOME.py.pkl")
    config.touch()
    config.with_name(config.name + ".token").write_text("secret123")
    text = sbatch_text(deployment(config=str(config), coordinator_port=7000, cpus=4))
    result = cluster.run(text)
    assert result.returncode == 0, result.stderr
    path = str(config.resolve())
    words = Path("ding.txt").read_text().splitlines()
    assert words == ["-m", "dist", "--module", "coordinator", "--address", "auto", "-c", path]
    calls = Path("calls.txt").read_text()
    assert calls.count("symmetric-run --address 10.0.0.10:7000 --num-cpus=4") == 3
    assert calls.count("--include-dashboard=false") == 1  # Only a head may have that.
    environment = Path("environment.txt").read_text().splitlines()
    assert {
        "RAY_AUTH_MODE=token",
        f"RAY_AUTH_TOKEN_PATH={path}.token",
        "RAY_USAGE_STATS_ENABLED=0",
        "RAY_health_check_failure_threshold=3",
        "RAY_health_check_initial_delay_ms=1000",
        "RAY_health_check_period_ms=1000",
        "RAY_health_check_timeout_ms=1000",
    } <= set(environment)
    assert "secret123" not in text + calls + "".join(environment)
    assert sorted(one.name for one in Path("my dir").iterdir()) == [
        config.name,
        config.name + ".token",
    ]


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "10.0.0.10"),
        ({"NAMED_IP": "127.0.1.1"}, "192.168.0.10"),
        ({"NAMED_IP": ""}, "192.168.0.10"),
        ({"NAMED_IP": "8.8.8.8"}, "192.168.0.10"),
    ],
)
def test_the_address_is_one_that_the_head_has(
    cluster: Cluster, settings: dict[str, str], address: str
) -> None:
    assert cluster.run(sbatch_text(deployment()), **settings).returncode == 0
    assert Path("calls.txt").read_text().count(f"--address {address}:6379 ") == 3


@pytest.mark.parametrize("count", ["", "0", "2"])
def test_a_requeued_job_resumes(cluster: Cluster, count: str) -> None:
    settings = {"SLURM_RESTART_COUNT": count} if count else {}
    assert cluster.run(sbatch_text(deployment()), **settings).returncode == 0
    assert ("--resume" in Path("ding.txt").read_text().split()) == (count == "2")


def test_the_job_ends_as_the_run_does(cluster: Cluster) -> None:
    assert cluster.run(sbatch_text(deployment()), CODE="130").returncode == 130
    assert not list(Path.cwd().glob("*.started"))


def test_a_ray_that_does_not_start_is_a_failure(cluster: Cluster) -> None:
    result = cluster.run(sbatch_text(deployment()), RAY_BROKEN="1")
    assert result.returncode == 1 and "Ray's head did not start on n0" in result.stderr


def test_a_missing_command_is_a_failure(cluster: Cluster) -> None:
    text = sbatch_text(deployment()).replace("scontrol show", "scontrol hide")
    result = cluster.run(text)
    assert result.returncode != 0 and not Path("calls.txt").exists()


def test_options_of_the_job() -> None:
    text = sbatch_text(deployment(cpus=8, gpus=2, memory="16Gi", collector_num=4))
    options = re.findall(r"^#SBATCH --(.*)$", text, re.MULTILINE)
    assert options == [
        "job-name=cartpole",
        "output=cartpole-%j.log",
        "open-mode=append",
        "nodes=6",
        "ntasks-per-node=1",
        "exclusive",
        "cpus-per-task=8",
        "gpus-per-node=2",
        "mem=16G",
        "no-kill",
        "requeue",
    ]
    plain = sbatch_text(deployment())
    assert not re.search("cpus|gpus|mem=|num-cpus", plain)


@pytest.mark.parametrize(
    "changes", [{}, {"cpus": 2}, {"learner_hosts": ("a", "b"), "collector_hosts": ("c.d",)}]
)
def test_the_script_is_a_clean_one(changes: dict[str, Any]) -> None:
    text = sbatch_text(deployment(config="a 'b'/x.pkl", **changes))
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-"], input=text, text=True, check=True)


# --- Kubernetes --------------------------------------------------------------------------------


def misfits(value: Any, kind: Any, path: str = "") -> Iterator[str]:
    """Where a value is not what the schema says."""
    if isinstance(kind, dict):
        yield from _misfits_of_parts(value, kind, path)
    elif kind == "quantity":
        if not (type(value) is int or re.match(SCHEMA["quantity"], value)):
            yield f"{path}: {value!r} is no quantity"
    elif kind in SCHEMA["types"]:
        spec = SCHEMA["types"][kind]
        yield from (
            f"{path}.{key} is missing" for key in spec.get("required", []) if key not in value
        )
        for key, one in value.items():
            if key in spec["fields"]:
                yield from misfits(one, spec["fields"][key], f"{path}.{key}")
            else:
                yield f"{path}.{key} is unknown"
    elif type(value) is not {"string": str, "integer": int, "boolean": bool}[kind]:
        yield f"{path}: {value!r} is no {kind}"


def _misfits_of_parts(value: Any, kind: dict[str, Any], path: str) -> Iterator[str]:
    if "enum" in kind:
        yield from () if value in kind["enum"] else (f"{path}: {value!r} is none of {kind}",)
    elif "list" in kind:
        for i, one in enumerate(value):
            yield from misfits(one, kind["list"], f"{path}[{i}]")
    else:
        for key, one in value.items():
            yield from misfits(one, kind["map"], f"{path}.{key}")


JOBS = [
    deployment(image="me/ding:1"),
    deployment(image="me/ding:1", cpus=4, gpus=1, memory="16G", learner_num=2, collector_num=8),
    deployment(image="me/ding:1", name="Cart_Pole.DQN" * 6, namespace="lab", claim="disk"),
]


@pytest.mark.parametrize("job", JOBS)
def test_the_manifest_is_what_the_schema_asks_for(job: Deployment) -> None:
    manifest = rayjob_manifest(job)
    assert list(misfits(manifest, "RayJob")) == []
    assert manifest["apiVersion"] == "ray.io/v1" and manifest["kind"] == "RayJob"
    # What KubeRay asks for besides.
    assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", manifest["metadata"]["name"])
    assert len(manifest["metadata"]["name"]) <= 47
    spec = manifest["spec"]["rayClusterSpec"]
    assert tuple(map(int, spec["rayVersion"].split("."))) >= (2, 52)


def test_the_schema_finds_faults() -> None:
    manifest = rayjob_manifest(JOBS[1])
    cluster = manifest["spec"]["rayClusterSpec"]
    cluster["workerGroupSpecs"][0]["replica"] = 1
    cluster["workerGroupSpecs"][1]["replicas"] = "1"
    cluster["authOptions"]["mode"] = "none"
    del cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["name"]
    resources = cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["resources"]
    resources["limits"]["memory"] = "16 GB"
    assert len(list(misfits(manifest, "RayJob"))) == 5


@pytest.mark.parametrize("job", JOBS)
def test_the_file_says_the_same(job: Deployment) -> None:
    assert yaml.safe_load(rayjob_text(job)) == rayjob_manifest(job)


def test_what_the_job_is() -> None:
    spec = rayjob_manifest(JOBS[1])["spec"]
    assert spec["shutdownAfterJobFinishes"] is True and spec["backoffLimit"] == 3
    assert spec["entrypoint"] == (
        "env --chdir=/results ding -m dist --module coordinator --address auto "
        "-c /etc/ding/config.pkl --resume"
    )
    cluster = spec["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert cluster["headGroupSpec"]["serviceType"] == "ClusterIP"
    groups = {one["groupName"]: one for one in cluster["workerGroupSpecs"]}
    assert {name: one["replicas"] for name, one in groups.items()} == {"learner": 2, "collector": 8}
    for name, group in groups.items():
        value = group["rayStartParams"]["resources"]
        (word,) = shlex.split(value)  # A shell in the pod reads it.
        assert json.loads(word) == {f"ding_{name}": 1}
    amounts = {
        one["name"]: one["resources"]
        for group in (cluster["headGroupSpec"], *groups.values())
        for one in group["template"]["spec"]["containers"]
    }
    both = {"cpu": "4", "memory": "16Gi"}
    assert amounts["ray-head"] == amounts["ray-collector"] == {"requests": both, "limits": both}
    assert amounts["ray-learner"]["limits"] == {**both, "nvidia.com/gpu": "1"}
    assert not re.search("LoadBalancer|NodePort|Ingress", rayjob_text(JOBS[1]))


def test_config_and_results_are_mounted() -> None:
    cluster = rayjob_manifest(JOBS[0])["spec"]["rayClusterSpec"]
    pods = [one["template"]["spec"] for one in cluster["workerGroupSpecs"]]
    head = cluster["headGroupSpec"]["template"]["spec"]
    for pod in (head, *pods):
        (container,) = pod["containers"]
        assert container["workingDir"] == "/results" and "resources" not in container
        mounted = [mount["name"] for mount in container["volumeMounts"]]
        assert mounted == [volume["name"] for volume in pod["volumes"]]
    assert {"name": "config", "secret": {"secretName": "cartpole-config"}} in head["volumes"]
    assert "config" not in str(pods[0]["volumes"])
    text = rayjob_text(JOBS[0])
    assert "kubectl create secret generic cartpole-config -n default" in text
    assert "--from-file=config.pkl=x.py.pkl" in text


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a b"}, "name = 'a b': must be letters, digits"),
        ({"name": "a\n#SBATCH --uid=0"}, "name = "),
        ({"config": "x\nrm -rf"}, "config = "),
        ({"config": ""}, "config = '': must be the path of a file"),
        ({"learner_hosts": ("$(id)",), "collector_hosts": ("b",)}, r"host = '\$\(id\)': must be"),
        ({"learner_hosts": ("n[1-3]",), "collector_hosts": ("b",)}, r"host = 'n\[1-3\]': must be"),
        ({"learner_hosts": ("a",)}, r"\(-lh\) and of collectors \(-clh\) go together"),
        ({"collector_num": 0}, "collector_num = 0: must be 1 at least"),
        ({"gpus": -1}, "gpus = -1: must be 0 at least"),
        ({"coordinator_port": 70000}, "coordinator_port = 70000: must be 1 to 65535"),
        ({"memory": "16 GB"}, "memory = '16 GB': must be a whole number with M, G or T"),
        ({"namespace": "a\nb"}, "namespace = "),
        ({"claim": "-"}, "claim = '-': must be small letters"),
    ],
)
def test_bad_values_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DingError, match=message):
        deployment(**changes)


def test_what_kubernetes_needs_and_cannot_do() -> None:
    with pytest.raises(DingError, match=r"image = '': must be a container image with ding"):
        rayjob_manifest(deployment())
    with pytest.raises(DingError, match="have no effect on Kubernetes"):
        rayjob_manifest(deployment(image="a", learner_hosts=("a",), collector_hosts=("b",)))
