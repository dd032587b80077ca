"""What the `ding` command takes with -m dist."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ding.entry.host_list import expanded_hosts
from ding.utils.errors import DingError, nearest

PLATFORMS = ("local", "slurm", "k8s")
MODULES = ("config", "coordinator", "learner", "collector", "learner_aggregator", "spawn_learner")
ROLES = ("collector", "learner")


def add_options(p: argparse.ArgumentParser) -> None:
    """Add the options of this mode, as a group of their own."""
    d = p.add_argument_group("with -m dist")
    d.add_argument("-M", "--module", help=f"which part to run: {', '.join(MODULES)}")
    d.add_argument("--module-name", metavar="NAME", help="its name in messages")
    d.add_argument("--address", metavar="HOST:PORT", help="of a Ray cluster that runs; or 'auto'")
    for what in ("add", "delete", "restart"):
        d.add_argument(f"--{what}", metavar="ROLE", help=f"{what} a collector or learner of a run")
    d.add_argument("-rs", "--replicas", type=int, metavar="N", help="how many; 1 by default")
    d.add_argument("-rpn", "--restart-pod-name", metavar="NAME", help="which one to restart")
    d.add_argument("-cdh", "--coordinator-host", metavar="HOST")
    d.add_argument("-cdp", "--coordinator-port", type=int, metavar="PORT")
    d.add_argument("-lh", "--learner-host", dest="learner_hosts", metavar="HOSTS")
    d.add_argument("-clh", "--collector-host", dest="collector_hosts", metavar="HOSTS")
    d.add_argument("-cdn", "--coordinator-name", metavar="NAME", help="of the job")
    d.add_argument("-ns", "--namespace", help="of Kubernetes")
    d.add_argument("--cpus", type=int, metavar="N", help="of each machine")
    d.add_argument("--gpus", type=int, metavar="N", help="of each learner's machine")
    d.add_argument("--memory", metavar="SIZE", help="of each machine, like 16Gi")
    d.add_argument("--image", help="of containers, with -p k8s")
    # Of the former transport: Ray finds ports and hosts by itself, and there is one log.
    for short, long in (("-lp", "learner"), ("-clp", "collector"), ("-agp", "aggregator")):
        d.add_argument(short, f"--{long}-port", type=int, help=argparse.SUPPRESS)
    d.add_argument("-agh", "--aggregator-host", help=argparse.SUPPRESS)
    for name in ("--enable-total-log", "--disable-flask-log", "--kubeconfig"):
        d.add_argument(name, help=argparse.SUPPRESS)


def _names() -> tuple[str, ...]:
    p = argparse.ArgumentParser(add_help=False)
    add_options(p)
    return tuple(vars(p.parse_args([])))


OPTIONS = _names()
"""The options by the names that they have after parsing."""


def check_options(args: argparse.Namespace) -> None:
    """Refuse what makes no sense together, before anything slow is imported."""
    platform, args.policy = args.platform or args.policy or "local", None
    args.platform = platform
    if platform not in PLATFORMS:
        raise DingError(
            f"-p {platform}: with -m dist -p is the platform{nearest(platform, PLATFORMS)}"
        )
    wishes = [what for what in ("add", "delete", "restart") if getattr(args, what)]
    if len(wishes) + (args.module is not None) != 1:
        raise DingError(
            f"-m dist does one thing: --module {' | '.join(MODULES)}, or --add, --delete or "
            "--restart collector | learner"
        )
    if args.module is not None and args.module not in MODULES:
        raise DingError(f"--module {args.module}{nearest(args.module, MODULES)}")
    for what in wishes:
        if getattr(args, what) not in ROLES:
            role = getattr(args, what)
            raise DingError(f"--{what} {role}{nearest(role, ROLES)}")
    if args.replicas is not None and args.replicas < 1:
        raise DingError(f"--replicas {args.replicas}: must be 1 at least")
    if args.config is None:
        raise DingError("which config? give -c FILE")


def run(
    args: argparse.Namespace,
    limits: Any,
    configs: Callable[[argparse.Namespace], list[Any]],
    say: Callable[[str], None],
) -> int:
    """`configs` reads the file of -c as main_config, create_config and system_config."""
    from ding.entry import dist

    number = args.replicas or 1
    for what in ("add", "delete", "restart"):
        if role := getattr(args, what):
            return _wish(args, what, role, number, say)
    module = args.module
    if module == "config":
        read = configs(args)
        seed = args.seed[0] if args.seed else read[0].get("seed", 0)
        dist.write_plan(args.config, read, seed, args.platform, _options(args), say)
        return 0
    if module == "coordinator":
        seed = args.seed[0] if args.seed else None
        result = dist.coordinate(args.config, seed, limits, args.resume, args.address)
        return 130 if result["interrupted"] else 0
    role = "collector" if module == "collector" else "learner"
    if module == "learner_aggregator" and args.replicas is None:
        number = dist.learners_of(args.config)
    return dist.offer(args.config, role, args.module_name or module, number, args.address, say)


def _wish(
    args: argparse.Namespace, what: str, role: str, number: int, say: Callable[[str], None]
) -> int:
    from ding.entry import dist
    from ding.parallel.backend import Order

    if args.platform == "k8s" and what != "restart":
        raise DingError(
            f"--{what} {role} on Kubernetes: change the replicas of its worker group instead, "
            "`kubectl edit raycluster`; collectors join and leave by themselves"
        )
    if what == "add" and role == "collector" and args.platform == "local":
        name = args.module_name or "collector"
        return dist.offer(args.config, role, name, number, args.address, say)
    order = Order(what, role, number, args.restart_pod_name)
    return dist.order(args.config, order, args.address, say)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    options = {name: getattr(args, name) for name in OPTIONS}
    for name, option in (("learner_hosts", "-lh"), ("collector_hosts", "-clh")):
        if options[name] is not None:
            options[name] = expanded_hosts(options[name], option)
    return options
