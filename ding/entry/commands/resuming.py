"""`ding resume`: go on with a run exactly where it was stopped."""

from __future__ import annotations

import argparse
from pathlib import Path

from ding.entry.commands.listing import runs_below
from ding.entry.commands.options import count, import_from_here
from ding.entry.commands.table import Say
from ding.utils.errors import CheckpointError

_CONFIG = "total_config.py"


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("run", metavar="RUN", help="directory of the run")
    p.add_argument("--steps", type=count, metavar="N", help="most env steps now (as before)")


def run(args: argparse.Namespace, say: Say) -> int:
    from ding.config import read_config
    from ding.entry.seeds import mode_of, train_one
    from ding.utils.limits import Limits

    import_from_here()
    directory = Path(args.run)
    file = directory / _CONFIG
    if not file.is_file():
        raise CheckpointError(f"nothing to resume: {_what_is_at(directory)}")
    main, create = read_config(file)
    limits = Limits() if args.steps is None else Limits(env_step=args.steps)
    mode = mode_of(directory, create)
    result = train_one([main, create], main.get("seed", 0), limits, directory, mode)
    return 130 if result["interrupted"] else 0


def _what_is_at(directory: Path) -> str:
    if not directory.exists():
        return f"there is no '{directory}' (ding list runs shows what there is)"
    inner = [str(path.parent) for path in runs_below(directory, depth=1)]
    if inner:
        return f"'{directory}' holds several runs, name one: {', '.join(inner[:8])}"
    return f"'{directory}' is not the directory of a run, it has no {_CONFIG}"
