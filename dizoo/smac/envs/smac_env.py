"""SMAC (https://arxiv.org/abs/1902.04043) as an env of agents.

It needs StarCraft II, the maps of SMAC, and the package `smac` of oxwhirl, whose `StarCraft2Env`
does the work; `micro_battle` has the same interface and needs none of them. A agents, K numbers
that an agent sees, S of the global state.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pickle import PicklingError
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.agents import (
    ACTION_MASK,
    AGENT_STATE,
    ALIVE,
    GLOBAL_STATE,
    AgentsSpace,
    obs_space,
)
from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.utils.errors import ConfigError, DingError

_F4 = np.float32
_FROM_SEED = "seed"


class SMACEnv(BaseEnv):
    """One game of StarCraft II; `eval_episode_return` is 1 for a win, else 0."""

    config: ClassVar[dict[str, Any]] = {
        # Name of a map of SMAC.
        "map_name": "3m",
        # Further arguments of StarCraft2Env, as difficulty='7' or reward_sparse=True.
        "env_kwargs": {},
        # Let agents see which one they are (one-hot).
        "obs_agent_id": True,
        # Let agents see their last action (one-hot); StarCraft2Env adds it.
        "obs_last_action": True,
        # Global state of each agent's own, (A, S + K): the state, then what the agent sees.
        "special_global_state": False,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        given = sorted({"map_name", "obs_last_action", _FROM_SEED} & set(self._cfg["env_kwargs"]))
        if given:
            raise ConfigError(
                f"env.env_kwargs has {given}: set env.map_name, env.obs_last_action and the seed "
                "of the run instead"
            )
        self._env: Any = None
        self._running = False

    def _need_env(self) -> None:
        """Start the game; its seed is that of the first episode, it takes no other later."""
        if self._env is not None:
            return
        cfg = self._cfg
        seed = self._next_seed()
        kwargs = {"map_name": cfg["map_name"], "obs_last_action": bool(cfg["obs_last_action"])}
        seeded = {} if seed is None else {_FROM_SEED: seed}
        self._env = _starcraft()(**kwargs, **cfg["env_kwargs"], **seeded)
        about = self._env.get_env_info()
        self._n_agent, self._n_action = int(about["n_agents"]), int(about["n_actions"])
        width = int(about["obs_shape"]) + self._n_agent * bool(cfg["obs_agent_id"])
        size = int(about["state_shape"])
        shape = (self._n_agent, size + width) if cfg["special_global_state"] else (size,)
        self._observation_space = obs_space(
            self._n_agent, width, global_shape=shape, n_action=self._n_action
        )
        self._action_space = AgentsSpace(gym.spaces.Discrete(self._n_action), self._n_agent)
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)

    def reset(self, **kwargs: Any) -> dict[str, np.ndarray]:
        self._need_env()
        self._env.reset()
        self._running, self._return = True, 0.0
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if not self._running:
            raise DingError(f"{self!r} has no running battle: call reset() before step()")
        reward, over, told = self._env.step([int(a) for a in np.asarray(action)])
        self._return += float(reward)
        info: dict[str, Any] = {}
        if over:
            self._running = False
            info = self._last_info(told)
        return BaseEnvTimestep(self._observed(), float(reward), bool(over), info)

    def _last_info(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """SMAC ends an episode without a result when it lost the game and started it anew."""
        if "battle_won" not in told:
            return {"abnormal": True}
        won = float(bool(told["battle_won"]))
        info = {"eval_episode_return": won, "win": won, "shaped_return": self._return}
        info |= {key: told[key] for key in ("dead_allies", "dead_enemies") if key in told}
        return {**info, "truncated": True} if told.get("episode_limit") else info

    def _observed(self) -> dict[str, np.ndarray]:
        masks = np.array(self._env.get_avail_actions(), dtype=_F4)
        # Only the dead may do nothing.
        alive = 1 - masks[:, 0]
        seen = np.array(self._env.get_obs(), dtype=_F4)
        if self._cfg["obs_agent_id"]:
            ids = np.eye(self._n_agent, dtype=_F4) * alive[:, None]
            seen = np.concatenate([seen, ids], axis=1)
        whole = np.array(self._env.get_state(), dtype=_F4)
        if self._cfg["special_global_state"]:
            whole = np.concatenate([np.tile(whole, (self._n_agent, 1)), seen], axis=1)
        return {AGENT_STATE: seen, GLOBAL_STATE: whole, ACTION_MASK: masks, ALIVE: alive}

    def random_action(self) -> np.ndarray:
        """Available actions, each as likely."""
        masks = np.array(self._env.get_avail_actions(), dtype=np.int8)
        return self.action_space.sample(masks)

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._env, self._running = None, False

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

    def __getstate__(self) -> dict[str, Any]:
        if self._running:
            raise PicklingError("a game of StarCraft II does not keep its episode when pickled")
        return self.__dict__ | {"_env": None}

    def __repr__(self) -> str:
        return f"SMACEnv({self._cfg['map_name']})"


def _starcraft() -> Any:
    """The class StarCraft2Env; another package of the name `smac` is told from the right one."""
    try:
        return import_module("smac.env").StarCraft2Env
    except (ImportError, AttributeError) as error:
        raise DingError(
            "env 'smac' needs StarCraft II with SMAC's maps and the package smac of oxwhirl: pip "
            "install git+https://github.com/oxwhirl/smac.git (plain 'pip install smac' gets an "
            "optimiser of another project). env 'micro_battle' has the same interface and needs "
            f"neither ({error})"
        ) from error
