"""Human: a person in the terminal as a player of turn-based games."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ding.utils.batch import ByEnv, stacked_of, take
from ding.worker.battle.games import SEATS

Say = Callable[[str], None]


class Quit(Exception):  # noqa: N818 (no error: a person has had enough)
    """The person's input ended."""


class Human:
    """Eval mode that shows what its seat sees and reads a move.

    `text` draws an observation of one seat, `move_name` says what a move is called; `ask` writes a
    prompt and returns a line, '' where the input has ended.
    """

    def __init__(
        self,
        text: Callable[[Any], str],
        move_name: Callable[[int], str],
        n_action: int,
        say: Say,
        ask: Callable[[str], str],
    ) -> None:
        self._text, self._move_name, self._n_action = text, move_name, n_action
        self._say, self._ask = say, ask

    def forward(self, data: Mapping[int, Any], **kwargs: Any) -> ByEnv:
        seats, obs = stacked_of(data)
        rows = zip(seats.tolist(), (take(obs, k) for k in range(len(seats))), strict=True)
        return ByEnv(seats, {"action": np.array([self._move(seat, row) for seat, row in rows])})

    def _move(self, seat: int, obs: Any) -> int:
        numbers, legal = obs, np.arange(self._n_action)
        if isinstance(obs, Mapping):
            numbers, legal = obs["obs"], np.flatnonzero(obs["action_mask"])
        names = {self._move_name(int(k)): int(k) for k in legal}
        side = ("first", "second")[seat % SEATS]
        self._say(f"\n{self._text(numbers)}\n\nyou are the {side} player; moves: {' '.join(names)}")
        while True:
            line = self._ask("your move: ")
            if not line:
                raise Quit
            if (word := line.strip()) in names:
                return names[word]
            self._say(f"'{word}' is no move here; moves: {' '.join(names)}")

    def reset(self, data_id: Sequence[int] | None = None) -> None:
        """A person resets nothing."""

    def get_attribute(self, name: str) -> Any:
        raise NotImplementedError(f"a person has no {name}")
