"""Runs on many machines, or in many processes of one: each process is a part of a Ray cluster.

The coordinator's process has Ray's head. The others join it and offer room for collectors or
learners, which the coordinator then puts there; they may come and go while the run goes on.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ding.config import compile_config
from ding.config.pickled import load_pickled, save_pickled
from ding.entry.deploy import Deployment, rayjob_text, sbatch_text
from ding.entry.parallel import ParallelRun
from ding.entry.parallel_config import check_parallel, translated
from ding.league.run import LeagueRun, compiled_league
from ding.parallel.backend import Order
from ding.parallel.cluster import (
    LOOPBACK,
    Node,
    answers,
    close_to_others,
    free_port,
    wait_for,
    write_token,
)
from ding.parallel.fleet import Fleet
from ding.parallel.ray_backend import ClusterBackend, give_order, require_ray
from ding.utils.errors import ConfigError, DingError
from ding.utils.limits import Limits

Tell = Callable[[str], None]

# For a coordinator to appear; it may wait in a queue of the cluster.
_PATIENCE = 3600.0
# For another one, after the first is gone: a run that was killed may be resumed.
_SECOND_PATIENCE = 20.0
_PORT = 6379


@dataclass(frozen=True)
class Plan:
    """What `--module config` has written down for all the other processes."""

    path: Path
    main: dict[str, Any]
    create: dict[str, Any]
    system: dict[str, Any]
    seed: int

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        if not str(path).endswith(".pkl"):
            raise ConfigError(
                f"-c {path}: this module takes the file that `ding -m dist --module config -c "
                f"{path}` writes: {Path(path).name}.pkl"
            )
        data = load_pickled(path)
        parts = (data["main_config"], data["create_config"], data["system_config"])
        return cls(Path(path), *parts, data["seed"])

    @property
    def address(self) -> str:
        """Where the coordinator is to be found."""
        place = self.system.get("dist") or {}
        host, port = place.get("coordinator_host"), place.get("coordinator_port", _PORT)
        if not host:
            raise DingError(
                f"{self.path} does not say where the coordinator is: give --address HOST:{port}"
            )
        return f"{host}:{port}"

    @property
    def token(self) -> Path:
        path = token_of(self.path)
        if not path.is_file():
            raise DingError(
                f"{path} is missing: `--module config` writes it beside {self.path.name}; copy it "
                "with that file, for your eyes alone (mode 0600)"
            )
        if path.stat().st_mode & 0o077:
            raise DingError(f"{path} can be read by others: chmod 600 {path}")
        return path.absolute()

    def close_to_others(self, address: str) -> None:
        close_to_others(self.token, loopback=address.startswith(f"{LOOPBACK}:"))


def token_of(config: Path) -> Path:
    return Path(f"{config}.token")


# --- --module config -----------------------------------------------------------------------------


def write_plan(
    config: str,
    configs: list[Any],
    seed: int,
    platform: str,
    options: Mapping[str, Any],
    tell: Tell,
) -> None:
    """Everything that the other processes need: the config, the token, and how to launch them."""
    main, create, system = configs
    require_ray()
    fleet = _checked(main, create, system, seed)
    if platform != "local" and not fleet.learner_num:
        raise DingError(
            f"-p {platform}: launch files are for runs with learners, and those of a league learn "
            "in the coordinator; use -p local -cdh HOST, and start its lines on the machines"
        )
    path = Path(Path(config).name + ".pkl")
    host = options.get("coordinator_host") or _usual_host(platform, options)
    port = options.get("coordinator_port") or (free_port() if platform == "local" else _PORT)
    place = {"platform": platform, "coordinator_host": host, "coordinator_port": port}
    launch = None
    if platform != "local":  # before anything is written: it may be refused
        launch = _launch_file(Path(config), path, platform, fleet, {**options, **place})
    parts = {"main_config": main, "create_config": create}
    save_pickled(path, {**parts, "system_config": {**(system or {}), "dist": place}, "seed": seed})
    write_token(token_of(path))
    tell(f"wrote {path}")
    tell(f"wrote {token_of(path)}: whoever has it can join the run and run code in it")
    if launch is None:
        tell("now start, in this directory:")
        for role, number in (("learner", fleet.learner_num), ("collector", fleet.collector_num)):
            for i in range(number):
                tell(f"  ding -m dist --module {role} --module-name {role}{i} -c {path} &")
        tell(f"  ding -m dist --module coordinator -c {path}")
    else:
        launch.file.write_text(launch.text, encoding="utf-8")
        tell(f"wrote {launch.file}; submit it with: {launch.command} {launch.file}")


def _usual_host(platform: str, options: Mapping[str, Any]) -> str:
    """Where the coordinator is to be started, if nobody says: by hand it is where the plan is."""
    by_hand = platform == "slurm" and options.get("learner_hosts")
    return LOOPBACK if platform == "local" else socket.gethostname() if by_hand else ""


def _checked(main: Any, create: Any, system: Any, seed: int) -> Fleet:
    """Find out here, and not on a cluster, what is wrong with a config."""
    if "league" in main:
        # Players learn where the coordinator is.
        _, league = compiled_league(main, create, seed)
        return Fleet(league.get("collector_num") or 2, {}, learner_num=0)
    main, create, fleet = translated(main, create, system)
    cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
    check_parallel(cfg, fleet)
    return fleet


@dataclass(frozen=True)
class LaunchFile:
    file: Path
    text: str
    command: str
    """Command that submits it."""


def _launch_file(
    config: Path, path: Path, platform: str, fleet: Fleet, options: Mapping[str, Any]
) -> LaunchFile:
    hosts, sizes = ("learner_hosts", "collector_hosts"), ("cpus", "gpus", "memory")
    names = (*hosts, *sizes, "namespace", "image", "coordinator_port")
    deployment = Deployment(
        config=str(path),
        name=options.get("coordinator_name") or config.stem.replace("_", "-"),
        learner_num=fleet.learner_num,
        collector_num=fleet.collector_num,
        ray_version=version("ray"),
        **{name: options[name] for name in names if options.get(name)},
    )
    if platform == "slurm":
        return LaunchFile(Path(f"{config.name}.sbatch"), sbatch_text(deployment), "sbatch")
    file = Path(f"{config.name}.rayjob.yaml")
    return LaunchFile(file, rayjob_text(deployment), "kubectl apply -f")


# --- --module coordinator ------------------------------------------------------------------------


def coordinate(
    config: str,
    seed: int | None,
    limits: Limits,
    resume: str | bool,
    address: str | None,
) -> dict[str, Any]:
    """Start Ray's head, or join the cluster at `address`, and train until the run is over."""
    plan = Plan.read(config)
    require_ray()
    if address is None:
        plan.close_to_others(plan.address)
        if answers(plan.address):
            raise DingError(
                f"somebody listens at {plan.address} already: another coordinator of this run? "
                "Write another plan with --module config, or give -cdp another port there"
            )
    elif not any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
        close_to_others(plan.token, loopback=False)
    configs = [_absolute(plan.main), plan.create, plan.system]

    def start(dashboard: bool = False) -> ClusterBackend:
        if address is not None:
            return ClusterBackend(address)
        head = Node(plan.address, head=True, offers={}, dashboard=dashboard)
        head.wait_until_up()
        return ClusterBackend(plan.address, head)

    chosen = plan.seed if seed is None else seed
    if "league" in plan.main:
        with LeagueRun(configs, chosen, limits, resume, start=start, or_begin=True) as league:
            return league.train()
    with ParallelRun(
        configs,
        chosen,
        limits,
        resume,
        start=lambda fleet: start(fleet.dashboard),
        or_begin=True,
    ) as run:
        return run.train()


def _absolute(main: Mapping[str, Any]) -> dict[str, Any]:
    """Learners and collectors elsewhere write into the same directory, if they share a disk."""
    name = main.get("exp_name", "default_experiment")
    return {**main, "exp_name": str(Path(name).absolute())}


# --- --module collector and the like -------------------------------------------------------------


def offer(config: str, role: str, name: str, number: int, address: str | None, tell: Tell) -> int:
    """Join the run and offer room for `number` services, until the run or this process ends."""
    plan = Plan.read(config)
    require_ray()
    where, patience = address or plan.address, _PATIENCE
    plan.close_to_others(where)
    stop = threading.Event()
    for told in (signal.SIGINT, signal.SIGTERM):
        signal.signal(told, lambda *_: stop.set())
    tell(f"{name}: waiting for the coordinator at {where}")
    while wait_for(where, patience, stop.is_set):
        node = Node(where, head=False, offers={role: number})
        tell(f"{name}: joined {where}, offers {number} {role}{'s' * (number > 1)}")
        while node.is_alive and answers(where) and not stop.wait(0.5):
            pass
        if not node.is_alive and answers(where):
            tell(f"{name}: Ray ended here, joining again; it said:\n{node.last_words}")
        node.stop()
        patience = _SECOND_PATIENCE
    tell(f"{name}: " + ("told to end" if stop.is_set() else f"no coordinator at {where} any more"))
    return 0


def learners_of(config: str) -> int:
    """How many the run wants: a machine for all of them is what an aggregator's was."""
    plan = Plan.read(config)
    *_, fleet = translated(plan.main, plan.create, plan.system)
    return fleet.learner_num


def order(config: str, order: Order, address: str | None, tell: Tell) -> int:
    """Have a run that goes on use more or fewer services, or begin some of them anew."""
    plan = Plan.read(config)
    where = address or plan.address
    if not answers(where):
        raise DingError(f"no coordinator at {where}: is the run of {config} going on?")
    plan.close_to_others(where)
    give_order(where, order)
    tell(f"told the coordinator at {where} to {order.words}")
    return 0
