"""`ding help`: commands, policies, and what the settings of a policy mean."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from ding.entry.commands import table
from ding.entry.commands.options import cut, terminal_width
from ding.entry.commands.table import Say
from ding.utils.errors import DingError, UsageError, nearest


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("topic", nargs="?", metavar="TOPIC", help="a command or a policy")
    p.add_argument("key", nargs="?", metavar="KEY", help="a setting, like learn.batch_size")


def run(args: argparse.Namespace, say: Say) -> int:
    from ding.utils.registry import POLICY_REGISTRY

    if args.topic is None:
        say(table.overview())
    elif args.topic in table.COMMANDS:
        say(table.parser_of(args.topic).format_help().rstrip())
    elif args.topic.lower() in POLICY_REGISTRY:
        say(_settings(args.topic.lower(), args.key))
    else:
        known = [*table.COMMANDS, *POLICY_REGISTRY.query()]
        raise UsageError(f"no command or policy '{args.topic}'{nearest(args.topic, known)}")
    return 0


def _settings(policy: str, key: str | None) -> str:
    leaves = leaves_of(policy)
    if key is None:
        head = f"settings of {policy}: KEY = default (meaning); set them by KEY=VALUE"
        return "\n".join([head, *(_entry(path, leaf) for path, leaf in leaves.items())])
    wanted = {
        path: leaf
        for path, leaf in leaves.items()
        if path == key.removeprefix("policy.") or path.startswith(f"{key}.")
    }
    if not wanted:
        same = [path for path in leaves if path.rpartition(".")[2] == key]
        hint = f"; did you mean '{same[0]}'?" if same else nearest(key, leaves)
        raise DingError(f"{policy} has no setting '{key}'{hint}")
    return "\n".join(_entry(path, leaf, whole=True) for path, leaf in wanted.items())


def leaves_of(policy: str, *, relative: bool = True) -> dict[str, Any]:
    """Every setting of a run with this policy; `relative`: the policy's own without `policy.`."""
    from ding.config.layout import layout
    from ding.config.parts import classes_of
    from ding.config.schema import ABSENT, Leaf

    create = {"policy": {"type": policy}}
    schema = layout(classes_of({}, create, {}, auto=True), create, settled=True)
    found = {path: leaf for path, leaf in schema.items() if isinstance(leaf, Leaf)}
    hidden = ("type", "import_names")
    return {
        path.removeprefix("policy." if relative else ""): leaf
        for path, leaf in sorted(found.items(), key=lambda item: _order(item[0]))
        if path != "seed" and not (leaf.default is ABSENT and path.rpartition(".")[2] in hidden)
    }


def _order(path: str) -> tuple[bool, int, str]:
    """The policy's own settings first, those of its sections next, the env's last."""
    return not path.startswith("policy."), path.count("."), path


def _entry(path: str, leaf: Any, whole: bool = False) -> str:
    head = f"  {path} = {_default(leaf)}"
    width = terminal_width()
    if not leaf.doc and not whole:
        return cut(head, width)
    lines = [cut(head, width)]
    said = [leaf.doc] if leaf.doc else []
    if whole:
        said.append(f"Type: {_type(leaf)}.")
        said += [f"Declared by {leaf.owner}."] if leaf.owner else []
    text = " ".join(part if part.endswith(".") else f"{part}." for part in said)
    lines += textwrap.wrap(
        text, min(width, 100), initial_indent="      ", subsequent_indent="      "
    )
    return "\n".join(lines)


def _default(leaf: Any) -> str:
    from ding.config.schema import ABSENT, REQUIRED

    if leaf.default is REQUIRED:
        return "(required)"
    return "(not set)" if leaf.default is ABSENT else repr(leaf.default)


def _type(leaf: Any) -> str:
    from ding.config.values import describe, describe_like

    return describe_like(leaf.default) if leaf.hint is None else describe(leaf.hint)
