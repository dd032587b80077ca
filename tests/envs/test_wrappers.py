from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from ding.envs.wrappers import create_env_wrapper
from ding.utils.errors import DingError
from ding.utils.registry import ENV_WRAPPER_REGISTRY


class Game(gym.Env[Any, Any]):
    """Step t gives obs and reward t; a life is lost every 4 steps, the game ends with the third."""

    def __init__(self, space: Any = None) -> None:
        self.observation_space = space or spaces.Box(0, 20, (2,), dtype=np.float32)
        self.action_space = spaces.Discrete(3)
        self.ale = SimpleNamespace(lives=lambda: self.lives)
        self.actions: list[int] = []
        self.resets = 0

    def _obs(self) -> Any:
        shape, dtype = self.observation_space.shape, self.observation_space.dtype
        return np.full(shape or (), self.t, dtype=dtype)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t, self.lives = 0, 3
        self.resets += 1
        return self._obs(), {}

    def step(self, action: int) -> Any:
        self.actions.append(action)
        self.t += 1
        self.lives = 3 - self.t // 4
        return self._obs(), float(self.t), self.lives == 0, False, {}


def wrapped(name: str, game: Game | None = None, **kwargs: Any) -> Any:
    return create_env_wrapper(game or Game(), {"type": name, "kwargs": kwargs})


def rewards(env: Any, steps: int) -> list[float]:
    env.reset()
    return [env.step(0)[1] for _ in range(steps)]


def test_every_registered_wrapper_can_be_pickled() -> None:
    needs = {"time_limit": {"max_limit": 5}}
    for name in ENV_WRAPPER_REGISTRY.query():
        space = spaces.Box(0, 255, (8, 8, 3), dtype=np.uint8) if name == "warp_frame" else None
        game = Game(space)
        game.ale = None  # type: ignore[assignment]
        pickle.loads(pickle.dumps(wrapped(name, game, **needs.get(name, {}))))


def test_noop_reset() -> None:
    env = wrapped("noop_reset", noop_max=5)
    seen = set()
    for seed in range(60):
        obs, _ = env.reset(seed=seed)
        seen.add(int(obs[0]))
    assert seen == {1, 2, 3, 4, 5}


def test_max_and_skip() -> None:
    class Flicker(Game):
        def _obs(self) -> Any:
            return np.float32([self.t, 0] if self.t % 2 else [0, self.t])

    env = wrapped("max_and_skip", Flicker(), skip=4)
    env.reset()
    obs, reward, done, _, _ = env.step(0)
    assert obs.tolist() == [3, 4]
    assert reward == 10.0
    assert not done
    env.step(0)
    assert env.step(0)[1:3] == (42.0, True)


def test_max_and_skip_stops_at_the_end() -> None:
    env = wrapped("max_and_skip", skip=5)
    env.reset()
    totals = [env.step(0) for _ in range(3)]
    assert totals[-1][1] == 23.0
    assert totals[-1][2]
    assert totals[-1][0].tolist() == [12, 12]


def test_episodic_life() -> None:
    game = Game()
    env = wrapped("episodic_life", game)
    env.reset()
    ends = []
    for t in range(1, 13):
        if env.step(0)[2]:
            ends.append(t)
            if t < 12:
                game.t -= 1  # The no-op of the soft reset is not counted here.
                env.reset()
    assert ends == [4, 8, 12]
    assert game.resets == 1
    env.reset()
    assert game.resets == 2


def test_fire_reset() -> None:
    game = Game()
    obs, _ = wrapped("fire_reset", game).reset()
    assert game.actions == [1]
    assert obs[0] == 1


def test_warp_frame() -> None:
    env = wrapped("warp_frame", Game(spaces.Box(0, 255, (4, 6, 3), dtype=np.uint8)), size=2)
    assert env.observation_space.shape == (2, 2)
    frame = np.zeros((4, 6, 3), dtype=np.uint8)
    frame[:2, :3] = 100
    frame[2:, 3:, 0] = 200
    assert env.observation(frame).tolist() == [[100, 0], [0, 60]]
    assert env.reset()[0].dtype == np.uint8


def test_warp_frame_shares_pixels_by_area() -> None:
    env = wrapped("warp_frame", Game(spaces.Box(0, 255, (3, 3), dtype=np.uint8)), size=2)
    frame = np.array([[90, 0, 0], [0, 0, 0], [0, 0, 90]], dtype=np.uint8)
    assert env.observation(frame).tolist() == [[40, 0], [0, 40]]


def test_scaled_float_frame() -> None:
    env = wrapped("scaled_float_frame")
    env.reset()
    obs = [env.step(0)[0] for _ in range(5)][-1]
    assert obs.tolist() == [0.25, 0.25]
    assert env.observation_space == spaces.Box(0, 1, (2,))
    with pytest.raises(DingError, match="bounded Box"):
        wrapped("scaled_float_frame", Game(spaces.Box(0, np.inf, (2,))))


def test_rescale_obs() -> None:
    env = wrapped("rescale_obs", low=-5, high=3)
    assert env.reset()[0].tolist() == [-5.0, -5.0]
    obs = [env.step(0)[0] for _ in range(5)][-1]
    assert obs.tolist() == [-3.0, -3.0]
    assert obs.dtype == np.float32
    assert env.observation_space == spaces.Box(-5, 3, (2,))
    with pytest.raises(DingError, match="low = 2 must be below high = 1"):
        wrapped("rescale_obs", low=2, high=1)


def test_clip_reward() -> None:
    assert rewards(wrapped("clip_reward"), 3) == [1.0, 1.0, 1.0]
    assert create_env_wrapper(Game(), "clip_reward").reward(-0.2) == -1.0  # type: ignore[attr-defined]


def test_frame_stack() -> None:
    env = wrapped("frame_stack", n_frames=3)
    assert env.observation_space.shape == (3, 2)
    assert env.reset()[0][:, 0].tolist() == [0, 0, 0]
    env.step(0)
    assert env.step(0)[0][:, 0].tolist() == [0, 1, 2]


def test_obs_norm() -> None:
    env = wrapped("obs_norm", clip_range=(-1.5, 1.5))
    env.reset()
    obs = [env.step(0)[0] for _ in range(11)]
    assert obs[-1].dtype == np.float32
    assert obs[-1][0] == 1.5
    assert env.observation_space == spaces.Box(-1.5, 1.5, (2,))
    assert env.obs_rms.mean[0] == pytest.approx(np.mean(range(12)), rel=1e-3)


def test_reward_norm() -> None:
    env = wrapped("reward_norm", reward_discount=0.9)
    assert env.gamma == 0.9
    scaled = rewards(env, 11)
    assert 0 < scaled[-1] < 11


def test_time_limit() -> None:
    env = wrapped("time_limit", max_limit=2)
    env.reset()
    assert env.step(0)[2:4] == (False, False)
    assert env.step(0)[2:4] == (False, True)


def test_ram() -> None:
    env = wrapped("ram")
    obs, _ = env.reset()
    assert obs.shape == env.observation_space.shape == (2, 1, 1)
    assert obs.dtype == np.float32


def test_delay_reward() -> None:
    env = wrapped("delay_reward", delay_reward_step=5)
    assert rewards(env, 12) == [0, 0, 0, 0, 15, 0, 0, 0, 0, 40, 0, 23]
    assert rewards(env, 1) == [0]
    with pytest.raises(DingError, match="at least 1, got 0"):
        wrapped("delay_reward", delay_reward_step=0)


def test_obs_plus_previous() -> None:
    env = wrapped("obs_plus_prev_action_reward")
    obs, _ = env.reset()
    assert (obs["prev_action"], obs["prev_reward_extrinsic"].tolist()) == (-1, [0.0])
    obs = env.step(2)[0]
    assert (obs["prev_action"], obs["prev_reward_extrinsic"].tolist()) == (2, [1.0])
    assert obs["obs"].tolist() == [1, 1]
    assert sorted(env.observation_space.keys()) == ["obs", "prev_action", "prev_reward_extrinsic"]


def test_eval_episode_return() -> None:
    env = wrapped("eval_episode_return")
    for _ in range(2):
        env.reset()
        infos = [env.step(0)[4] for _ in range(12)]
        assert infos[-2] == {}
        assert infos[-1] == {"eval_episode_return": 78.0}


def test_flat_obs() -> None:
    env = wrapped("flat_obs", Game(spaces.Box(0, 9, (2, 3))))
    assert env.reset()[0].shape == env.observation_space.shape == (6,)


def test_create_env_wrapper() -> None:
    game = Game()
    assert create_env_wrapper(game, lambda env: gym.Wrapper(env)).unwrapped is game
    with pytest.raises(DingError, match="did you mean 'clip_reward'"):
        create_env_wrapper(game, "clip_rewards")
    with pytest.raises(DingError, match="lacks 'type'"):
        create_env_wrapper(game, {"kwargs": {}})
    with pytest.raises(DingError, match="got 3"):
        create_env_wrapper(game, 3)  # type: ignore[arg-type]
