"""Arena: collectors that play the matches of a league, in this process or elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from ding.league.games_service import GamesPool, Match, Played
from ding.parallel.backend import Backend, InlineBackend, ServiceLostError
from ding.parallel.ledger import Ledger
from ding.parallel.worker_pool import Worker
from ding.pipeline.blueprint import Blueprint

# A match of a slow simulator may well take minutes.
_TIMEOUT = 1800.0
_LOOK_SECONDS = 1.0

Start = Callable[[], Backend]


class Arena:
    """Each collector plays one match at a time, each player has one under way at most."""

    def __init__(
        self,
        blueprint: Blueprint,
        collector_num: int,
        tell: Callable[[str], None],
        start: Start | None = None,
    ) -> None:
        """`start` makes the place where collectors live; by default processes of this machine.

        `collector_num` 0 without `start`: this process plays as well.
        """
        self._wanted, self._tell = max(collector_num, 1), tell
        backend = start() if start else _backend(collector_num)
        self.in_step = isinstance(backend, InlineBackend)
        """Whether nothing is played while this process learns."""
        timeouts = {"collector": _TIMEOUT}
        self._pool = GamesPool(
            backend, blueprint, Ledger(), timeouts, lambda worker: None, self._tell_hung
        )
        self.playing: set[str] = set()
        """Players with a match that was not taken yet."""
        self._played: list[tuple[Match, Played]] = []
        self._look_due = 0.0

    @property
    def note(self) -> str:
        """How many collectors play, for the line of progress."""
        if self.in_step:
            return ""
        n, restarts = len(self._pool.collectors), sum(self._pool.ledger.restarts.values())
        busy = n - len(self._pool.idle)
        return f"playing {busy}/{n}" + (f", restarts {restarts}" if restarts else "")

    def deal(self, next_match: Callable[[], Match | None]) -> None:
        """Give matches to idle collectors, as long as there are any."""
        self._fit()
        while self._pool.idle and (match := next_match()) is not None:
            own = match.players[0]
            self.playing.add(own)

            def played(call: Any, result: Played, match: Match = match) -> None:
                self._played.append((match, result))

            def lost(why: ServiceLostError, own: str = own) -> None:
                self.playing.discard(own)

            self._pool.ask(next(iter(self._pool.idle)), played, "play", match, lost=lost)

    def wait(self) -> None:
        """For a moment, or until a match is over."""
        self._pool.turn()

    @property
    def has_played(self) -> bool:
        return bool(self._played)

    def take(self) -> Iterator[tuple[Match, Played]]:
        """Matches that are over; their players may play again."""
        while self._played:
            match, result = self._played.pop(0)
            yield match, result
            self.playing.discard(match.players[0])

    def _fit(self) -> None:
        """Now and then: as many collectors as are wanted, or as there is room for."""
        if time.monotonic() < self._look_due:
            return
        self._look_due = time.monotonic() + _LOOK_SECONDS
        room = self._pool.backend.room("collector")
        self._pool.wanted = self._wanted if room is None else room
        for _ in range(self._pool.wanted - len(self._pool.collectors)):
            self._pool.hire("collector")

    def _tell_hung(self, worker: Worker, limit: float) -> None:
        self._tell(f"{worker.name} has played one match for {limit:g} s: it is ended and replaced")

    def close(self) -> None:
        self._pool.backend.close()


def _backend(collector_num: int) -> Backend:
    if not collector_num:
        return InlineBackend()
    from ding.parallel.ray_backend import RayBackend

    return RayBackend.here()
