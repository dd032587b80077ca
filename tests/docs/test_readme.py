"""Every block of the README runs, with small limits."""

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
README = (REPO / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
SHELL = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
COMMANDS = [line for line in SHELL if line.startswith("ding ")]
FEW_STEPS = 200
FEW_EPISODES = 5


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "sh"}
    other = [line for line in SHELL if not line.startswith(("#", "ding "))]
    assert [line.split()[0] for line in other] == ["source", "python3"]
    assert (REPO / shlex.split(other[1])[2]).is_file()


@pytest.mark.parametrize(
    "text", PYTHON, ids=lambda text: f"line{README[: README.index(text)].count(chr(10))}"
)
def test_python_block(text: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (ENV_REGISTRY, POLICY_REGISTRY):  # what a block registers ends with it
        monkeypatch.setattr(registry, "_table", dict(registry._table))
    assert ("serial_pipeline(" in text) == ("max_env_step=" in text)
    script = directory / "block.py"
    script.write_text(re.sub(r"max_env_step=\d+", f"max_env_step={FEW_STEPS}", text))
    runpy.run_path(str(script), run_name="__main__")


def briefly(command: str) -> list[str]:
    """The words of a `ding` command, with a small limit where it trains."""
    words = shlex.split(command)[1:]
    if "--env-step" in words:
        words[words.index("--env-step") + 1] = str(FEW_STEPS)
    elif "serial" in words and "--resume" not in words:
        words += ["--env-step", str(FEW_STEPS)]
    return words


def test_commands_in_order(directory: Path) -> None:
    """Later ones use what earlier ones left behind."""
    zoo = import_module("dizoo.classic_control.cartpole.config.cartpole_dqn_config")
    zoo.main_config["env"]["n_evaluator_episode"] = FEW_EPISODES  # Each of them is a video.
    (directory / "dizoo").symlink_to(REPO / "dizoo")
    assert len(COMMANDS) >= 8
    for command in COMMANDS:
        if command == "ding -h":
            continue  # leaves by SystemExit; tested with the command line
        assert cli.main(briefly(command)) == 0, command
    left = {path.name for path in (directory / "runs/first").iterdir()}
    assert {"total_config.py", "result.json", "result.pkl", "curve.png", "ckpt", "log"} <= left
    assert len(list((directory / "runs/first/video").glob("*.mp4"))) >= FEW_EPISODES
    assert (directory / "runs/profile/profile.txt").is_file()
    assert (directory / "runs/cartpole_dqn/summary.json").is_file()


def test_make_targets_exist() -> None:
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    text = README + (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z]+)", text)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_links_and_files_exist() -> None:
    for name in re.findall(r"\]\(([\w/.]+)\)", README):
        assert (REPO / name).exists(), name
    for name in set(re.findall(r"(?:ding|dizoo|tests|docs)/[\w/]+\.\w+", README)):
        assert (REPO / name).exists(), name
