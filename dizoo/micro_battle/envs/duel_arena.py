"""Battles in which both sides are played, many at once, with what is seen, paid and reported.

Letters in shapes: N battles, A agents of a team, M actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ding.envs.agents import AgentsSpace
from ding.envs.two_player import DRAWS, LOSSES, WINS, SeatsSpace
from ding.utils.errors import ConfigError
from dizoo.micro_battle.envs.battle import ATTACK, HEADING, STOP, Battles, Outcome, State
from dizoo.micro_battle.envs.observe import Observer
from dizoo.micro_battle.envs.units import FIELD, BattleMap, map_of

DUEL_CONFIG: dict[str, Any] = {
    # A map with the same units on both sides: '3m', '8m', '2s3z' or '3s5z'.
    "map_name": "3m",
    # State of each agent's own for critics, (A, S).
    "special_global_state": True,
    # Actions after which a battle is a draw; None: as the map says.
    "episode_limit": None,
    # What is paid for health beside the win; 0: nothing.
    "health_reward": 1.0,
}
_WIN = 1.0
_NOBODY = -1
_NET = np.array([[-1, 1], [1, -1], [0, 0]], dtype=np.float32)
"""Wins less defeats of both teams by who has lost; the last row is nobody's."""


class DuelBattles(Battles):
    """Battles whose enemies are told what to do, too: actions are (n, 2 A), allies first."""

    def __init__(self, battle_map: BattleMap, count: int = 1) -> None:
        super().__init__(battle_map, count)
        self._mirrored = Battles(battle_map, count)

    def _dead(self, count: int) -> State:
        last = np.zeros((count, self.n_enemy), dtype=np.int64)
        return {**super()._dead(count), "last_of_enemies": last}

    def reset(self, index: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        super().reset(index, rngs)
        self.state["last_of_enemies"][list(index)] = 0

    def _advance(self, state: State, actions: np.ndarray) -> Outcome:
        own, theirs = actions[:, : self.n_ally], actions[:, self.n_ally :]
        self._told = theirs
        outcome = super()._advance(state, own)
        state["last_of_enemies"][:] = theirs
        return outcome

    def _enemy_orders(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        attacks = self._told >= ATTACK
        moves = np.where(attacks, STOP, self._told)
        aims = np.where(attacks, self._told - ATTACK, -1)
        return aims, -HEADING[moves, 0], HEADING[moves, 1]

    def mirrored(self) -> Battles:
        """The battles as the other side sees them."""
        n, state, other = self.n_ally, self.state, self._mirrored.state
        for key in ("x", "y", "health", "shield", "cooldown", "quiet"):
            column = FIELD - state[key] if key == "x" else state[key]
            other[key][:] = np.concatenate([column[:, n:], column[:, :n]], axis=1)
        other["last_action"][:], other["steps"][:] = state["last_of_enemies"], state["steps"]
        return self._mirrored


class DuelOutcome(NamedTuple):
    """Outcome of both teams' actions in n battles."""

    reward: np.ndarray
    """(n, 2)."""
    over: np.ndarray
    """(n,) bool: decided, forfeited or cut off."""
    cut: np.ndarray
    """(n,) bool: cut off by the limit."""
    info: dict[int, dict[str, Any]]
    """Last infos of those of the n that are over."""


class DuelArena:
    """`count` battles of two teams: observations are (N, 2, ...), actions (n, 2, A)."""

    def __init__(self, cfg: Mapping[str, Any], count: int) -> None:
        limit, battle_map = cfg["episode_limit"], map_of(cfg["map_name"])
        if limit is not None and limit < 1:
            raise ConfigError(f"env.episode_limit = {limit}: must be at least 1, or None")
        if battle_map.allies != battle_map.enemies:
            raise ConfigError(
                f"env.map_name = '{battle_map.name}': both sides of a duel must be alike"
            )
        self.battles = DuelBattles(battle_map, count)
        self._limit, self._health_reward = int(limit or battle_map.limit), cfg["health_reward"]
        special = bool(cfg["special_global_state"])
        self._observers = [
            Observer(battles, special_global_state=special, obs_alone=False, death_mask=False)
            for battles in (self.battles, self.battles.mirrored())
        ]
        self._returns = np.zeros((count, 2), dtype=np.float32)

    def spaces(self) -> tuple[gym.spaces.Dict, SeatsSpace]:
        parts: dict[str, gym.Space[Any]] = {
            key: gym.spaces.Box(-np.inf, np.inf, column.shape[1:], np.float32)
            for key, column in self.observe().items()
        }
        one = AgentsSpace(gym.spaces.Discrete(self.battles.n_action), self.battles.n_ally)
        return gym.spaces.Dict(parts), SeatsSpace(one, 2)

    def reset(self, index: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        self.battles.reset(index, rngs)
        self._returns[list(index)] = 0.0

    def observe(self) -> dict[str, np.ndarray]:
        self.battles.mirrored()
        first, second = (observe() for observe in self._observers)
        return {key: np.stack([first[key], second[key]], axis=1) for key in first}

    def available(self) -> np.ndarray:
        """(N, 2, A, M) bool: who may do what."""
        sides = self.battles, self.battles.mirrored()
        return np.stack([battles.available() for battles in sides], axis=1)

    def step(self, actions: np.ndarray, index: np.ndarray) -> DuelOutcome:
        """Act in the battles `index`; a team that does what it can't loses on the spot."""
        n = len(index)
        reward, loser = np.zeros((n, 2), dtype=np.float32), np.full(n, _NOBODY)
        over, cut = np.zeros((2, n), dtype=bool)
        forfeits = self._forfeits(actions, index)
        for k, (team, _) in forfeits.items():
            loser[k], over[k] = team, True
        played = np.flatnonzero(~over)
        if played.size:
            reward[played], loser[played], over[played] = self._fought(
                actions[played], index[played]
            )
            cut[played] = self.battles.state["steps"][index[played]] >= self._limit
            cut &= ~over
        reward += _WIN * _NET[loser]
        self._returns[index] += reward
        ended = np.flatnonzero(over | cut).tolist()
        info = {k: self._last_info(int(index[k]), int(loser[k])) for k in ended}
        for k, (team, reason) in forfeits.items():
            info[k] |= {"forfeit": team, "reason": reason}
        return DuelOutcome(reward, over | cut, cut, info)

    def _fought(
        self, actions: np.ndarray, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pay for health (n, 2), who has lost and what is over, (n,) each."""
        n, everyone = len(index), len(index) == self.battles.count
        outcome = self.battles.step(actions.reshape(n, -1), None if everyone else index)
        lost = outcome.damage.reshape(n, 2, -1).sum(axis=2) / self.battles.full
        decided = outcome.won != outcome.lost
        loser = np.where(decided, outcome.won.astype(int), _NOBODY)
        return self._health_reward * (lost[:, ::-1] - lost), loser, outcome.over

    def _forfeits(self, actions: np.ndarray, index: np.ndarray) -> dict[int, tuple[int, str]]:
        """By row the first team that does what it can't, and what that was."""
        allowed = self.available()[index]
        possible = (actions >= 0) & (actions < allowed.shape[3])
        chosen = np.clip(actions, 0, allowed.shape[3] - 1)[..., None]
        wrong = ~(possible & np.take_along_axis(allowed, chosen, axis=3)[..., 0])
        found: dict[int, tuple[int, str]] = {}
        for k, team, agent in np.argwhere(wrong).tolist():
            move = int(actions[k, team, agent])
            reason = f"action {move} of agent {agent} of team {team} is not available"
            found.setdefault(k, (team, reason))
        return found

    def _last_info(self, i: int, loser: int) -> dict[str, Any]:
        result = [DRAWS, DRAWS]
        if loser != _NOBODY:
            result[loser], result[1 - loser] = LOSSES, WINS
        return {"eval_episode_return": self._returns[i].copy(), "result": result}
