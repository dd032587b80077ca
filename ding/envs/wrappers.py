"""Gymnasium wrappers by the names that configs use; Gymnasium's own where they do the job."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import (
    FrameStackObservation,
    NormalizeObservation,
    NormalizeReward,
    TimeLimit,
)

from ding.utils.errors import DingError
from ding.utils.registry import ENV_WRAPPER_REGISTRY, class_of

Env = gym.Env[Any, Any]
Wrapper = gym.Wrapper[Any, Any, Any, Any]
Step = tuple[Any, Any, bool, bool, dict[str, Any]]
Reset = tuple[Any, dict[str, Any]]

_NOOP, _FIRE = 0, 1
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def create_env_wrapper(env: Env, cfg: str | Mapping[str, Any] | Callable[[Env], Env]) -> Env:
    """Wrap `env` by a name, 'module:Class', `dict(type=..., kwargs=...)` or a callable."""
    wrapper = wrapper_class(cfg)
    if isinstance(cfg, str):
        cfg = {"type": cfg}
    return _built(wrapper, env, cfg) if isinstance(cfg, Mapping) else wrapper(env)


def wrapper_class(cfg: str | Mapping[str, Any] | Callable[[Env], Env]) -> Any:
    """The class or function that an entry of `env_wrapper` names."""
    if isinstance(cfg, str):
        cfg = {"type": cfg}
    if isinstance(cfg, Mapping):
        if "type" not in cfg:
            raise DingError(f"env_wrapper entry {dict(cfg)!r} lacks 'type'")
        kind = cfg["type"]
        is_place = isinstance(kind, str) and ":" in kind
        return _at_place(kind) if is_place else class_of(ENV_WRAPPER_REGISTRY, cfg)
    if not callable(cfg):
        raise DingError(f"env_wrapper entry must be a name, 'module:Class' or a dict, got {cfg!r}")
    return cfg


def _at_place(place: str) -> Any:
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise DingError(f"env_wrapper '{place}': {error}; give 'module:Class'") from error


def _built(wrapper: Any, env: Env, cfg: Mapping[str, Any]) -> Env:
    kwargs = cfg.get("kwargs") or {}
    parameters = inspect.signature(wrapper).parameters
    try:
        inspect.signature(wrapper).bind(env, **kwargs)
    except TypeError as error:
        takes = ", ".join(list(parameters)[1:]) or "no options"
        given = f"'{cfg['type']}' with kwargs {dict(kwargs)}"
        raise DingError(f"env.env_wrapper: {given}: {error}; it takes {takes}") from error
    wrapped: Env = wrapper(env, **kwargs)
    return wrapped


class NoopResetWrapper(Wrapper):
    """Begin with a random number of no-ops, so that episodes differ."""

    def __init__(self, env: Env, noop_max: int = 30) -> None:
        super().__init__(env)
        self.noop_max = noop_max

    def reset(self, **kwargs: Any) -> Reset:
        obs, info = self.env.reset(**kwargs)
        for _ in range(self.unwrapped.np_random.integers(1, self.noop_max + 1)):
            obs, _, terminated, truncated, info = self.env.step(_NOOP)
            if terminated or truncated:
                obs, info = self.env.reset()
        return obs, info


class MaxAndSkipWrapper(Wrapper):
    """Repeat every action and take the maximum of the last two frames, against flicker."""

    def __init__(self, env: Env, skip: int = 4) -> None:
        super().__init__(env)
        self.skip = skip

    def step(self, action: Any) -> Step:
        total = 0.0
        frames: list[Any] = []
        for _ in range(self.skip):
            obs, reward, terminated, truncated, info = self.env.step(action)
            frames = [*frames[-1:], obs]
            total += float(reward)
            if terminated or truncated:
                break
        return np.maximum(frames[0], frames[-1]), total, terminated, truncated, info


class EpisodicLifeWrapper(Wrapper):
    """A lost life ends the episode for the learner; the game itself goes on until it is over."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.lives = 0
        self.game_over = True

    def _lives(self) -> int:
        return self.unwrapped.ale.lives()  # type: ignore[attr-defined]

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.game_over = terminated or truncated
        lives = self._lives()
        lost = 0 < lives < self.lives
        self.lives = lives
        return obs, reward, terminated or lost, truncated, info

    def reset(self, **kwargs: Any) -> Reset:
        if self.game_over:
            obs, info = self.env.reset(**kwargs)
        else:
            obs, _, terminated, truncated, info = self.env.step(_NOOP)
            if terminated or truncated:
                obs, info = self.env.reset(**kwargs)
        self.game_over = False
        self.lives = self._lives()
        return obs, info


class FireResetWrapper(Wrapper):
    """Press FIRE after a reset, for games that wait for it."""

    def reset(self, **kwargs: Any) -> Reset:
        obs, info = self.env.reset(**kwargs)
        obs, _, terminated, truncated, info = self.env.step(_FIRE)
        return self.env.reset() if terminated or truncated else (obs, info)


class WarpFrameWrapper(gym.ObservationWrapper[Any, Any, Any]):
    """RGB frames to grey ones of `size` x `size`, each pixel the mean of the area it covers."""

    def __init__(self, env: Env, size: int = 84) -> None:
        super().__init__(env)
        height, width = env.observation_space.shape[:2]  # type: ignore[index]
        self.rows = _area_weights(height, size)
        self.columns = _area_weights(width, size).T
        self.observation_space = spaces.Box(0, 255, (size, size), dtype=np.uint8)

    def observation(self, observation: Any) -> np.ndarray:
        grey = observation @ _LUMA if observation.ndim == 3 else observation
        frame = self.rows @ grey.astype(np.float32) @ self.columns
        return np.rint(frame).clip(0, 255).astype(np.uint8)


def _area_weights(old: int, new: int) -> np.ndarray:
    """(new, old): how much of each old pixel lies in each new one; rows sum to 1."""
    edges = np.linspace(0, old, new + 1)
    pixels = np.arange(old)
    upper = np.minimum(edges[1:, None], pixels + 1)
    lower = np.maximum(edges[:-1, None], pixels)
    overlap = np.maximum(upper - lower, 0.0)
    return (overlap / overlap.sum(1, keepdims=True)).astype(np.float32)


class RescaleObsWrapper(gym.ObservationWrapper[Any, Any, Any]):
    """Observations scaled from the bounds of their space to [low, high], as float32."""

    def __init__(self, env: Env, low: float = -1.0, high: float = 1.0) -> None:
        super().__init__(env)
        box = env.observation_space
        if not isinstance(box, spaces.Box) or not box.is_bounded():
            raise DingError(
                "scaled_float_frame and rescale_obs need a bounded Box observation space, "
                f"got {box}"
            )
        if not low < high:
            raise DingError(f"rescale_obs: low = {low} must be below high = {high}")
        self.bottom = box.low.astype(np.float32)
        self.width = (box.high - box.low).astype(np.float32)
        self.low, self.range = np.float32(low), np.float32(high - low)
        self.observation_space = spaces.Box(low, high, box.shape, dtype=np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        return (observation - self.bottom) / self.width * self.range + self.low


class ScaledFloatFrameWrapper(RescaleObsWrapper):
    """Observations scaled from the bounds of their space to [0, 1], as float32."""

    def __init__(self, env: Env) -> None:
        super().__init__(env, 0.0, 1.0)


class ClipRewardWrapper(gym.RewardWrapper[Any, Any]):
    """Only the sign of the reward."""

    def reward(self, reward: Any) -> float:
        return float(np.sign(reward))


class FrameStackWrapper(FrameStackObservation):
    """The last `n_frames` observations along a new first axis; a reset fills it with the first."""

    def __init__(self, env: Env, n_frames: int = 4) -> None:
        super().__init__(env, n_frames)


class ObsNormWrapper(NormalizeObservation):
    """Observations less their running mean over their running deviation, clipped."""

    def __init__(self, env: Env, clip_range: tuple[float, float] = (-3.0, 3.0)) -> None:
        super().__init__(env)
        self.clip_range = clip_range
        shape = env.observation_space.shape
        self.observation_space = spaces.Box(*clip_range, shape, dtype=np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        return super().observation(observation).clip(*self.clip_range).astype(np.float32)


class RewardNormWrapper(NormalizeReward):
    """Rewards over the running deviation of the discounted return."""

    def __init__(self, env: Env, reward_discount: float = 0.99) -> None:
        super().__init__(env, gamma=reward_discount)


class TimeLimitWrapper(TimeLimit):
    """Truncate episodes after `max_limit` steps."""

    def __init__(self, env: Env, max_limit: int) -> None:
        super().__init__(env, max_limit)


class RamWrapper(gym.ObservationWrapper[Any, Any, Any]):
    """A vector as a (n, 1, 1) float32 image, for models that expect one."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        size = int(np.prod(env.observation_space.shape or ()))
        self.observation_space = spaces.Box(0, 255, (size, 1, 1), dtype=np.float32)

    def observation(self, observation: Any) -> np.ndarray:
        return np.asarray(observation, dtype=np.float32).reshape(-1, 1, 1)


class DelayRewardWrapper(Wrapper):
    """Hold rewards back and give their sum every `delay_reward_step` steps and at the end."""

    def __init__(self, env: Env, delay_reward_step: int = 1) -> None:
        super().__init__(env)
        if delay_reward_step < 1:
            raise DingError(f"delay_reward_step must be at least 1, got {delay_reward_step}")
        self.delay = delay_reward_step
        self.steps = 0
        self.held = 0.0

    def reset(self, **kwargs: Any) -> Reset:
        self.steps, self.held = 0, 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        self.held += float(reward)
        if terminated or truncated or self.steps % self.delay == 0:
            given, self.held = self.held, 0.0
        else:
            given = 0.0
        return obs, given, terminated, truncated, info


class ObsPlusPrevActRewWrapper(Wrapper):
    """`{obs, prev_action, prev_reward_extrinsic}`; after a reset a discrete action is -1."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        reward = spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)
        self.observation_space = spaces.Dict(
            obs=env.observation_space, prev_action=env.action_space, prev_reward_extrinsic=reward
        )
        action = env.action_space
        is_discrete = isinstance(action, spaces.Discrete)
        self.no_action = np.int64(-1) if is_discrete else np.zeros(action.shape or (), action.dtype)

    def _with_previous(self, obs: Any, action: Any, reward: Any) -> dict[str, Any]:
        previous = np.array([reward], dtype=np.float32)
        return {"obs": obs, "prev_action": action, "prev_reward_extrinsic": previous}

    def reset(self, **kwargs: Any) -> Reset:
        obs, info = self.env.reset(**kwargs)
        return self._with_previous(obs, self.no_action, 0.0), info

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._with_previous(obs, action, reward), reward, terminated, truncated, info


class EvalEpisodeReturnWrapper(Wrapper):
    """Put the sum of the rewards as they are here, before outer wrappers, into the last info."""

    episode_return = 0.0

    def reset(self, **kwargs: Any) -> Reset:
        self.episode_return = 0.0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.episode_return += float(reward)
        if terminated or truncated:
            info["eval_episode_return"] = self.episode_return
        return obs, reward, terminated, truncated, info


class FlatObsWrapper(gym.ObservationWrapper[Any, Any, Any]):
    """Nested or image observations as one vector."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.observation_space = spaces.flatten_space(env.observation_space)

    def observation(self, observation: Any) -> Any:
        return spaces.flatten(self.env.observation_space, observation)
