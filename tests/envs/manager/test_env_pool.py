"""Against a stand-in that behaves as EnvPool 1.2.5 does; the real one is an extra."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import DingEnvWrapper, EnvState
from ding.envs.manager.env_pool import PoolEnvManager
from ding.utils.batch import ByEnv
from ding.utils.errors import DingError, EnvError


class FakePool:
    """obs is (seed, episode, step); env i ends after 2 + i steps, env 1 by truncation."""

    made: list[dict[str, Any]]

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        self.num_envs, self.kwargs = num_envs, kwargs
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), dtype=np.float64)
        self.action_space = gym.spaces.Box(-2.0, 2.0, (1,), dtype=np.float64)
        self.obs = np.zeros((num_envs, 3))
        self.obs[:, 0] = kwargs.get("seed", -1)
        self.actions: list[Any] = []
        self.closed = False

    def reset(self, env_id: Any = None) -> tuple[Any, dict[str, Any]]:
        ids = np.arange(self.num_envs) if env_id is None else np.asarray(env_id)
        self.obs[ids, 1] += 1
        self.obs[ids, 2] = 0
        return self.obs[ids], self._infos(ids)

    def step(self, action: Any, env_id: Any) -> tuple[Any, ...]:
        order = np.arange(len(env_id))[::-1]  # answers come in an order of their own
        ids = np.asarray(env_id)[order]
        if self.kwargs.get("breaks"):
            raise RuntimeError("pool broke")
        self.actions.append((ids.tolist(), action[order].ravel().tolist()))
        self.obs[ids, 2] += 1
        over = self.obs[ids, 2] == 2 + ids
        truncated = over & (ids == 1)
        return self.obs[ids], ids * 10.0, over & ~truncated, truncated, self._infos(ids)

    def _infos(self, ids: np.ndarray) -> dict[str, Any]:
        by_env = ids.astype(np.int32)
        return {"env_id": by_env, "players": {"env_id": by_env}, "elapsed": self.obs[ids, 2]}

    def close(self) -> None:
        self.closed = True

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a pool")


@pytest.fixture(autouse=True)
def envpool(monkeypatch: pytest.MonkeyPatch) -> list[FakePool]:
    """A module of that name; returns the list of all pools made."""
    module, made = ModuleType("envpool"), list[FakePool]()

    def make(env_id: str, env_type: str, **kwargs: Any) -> FakePool:
        assert (env_id, env_type) == ("Fake-v5", "gymnasium")
        if "tail" in kwargs:
            raise TypeError("unexpected keyword argument 'tail'")
        made.append(FakePool(**kwargs))
        return made[-1]

    module.make = make  # type: ignore[attr-defined]
    module.list_all_envs = lambda: ["Fake-v5", "Pong-v5"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "envpool", module)
    return made


def manager_of(count: int = 3, env: dict[str, Any] | None = None, **cfg: Any) -> PoolEnvManager:
    env_cfg = {"env_id": "Fake-v5", **(env or {})}
    return PoolEnvManager([partial(DingEnvWrapper, cfg=env_cfg)] * count, cfg)


def launched(**kwargs: Any) -> PoolEnvManager:
    manager = manager_of(**kwargs)
    manager.seed(5, dynamic_seed=False)
    manager.launch()
    return manager


def step(manager: PoolEnvManager, *ids: int) -> Any:
    chosen = np.array(ids or manager.ready_obs_id)
    actions = (chosen[:, None] / 2).astype(np.float32)
    return manager.step(ByEnv(chosen, actions)).stacked


def test_seeds_spaces_and_options(envpool: list[FakePool]) -> None:
    manager = launched(env={"max_episode_steps": 7, "env_kwargs": {"level": 3}}, num_threads=2)
    assert manager.observation_space.dtype == np.float32
    assert manager.action_space == gym.spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)
    assert manager.ready_obs.stacked.tolist() == [[5, 1, 0], [6, 1, 0], [7, 1, 0]]
    wanted = {"max_episode_steps": 7, "level": 3, "num_threads": 2, "seed": [5, 6, 7]}
    assert envpool[-1].kwargs == wanted
    assert [pool.closed for pool in envpool] == [True, False]


def test_answers_come_in_the_order_of_the_ids(envpool: list[FakePool]) -> None:
    manager = launched()
    taken = step(manager)
    assert envpool[-1].actions == [([2, 1, 0], [2.0, 1.0, 0.0])]  # scaled to [-2, 2]
    assert taken.obs.tolist() == [[5, 1, 1], [6, 1, 1], [7, 1, 1]]
    assert taken.obs.dtype == taken.reward.dtype == np.float32
    assert taken.reward.tolist() == [0, 10, 20]
    assert [info["elapsed"] for info in taken.info] == [1, 1, 1]
    assert set(taken.info[0]) == {"elapsed"}


def test_ended_envs_begin_at_once() -> None:
    manager = launched()
    step(manager)
    taken = step(manager)
    assert taken.done.tolist() == [True, False, False]
    assert taken.obs[:, 2].tolist() == [2, 2, 2]
    assert taken.info[0]["eval_episode_return"] == 0
    assert manager.ready_obs.stacked.tolist() == [[5, 2, 0], [6, 1, 2], [7, 1, 2]]
    taken = step(manager)
    assert taken.done.tolist() == taken.truncated.tolist() == [False, True, False]
    assert taken.info[1]["eval_episode_return"] == 30
    assert taken.info[1]["truncated"] is True


def test_some_envs_may_step_alone_while_others_stand_still() -> None:
    manager = launched()
    taken = step(manager, 2, 0)
    assert taken.env_id.tolist() == [2, 0]
    assert taken.obs.tolist() == [[7, 1, 1], [5, 1, 1]]
    assert manager.ready_obs_id == [0, 1, 2]
    assert manager.ready_obs.stacked[:, 2].tolist() == [1, 0, 1]
    manager.reset({2: None})
    assert manager.ready_obs.stacked.tolist() == [[5, 1, 1], [6, 1, 0], [7, 2, 0]]


def test_episode_num_and_static_seeds(envpool: list[FakePool]) -> None:
    manager = launched(count=2, episode_num=1)
    for _ in range(3):
        step(manager)
    assert manager.done
    assert set(manager.env_state.values()) == {EnvState.DONE}
    assert len(envpool) == 2
    manager.reset()
    assert len(envpool) == 3  # the same seeds again: a new pool
    assert manager.ready_obs.stacked.tolist() == [[5, 1, 0], [6, 1, 0]]


def test_a_pool_cannot_be_saved() -> None:
    manager = launched()
    step(manager)
    state = manager.state_dict()
    assert state["envs"] is None
    manager.load_state_dict(state)
    assert manager.ready_obs.stacked[:, 2].tolist() == [0, 0, 0]


def test_failures_are_readable(envpool: list[FakePool]) -> None:
    manager = launched(env={"env_kwargs": {"breaks": True}})
    with pytest.raises(EnvError, match=r"pool broke.*seeds \[5, 6, 7\]"):
        step(manager)
    assert manager.faults == {"raised": 1, "lost": 2}


def test_what_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DingError, match="EnvPool has no env_id 'Pong-v4'; did you mean 'Pong-v5'"):
        manager_of(env={"env_id": "Pong-v4"}).launch()
    with pytest.raises(DingError, match=r"EnvPool cannot make 'Fake-v5' with .*'tail': 1"):
        manager_of(env={"env_kwargs": {"tail": 1}}).launch()
    with pytest.raises(DingError, match=r"env_pool' cannot do env\.env_wrapper"):
        manager_of(env={"env_wrapper": ["flat_obs"]})
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(DingError, match=r"pip install 'ding-engine\[envpool\]'"):
        manager_of().launch()
