"""Table of the commands, and the call of the one that the first word names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from ding.utils.errors import UsageError, nearest

Say = Callable[[str], None]


@dataclass(frozen=True)
class Command:
    module: str
    """Module below `ding.entry.commands`, with `add_options` and `run`."""
    purpose: str
    usage: str
    example: str


COMMANDS = {
    "train": Command(
        "training",
        "train a policy",
        "ding train ENV POLICY | FILE [KEY=VALUE ...] [options]",
        "ding train CartPole-v1 ppo --steps 1e5 learn.batch_size=64",
    ),
    "eval": Command(
        "evaluation",
        "play episodes with a trained policy, report the returns",
        "ding eval RUN [options]",
        "ding eval CartPole-v1_ppo_seed0 --episodes 20 --video 3",
    ),
    "play": Command(
        "playing",
        "watch a trained policy, on the screen or as videos",
        "ding play RUN [options]",
        "ding play CartPole-v1_ppo_seed0",
    ),
    "versus": Command(
        "versus",
        "let players play games of two, and rate them",
        "ding versus GAME PLAYER PLAYER [PLAYER ...] [options]",
        "ding versus tictactoe tictactoe_ppo_seed0 random --games 200",
    ),
    "resume": Command(
        "resuming",
        "go on with a run that was stopped",
        "ding resume RUN [--steps N]",
        "ding resume CartPole-v1_ppo_seed0",
    ),
    "export": Command(
        "exporting",
        "write a trained policy as one file",
        "ding export RUN FILE",
        "ding export CartPole-v1_ppo_seed0 policy.onnx",
    ),
    "plot": Command(
        "plotting",
        "draw the learning curves of runs",
        "ding plot RUN [RUN ...] [-o FILE]",
        "ding plot CartPole-v1_ppo_seed0 CartPole-v1_dqn_seed0 -o compared.png",
    ),
    "list": Command(
        "listing",
        "list policies, envs, configs of the zoo, or runs",
        "ding list policies | envs | configs | runs [WORD]",
        "ding list configs cartpole",
    ),
    "help": Command(
        "guide",
        "explain a command, a policy or one of its settings",
        "ding help [COMMAND | POLICY [KEY]]",
        "ding help ppo learn.batch_size",
    ),
    "config": Command(
        "configs",
        "show, explain or compare configs",
        "ding config RUN | FILE [--explain KEY | --diff OTHER | --all]",
        "ding config CartPole-v1_ppo_seed0 --explain policy.learn",
    ),
    "check": Command(
        "checking",
        "try an env, and say what is wrong with it",
        "ding check module:Class | ID | FILE [options]",
        "ding check myenv:MyEnv --episodes 5",
    ),
    "doctor": Command(
        "doctor",
        "look at the installation and the machine",
        "ding doctor",
        "ding doctor",
    ),
}
"""First word of a command line to what it calls."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"ding: error: {message} ({self.prog} -h for help)\n")


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    command = COMMANDS[name]
    p = _Parser(
        prog=f"ding {name}",
        usage=command.usage,
        description=f"{command.purpose[0].upper()}{command.purpose[1:]}.",
        epilog=f"example: {command.example}",
        allow_abbrev=False,
    )
    _module(name).add_options(p)
    return p


def run(words: Sequence[str], say: Say) -> int:
    """Run the command that the first word names."""
    name, *rest = words
    if name not in COMMANDS:
        raise UsageError(f"unknown command '{name}'{nearest(name, [*COMMANDS, 'demo'])}")
    args = parser_of(name).parse_intermixed_args(rest)
    code: int = _module(name).run(args, say)
    return code


def overview() -> str:
    """One line for each command."""
    width = max(map(len, [*COMMANDS, "demo"])) + 2
    rows = {name: command.purpose for name, command in COMMANDS.items()}
    rows["demo"] = "make demonstrations, look at them, check them"
    lines = [f"  {name:{width}}{purpose}" for name, purpose in rows.items()]
    return "\n".join(
        [
            "usage: ding COMMAND ...          (ding COMMAND -h: its options)",
            "",
            "Train and evaluate decision-making policies.",
            "",
            "commands:",
            *lines,
            "",
            "example: ding train CartPole-v1 ppo --steps 1e5",
        ]
    )


def show(text: str) -> None:
    """Write a line to where messages go; in a terminal it is wrapped."""
    if sys.stderr.isatty():
        from ding.utils.terminal import wrapped

        text = wrapped(text)
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _module(name: str) -> Any:
    return import_module(f"ding.entry.commands.{COMMANDS[name].module}")
