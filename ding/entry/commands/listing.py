"""`ding list`: policies, envs, configs of the zoo, runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ding.entry.commands.options import cut, import_from_here, terminal_width
from ding.entry.commands.table import Say
from ding.utils.errors import DingError, UsageError, nearest

_DEEPEST = 4
_SHORT = {
    "multi_discrete": "multi",
    "discrete_agents": "agents",
    "continuous_agents": "agents",
}


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("what", metavar="WHAT", help="policies, envs, configs or runs")
    p.add_argument("word", nargs="?", metavar="WORD", help="only those with this word in their row")


def run(args: argparse.Namespace, say: Say) -> int:
    tables = {
        "policies": (("POLICY", "DATA", "ACTIONS", "WHAT IT IS"), _policies),
        "envs": (("ENV", "FROM", "WHAT IS KNOWN"), _envs),
        "configs": (("ENV", "POLICY", "COMMAND"), _configs),
        "runs": (("RUN", "POLICY", "ENV STEPS", "RETURN", "BEST", "STATE"), _runs),
    }
    if args.what not in tables:
        raise UsageError(f"ding list '{args.what}'{nearest(args.what, tables)}")
    import_from_here()
    head, make_rows = tables[args.what]
    rows = [row for row in make_rows() if _has(row, args.word)]
    if not rows:
        of = f" with '{args.word}'" if args.word else ""
        raise DingError(f"there are no {args.what}{of} here")
    say(aligned([head, *rows]))
    return 0


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, in a terminal cut to its width."""
    most = terminal_width()
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)]
        lines.append(cut("".join(cells).rstrip(), most))
    return "\n".join(lines)


def _has(row: Iterable[str], word: str | None) -> bool:
    return word is None or any(word.lower() in cell.lower() for cell in row)


def _policies() -> list[tuple[str, ...]]:
    from ding.utils.registry import POLICY_REGISTRY

    rows: list[tuple[str, ...]] = []
    for name in POLICY_REGISTRY.query():
        cls = POLICY_REGISTRY.get(name)
        data = "on" if cls.default_config().get("on_policy") else "off"
        kinds = [_SHORT.get(kind, kind) for kind in cls.action_kinds or ("any",)]
        rows.append((name, data, " ".join(dict.fromkeys(kinds)), first_line(cls)))
    return rows


def first_line(cls: Any) -> str:
    """First line of a class's docstring, or of its module's."""
    own = vars(cls).get("__doc__") or ""
    doc = own if own and "(" not in own[:20] else sys.modules[cls.__module__].__doc__ or ""
    return doc.strip().partition("\n")[0].rstrip(".")


def _envs() -> list[tuple[str, ...]]:
    import gymnasium as gym

    from ding.entry.predefined import ZOO, policies_of

    zoo = [(name, "zoo", ", ".join(policies_of(name))) for name in sorted(ZOO)]
    ids = [(name, "gymnasium", _limit(spec)) for name, spec in sorted(gym.registry.items())]
    return [*zoo, *ids]


def _limit(spec: Any) -> str:
    parts = []
    if spec.max_episode_steps is not None:
        parts.append(f"episodes of at most {spec.max_episode_steps} steps")
    if spec.reward_threshold is not None:
        parts.append(f"solved at {spec.reward_threshold:g}")
    return ", ".join(parts)


def _configs() -> list[tuple[str, ...]]:
    from ding.entry.predefined import ZOO, policies_of

    return [
        (name, policy, f"ding train {name} {policy}")
        for name in sorted(ZOO)
        for policy in policies_of(name)
    ]


def _runs() -> list[tuple[str, ...]]:
    return [_row_of(path.parent) for path in runs_below(Path())]


def runs_below(directory: Path, depth: int = _DEEPEST) -> list[Path]:
    """Config files of runs below a directory, a few levels deep."""
    found: list[Path] = []
    for level in range(1, depth + 1):
        found += directory.glob("*/" * level + "total_config.py")
    return sorted(found)


def _row_of(run: Path) -> tuple[str, ...]:
    from ding.config import read_config

    main, create = read_config(run / "total_config.py")
    policy = create.get("policy", {}).get("type") or main.get("policy", {}).get("type") or "?"
    file = run / "result.json"
    if not file.is_file():
        return (str(run), policy, "", "", "", "not finished")
    result = json.loads(file.read_text(encoding="utf-8"))
    values = [result.get("eval_value"), result.get("best_value")]
    shown = ["" if value is None else f"{value:.1f}" for value in values]
    return (str(run), policy, f"{result['env_step']:,}", *shown, _state(result))


def _state(result: dict[str, Any]) -> str:
    if result["interrupted"]:
        return "interrupted"
    return "goal reached" if result["stop"] else "finished"
