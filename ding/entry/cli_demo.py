"""`ding demo make | show | check`: demonstrations on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from ding.utils.errors import DingError

WORD = "demo"


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="ding demo",
        description="Make demonstrations with a trained policy, look at them, check them.",
        epilog="example: ding demo make cartpole_dqn_seed0 --episodes 20 -o expert.hdf5",
        allow_abbrev=False,
    )
    commands = p.add_subparsers(dest="command", required=True, metavar="make|show|check")
    make = commands.add_parser("make", help="let a trained policy play", allow_abbrev=False)
    make.add_argument("run", metavar="RUN", help="directory of a run, or a config file")
    make.add_argument("--episodes", type=int, default=10, metavar="N", help="how many (10)")
    make.add_argument("-o", "--output", required=True, metavar="FILE", help="file to write")
    make.add_argument("-s", "--seed", type=int, default=0, help="seed of the envs (0)")
    make.add_argument("--load-path", metavar="CKPT", help="checkpoint; the run's best by default")
    show = commands.add_parser("show", help="a page about a file", allow_abbrev=False)
    show.add_argument("file", metavar="FILE")
    show.add_argument("--picture", metavar="PNG", help="write a picture too")
    check = commands.add_parser("check", help="does it fit a config?", allow_abbrev=False)
    check.add_argument("file", metavar="FILE")
    check.add_argument("-c", "--config", metavar="FILE", help="config file, .py or .yaml")
    check.add_argument("-e", "--env", help="without -c: env of the zoo or any Gymnasium id")
    check.add_argument("-p", "--policy", help="without -c: policy by its registered name")
    return p


def run(words: Sequence[str], say: Callable[[str], None]) -> int:
    args = parser().parse_args(words)
    say({"make": _make, "show": _show, "check": _check}[args.command](args))
    return 0


def _make(args: argparse.Namespace) -> str:
    from ding.data.demo_summary import summary
    from ding.entry.demo import make

    return summary(make(args.run, args.episodes, args.output, args.seed, args.load_path))


def _show(args: argparse.Namespace) -> str:
    from ding.entry.demo import show

    return show(args.file, args.picture)


def _check(args: argparse.Namespace) -> str:
    from ding.entry.demo import check
    from ding.entry.predefined import predefined_config

    config: Any = args.config
    if bool(config) == bool(args.env and args.policy):
        raise DingError("check against what? give either -c FILE, or -e ENV and -p POLICY")
    return check(args.file, config or list(predefined_config(args.env, args.policy)))
