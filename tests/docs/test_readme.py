"""Every block of the README and of the guide runs, with small limits."""

from __future__ import annotations

import re
import runpy
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from ding.entry import cli
from ding.utils.registry import ENV_REGISTRY, POLICY_REGISTRY

REPO = Path(__file__).parents[2]
NAMES = ("README.md", "docs/guide.md", "docs/established.md")
PAGES = {name: (REPO / name).read_text(encoding="utf-8") for name in NAMES}
BLOCKS = {
    name: re.findall(r"^```(\w+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    for name, page in PAGES.items()
}
PYTHON = [
    (name, text) for name, blocks in BLOCKS.items() for kind, text in blocks if kind == "python"
]
FEW_STEPS = 200
FEW_EPISODES = 5


def shell_lines(name: str) -> list[str]:
    return [line for kind, text in BLOCKS[name] if kind == "sh" for line in text.splitlines()]


def test_the_readme_is_a_landing_page() -> None:
    page = PAGES["README.md"]
    assert len(page.encode()) <= 8192
    first_screen = "\n".join(page.splitlines()[:30])
    for shown in ("make train", "make test", "ding.train(", "cartpole_dqn_curve.png", "speed.png"):
        assert shown in first_screen


@pytest.mark.parametrize("name", PAGES)
def test_every_block_is_of_a_kind_that_is_tested(name: str) -> None:
    assert {kind for kind, _ in BLOCKS[name]} <= {"python", "sh"}
    other = [line for line in shell_lines(name) if not line.startswith(("#", "ding "))]
    for line in other:
        words = shlex.split(line)
        assert words[0] == "source" or (REPO / words[2]).is_file(), line


def place(case: tuple[str, str]) -> str:
    name, text = case
    page = PAGES[name]
    return f"{name}:{page[: page.index(text)].count(chr(10))}"


@pytest.mark.parametrize("case", PYTHON, ids=place)
def test_python_block(
    case: tuple[str, str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for registry in (ENV_REGISTRY, POLICY_REGISTRY):  # what a block registers ends with it
        monkeypatch.setattr(registry, "_table", dict(registry._table))
    text = case[1]
    assert ("serial_pipeline(" in text) == ("max_env_step=" in text)
    script = directory / "block.py"
    text = re.sub(r"max_env_step=\d+", f"max_env_step={FEW_STEPS}", text)
    script.write_text(re.sub(r"steps=[\d_]+", "steps=2000", text))
    runpy.run_path(str(script), run_name="__main__")


def briefly(command: str) -> list[str]:
    """The words of a `ding` command, with a small limit where it trains."""
    words = shlex.split(command.replace(".onnx", ".ding"))[1:]  # tests/agent have the slow one
    limit = next((word for word in ("--env-step", "--steps") if word in words), None)
    if limit is not None:
        words[words.index(limit) + 1] = str(FEW_STEPS)
    elif "--episodes" in words:
        words[words.index("--episodes") + 1] = "3"
    elif "serial" in words and "--resume" not in words:
        words += ["--env-step", str(FEW_STEPS)]
    return words


@pytest.mark.parametrize("name", ["README.md", "docs/guide.md"])
def test_commands_in_order(name: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later ones use what earlier ones left behind."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.delenv("DISPLAY", raising=False)
    zoo = import_module("dizoo.classic_control.cartpole.config.cartpole_dqn_config")
    zoo.main_config["env"]["n_evaluator_episode"] = FEW_EPISODES  # Each of them is a video.
    (directory / "dizoo").symlink_to(REPO / "dizoo")
    commands = [line for line in shell_lines(name) if line.startswith("ding ")]
    assert len(commands) >= 4
    for command in commands:
        if command == "ding -h":
            continue  # leaves by SystemExit; tested with the command line
        assert cli.main(briefly(command)) == 0, command
    left = {path.name for path in (directory / "runs/first").iterdir()}
    assert {"total_config.py", "result.json", "result.pkl", "curve.png", "ckpt", "log"} <= left
    if name == "README.md":
        assert (
            len(list((directory / "runs/first/videos").glob("*.mp4"))) == 3 + 3
        )  # of eval and of play
        assert (directory / "runs/policy.ding").is_file()
    else:
        assert len(list((directory / "runs/first/video").glob("*.mp4"))) == FEW_EPISODES
        assert (directory / "runs/profile/profile.txt").is_file()
        assert (directory / "runs/cartpole_dqn/summary.json").is_file()


def test_make_targets_exist() -> None:
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    text = "".join(PAGES.values()) + (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z]+)", text)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


PROSE = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_links_and_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"\]\((?!http)([\w/.]+)\)", text):
        assert (page.parent / name).exists(), name
    for name in set(
        re.findall(r"(?:ding|dizoo|tests|docs)/[\w/]+\.(?:py|md|json|png|yaml)\b", text)
    ):
        assert (REPO / name).exists(), name


def test_the_index_lists_every_page() -> None:
    index = (REPO / "docs/index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\((\w+\.md)\)", index))
    assert listed == {page.name for page in (REPO / "docs").glob("*.md")} - {"index.md"}
