"""Several runs in one terminal: what is seen of them."""

from __future__ import annotations

import io
import queue

import pytest

from ding.entry import seed_board
from ding.entry.seed_board import Board, ProcessText
from ding.pipeline.progress import CLEAR_LINE


class Terminal(io.StringIO):
    """Knows how to go up and to erase what is below."""

    def rows(self) -> list[str]:
        seen = [""]
        for part in self.getvalue().split("\x1b["):
            control, _, text = part.partition("A\r") if "A\r" in part[:4] else ("", "", part)
            if control:
                seen = [*seen[: -int(control) - 1], ""]
            for i, line in enumerate(text.removeprefix("J").split("\n")):
                seen = [*seen[:-1], seen[-1] + line] if i == 0 else [*seen, line]
        return seen[:-1]


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> tuple[queue.Queue, Terminal]:
    return queue.Queue(), Terminal()


def write(lines: queue.Queue, pid: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_board.os, "getpid", lambda: pid)
    ProcessText(lines).write(text)


def test_live_lines_stay_below_messages(
    processes: tuple[queue.Queue, Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, terminal = processes
    board = Board(lines, 3, terminal)
    for pid, text in (
        (7, f"{CLEAR_LINE}run/seed0  100 steps"),
        (8, f"{CLEAR_LINE}run/seed1  50 steps"),
        (8, f"{CLEAR_LINE}run/seed1  90 steps"),
        (7, f"{CLEAR_LINE}reached the goal\nresults in run/seed0\n"),
        (7, "a warn"),
        (7, "ing\n"),
    ):
        write(lines, pid, text, monkeypatch)
        board._draw(board._taken(*lines.get()))
    expected = ["reached the goal", "results in run/seed0", "a warning"]
    assert terminal.rows() == [*expected, "run/seed1  90 steps", "0 of 3 seeds done"]


def test_nothing_but_messages_is_left(
    processes: tuple[queue.Queue, Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, terminal = processes
    with Board(lines, 2, terminal) as board:
        write(lines, 7, f"{CLEAR_LINE}run/seed0  100 steps", monkeypatch)
        write(lines, 7, f"{CLEAR_LINE}results in run/seed0\n", monkeypatch)
        board.finished()
    assert "1 of 2 seeds done" in terminal.getvalue()
    assert terminal.rows() == ["results in run/seed0"]
