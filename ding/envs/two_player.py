"""Games of two players as one env: both seats' observations, whose turn it is, one joint step.

    obs           (2, ...)   what each player sees
    action_mask   (2, M)     1 where a move is legal
    to_play       ()         the seat that acts now; -1: both do. Left out where both always do

Actions are (2,), of which only that of the seat to play counts; rewards are (2,). The last `info`
holds by seat `result` ('wins', 'draws', 'losses') and `eval_episode_return`, and `forfeit` with a
`reason` where a player lost by an illegal move.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.agents import ACTION_MASK, AgentsSpace
from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.utils.errors import ConfigError, DingError

OBS, TO_PLAY = "obs", "to_play"
BOTH = -1
WINS, DRAWS, LOSSES = "wins", "draws", "losses"


class SeatsSpace(AgentsSpace):
    """The space `one` for each seat of a game; a policy that plays one seat acts in `one`."""

    def __repr__(self) -> str:
        return f"SeatsSpace({self.one}, {self.agent_num})"


def one_seat(env: Any) -> Any:
    """The spaces of one seat, where `env` is a game; else the env itself."""
    space = env.action_space
    if not isinstance(space, SeatsSpace):
        return env
    seen: Any = env.observation_space
    if isinstance(seen, gym.spaces.Dict):
        parts: dict[str, gym.Space[Any]] = {
            key: _first(part) for key, part in seen.spaces.items() if key != TO_PLAY
        }
        seen = gym.spaces.Dict(parts) if set(parts) != {OBS} else parts[OBS]
    else:
        seen = _first(seen)
    return SimpleNamespace(observation_space=seen, action_space=space.one)


def _first(space: Any) -> gym.spaces.Box:
    return gym.spaces.Box(space.low[0], space.high[0], dtype=space.dtype)


def results_of(returns: Any) -> list[str]:
    """Each seat's result by their returns: more than the other's wins."""
    first, second = (float(x) for x in np.reshape(returns, 2))
    if first == second:
        return [DRAWS, DRAWS]
    return [WINS, LOSSES] if first > second else [LOSSES, WINS]


def numbers_text(seen: np.ndarray) -> str:
    """An observation as numbers that fit 80 columns."""
    return np.array2string(np.asarray(seen), max_line_width=80, precision=2, suppress_small=True)


class TwoPlayerEnv(BaseEnv):
    """Base of turn-based games. A game of one's own says `n_action`, `obs_shape` and the rules.

    States are values that the rules give back; the winner gets 1, the loser -1, unless there are
    other stakes. A player that moves illegally loses the highest stake on the spot. Chance, if any,
    falls before the first move: `deals` lists what it may be, and states keep what is still hidden.
    """

    n_action: ClassVar[int]
    obs_shape: ClassVar[tuple[int, ...]]
    highest_stake: ClassVar[float] = 1.0
    config: ClassVar[dict[str, Any]] = {
        # Moves after which a game is cut off as a draw.
        "max_moves": 1000,
        # Chance that a move is replaced by any legal one, while games are collected: whoever learns
        # so plays well in all positions, also in those that nobody means to get into.
        "tremble": 0.0,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        tremble = self._cfg["tremble"]
        if not 0 <= tremble <= 1:
            raise ConfigError(f"env.tremble = {tremble!r}: must be a chance from 0 to 1")
        shape, n = self.obs_shape, self.n_action
        parts: dict[str, gym.Space[Any]] = {
            OBS: gym.spaces.Box(-np.inf, np.inf, (2, *shape), dtype=np.float32),
            ACTION_MASK: gym.spaces.Box(0, 1, (2, n), dtype=np.float32),
            TO_PLAY: gym.spaces.Box(-1, 1, (), dtype=np.int64),
        }
        self._observation_space = gym.spaces.Dict(parts)
        self._action_space = SeatsSpace(gym.spaces.Discrete(n), 2)
        most = self.highest_stake
        self._reward_space = gym.spaces.Box(-most, most, (2,), dtype=np.float32)
        self._over = True

    # --- the rules -----------------------------------------------------------------------------

    def initial(self) -> Any:
        """The state that games begin from; by default drawn from `deals` with `self.rng`."""
        if self._cumulated is None:
            self._dealt = list(self.deals())
            self._cumulated = np.cumsum([chance for chance, _ in self._dealt])
        place = np.searchsorted(self._cumulated, self.rng.random() * self._cumulated[-1], "right")
        return self._dealt[place][1]

    _cumulated: np.ndarray | None = None

    def deals(self) -> Sequence[tuple[float, Any]]:
        """All states that games may begin from, with their chances."""
        raise DingError(
            f"{self!r} lists no deals: deals() gives (chance, state) of every beginning"
        )

    @abstractmethod
    def legal(self, state: Any) -> Any:
        """(n_action,) of True where the player whose turn it is may move."""

    @abstractmethod
    def play(self, state: Any, action: int, player: int) -> Any:
        """The state after this move of player 0 or 1."""

    @abstractmethod
    def winner(self, state: Any, player: int) -> int | None:
        """0, 1, or None for nobody; `player` has just moved. Without legal moves it is a draw."""

    @abstractmethod
    def seen(self, state: Any, player: int) -> Any:
        """What a player sees, (*obs_shape,)."""

    def stake(self, state: Any) -> float:
        """What the winner of a game that ended in this state gets, and the loser pays."""
        return 1.0

    def next_player(self, state: Any, player: int) -> int:
        """Whose turn it is after `player` has moved."""
        return 1 - player

    # --- for people ----------------------------------------------------------------------------

    def text(self, seen: np.ndarray) -> str:
        """What a player sees, as lines for a terminal; by default its numbers."""
        return numbers_text(seen)

    def move_name(self, action: int) -> str:
        """What a person enters for this move; one word."""
        return str(action)

    # --- episodes ------------------------------------------------------------------------------

    def reset(self, **kwargs: Any) -> Any:
        seed = self._next_seed()
        self.rng = np.random.default_rng(seed)
        self._state, self._player = self.initial(), 0
        self._moves, self._over = 0, False
        self._legal = np.asarray(self.legal(self._state), dtype=bool)
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._over:
            raise DingError(f"{self!r} has no running game: call reset() before step()")
        player, move = self._player, int(np.reshape(action, 2)[self._player])
        self._moves += 1
        if not (0 <= move < self.n_action and self._legal[move]):
            reason = f"move {move} of player {player} is illegal"
            return self._ended(1 - player, self.highest_stake, forfeit=player, reason=reason)
        if self._cfg["tremble"] and self.rng.random() < self._cfg["tremble"]:
            move = int(self.rng.choice(np.flatnonzero(self._legal)))
        self._state = self.play(self._state, move, player)
        winner = self.winner(self._state, player)
        self._player = self.next_player(self._state, player)
        self._legal = np.asarray(self.legal(self._state), dtype=bool)
        if winner is not None or not self._legal.any():
            return self._ended(winner, self.stake(self._state))
        if self._moves >= self._cfg["max_moves"]:
            reason = f"cut off after {self._moves} moves (env.max_moves)"
            return self._ended(None, truncated=True, reason=reason)
        return BaseEnvTimestep(self._observed(), np.zeros(2, np.float32), False, {})

    def _ended(self, winner: int | None, stake: float = 0.0, **info: Any) -> BaseEnvTimestep:
        self._over = True
        reward = np.zeros(2, np.float32)
        if winner is not None:
            reward[winner], reward[1 - winner] = stake, -stake
        last = {"eval_episode_return": reward.copy(), "result": results_of(reward), **info}
        return BaseEnvTimestep(self._observed(), reward, True, last)

    def _observed(self) -> dict[str, np.ndarray]:
        mask = np.ones((2, self.n_action), np.float32)
        if not self._over:
            mask[self._player] = self._legal
        seen = np.stack([np.asarray(self.seen(self._state, k), np.float32) for k in (0, 1)])
        return {OBS: seen, ACTION_MASK: mask, TO_PLAY: np.array(self._player, np.int64)}

    def random_action(self) -> np.ndarray:
        move = int(self.rng.choice(np.flatnonzero(self._legal)))
        return np.full(2, move, np.int64)

    def close(self) -> None:
        self._over = True

    @staticmethod
    def create_evaluator_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        cfgs = BaseEnv.create_evaluator_env_cfg(cfg)
        for one in cfgs:
            one["tremble"] = 0.0
        return cfgs
