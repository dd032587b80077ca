"""Episodes of an agent in a plain Gymnasium env, or in a `BaseEnv` of its own kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.agent.spaces import Unseen
from ding.envs import BaseEnv
from ding.envs.video import EpisodeRecorder
from ding.utils.errors import DingError


def play_episodes(
    agent: Any,
    env: Any,
    episodes: int,
    seed: int,
    *,
    deterministic: bool = True,
    video: str | Path | None = None,
) -> np.ndarray:
    """Returns (episodes,); episode i begins from `seed + i`."""
    _check(agent, env, episodes)
    recorder = None if video is None else _recorder(env, video)
    return np.array(
        [_episode(agent, env, seed + i, deterministic, recorder) for i in range(episodes)]
    )


def _check(agent: Any, env: Any, episodes: int) -> None:
    if episodes < 1:
        raise DingError(f"episodes = {episodes}: must be at least 1")
    own = agent.card.own_env
    if own and not isinstance(env, BaseEnv):
        raise DingError(
            f"{type(env).__name__} does not speak as the BaseEnv that the agent was trained in: "
            "pass agent.wrap(env)"
        )
    if isinstance(env, BaseEnv) and not own:
        raise DingError(
            f"{env!r} presents other actions than the simulator in it: pass the Gymnasium env "
            "itself (for a DingEnvWrapper env.plain_env())"
        )
    for name in ("observation_space", "action_space"):
        wanted, given = getattr(agent, name), getattr(env, name)
        if not _fits(given, wanted, bounds=name == "action_space"):
            raise DingError(
                f"the agent was trained for the {name.replace('_', ' ')} {wanted}, but the env "
                f"has {given}"
            )


def _fits(given: Any, wanted: Any, bounds: bool) -> bool:
    """Whether a space is the one trained for; of boxes, `bounds` have to be the same, too."""
    if isinstance(wanted, spaces.Dict):
        keys = wanted.spaces
        same = isinstance(given, spaces.Dict) and set(given.spaces) == set(keys)
        return same and all(_fits(given.spaces[key], keys[key], bounds) for key in keys)
    if isinstance(wanted, spaces.Tuple):
        same = isinstance(given, spaces.Tuple) and len(given.spaces) == len(wanted.spaces)
        pairs = zip(given.spaces, wanted.spaces, strict=True) if same else ()
        return same and all(_fits(one, other, bounds) for one, other in pairs)
    if isinstance(wanted, Unseen):
        return True
    if isinstance(wanted, spaces.Box):
        same = isinstance(given, spaces.Box) and given.shape == wanted.shape
        return same and (
            not bounds
            or (np.array_equal(given.low, wanted.low) and np.array_equal(given.high, wanted.high))
        )
    return bool(wanted == given)


def _recorder(env: Any, video: str | Path) -> EpisodeRecorder:
    if isinstance(env, BaseEnv):
        if not hasattr(env, "render"):
            raise DingError(f"{env!r} draws no pictures for a video: it does not define render()")
        return EpisodeRecorder(video, type(env).__name__)
    if env.render_mode not in ("rgb_array", "rgb_array_list"):
        raise DingError(
            f"for a video make the env with render_mode='rgb_array', it has {env.render_mode!r}"
        )
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    return EpisodeRecorder(video, name)


def _episode(
    agent: Any, env: Any, seed: int, deterministic: bool, recorder: EpisodeRecorder | None
) -> float:
    agent.reset()
    if isinstance(env, BaseEnv):
        return _own_episode(agent, env, seed, deterministic, recorder)
    obs, _ = env.reset(seed=seed)
    total, reward, over = 0.0, None, False
    try:
        while not over:
            if recorder is not None:
                recorder.add(env)
            action = agent.act(obs, deterministic, reward=reward)
            obs, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            over = terminated or truncated
        if recorder is not None:
            recorder.add(env)  # how it ended
    finally:
        if recorder is not None:
            recorder.end_episode()
    return total


def _own_episode(
    agent: Any, env: BaseEnv, seed: int, deterministic: bool, recorder: EpisodeRecorder | None
) -> float:
    """The return that the env reports, or the sum of all rewards."""
    env.seed(seed, dynamic_seed=False)
    obs, total, over = env.reset(), 0.0, False
    info: dict[str, Any] = {}
    try:
        while not over:
            if recorder is not None:
                recorder.add(env)
            action = agent.act(obs, deterministic)
            obs, reward, over, info = env.step(int(action) if env.python_actions else action)
            total += float(np.sum(reward))
        if recorder is not None:
            recorder.add(env)  # how it ended
    finally:
        if recorder is not None:
            recorder.end_episode()
    return float(info.get("eval_episode_return", total))
