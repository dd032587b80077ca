"""Stable-Baselines3's defaults on one env: `python sb3_defaults.py JSON` prints what they reach.

Run by an interpreter that has it; no `ding` is needed there.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import stable_baselines3

ALGORITHMS = {"dqn": "DQN", "ppo": "PPO", "a2c": "A2C", "sac": "SAC", "td3": "TD3"}


def make(env: dict[str, Any]) -> gym.Env[Any, Any]:
    if env["env_id"].startswith("MiniGrid"):
        import minigrid
        from minigrid.wrappers import FlatObsWrapper

        gym.register_envs(minigrid)
        return FlatObsWrapper(gym.make(env["env_id"]))
    return gym.make(env["env_id"], **env.get("env_kwargs", {}))


def returns_of(model: Any, env: gym.Env[Any, Any], first: int, count: int) -> list[float]:
    """Of episodes from starts that training never saw, by the likeliest actions."""
    found = []
    for seed in range(first, first + count):
        obs, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(obs, deterministic=True)
            # Envs of tables look a whole number up, and take no array of it.
            chosen = action.item() if np.ndim(action) == 0 else action
            obs, reward, terminated, truncated, _ = env.step(chosen)
            total, over = total + float(reward), terminated or truncated
        found.append(total)
    return found


def main(job: dict[str, Any]) -> None:
    env = make(job["env"])
    limit = job.get("step_limit")
    if limit is not None:
        env = gym.wrappers.TimeLimit(env, limit)
    algorithm = getattr(stable_baselines3, ALGORITHMS[job["policy"]])
    model = algorithm("MlpPolicy", env, seed=job["seed"], device="cpu")
    model.learn(job["steps"])
    returns = np.array(returns_of(model, env, job["first"], job["episodes"]))
    error = returns.std(ddof=1) / len(returns) ** 0.5
    found = {"mean": round(float(returns.mean()), 2), "error": round(float(error), 2)}
    version = stable_baselines3.__version__
    sys.stdout.write(json.dumps({**found, "version": version}) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
