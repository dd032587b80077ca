"""EnvPool's envs (written in C++, stepped by its own threads) in place of many single ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from ding.envs.manager.gym_vector import check_wrappers
from ding.envs.manager.interface import EnvManager
from ding.envs.manager.vector.columns import InfoRows, fitted, map_actions
from ding.envs.manager.vector.manager import VectorEnvManager
from ding.envs.manager.vector.simulators import MakeVector, Outcome, Seeds, Simulators
from ding.utils.batch import take
from ding.utils.errors import DingError, nearest

# Ids that EnvPool adds to the infos; whose step it was is known here.
_BOOKKEEPING = ("env_id", "players")


class PoolEnvManager(VectorEnvManager):
    """Runs `env.env_id` as EnvPool's env of that name, all envs in one pool.

    Needs the extra `envpool` (1.2.5 is the last EnvPool for Python 3.11).
    Tried with classic control and Atari. A pool cannot be saved, so a resumed run begins new
    episodes, and it takes seeds only when it is made, so a new seed means a new pool.
    """

    config: ClassVar[dict[str, Any]] = {
        **EnvManager.config,
        # Threads that step the envs; 0 leaves the choice to EnvPool.
        "num_threads": 0,
        # Not used: what happened in one env of a pool cannot be replayed alone.
        "flight_dir": None,
    }

    def _check_wrappers(self, wrappers: Sequence[Any]) -> None:
        check_wrappers(wrappers, "env_pool")

    def _make_simulators(self) -> Simulators:
        cfg = self._wrappers[0]._cfg
        kwargs = {"num_threads": self._cfg["num_threads"], **cfg["env_kwargs"]}
        if cfg["max_episode_steps"] is not None:
            kwargs["max_episode_steps"] = cfg["max_episode_steps"]
        make = partial(make_pool, cfg["env_id"], self.env_num, kwargs)
        return Pool(make, make(None), bool(cfg["act_scale"]))


class Pool(Simulators):
    """Steps any of its envs alone and resets only when told to."""

    resets_alone = True
    holds = True

    def __init__(self, make: MakeVector, vector: Any, act_scale: bool) -> None:
        super().__init__(make, vector, act_scale)
        self._table: Any = None

    def reset(self, seeds: Seeds, reseed: bool) -> Any:
        if reseed:  # A pool takes seeds only when it is made.
            self.close()
            self.vector = self._make(seeds)
        self._table = self._fitted(self.vector.reset()[0])
        return self._table

    def reset_some(self, ids: Sequence[int], seeds: Seeds) -> Any:
        obs, infos = self.vector.reset(np.array(ids, dtype=np.int32))
        order = np.asarray(infos["env_id"])
        obs = fitted(self.observation_space, self._obs_map(obs), len(order))
        self._table = self._columns.replaced(self._table, order.tolist(), obs)
        return self._table

    def step(self, ids: np.ndarray | None, actions: Any) -> Outcome:
        actions = map_actions(self._action_map, actions)
        asked = np.arange(self.count) if ids is None else ids
        said = self.vector.step(actions, asked.astype(np.int32))
        at = _positions(np.asarray(said[4]["env_id"]), asked)
        obs, reward, terminated, truncated = (
            take(tuple(said[:4]), at) if at is not None else said[:4]
        )
        obs = fitted(self.observation_space, self._obs_map(obs), len(asked))
        whole = ids is None
        self._table = obs if whole else self._columns.replaced(self._table, asked.tolist(), obs)
        infos = {key: value for key, value in said[4].items() if key not in _BOOKKEEPING}
        info = InfoRows(infos, range(len(asked)) if at is None else at.tolist())
        done = terminated | truncated
        over = asked[done].tolist()
        truncated = truncated > terminated
        return Outcome(obs, reward, done, truncated, info, self._table, (), over)

    def close(self) -> None:
        self.vector.close()


def _positions(given: np.ndarray, asked: np.ndarray) -> np.ndarray | None:
    """Where the answers for `asked` are; None: in order."""
    if given.tolist() == asked.tolist():
        return None
    place = {env_id: k for k, env_id in enumerate(given.tolist())}
    return np.array([place[i] for i in asked.tolist()])


def make_pool(env_id: str, count: int, kwargs: dict[str, Any], seeds: Seeds | None = None) -> Any:
    try:
        envpool = import_module("envpool")
    except ImportError as error:
        raise DingError(
            "env.manager.type='env_pool' needs EnvPool: pip install 'ding-engine[envpool]' "
            f"({error})"
        ) from error
    known = envpool.list_all_envs()
    if env_id not in known:
        raise DingError(f"EnvPool has no env_id '{env_id}'{nearest(env_id, known)}")
    if seeds is not None and None not in seeds:
        kwargs = {**kwargs, "seed": [int(seed) for seed in seeds if seed is not None]}
    try:
        return envpool.make(env_id, env_type="gymnasium", num_envs=count, **kwargs)
    except (AssertionError, TypeError, ValueError) as error:
        raise DingError(f"EnvPool cannot make '{env_id}' with {kwargs}: {error}") from error
