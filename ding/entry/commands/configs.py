"""`ding config`: what is set in a config, what a key means, how two configs differ."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ding.config.tree import MISSING, lookup, values_of
from ding.entry.commands.options import cut, import_from_here, terminal_width
from ding.entry.commands.table import Say
from ding.utils.errors import ConfigError

_CONFIG = "total_config.py"
_NAMES = ("exp_name", "seed")
"""Keys in which runs differ by their names alone."""


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("config", metavar="RUN | FILE", help="directory of a run, or a config file")
    which = p.add_mutually_exclusive_group()
    which.add_argument("--explain", metavar="KEY", help="a key or section: value, origin, meaning")
    which.add_argument("--diff", metavar="OTHER", help="settings in which another one differs")
    which.add_argument("--all", action="store_true", help="every setting, not only what was set")


def run(args: argparse.Namespace, say: Say) -> int:
    from ding.config import explain

    import_from_here()
    cfg = compiled_of(args.config)
    if args.explain:
        text = explain(cfg, _full(cfg, args.explain))
        # The saved config has all values in one place: who set them is not in it.
        say(text.replace(" (user)", " (in this run)") if Path(args.config).is_dir() else text)
    elif args.diff:
        say("\n".join(_differences(cfg, compiled_of(args.diff))) or "the settings are the same")
    else:
        width = terminal_width()
        rows = _settings(cfg, args.all)
        say("\n".join(cut(f"{path} = {value!r}", width) for path, value in rows))
    return 0


def compiled_of(place: str) -> Any:
    """The compiled config of a run or a file."""
    from ding.config import compile_config, read_config

    path = Path(place)
    file = path / _CONFIG if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise ConfigError(f"'{place}' is not the directory of a run, it has no {_CONFIG}")
    main, create = read_config(file)
    return compile_config(main, auto=True, create_cfg=create, save_cfg=False)


def _full(cfg: Any, key: str) -> str:
    """The key by its path from the top."""
    inside = f"policy.{key}"
    return inside if lookup(cfg, key) is MISSING and lookup(cfg, inside) is not MISSING else key


def _settings(cfg: Any, everything: bool) -> Iterator[tuple[str, Any]]:
    defaults = {} if everything else _defaults(cfg.policy.type)
    for path, value in values_of(cfg):
        if everything or defaults.get(path, MISSING) != value:
            yield path, value


def _defaults(policy: str) -> dict[str, Any]:
    from ding.entry.commands.guide import leaves_of

    return {path: leaf.default for path, leaf in leaves_of(policy, relative=False).items()}


def _differences(cfg: Any, other: Any) -> Iterator[str]:
    mine, theirs = dict(values_of(cfg)), dict(values_of(other))
    for path in sorted({*mine, *theirs} - set(_NAMES)):
        one, two = mine.get(path, MISSING), theirs.get(path, MISSING)
        if one != two:
            yield f"{path}: {_shown(one)} -> {_shown(two)}"


def _shown(value: Any) -> str:
    return "(none)" if value is MISSING else repr(value)
