"""Envs that break again while a new one takes the place of a broken one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ding.envs import BaseEnvManager, DingEnvWrapper, SyncSubprocessEnvManager, ThreadEnvManager
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.utils.batch import ByEnv
from ding.utils.errors import EnvError

from ..counting import CountingEnv

RENEW = {"retry_type": "renew", "retry_waiting_time": 0, "flight_dir": None}
MANAGERS: list[Any] = [BaseEnvManager, SyncSubprocessEnvManager, ThreadEnvManager]


class Unclosable(CountingEnv):
    def close(self) -> None:
        super().close()
        raise OSError("the window is gone")


class Maker:
    """Makes envs that break in their first episode; the calls in `broken` raise."""

    def __init__(self, broken: set[int], cls: Any = CountingEnv, step: int = 2) -> None:
        self.broken, self.cls, self.step, self.calls = broken, cls, step, 0

    def __call__(self) -> Any:
        self.calls += 1
        if self.calls in self.broken:
            raise OSError("no display")
        return self.cls(events={(0, self.step): "raise"} if self.calls == 1 else None)


def step_all(manager: Any) -> Any:
    ids = manager.ready_obs.ids
    return manager.step(ByEnv(ids, np.ones(len(ids), dtype=np.int64))).stacked


def launched(cls: Any, make: Callable[[], Any], max_retry: int) -> Any:
    manager = cls([make], {**RENEW, "max_retry": max_retry, "wait_num": 1, "reset_inplace": True})
    manager.launch()
    return manager


@pytest.mark.parametrize("step", [0, 2])
def test_failures_of_a_new_env_are_healed_within_the_retries(step: int) -> None:
    make = Maker({2, 3}, step=step)
    with launched(BaseEnvManager, make, max_retry=4) as manager:
        abnormal = [bool(step_all(manager).abnormal[0]) for _ in range(4)]
        assert abnormal == [False, step == 2, False, False]
        assert make.calls == 4
        assert manager.faults == ({"raised": 1, "reset": 2} if step else {"reset": 3})


@pytest.mark.parametrize("step", [0, 2])
def test_a_new_env_that_cannot_be_made_ends_in_one_error(step: int) -> None:
    make = Maker({2, 3, 4}, step=step)
    with pytest.raises(EnvError, match=r"Env 0 reset has exceeded max retries\(3\)") as told:
        manager = launched(BaseEnvManager, make, max_retry=3)
        for _ in range(2):
            step_all(manager)
    assert isinstance(told.value.__cause__, OSError)
    assert make.calls == (3 if step == 0 else 4)


def breaking(cls: Any) -> Any:
    return cls(events={(0, 2): "raise"})


@pytest.mark.parametrize("cls", MANAGERS)
def test_a_broken_env_need_not_close_well(cls: Any) -> None:
    manager = launched(cls, partial(breaking, Unclosable), max_retry=2)
    abnormal = [bool(step_all(manager).abnormal[0]) for _ in range(3)]
    assert abnormal == [False, True, False]
    if cls is BaseEnvManager:  # In this process an error of the last close is seen.
        with pytest.raises(OSError, match="the window is gone"):
            manager.close()
    manager.close()


@pytest.mark.parametrize("cls", MANAGERS)
def test_the_failure_is_told_also_if_closing_fails_then(cls: Any) -> None:
    make = partial(Unclosable, events={(0, 0): "raise", (1, 0): "raise"})
    with pytest.raises(EnvError, match=r"Env 0 reset has exceeded max retries\(1\)") as told:
        launched(cls, make, max_retry=1)
    if cls is BaseEnvManager:
        assert told.value.__notes__ == ["closing failed too: OSError('the window is gone')"]


class Vector(VectorEnv[Any, Any, Any]):
    """Breaks in its second step, unless it is a later one; the calls in `broken` raise."""

    made = 0
    broken: tuple[int, ...] = ()
    closes = True

    def __init__(self, num_envs: int) -> None:
        Vector.made += 1
        if Vector.made in self.broken:
            raise OSError("no display")
        self.number, self.steps, self.num_envs = Vector.made, 0, num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = gym.spaces.Box(0, 9, (1,), dtype=np.float32)
        self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((self.num_envs, 1), dtype=np.float32), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        self.steps += 1
        if self.number == 1 and self.steps == 2:
            raise ZeroDivisionError("boom")
        no = np.zeros(self.num_envs, dtype=bool)
        obs = np.full((self.num_envs, 1), self.steps, dtype=np.float32)
        return obs, np.ones(self.num_envs), no, no, {}

    def close_extras(self, **_: Any) -> None:
        if not self.closes:
            raise OSError("the window is gone")


@pytest.fixture
def vector(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("made", "broken", "closes"):
        monkeypatch.setattr(Vector, name, getattr(Vector, name))
    gym.register("Broken-v0", vector_entry_point=Vector)  # type: ignore[arg-type]
    yield [partial(DingEnvWrapper, cfg={"env_id": "Broken-v0"})] * 2
    del gym.registry["Broken-v0"]


@pytest.mark.parametrize("closes", [True, False])
def test_a_vector_env_is_healed_within_the_retries(vector: Any, closes: bool) -> None:
    Vector.broken, Vector.closes = (2, 3), closes
    with GymVectorEnvManager(vector, {**RENEW, "max_retry": 4}) as manager:
        manager.launch()
        abnormal = [step_all(manager).abnormal.tolist() for _ in range(3)]
        assert abnormal == [[False] * 2, [True] * 2, [False] * 2]
        assert Vector.made == 4
        assert manager.faults == {"raised": 1, "lost": 1, "reset": 2}
        Vector.closes = True


def test_a_vector_env_that_cannot_be_made_again_ends_in_one_error(vector: Any) -> None:
    Vector.broken, Vector.closes = (2, 3), False
    manager = GymVectorEnvManager(vector, {**RENEW, "max_retry": 2})
    manager.launch()
    step_all(manager)
    with pytest.raises(EnvError, match=r"vector env's reset has exceeded max retries\(2\)") as told:
        step_all(manager)
    assert isinstance(told.value.__cause__, OSError)
    assert manager.closed
