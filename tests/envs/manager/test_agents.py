"""Observations, actions and rewards with an agent axis, and rewards that are vectors, as columns.

N envs, A agents, k rewards.
"""

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
    AsyncSubprocessEnvManager,
    BaseEnv,
    BaseEnvManager,
    BaseEnvTimestep,
    DingEnvWrapper,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
)
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.utils.batch import ByEnv

N, A, LENGTH = 3, 4, 3
SPACES = gym.spaces.Dict(
    {
        "agent_state": gym.spaces.Box(-np.inf, np.inf, (A, 2), dtype=np.float32),
        "action_mask": gym.spaces.Box(0, 1, (A, 5), dtype=np.int8),
        "global_state": gym.spaces.Box(-np.inf, np.inf, (6,), dtype=np.float32),
    }
)
REWARDS = {"agents": (A,), "objectives": (2,), "objectives of agents": (A, 2), "one": (1,)}
WAIT_FOR_ALL = {"wait_num": N, "flight_dir": None, "max_retry": 2, "retry_waiting_time": 0}
MANAGERS: dict[str, Any] = {
    "base": (BaseEnvManager, {}),
    "shared memory": (SyncSubprocessEnvManager, {"envs_per_worker": 2}),
    "views": (SyncSubprocessEnvManager, {"copy_on_get": False, "envs_per_worker": 1}),
    "pickles": (SyncSubprocessEnvManager, {"shared_memory": False, "envs_per_worker": 2}),
    "spare envs": (SyncSubprocessEnvManager, {"spare_envs": True, "envs_per_worker": 3}),
    "async": (AsyncSubprocessEnvManager, {"reset_inplace": True, "envs_per_worker": 1}),
    "thread": (ThreadEnvManager, {"reset_inplace": True}),
}


def obs_of(env: int, step: int, actions: Any) -> dict[str, np.ndarray]:
    """Every number tells env, step and agent."""
    state = np.zeros((A, 2), dtype=np.float32)
    state[:, 0], state[:, 1] = 100 * env + 10 * step + np.arange(A), actions
    mask = np.zeros((A, 5), dtype=np.int8)
    mask[:, step] = 1
    return {"agent_state": state, "action_mask": mask, "global_state": np.full(6, state.sum())}


def reward_of(shape: tuple[int, ...], env: int, step: int) -> np.ndarray:
    return 10.0 * env + step + np.arange(np.prod(shape)).reshape(shape)


class TeamEnv(BaseEnv):
    def __init__(self, index: int, shape: tuple[int, ...], broken_step: int = -1) -> None:
        super().__init__({})
        self._observation_space = SPACES
        self._action_space = gym.spaces.MultiDiscrete([5] * A)
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, shape, dtype=np.float32)
        self.index, self.shape, self.broken_step = index, shape, broken_step

    def reset(self, **_: Any) -> Any:
        self.steps = 0
        return obs_of(self.index, 0, 0)

    def step(self, action: Any) -> BaseEnvTimestep:
        assert action.shape == (A,)
        self.steps += 1
        if self.steps == self.broken_step:
            self.broken_step = -1
            raise ZeroDivisionError("boom")
        reward = reward_of(self.shape, self.index, self.steps)
        obs = obs_of(self.index, self.steps, action)
        return BaseEnvTimestep(obs, reward, self.steps == LENGTH, {})

    def close(self) -> None: ...


class TeamVector(VectorEnv[Any, Any, Any]):
    """The same as one vector env."""

    def __init__(self, num_envs: int, shape: tuple[int, ...]) -> None:
        self.num_envs, self.shape = num_envs, shape
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = SPACES
        self.single_action_space = gym.spaces.MultiDiscrete([5] * A)
        self.observation_space = batch_space(SPACES, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return self._obs(np.zeros((self.num_envs, A))), {}

    def _obs(self, actions: Any) -> dict[str, np.ndarray]:
        rows = [obs_of(i, self.steps, actions[i]) for i in range(self.num_envs)]
        return {key: np.stack([row[key] for row in rows]) for key in rows[0]}

    def step(self, actions: Any) -> tuple[Any, ...]:
        self.steps = (self.steps + 1) % (LENGTH + 1)
        over = np.full(self.num_envs, self.steps == LENGTH)
        reward = [reward_of(self.shape, i, self.steps) for i in range(self.num_envs)]
        return self._obs(actions), np.stack(reward), over, np.zeros(self.num_envs, dtype=bool), {}


@pytest.fixture(autouse=True)
def _team_id() -> Iterator[None]:
    gym.register("Team-v0", vector_entry_point=TeamVector)  # type: ignore[arg-type]
    yield
    del gym.registry["Team-v0"]


def launched(kind: str, shape: tuple[int, ...], broken_step: int = -1) -> Any:
    if kind == "gym_vector":
        env_cfg = {"env_id": "Team-v0", "env_kwargs": {"shape": shape}}
        manager: Any = GymVectorEnvManager([partial(DingEnvWrapper, cfg=env_cfg)] * N)
    else:
        cls, cfg = MANAGERS[kind]
        fns = [partial(TeamEnv, i, shape, broken_step if i == 1 else -1) for i in range(N)]
        manager = cls(fns, {**WAIT_FOR_ALL, **cfg})
    manager.launch()
    return manager


def step_all(manager: Any, action: int) -> Any:
    ids = manager.ready_obs.ids
    return manager.step(ByEnv(ids, np.full((len(ids), A), action))).stacked


def check_obs(obs: Any, ids: Any, step: int, action: int) -> None:
    for key, space in SPACES.spaces.items():
        expected = np.stack([obs_of(i, step, action)[key] for i in ids])
        np.testing.assert_array_equal(obs[key], expected)
        assert obs[key].dtype == space.dtype


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("kind", [*MANAGERS, "gym_vector"])
def test_columns_keep_their_axes(kind: str, reward: str) -> None:
    shape = REWARDS[reward]
    with launched(kind, shape) as manager:
        check_obs(manager.ready_obs.stacked, range(N), step=0, action=0)
        for t in range(1, LENGTH + 1):
            step = step_all(manager, t)
            check_obs(step.obs, step.env_id, step=t, action=t)
            expected = np.stack([reward_of(shape, i, t) for i in step.env_id])
            np.testing.assert_array_equal(
                step.reward, expected.reshape(N) if shape == (1,) else expected
            )
            assert step.reward.dtype == np.float32
            assert step.done.tolist() == [t == LENGTH] * N
            assert step.truncated.shape == step.abnormal.shape == (N,)
        check_obs(manager.ready_obs.stacked, range(N), step=0, action=0)


@pytest.mark.parametrize("kind", MANAGERS)
def test_failed_steps_have_rewards_of_the_same_shape(kind: str) -> None:
    with launched(kind, (A,), broken_step=2) as manager:
        step_all(manager, 1)
        step = step_all(manager, 1)
        order = np.argsort(step.env_id)
        assert step.abnormal[order].tolist() == [False, True, False]
        assert step.reward.shape == (N, A)
        assert not step.reward[order][1].any()
        assert step.obs["agent_state"].shape == (N, A, 2)


@pytest.mark.parametrize("kind", [*MANAGERS, "gym_vector"])
def test_state_continues_in_the_middle_of_an_episode(kind: str) -> None:
    with launched(kind, (A, 2)) as manager:
        step_all(manager, 1)
        state = manager.state_dict()
        expected = step_all(manager, 2)
        manager.load_state_dict(state)
        step = step_all(manager, 2)
        order, wanted = np.argsort(step.env_id), np.argsort(expected.env_id)
        np.testing.assert_array_equal(step.reward[order], expected.reward[wanted])
        for key in SPACES:
            np.testing.assert_array_equal(step.obs[key][order], expected.obs[key][wanted])


class Stingy(TeamEnv):
    """Gives one number where its reward space declares a vector."""

    def step(self, action: Any) -> BaseEnvTimestep:
        return super().step(action)._replace(reward=1.0)


@pytest.mark.parametrize("cls", [SyncSubprocessEnvManager, ThreadEnvManager])
def test_a_number_is_no_vector_of_rewards(cls: Any) -> None:
    with cls(
        [partial(Stingy, 0, (A,))], {**WAIT_FOR_ALL, "wait_num": 1, "max_retry": 1}
    ) as manager:
        manager.launch()
        with pytest.raises(RuntimeError, match=r"reward has shape \(\), but .* declares \(4,\)"):
            step_all(manager, 1)
