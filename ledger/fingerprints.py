"""What a row depends on: the files whose code its training runs, and a number for what they say.

A row is stale when that number is another one than in the tree that it was trained in. Comments,
docstrings and layout don't count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from ding.utils.errors import DingError

ROOT = Path(__file__).parents[1]
FILES = Path(__file__).with_name("files.json")
_CODE = ("ding", "dizoo", "ledger/*.py", "constraints.txt")

Source = Callable[[str], str | None]
"""The text of a file by its path from the root, or None where there is none."""


def fingerprint(files: Sequence[str], source: Source) -> str:
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name} {_meaning(source(name))}\n".encode())
    return whole.hexdigest()[:16]


@cache
def _meaning(text: str | None) -> str:
    """The same for two texts that Python understands alike."""
    if text is None:
        return "missing"
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_docstring(one)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_docstring(node: ast.AST) -> bool:
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def here(name: str) -> str | None:
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.is_file() else None


def at_commit(commit: str) -> Source:
    def source(name: str) -> str | None:
        return _shown(commit, name)

    return source


@cache
def _shown(commit: str, name: str) -> str | None:
    done = _git("show", f"{commit}:{name}")
    return done.stdout if done.returncode == 0 else None


def files_of(task: str) -> list[str] | None:
    """Those that the training of a task runs; None if nobody has looked yet."""
    names, rows = _stored_files()
    return [names[i] for i in rows[task]] if task in rows else None


def keep_files(task: str, files: Sequence[str]) -> None:
    """The names once, and for each task the numbers of its own: most rows share most files."""
    names, rows = _stored_files()
    names += sorted(set(files) - set(names))
    rows[task] = sorted(names.index(file) for file in files)
    kept = [f'"{name}": {json.dumps(rows[name])}' for name in sorted(rows)]
    listed = json.dumps(names, indent=0)
    text = f'{{"files": {listed},\n"rows": {{\n' + ",\n".join(kept) + "}}\n"
    FILES.write_text(text, encoding="utf-8")


def _stored_files() -> tuple[list[str], dict[str, list[int]]]:
    if not FILES.is_file():
        return [], {}
    stored = json.loads(FILES.read_text(encoding="utf-8"))
    return stored["files"], stored["rows"]


def commit() -> str:
    return _git("describe", "--always", "--dirty", "--abbrev=10").stdout.strip() or "unknown"


def check_clean() -> None:
    """Refuse to measure code that no commit has."""
    changed = _git("status", "--porcelain", "--", *_CODE).stdout.split("\n")
    names = [line[3:] for line in changed if line]
    if names:
        raise DingError(
            f"{names[0]} differs from the last commit ({len(names)} such files): a row of the "
            "ledger names the commit that it measures, so commit them first"
        )


def _git(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
