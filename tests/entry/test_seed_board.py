"""Several runs in one terminal: what is seen of them."""

from __future__ import annotations

import io
import queue
import re

import pytest

from ding.entry import seed_board
from ding.entry.seed_board import Board, ProcessText
from ding.utils.terminal import ERASE, panel


class Terminal(io.StringIO):
    """Knows how to go up and back, and to erase what is below."""

    def rows(self) -> list[str]:
        seen, row, column = [""], 0, 0
        for word in re.findall(r"\x1b\[\d*[AJ]|[\r\n]|[^\x1b\r\n]+", self.getvalue()):
            if word.endswith("A") and word[0] == "\x1b":
                row -= int(word[2:-1])
            elif word == "\x1b[J":
                seen = [*seen[:row], seen[row][:column]]
            elif word == "\r":
                column = 0
            elif word == "\n":
                row, column = row + 1, 0
                seen += [""] * (row == len(seen))
            else:
                seen[row] = seen[row][:column] + word + seen[row][column + len(word) :]
                column += len(word)
        return seen


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> tuple[queue.Queue, Terminal]:
    return queue.Queue(), Terminal()


def write(lines: queue.Queue, pid: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_board.os, "getpid", lambda: pid)
    ProcessText(lines).write(text)


def test_panels_stay_below_messages(
    processes: tuple[queue.Queue, Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, terminal = processes
    board = Board(lines, 3, terminal)
    for pid, text in (
        (7, panel(["run/seed0  100 steps", "  return 3"])),
        (8, panel(["run/seed1  50 steps", "  return 4"])),
        (8, panel(["run/seed1  90 steps", "  return 5"])),
        (7, f"{ERASE}reached the goal\nresults in run/seed0\n"),
        (7, "a warn"),
        (7, "ing\n"),
    ):
        write(lines, pid, text, monkeypatch)
        board._draw(board._taken(*lines.get()))
    above = ["reached the goal", "results in run/seed0", "a warning"]
    live = ["run/seed1  90 steps", "  return 5", "0 of 3 seeds done"]
    assert terminal.rows() == [*above, *live]


@pytest.mark.parametrize(("rows", "shown"), [(24, 3), (6, 2), (4, 1), (3, 1)])
def test_panels_share_the_rows_of_the_screen(
    rows: int,
    shown: int,
    processes: tuple[queue.Queue, Terminal],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LINES", str(rows))
    lines, terminal = processes
    board = Board(lines, 2, terminal)
    for pid in (7, 8):
        write(lines, pid, panel([f"seed{pid}", "two", "three"]), monkeypatch)
        board._draw(board._taken(*lines.get()))
    seen = terminal.rows()
    assert len(seen) < rows and seen[0] == "seed7" and seen[-1] == "0 of 2 seeds done"
    assert seen[:shown] == ["seed7", "two", "three"][:shown]


def test_nothing_but_messages_is_left(
    processes: tuple[queue.Queue, Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, terminal = processes
    with Board(lines, 2, terminal) as board:
        write(lines, 7, panel(["run/seed0  100 steps"]), monkeypatch)
        write(lines, 7, f"{ERASE}results in run/seed0\n", monkeypatch)
        board.finished()
    assert "1 of 2 seeds done" in terminal.getvalue()
    assert terminal.rows() == ["results in run/seed0", ""]
