"""The page about demonstrations: its code runs, its commands are understood."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("h5py")
PAGE = (Path(__file__).parents[2] / "docs/demonstrations.md").read_text()


def test_the_code_runs(tmp_path: Path, capsys: Any) -> None:
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(block, space)
    result = json.loads((tmp_path / "cartpole_bc_seed0/result.json").read_text())
    assert result["eval_value"] >= 475
    assert space["done"].stop
    from ding.entry.cli import main

    # The commands of the page, on what its code has written.
    assert main(["demo", "show", "cartpole_expert.hdf5", "--picture", "expert.png"]) == 0
    assert main(["demo", "check", "cartpole_expert.hdf5", "-e", "cartpole", "-p", "bc"]) == 0
    assert "fits CartPole-v1: 10 episodes, 5000 steps" in capsys.readouterr().out


COMMANDS = re.findall(r"^ding (.*?)(?: *#.*)?$", PAGE, re.M)


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_are_understood(words: str) -> None:
    from ding.entry import cli, cli_demo

    argv = shlex.split(words)
    if argv[0] == cli_demo.WORD:
        assert cli_demo.parser().parse_args(argv[1:]).command in ("make", "show", "check")
        return
    args = cli.parser().parse_args(argv)
    cli._check_options(args)
    if args.env:
        main = cli._configs(args)[0]
        cloning = args.mode == "serial_bc"
        assert not cloning or main["policy"]["collect"]["data_path"] == "./cartpole_expert.hdf5"
