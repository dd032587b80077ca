"""Seeds that managers draw fit simulators that take signed 32-bit numbers, as ALE does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ding.envs import (
    BaseEnvManager,
    DingEnvWrapper,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
)
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.utils.batch import ByEnv

from ..counting import CountingEnv

SEEDS = [0, 3, 2**31 - 9]


def checked(seed: Any) -> None:
    if seed is not None and not 0 <= seed < 2**31:
        raise OverflowError(f"seed {seed} does not fit 32 bits")


class NarrowVector(VectorEnv[Any, Any, Any]):
    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = gym.spaces.Box(0, 1, (1,), dtype=np.float32)
        self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.seeds: list[int] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        checked(seed)
        self.seeds.append(seed)
        return np.zeros((self.num_envs, 1), dtype=np.float32), {}


class NarrowEnv(CountingEnv):
    """Breaks in the first step of every episode, so that it is renewed with a drawn seed."""

    def __init__(self) -> None:
        super().__init__(events={(0, 1): "raise"})

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        checked(seed)
        super().seed(seed, dynamic_seed)


@pytest.fixture
def narrow_id() -> Iterator[str]:
    gym.register("Narrow-v0", vector_entry_point=NarrowVector)  # type: ignore[arg-type]
    yield "Narrow-v0"
    del gym.registry["Narrow-v0"]


@pytest.mark.parametrize("seed", SEEDS)
def test_joint_seed_of_a_vectorised_env(narrow_id: str, seed: int) -> None:
    for count in (1, 2, 8):
        fns = [partial(DingEnvWrapper, cfg={"env_id": narrow_id})] * count
        with GymVectorEnvManager(fns, {"max_retry": 1}) as manager:
            manager.seed(seed)
            manager.launch()
            assert manager._simulators.vector.seeds[0] is not None


@pytest.mark.parametrize("cls", [BaseEnvManager, SyncSubprocessEnvManager, ThreadEnvManager])
def test_seeds_of_renewed_envs(cls: Any) -> None:
    cfg = {"max_retry": 99, "retry_type": "renew", "retry_waiting_time": 0, "flight_dir": None}
    with cls([NarrowEnv], cfg) as manager:
        manager.seed(1)
        manager.launch()
        for _ in range(12):
            manager.step(ByEnv(manager.ready_obs.ids, np.ones(1, dtype=np.int64)))
        assert manager.faults == {"raised": 12}


def test_seeds_of_spare_envs() -> None:
    cfg = {"spare_envs": True, "flight_dir": None, "envs_per_worker": 4}
    with SyncSubprocessEnvManager([NarrowEnv] * 8, cfg) as manager:
        manager.seed(0)
        manager.launch()
        assert manager.faults == {}


@pytest.mark.parametrize("cls", [BaseEnvManager, SyncSubprocessEnvManager, ThreadEnvManager])
@pytest.mark.parametrize("seed", [2**31 - 2, 2**40])
def test_seeds_of_envs_from_a_large_run_seed(cls: Any, seed: int) -> None:
    with cls([NarrowEnv] * 4, {"flight_dir": None}) as manager:
        manager.seed(seed, dynamic_seed=False)
        manager.launch()
        assert manager.episode_seed == [(seed + i) % 2**31 for i in range(4)]
    manager.seed(2**31 - 2)
    assert [slot.seed for slot in manager._slots] == [2**31 - 2, 2**31 - 1, 0, 1]
