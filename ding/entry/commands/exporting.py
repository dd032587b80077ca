"""`ding export`: a trained policy as one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from ding.entry.commands.options import import_from_here
from ding.entry.commands.table import Say
from ding.utils.errors import UsageError

_BUNDLE, _PROGRAMS = ".ding", (".onnx", ".pt2")


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("run", metavar="RUN", help="directory of a run, or a checkpoint (.pth.tar)")
    p.add_argument(
        "file",
        metavar="FILE",
        help="policy.onnx or policy.pt2 (torch.export) need no ding to run; policy.ding is for "
        "ding.load",
    )


def run(args: argparse.Namespace, say: Say) -> int:
    file = Path(args.file)
    if file.suffix not in (_BUNDLE, *_PROGRAMS):
        raise UsageError(f"'{args.file}': the file ends in {', '.join(_PROGRAMS)} or {_BUNDLE}")
    if file.exists():
        raise UsageError(f"'{args.file}' exists: choose another name, or remove it first")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"'{args.file}': there is no directory '{file.parent}'")
    from ding.agent import load

    import_from_here()
    agent = load(args.run)
    if file.suffix == _BUNDLE:
        agent.save(file)
    else:
        agent.export(file)
    say(f"wrote {file}, {file.stat().st_size:,} bytes: {agent!r}")
    return 0
