"""The `ding` command as it is started: what takes time is imported where Ctrl-C can be answered."""

from __future__ import annotations

import sys


def main() -> int:
    try:
        from ding.entry.cli import main as command

        return command()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
