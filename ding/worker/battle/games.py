"""Seating of players at games: who is asked for a move, and what each game came to.

A seat's number is `2 * env + position`. N is the number of envs that step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ding.envs.base_env import VecStep
from ding.envs.two_player import BOTH, TO_PLAY, SeatsSpace, results_of
from ding.policy.needs import attribute_of
from ding.utils.batch import ByEnv, stacked_of, tree_map
from ding.utils.errors import ConfigError
from ding.worker.battle.moves import OpenMoves
from ding.worker.collector.waiting_envs import can_overlap, in_order

SEATS = 2
Deal = Callable[[int], Sequence[str]]
"""Names of the players at both seats of the game that begins in this env."""


class Game(NamedTuple):
    """One game that has ended."""

    env_id: int
    seats: tuple[str, ...]
    """Names of the players by seat."""
    result: tuple[str, ...]
    """'wins', 'draws' or 'losses' by seat."""
    returns: tuple[float, ...]
    steps: int
    forfeit: int | None
    """Seat that lost by an illegal move."""
    reason: str
    """Why it was forfeited or cut off."""


class Remarks:
    """Says once of each player that it forfeits games, and of the games that they have no end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: set[str] = set()

    def note(self, games: Sequence[Game]) -> None:
        for game in games:
            if game.reason:
                self._once(game)

    def _once(self, game: Game) -> None:
        players = " against ".join(game.seats)
        if game.forfeit is None:
            key = text = f"games of {players} have no end: {game.reason}; such a game is a draw"
        else:
            key = game.seats[game.forfeit]
            text = f"'{key}' forfeits, which costs it the game: {game.reason} ({players})"
        if key not in self._said:
            self._said.add(key)
            self._say(f"{text}; said once, all are counted")


class Seated:
    """A player, and the moves of a learning one whose outcome is not there yet."""

    def __init__(self, name: str, mode: Any, n_seat: int) -> None:
        self.name, self.mode = name, mode
        learns = hasattr(mode, "process_transition")
        self.learns = learns and bool(attribute_of(mode, "collect_data", True))
        self.moves = OpenMoves(n_seat)


class Table:
    """All players and their seats, as the one policy of an env manager."""

    def __init__(self, modes: Mapping[str, Any], env: Any, deal: Deal) -> None:
        check_game(env)
        self.players = [Seated(name, mode, SEATS * env.env_num) for name, mode in modes.items()]
        self._one = env.action_space.one
        self._deal = deal
        self._number = {name: k for k, name in enumerate(modes)}
        self.seating = np.zeros((env.env_num, SEATS), dtype=np.int64)
        """Number of the player at each seat."""
        self.begin(range(env.env_num))

    def begin(self, env_ids: Sequence[int]) -> None:
        """Seat players for the games that begin in these envs."""
        for env_id in env_ids:
            names = self._deal(env_id)
            for position, name in enumerate(names):
                if name not in self._number:
                    known = ", ".join(self._number)
                    raise ConfigError(
                        f"seat {position} is dealt to '{name}', but the players are {known}"
                    )
                self.seating[env_id, position] = self._number[name]

    def forward(self, obs: ByEnv, **kwargs: Mapping[str, Any]) -> ByEnv:
        """`kwargs` are those of each player's own forward, by name."""
        columns, acts = split_turns(obs.stacked, len(obs.ids))
        actions = np.zeros((len(obs.ids), SEATS, *self._one.shape), dtype=self._one.dtype)
        seated = self.seating[obs.ids]
        for number, player in enumerate(self.players):
            row, position = np.nonzero((seated == number) & acts)
            if not len(row):
                continue
            seats = obs.ids[row] * SEATS + position
            own = at_seats(columns, row, position)
            output = _asked(player.mode, seats, own, kwargs.get(player.name, {}))
            actions[row, position] = output["action"]
            if player.learns:
                player.moves.put(seats, own, output)
        return ByEnv(obs.ids, {"action": actions})

    def reset(self, env_id: Sequence[int] | None = None) -> None:
        seats = None if env_id is None else seats_of(env_id)
        for player in self.players:
            player.mode.reset(seats)

    def get_attribute(self, name: str) -> dict[str, Any]:
        """Attribute by player, of those whose policy has it."""
        values = {p.name: attribute_of(p.mode, name, None) for p in self.players}
        return {player: value for player, value in values.items() if value is not None}

    def set_attribute(self, name: str, values: Mapping[str, Any]) -> None:
        for player in self.players:
            if player.name in values:
                player.mode.set_attribute(name, values[player.name])

    def game_of(self, env_id: int, info: Mapping[str, Any], returns: Any, steps: int) -> Game:
        """What the game that has just ended in this env came to."""
        result, forfeit = info.get("result"), info.get("forfeit")
        returns = np.reshape(info.get("eval_episode_return", returns), SEATS)
        return Game(
            env_id,
            tuple(self.players[k].name for k in self.seating[env_id]),
            tuple(results_of(returns) if result is None else result),
            tuple(float(x) for x in returns),
            steps,
            None if forfeit is None else int(forfeit),
            str(info.get("reason", "")),
        )


def check_game(env: Any) -> None:
    """Refuse envs that are no games of two, and managers that step out of turn."""
    space = env.action_space
    count = space.agent_num if isinstance(space, SeatsSpace) else 1
    if count != SEATS:
        raise ConfigError(
            f"a battle needs an env of two players, this one has {count} ({space}); the action "
            "space of a game is a SeatsSpace (docs/league.md)"
        )
    if can_overlap(env):
        raise ConfigError(
            "games are dealt as they end, which envs that step out of turn can't wait for; set "
            "env_manager type 'base' or 'subprocess'"
        )


def split_turns(stacked: Any, n: int) -> tuple[Any, np.ndarray]:
    """What the seats see, and which of them act now, (N, 2)."""
    if not (isinstance(stacked, dict) and TO_PLAY in stacked):
        return stacked, np.ones((n, SEATS), dtype=bool)
    turn = np.reshape(stacked[TO_PLAY], (n, 1))
    seen = {key: column for key, column in stacked.items() if key != TO_PLAY}
    acts = (turn == np.arange(SEATS)) | (turn == BOTH)
    return (seen["obs"] if set(seen) == {"obs"} else seen), acts


def at_seats(columns: Any, row: np.ndarray, position: np.ndarray) -> Any:
    """Rows of single seats of columns (N, 2, ...)."""
    return tree_map(lambda column: column[row, position], columns)


def seats_of(env_ids: Sequence[int]) -> list[int]:
    return [int(i) * SEATS + position for i in env_ids for position in range(SEATS)]


def rewards_of(step: VecStep) -> np.ndarray:
    """(N, 2)"""
    return np.reshape(step.reward, (len(step.env_id), SEATS))


def _asked(mode: Any, seats: np.ndarray, obs: Any, kwargs: Mapping[str, Any]) -> Any:
    answered, output = stacked_of(mode.forward(ByEnv(seats, obs), **kwargs))
    return output if answered is seats else in_order(seats, answered, output)[1]
