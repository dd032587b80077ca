"""Which tests `make quick` runs after which changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quick.changed import ALWAYS, affected, changed_since

TESTS = {
    "tests/policy/test_sac.py": "from ding.policy import SACPolicy",
    "tests/policy/test_sac_extra.py": "",
    "tests/policy/test_sacred.py": "",
    "tests/worker/test_buffer.py": "import ding.worker.buffer.ring",
    "tests/worker/test_buffer_ring.py": "",
    "tests/worker/test_buffer_tree.py": "",
    "tests/envs/manager/test_slot.py": "",
    "tests/entry/test_cli.py": "from ding.utils.checkpoint import load_checkpoint",
    "tests/entry/test_resume.py": "from ding.utils import checkpoint",
    ALWAYS: "",
}


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ("ding/policy/sac.py", ["policy/test_sac.py", "policy/test_sac_extra.py"]),
        ("ding/worker/buffer/ring.py", ["worker/test_buffer.py", "worker/test_buffer_ring.py"]),
        ("ding/envs/manager/slot.py", ["envs/manager/test_slot.py"]),
        ("ding/utils/checkpoint.py", ["entry/test_cli.py", "entry/test_resume.py"]),
        ("ding/__init__.py", []),
    ],
)
def test_mirrors_and_importers(changed: str, wanted: list[str], tmp_path: Path) -> None:
    for file, text in TESTS.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    found = affected([changed, "README.md"], TESTS, tmp_path)
    assert found == sorted([*(f"tests/{name}" for name in wanted), ALWAYS])


def test_changed_tests_alone_need_nothing_else(tmp_path: Path) -> None:
    assert affected(["tests/entry/test_cli.py", "docs/x.md"], TESTS, tmp_path) == [
        "tests/entry/test_cli.py"
    ]


def test_changes_are_those_of_the_branch_committed_or_not(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    for name in ("kept", "edited", "gone"):
        (tmp_path / name).write_text("1")
    git("add", "-A")
    git("commit", "-m", "first")
    git("switch", "-c", "branch")
    (tmp_path / "committed").write_text("1")
    git("add", "-A")
    git("commit", "-m", "second")
    (tmp_path / "edited").write_text("2")
    (tmp_path / "new").write_text("1")
    (tmp_path / "gone").unlink()
    assert changed_since("main", tmp_path) == ["committed", "edited", "new"]
    with pytest.raises(SystemExit, match="BASE="):
        changed_since("nowhere", tmp_path)
