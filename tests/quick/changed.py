"""The tests of what changed, for `make quick`: `python tests/quick/changed.py BASE` lists them.

They are those that were changed themselves, that mirror a changed module by name, and that import
one. What shows only elsewhere is for `make test`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
ALWAYS = "tests/test_imports.py"


def changed_since(base: str, root: Path = ROOT) -> list[str]:
    """Files that differ from where this branch left `base`, committed or not."""
    fork = _git(root, "merge-base", base, "HEAD")[0]
    tracked = _git(root, "diff", "--name-only", "--diff-filter=d", fork)
    return sorted({*tracked, *_git(root, "ls-files", "--others", "--exclude-standard")})


def affected(changed: Iterable[str], tests: Iterable[str], root: Path = ROOT) -> list[str]:
    """Of the files `tests`, those to run after these changes."""
    tests, changed = list(tests), list(changed)
    modules = [PurePosixPath(file) for file in changed if _is_module(file)]
    names = {".".join(module.with_suffix("").parts) for module in modules}
    found = {
        file
        for file in tests
        if file in changed
        or any(_mirrors(PurePosixPath(file), module) for module in modules)
        or (names and names & _imported(root / file))
    }
    return sorted(found | {ALWAYS}) if modules else sorted(found)


def _is_module(file: str) -> bool:
    return file.endswith(".py") and file.startswith(("ding/", "dizoo/"))


def _mirrors(test: PurePosixPath, module: PurePosixPath) -> bool:
    """tests/a/test_b*.py mirrors ding/a/b.py and ding/a/b/c.py, so does tests/a/b/test_c*.py."""
    package, name = module.parts[1:-1], module.stem
    folder, subject = test.parts[1:-1], f"{test.stem.removeprefix('test_')}_"
    if not package or folder[:1] != package[:1]:
        return False
    if folder == package:
        return subject.startswith(f"{name}_")
    inner = package[len(folder) :]
    return folder == package[: len(folder)] and subject in (f"{inner[0]}_", f"{inner[0]}_{name}_")


def _imported(file: Path) -> set[str]:
    """Modules that a file imports, as far as they are named."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}; name another base: BASE=...")
    return done.stdout.splitlines()


def main() -> None:
    tests = [file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py")]
    found = affected(changed_since(sys.argv[1] if sys.argv[1:] else "main"), tests)
    sys.stdout.writelines(f"{file}\n" for file in found)


if __name__ == "__main__":
    main()
