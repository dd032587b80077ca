"""Launch files of distributed runs: an sbatch script for SLURM, a RayJob for Kubernetes.

In both Ray starts on every node. One node is the head and runs the coordinator; the others offer
`ding_learner` and `ding_collector`, and the coordinator puts learners and collectors there.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from ding.utils.errors import DingError

LEARNER = "ding_learner"
COLLECTOR = "ding_collector"
"""Ray resources: how many learners and collectors a node has room for."""

# What makes a lost node known within seconds; Ray's own settings take a minute.
HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", **HEALTH}
_HOST = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_LABEL = (r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", "small letters, digits, '.' and '-'")
_FORMS = {
    "config": (r"[^\x00-\x1f\x7f]+", "the path of a file"),
    "name": (_HOST, "letters, digits, '.', '_' and '-'"),
    "memory": ("|[1-9][0-9]*[MGT]i?", "a whole number with M, G or T, like 16G"),
    "namespace": _LABEL,
    "claim": _LABEL,
}
_RETRIES = 3
_CONFIG = "/etc/ding/config.pkl"
_RESULTS = "/results"


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A run and where it is to go."""

    config: str
    """Path of the pickled config, as whoever launches the run sees it."""
    name: str
    learner_num: int = 1
    collector_num: int = 2
    learner_hosts: tuple[str, ...] = ()
    collector_hosts: tuple[str, ...] = ()
    """SLURM only; without hosts SLURM chooses, one node for each learner and collector."""
    coordinator_port: int = 6379
    cpus: int = 0
    """Of a node; 0: as many as it has."""
    gpus: int = 0
    """Of a node; on Kubernetes of a learner's."""
    memory: str = ""
    """Of a node, like 16G or 16Gi, which is the same; nothing: as much as it has."""
    namespace: str = "default"
    image: str = ""
    """Kubernetes only: a container image with ding and ray[default]."""
    claim: str = "ding-results"
    """Kubernetes only: a volume that all pods share, for what the run leaves behind."""
    ray_version: str = "2.60.0"
    """Kubernetes only: that of the image."""

    def __post_init__(self) -> None:
        for key, lowest in (("learner_num", 1), ("collector_num", 1), ("cpus", 0), ("gpus", 0)):
            _need(getattr(self, key) >= lowest, key, getattr(self, key), f"{lowest} at least")
        port = self.coordinator_port
        _need(0 < port < 2**16, "coordinator_port", port, "1 to 65535")
        for key, (form, wanted) in _FORMS.items():
            _need(re.fullmatch(form, getattr(self, key)), key, getattr(self, key), wanted)
        for host in (*self.learner_hosts, *self.collector_hosts):
            _need(re.fullmatch(_HOST, host), "host", host, "the name of one node, as SLURM has it")
        if bool(self.learner_hosts) != bool(self.collector_hosts):
            raise DingError("hosts of learners (-lh) and of collectors (-clh) go together")


def _need(holds: object, key: str, value: object, wanted: str) -> None:
    if not holds:
        raise DingError(f"{key} = {value!r}: must be {wanted}")


# --- SLURM -------------------------------------------------------------------------------------


def sbatch_text(deployment: Deployment) -> str:
    """An sbatch script that runs `ray symmetric-run` on every node."""
    d = deployment
    values = {
        "options": "\n".join(f"#SBATCH --{option}" for option in _options(d)),
        "config": shlex.quote(d.config),
        "settings": "\n".join(f"export {name}={value}" for name, value in _SETTINGS.items()),
        "roles": _NAMED.format(*map(" ".join, (d.learner_hosts, d.collector_hosts)))
        if d.learner_hosts
        else _SPREAD.format(learner_num=d.learner_num),
        "learner_num": d.learner_num,
        "collector_num": d.collector_num,
        "port": d.coordinator_port,
        "srun": f" --cpus-per-task={d.cpus}" if d.cpus else "",
        "ray": f" --num-cpus={d.cpus}" if d.cpus else "",
    }
    return _SCRIPT.format(**values)


def _options(d: Deployment) -> list[str]:
    hosts = sorted({*d.learner_hosts, *d.collector_hosts})
    nodes = 1 + (len(hosts) or d.learner_num + d.collector_num)
    return [
        f"job-name={d.name}",
        f"output={d.name}-%j.log",
        "open-mode=append",
        f"nodes={nodes}",
        *([f"nodelist={','.join(hosts)}"] if hosts else []),
        "ntasks-per-node=1",
        # Ray takes a node for itself alone: it ends all of Ray there when it ends.
        "exclusive",
        *([f"cpus-per-task={d.cpus}"] if d.cpus else []),
        *([f"gpus-per-node={d.gpus}"] if d.gpus else []),
        *([f"mem={d.memory.rstrip('i')}"] if d.memory else []),
        "no-kill",
        "requeue",
    ]


_NAMED = """\
learners=({0})
collectors=({1})
head=
for node in "${{nodes[@]}}"; do
    if ! among "$node" "${{learners[@]}}" "${{collectors[@]}}"; then
        head=$node
    fi
done
if [[ -z $head ]]; then
    echo "no node is left for the coordinator: all of ${{nodes[*]}} are named as hosts" >&2
    exit 1
fi"""

_SPREAD = """\
# The first node is the head's. Learners get the next ones, collectors the rest; the last two share
# a node if there is but one for them, and everything is on the head if that is alone.
head=${{nodes[0]}}
rest=("${{nodes[@]:1}}")
if ((${{#rest[@]}} == 0)); then
    rest=("$head")
fi
count={learner_num}
while ((count > 1 && count >= ${{#rest[@]}})); do
    count=$((count - 1))
done
learners=("${{rest[@]:0:count}}")
collectors=("${{rest[@]:count}}")
if ((${{#collectors[@]}} == 0)); then
    collectors=("${{learners[@]}}")
fi"""

_SCRIPT = """\
#!/bin/bash
{options}
#
# Submit it from the directory it is in, with the environment active that has ding and Ray:
#     sbatch FILE
# All nodes must see that directory. After a requeue the run goes on where it was saved last.

set -euo pipefail

config=$(realpath -- {config})

# Nobody joins without the token; a file, so that no list of processes shows it.
export RAY_AUTH_MODE=token
export RAY_AUTH_TOKEN_PATH=$config.token
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=300
{settings}

among() {{ # whether the first word is among the others
    local word=$1
    shift
    [[ " $* " == *" $word "* ]]
}}

names=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
mapfile -t nodes <<<"$names"

{roles}

offers() {{ # what a node has room for
    local learner=0 collector=0
    if among "$1" "${{learners[@]}}"; then
        learner=$((({learner_num} + ${{#learners[@]}} - 1) / ${{#learners[@]}}))
    fi
    if among "$1" "${{collectors[@]}}"; then
        collector=$((({collector_num} + ${{#collectors[@]}} - 1) / ${{#collectors[@]}}))
    fi
    echo "{{\\"ding_learner\\": $learner, \\"ding_collector\\": $collector}}"
}}

step=(srun --nodes=1 --ntasks=1{srun})

# The head knows itself by its address: the one that its name stands for, if it really has that.
own=$("${{step[@]}}" --nodelist="$head" hostname --all-ip-addresses)
named=$("${{step[@]}}" --nodelist="$head" hostname --ip-address || true)
ip=
for one in $own; do
    if [[ -z $ip && $one != *:* ]] || among "$one" "$named"; then
        ip=$one
    fi
done
if [[ -z $ip ]]; then
    echo "$head has no IPv4 address that other nodes could reach" >&2
    exit 1
fi
address=$ip:{port}

resume=()
if ((${{SLURM_RESTART_COUNT:-0}} > 0)); then
    resume=(--resume)
fi
# symmetric-run ends well also if Ray does not start: what shows that it did is this file.
started=$config.$SLURM_JOB_ID.started
rm -f -- "$started"
# shellcheck disable=SC2016  # Expanded by the inner shell.
command=(
    bash -c 'touch -- "$0" && exec "$@"' "$started"
    ding -m dist --module coordinator --address auto -c "$config" "${{resume[@]}}"
)

start=(ray symmetric-run --address "$address"{ray})
others=()
trap 'rm -f -- "$started"; kill "${{others[@]}}" 2>/dev/null || true' EXIT
for node in "${{nodes[@]}}"; do
    if [[ $node != "$head" ]]; then
        "${{step[@]}}" --nodelist="$node" \\
            "${{start[@]}}" --resources "$(offers "$node")" -- "${{command[@]}}" &
        others+=("$!")
    fi
done
status=0
"${{step[@]}}" --nodelist="$head" \\
    "${{start[@]}}" --resources "$(offers "$head")" --include-dashboard=false -- \\
    "${{command[@]}}" || status=$?
if [[ ! -e $started ]]; then
    echo "Ray's head did not start on $head; the lines above say why" >&2
    exit 1
fi
exit "$status"
"""


# --- Kubernetes --------------------------------------------------------------------------------


def rayjob_text(deployment: Deployment) -> str:
    """The manifest as a file for `kubectl apply`, with what has to be there before."""
    d, name = deployment, _label(deployment.name)
    return _NOTES.format(
        secret=f"{name}-config",
        namespace=d.namespace,
        source=shlex.quote(f"{PurePosixPath(_CONFIG).name}={d.config}"),
        claim=d.claim,
        name=name,
    ) + yaml.safe_dump(rayjob_manifest(d), sort_keys=False, width=1000)


_NOTES = """\
# A distributed run as a RayJob, for KubeRay 1.5.1 or newer. It needs a PersistentVolumeClaim
# '{claim}' (ReadWriteMany) for the results, and the config as a secret:
#     kubectl create secret generic {secret} -n {namespace} \\
#         --from-file={source}
# Then start and follow it:
#     kubectl apply -f FILE
#     kubectl logs -f -n {namespace} -l job-name={name}
# A retry goes on with the run that it finds in the volume; so does a second job of the same
# exp_name. KubeRay makes the token without which nobody joins; no port is open to the outside.
"""


def rayjob_manifest(deployment: Deployment) -> dict[str, Any]:
    """A KubeRay RayJob with a head, a group of learners and a group of collectors."""
    d = deployment
    _need(d.image, "image", d.image, "a container image with ding and ray[default] (--image)")
    if d.learner_hosts:
        raise DingError("hosts (-lh, -clh) have no effect on Kubernetes, which chooses them")
    command = ["ding", "-m", "dist", "--module", "coordinator", "--address", "auto", "-c", _CONFIG]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": _label(d.name), "namespace": d.namespace},
        "spec": {
            "entrypoint": shlex.join(["env", f"--chdir={_RESULTS}", *command, "--resume"]),
            "shutdownAfterJobFinishes": True,
            "backoffLimit": _RETRIES,
            "rayClusterSpec": {
                "rayVersion": d.ray_version,
                "authOptions": {"mode": "token"},
                "headGroupSpec": {
                    "serviceType": "ClusterIP",
                    # Tasks of others have no business on the coordinator's node.
                    "rayStartParams": {"num-cpus": "0"},
                    "template": _pod(d, "head"),
                },
                "workerGroupSpecs": [
                    _group(d, "learner", LEARNER, d.learner_num),
                    _group(d, "collector", COLLECTOR, d.collector_num),
                ],
            },
        },
    }


def _group(d: Deployment, role: str, resource: str, number: int) -> dict[str, Any]:
    return {
        "groupName": role,
        "replicas": number,
        "minReplicas": number,
        "maxReplicas": number,
        # Read by a shell in the pod, hence quoted once more.
        "rayStartParams": {"resources": json.dumps(json.dumps({resource: 1}))},
        "template": _pod(d, role),
    }


def _pod(d: Deployment, role: str) -> dict[str, Any]:
    amounts = {
        "cpu": str(d.cpus) if d.cpus else "",
        "memory": d.memory.rstrip("i") + "i" if d.memory else "",
        "nvidia.com/gpu": str(d.gpus) if d.gpus and role == "learner" else "",
    }
    amounts = {name: amount for name, amount in amounts.items() if amount}
    container: dict[str, Any] = {
        "name": f"ray-{role}",
        "image": d.image,
        "workingDir": _RESULTS,
        "env": [{"name": name, "value": value} for name, value in _SETTINGS.items()],
        "volumeMounts": [{"name": "results", "mountPath": _RESULTS}],
    }
    if amounts:
        container["resources"] = {"requests": amounts, "limits": {**amounts}}
    volumes: list[dict[str, Any]] = [
        {"name": "results", "persistentVolumeClaim": {"claimName": d.claim}}
    ]
    if role == "head":
        directory = str(PurePosixPath(_CONFIG).parent)
        mount = {"name": "config", "mountPath": directory, "readOnly": True}
        container["volumeMounts"].append(mount)
        secret = {"secretName": f"{_label(d.name)}-config"}
        volumes.append({"name": "config", "secret": secret})
    return {"spec": {"containers": [container], "volumes": volumes}}


def _label(name: str) -> str:
    """As Kubernetes wants names: small letters, digits and '-', a letter first."""
    label = re.sub("[^a-z0-9]+", "-", name.lower())
    label = label if label[0].isalpha() else f"ding-{label}"
    return label[:47].strip("-")
