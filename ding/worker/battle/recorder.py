"""Recorder of games: a trajectory for each seat of each learning player, and the results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ding.envs.base_env import VecStep
from ding.envs.two_player import DRAWS
from ding.utils.log import WorkerLog
from ding.worker.battle.games import (
    SEATS,
    Game,
    Seated,
    Table,
    at_seats,
    rewards_of,
    seats_of,
    split_turns,
)
from ding.worker.collector.recorder import Recorder


class GameRecorder(Recorder):
    """One recorder per player that learns; the counts here are those of the envs.

    A seat's step goes from its move to its next turn, or to the end of the game.
    """

    _policy: Table

    def __init__(self, log: WorkerLog) -> None:
        super().__init__(log)
        self.by_player: dict[str, Recorder] = {}
        self.games: list[Game] = []
        """Games that ended since they were last taken."""
        self._first_id = 0
        self.max_moves = sys.maxsize
        self._cut: list[int] = []

    def begin(self, env: Any, n_seat: int | None = None) -> None:
        super().begin(env, n_seat)
        self._returns = np.zeros((env.env_num, SEATS))
        for recorder in self.by_player.values():
            recorder.begin(env, SEATS * env.env_num)

    def set_policy(self, policy: Table) -> None:
        self._policy = policy
        before, self.by_player = self.by_player, {}
        for player in self._learners:
            recorder = before.get(player.name)
            if recorder is None:
                recorder = Recorder(self._log)
                recorder.number_episodes_from(self._first_id)
                recorder.begin(self._env, SEATS * self._env.env_num)
            recorder.set_policy(player.mode)
            self.by_player[player.name] = recorder

    @property
    def _learners(self) -> list[Seated]:
        return [player for player in self._policy.players if player.learns]

    def number_episodes_from(self, first: int) -> None:
        self._first_id = first
        super().number_episodes_from(first)
        for recorder in self.by_player.values():
            recorder.number_episodes_from(first)

    def clear(self) -> None:
        super().clear()
        for recorder, player in self._recorders():
            recorder.clear()
            player.moves.drop()

    def _recorders(self) -> Iterator[tuple[Recorder, Seated]]:
        for player in self._learners:
            yield self.by_player[player.name], player

    def remember(self, obs: Any, output: Any, step: VecStep) -> None:
        step = self._cut_off(step)
        seen, acts = split_turns(step.obs, len(step.env_id))
        ends = acts | step.done[:, None]
        reward = rewards_of(step)
        seats = step.env_id[:, None] * SEATS + np.arange(SEATS)
        for recorder, player in self._recorders():
            moves = player.moves
            waiting = moves.waiting[seats]
            moves.add_reward(seats[waiting], reward[waiting])
            row, position = np.nonzero(waiting & ends)
            if len(row):
                own = seats[row, position]
                own_obs, own_output, own_reward = moves.take(own)
                info = [step.info[i] for i in row.tolist()]
                now = at_seats(seen, row, position)
                rows = step.done[row], info, step.truncated[row], step.abnormal[row], own
                own_step = VecStep(now, own_reward, *rows)
                recorder.remember(own_obs, own_output, own_step)
        self._returns[step.env_id] += reward
        self._note_games(step)
        self._count(step, step.env_id)

    def _cut_off(self, step: VecStep) -> VecStep:
        """The step with games of too many moves ended as draws."""
        over = ~step.done & (self.episodes.length[step.env_id] + 1 >= self.max_moves)
        if not over.any():
            return step
        self._cut += step.env_id[over].tolist()
        reason = f"cut off after {self.max_moves:,} moves (policy.collect.collector.max_moves)"
        said = {"result": (DRAWS, DRAWS), "reason": reason}
        info = [{**own, **said} if end else own for own, end in zip(step.info, over, strict=True)]
        return step._replace(done=step.done | over, truncated=step.truncated | over, info=info)

    def take_cut(self) -> list[int]:
        """Envs whose games were cut off since this was last called."""
        cut, self._cut = self._cut, []
        return cut

    def _note_games(self, step: VecStep) -> None:
        """Results of games that are over, and new ones in their place."""
        for k in np.flatnonzero(step.done).tolist():
            env_id = int(step.env_id[k])
            steps = int(self.episodes.length[env_id]) + 1
            game = self._policy.game_of(env_id, step.info[k], self._returns[env_id], steps)
            self.games.append(game)
            self._returns[env_id] = 0.0
            self._policy.begin([env_id])

    def take_games(self) -> list[Game]:
        games, self.games = self.games, []
        return games

    def cut_episodes(self, seats: list[int]) -> int:
        """Forget the games in these envs; counts the steps of the player with the most."""
        super().cut_episodes(seats)
        self._returns[seats] = 0.0
        own, dropped = seats_of(seats), 0
        for recorder, player in self._recorders():
            dropped = max(dropped, recorder.cut_episodes(own) + player.moves.drop(own))
        self._policy.begin(seats)
        return dropped

    def state_dict(self) -> dict[str, Any]:
        players = {
            player.name: {"recorder": recorder.state_dict(), "moves": player.moves.state_dict()}
            for recorder, player in self._recorders()
        }
        return {
            **super().state_dict(),
            "players": players,
            "seating": self._policy.seating.copy(),
            "returns": self._returns.copy(),
        }

    def load_state_dict(self, state: dict[str, Any], *, running: bool) -> None:
        super().load_state_dict(state, running=running)
        for recorder, player in self._recorders():
            own = state["players"][player.name]
            recorder.load_state_dict(own["recorder"], running=running)
            if running:
                player.moves.load_state_dict(own["moves"])
        if running:
            self._policy.seating[:], self._returns[:] = state["seating"], state["returns"]
