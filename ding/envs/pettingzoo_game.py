"""PettingZoo's games of two by id: turn by turn (AEC), or both at once (parallel)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.agents import ACTION_MASK
from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.packages import env_module, missing_package
from ding.envs.two_player import OBS, TO_PLAY, SeatsSpace, results_of
from ding.utils.errors import ConfigError, DingError

_SEATS = 2


class PettingZooGame(BaseEnv):
    """`PettingZooGame(factory, cfg)`, or by `env_id` 'classic.connect_four_v3'.

    Observations are flattened; numbers of a discrete space become one-hot. A player that moves
    illegally loses on the spot. Games where both move at once are played as turns in which the
    second one does not see what the first has done.
    """

    config: ClassVar[dict[str, Any]] = {
        # Part of PettingZoo and the game's module.
        "env_id": None,
        # Arguments of the env.
        "env_kwargs": {},
        # Moves after which a game is cut off.
        "max_moves": 1000,
    }

    def __init__(
        self,
        env: Callable[[], Any] | Mapping[str, Any] | None = None,
        cfg: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(env, Mapping):  # as for every other env class
            env, cfg = None, env
        super().__init__({**self.config, **(cfg or {})})
        if env is None and not self._cfg["env_id"]:
            raise DingError("PettingZooGame needs a factory of envs, or cfg['env_id']")
        self._factory = env
        self._env: Any = None
        self._over = True

    def _new_env(self) -> Any:
        if self._factory is not None:
            env = self._factory()
        else:
            module = self._module()
            make = getattr(module, "env", None) or module.parallel_env
            env = make(**self._cfg["env_kwargs"])
        if not hasattr(env, "observe"):
            env = import_module("pettingzoo.utils.conversions").parallel_to_aec(env)
        return env

    def _module(self) -> Any:
        env_id = str(self._cfg["env_id"])
        try:
            return env_module(f"pettingzoo.{env_id}")
        except ModuleNotFoundError as error:
            missing = str(error.name)
            if missing == "pettingzoo" or not missing.startswith("pettingzoo"):
                raise missing_package(env_id, missing, "pettingzoo") from error
            raise ConfigError(
                f"env.env_id = '{env_id}': PettingZoo has no such game; for example "
                "'classic.connect_four_v3'"
            ) from error

    # --- spaces --------------------------------------------------------------------------------

    def _need_env(self) -> None:
        if self._env is not None:
            return
        env = self._new_env()
        self._agents = list(env.possible_agents)
        if len(self._agents) != _SEATS:
            raise ConfigError(f"{self!r} has {len(self._agents)} players; a game has two")
        first, second = (env.action_space(agent) for agent in self._agents)
        if first != second or not isinstance(first, gym.spaces.Discrete):
            raise ConfigError(f"{self!r} acts in {first} and {second}; both must be one Discrete")
        self._n_action = int(first.n)
        self._action_space = SeatsSpace(first, _SEATS)
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (_SEATS,), dtype=np.float32)
        self._seen_space = env.observation_space(self._agents[0])
        self._has_mask = isinstance(self._seen_space, gym.spaces.Dict)
        if self._has_mask:
            self._seen_space = self._seen_space["observation"]
        size = gym.spaces.flatdim(self._seen_space)
        numbers = gym.spaces.Box(-np.inf, np.inf, (_SEATS, size), dtype=np.float32)
        parts: dict[str, gym.Space[Any]] = {OBS: numbers}
        if self._has_mask:
            mask = gym.spaces.Box(0, 1, (_SEATS, self._n_action), dtype=np.float32)
            parts[ACTION_MASK] = mask
        parts[TO_PLAY] = gym.spaces.Box(-1, 1, (), dtype=np.int64)
        self._observation_space = gym.spaces.Dict(parts)
        self._env = env

    @property
    def observation_space(self) -> Any:
        self._need_env()
        return self._observation_space

    @property
    def action_space(self) -> Any:
        self._need_env()
        return self._action_space

    @property
    def reward_space(self) -> Any:
        self._need_env()
        return self._reward_space

    # --- episodes ------------------------------------------------------------------------------

    def reset(self, **kwargs: Any) -> Any:
        self._need_env()
        self._env.reset(seed=self._next_seed())
        self._returns = np.zeros(_SEATS, np.float32)
        self._moves, self._over = 0, False
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self._over:
            raise DingError(f"{self!r} has no running game: call reset() before step()")
        player = self._player
        move = int(np.reshape(action, _SEATS)[player])
        if not (0 <= move < self._n_action and self._last[ACTION_MASK][player][move]):
            reward = np.ones(_SEATS, np.float32)
            reward[player] = -1
            reason = f"move {move} of player {player} is illegal"
            return self._ended(reward, forfeit=player, reason=reason)
        self._moves += 1
        self._env.step(move)
        reward = np.array([self._env.rewards.get(a, 0) for a in self._agents], np.float32)
        over = [self._is_over(agent) for agent in self._agents]
        while any(over) and not all(over) and self._is_over(self._env.agent_selection):
            self._env.step(None)
        if all(over):
            return self._ended(reward, truncated=all(map(self._is_cut, self._agents)))
        if self._moves >= self._cfg["max_moves"]:
            reason = f"cut off after {self._moves} moves (env.max_moves)"
            return self._ended(reward, truncated=True, reason=reason)
        self._returns += reward
        return BaseEnvTimestep(self._observed(), reward, False, {})

    def _is_cut(self, agent: str) -> bool:
        return bool(self._env.truncations.get(agent, False))

    def _is_over(self, agent: str) -> bool:
        return bool(self._env.terminations.get(agent, True)) or self._is_cut(agent)

    def _ended(self, reward: np.ndarray, **info: Any) -> BaseEnvTimestep:
        self._over = True
        total = self._returns + reward
        last = {"eval_episode_return": total, "result": results_of(total), **info}
        if "forfeit" in info:
            last["result"] = results_of(reward)
        return BaseEnvTimestep(self._observed(), reward, True, last)

    @property
    def _player(self) -> int:
        return self._agents.index(self._env.agent_selection)

    def _observed(self) -> dict[str, np.ndarray]:
        mask = np.ones((_SEATS, self._n_action), np.float32)
        seen = []
        for k, agent in enumerate(self._agents):
            obs = self._env.observe(agent)
            if self._has_mask:
                if not self._over and k == self._player:
                    mask[k] = obs["action_mask"]
                obs = obs["observation"]
            seen.append(np.asarray(gym.spaces.flatten(self._seen_space, obs), np.float32))
        self._last = {OBS: np.stack(seen), ACTION_MASK: mask}
        found = dict(self._last) if self._has_mask else {OBS: self._last[OBS]}
        return {**found, TO_PLAY: np.array(0 if self._over else self._player, np.int64)}

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._env, self._over = None, True

    def __repr__(self) -> str:
        return f"PettingZooGame({self._cfg['env_id'] or 'factory'})"
