"""Host lists as SLURM writes them: `node[01-03,7],login` is node01 to 03, node7 and login."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from ding.utils.errors import DingError

_MOST = 10_000
_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def expanded_hosts(text: str, option: str) -> tuple[str, ...]:
    """Names of the hosts in a list, in order; `option` is where it was given."""
    parts = _PART.findall(text)
    if not parts or ",".join(parts) != text:
        raise _error(option, text, "brackets or commas are out of place")
    hosts: list[str] = []
    for part in parts:
        pieces = re.split(r"\[([^\[\]]*)\]", part)
        choices = [
            list(_numbers(piece, text, option)) if i % 2 else [piece]
            for i, piece in enumerate(pieces)
        ]
        hosts += map("".join, product(*choices))
        if len(hosts) > _MOST:
            raise _error(option, text, f"more than {_MOST:,} hosts")
    twice = {host for host in hosts if hosts.count(host) > 1}
    if twice:
        raise _error(option, text, f"{min(twice)} is named twice")
    return tuple(hosts)


def _numbers(piece: str, text: str, option: str) -> Iterator[str]:
    """Numbers of `01-03,7`, as wide as the first of each range is written."""
    for item in piece.split(","):
        found = _RANGE.fullmatch(item)
        if found is None:
            raise _error(option, text, f"'{item}' is no number and no range")
        first, last = found[1], found[2] or found[1]
        if not int(first) <= int(last) < int(first) + _MOST:
            raise _error(option, text, f"the range '{item}' is empty or too long")
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}}"


def _error(option: str, text: str, reason: str) -> DingError:
    return DingError(f"{option} {text}: {reason}; write hosts like node1,node[2-4] (in quotes)")
