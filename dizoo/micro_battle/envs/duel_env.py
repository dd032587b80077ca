"""A battle in which both sides are played: a game of two teams, for self-play and leagues.

Either team sees the field as `MicroBattleEnv` shows it to the allies, the second one in a mirror:
each is on the left and goes east to the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.agents import AgentsSpace
from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.two_player import DRAWS, LOSSES, WINS, SeatsSpace
from ding.utils.errors import ConfigError, DingError
from dizoo.micro_battle.envs.battle import ATTACK, HEADING, STOP, Battles, Outcome, State
from dizoo.micro_battle.envs.observe import Observer
from dizoo.micro_battle.envs.units import FIELD, map_of

_WIN = 1.0


class DuelBattles(Battles):
    """Battles whose enemies are told what to do, too: actions are (n, 2 A), allies first."""

    def __init__(self, map_name: str) -> None:
        battle_map = map_of(map_name)
        if battle_map.allies != battle_map.enemies:
            raise ConfigError(f"env.map_name = '{map_name}': both sides of a duel must be alike")
        super().__init__(battle_map)
        self._mirrored = Battles(battle_map)
        self._last_of_enemies = np.zeros((1, self.n_enemy), dtype=np.int64)

    def reset(self, *args: Any) -> None:
        super().reset(*args)
        self._last_of_enemies[:] = 0

    def _advance(self, state: State, actions: np.ndarray) -> Outcome:
        own, theirs = actions[:, : self.n_ally], actions[:, self.n_ally :]
        self._told = theirs
        outcome = super()._advance(state, own)
        self._last_of_enemies[:] = theirs
        return outcome

    def _enemy_orders(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        attacks = self._told >= ATTACK
        moves = np.where(attacks, STOP, self._told)
        aims = np.where(attacks, self._told - ATTACK, -1)
        return aims, -HEADING[moves, 0], HEADING[moves, 1]

    def mirrored(self) -> Battles:
        """The battle as the other side sees it."""
        n, state, other = self.n_ally, self.state, self._mirrored.state
        for key in ("x", "y", "health", "shield", "cooldown", "quiet"):
            column = FIELD - state[key] if key == "x" else state[key]
            other[key][:] = np.concatenate([column[:, n:], column[:, :n]], axis=1)
        other["last_action"][:], other["steps"][:] = self._last_of_enemies, state["steps"]
        return self._mirrored


class DuelEnv(BaseEnv):
    """Observations and actions have a row per team, (2, ...); who kills the other team wins.

    A team gets the share that it takes of the other one's health less the share that it loses, and
    1 for a win, -1 for a defeat; after `episode_limit` actions it is a draw.
    """

    config: ClassVar[dict[str, Any]] = {
        # A map with the same units on both sides: '3m', '8m', '2s3z' or '3s5z'.
        "map_name": "3m",
        # State of each agent's own for critics, (A, S).
        "special_global_state": True,
        # Actions after which a battle is a draw; None: as the map says.
        "episode_limit": None,
        # What is paid for health beside the win; 0: nothing.
        "health_reward": 1.0,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        limit = self._cfg["episode_limit"]
        if limit is not None and limit < 1:
            raise ConfigError(f"env.episode_limit = {limit}: must be at least 1, or None")
        self._battles = DuelBattles(self._cfg["map_name"])
        self._limit = int(limit or self._battles.map.limit)
        special = bool(self._cfg["special_global_state"])
        self._observers = [
            Observer(battles, special_global_state=special, obs_alone=False, death_mask=False)
            for battles in (self._battles, self._battles.mirrored())
        ]
        n_agent = self._battles.n_ally
        self._observation_space = gym.spaces.Dict(
            {
                key: gym.spaces.Box(-np.inf, np.inf, column.shape, np.float32)
                for key, column in self._observed().items()
            }
        )
        one = AgentsSpace(gym.spaces.Discrete(self._battles.n_action), n_agent)
        self._action_space = SeatsSpace(one, 2)
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float32)
        self._running = False

    def reset(self, **kwargs: Any) -> dict[str, np.ndarray]:
        self.rng = np.random.default_rng(self._next_seed())
        self._battles.reset([0], [self.rng])
        self._returns, self._running = np.zeros(2, np.float32), True
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if not self._running:
            raise DingError(f"{self!r} has no running battle: call reset() before step()")
        actions = np.asarray(action).reshape(2, -1)
        for seat, allowed in enumerate(self._allowed()):
            for agent, move in enumerate(actions[seat].tolist()):
                if not (0 <= move < len(allowed[agent]) and allowed[agent, move]):
                    reason = f"action {move} of agent {agent} of team {seat} is not available"
                    return self._ended(seat, forfeit=seat, reason=reason)
        outcome = self._battles.step(actions.reshape(1, -1))
        n, full = self._battles.n_ally, self._battles.full
        lost = outcome.damage[0].reshape(2, n).sum(axis=1) / full
        reward = (self._cfg["health_reward"] * (lost[::-1] - lost)).astype(np.float32)
        if outcome.over[0]:
            loser = None if outcome.won[0] == outcome.lost[0] else int(outcome.won[0])
            return self._ended(loser, reward)
        if self._battles.state["steps"][0] >= self._limit:
            return self._ended(None, reward, truncated=True)
        self._returns += reward
        return BaseEnvTimestep(self._observed(), reward, False, {})

    def _ended(self, loser: int | None, reward: Any = 0.0, **info: Any) -> BaseEnvTimestep:
        self._running = False
        reward = np.zeros(2, np.float32) + reward
        result = [DRAWS, DRAWS]
        if loser is not None:
            reward[loser] -= _WIN
            reward[1 - loser] += _WIN
            result[loser], result[1 - loser] = LOSSES, WINS
        self._returns += reward
        last = {"eval_episode_return": self._returns.copy(), "result": result, **info}
        return BaseEnvTimestep(self._observed(), reward, True, last)

    def _allowed(self) -> list[np.ndarray]:
        return [battles.available()[0] for battles in (self._battles, self._battles.mirrored())]

    def _observed(self) -> dict[str, np.ndarray]:
        self._battles.mirrored()
        first, second = (observe() for observe in self._observers)
        return {key: np.concatenate([first[key], second[key]]) for key in first}

    def random_action(self) -> np.ndarray:
        masks = np.stack(self._allowed())
        return np.where(masks, self.rng.random(masks.shape), -1.0).argmax(axis=-1)

    def close(self) -> None:
        self._running = False

    def __repr__(self) -> str:
        return f"DuelEnv({self._cfg['map_name']})"
