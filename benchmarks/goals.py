"""`python -m benchmarks.goals`: a batch with hindsight, ours against SB3's HerReplayBuffer.

Both hold 1,000 episodes of 50 steps (observation 10, goals 3) and draw 256 rows, 4 of 5 with a
goal that their episode reached later. Microseconds a draw, the least of many turns.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.measure import bench

EPISODES, STEPS, ROWS, TURNS, DRAWS = 1000, 50, 256, 20, 200


def box(n: int) -> gym.spaces.Box:
    return gym.spaces.Box(-1, 1, (n,), dtype=np.float32)


class Still(gym.Env[Any, Any]):
    """The spaces and rewards of a goal env; the steps come from a generator."""

    observation_space = gym.spaces.Dict(
        observation=box(10), achieved_goal=box(3), desired_goal=box(3)
    )
    action_space = box(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distance > 0.05).astype(np.float32)


def steps(n: int) -> dict[str, Any]:
    """Columns of `n` steps, one after the other."""
    rng = np.random.default_rng(0)

    def obs() -> dict[str, np.ndarray]:
        sizes = (("observation", 10), ("achieved_goal", 3), ("desired_goal", 3))
        return {name: rng.normal(size=(n, k)).astype(np.float32) for name, k in sizes}

    last = np.arange(n) % STEPS == STEPS - 1
    action = rng.normal(size=(n, 4)).astype(np.float32)
    reward = np.full(n, -1, np.float32)
    return dict(obs=obs(), next_obs=obs(), action=action, reward=reward, done=last, truncated=last)


def ours() -> Callable[[], Any]:
    from ding.reward_model import HindsightGoals
    from ding.utils.batch import Rows
    from ding.worker import create_buffer

    n = EPISODES * STEPS
    buffer = create_buffer(
        dict(type="naive", replay_buffer_size=n, links=True, discount_factor=0.98)
    )
    number = {"episode_id": np.arange(n) // STEPS, "episode_step": np.arange(n) % STEPS}
    buffer.push(Rows(steps(n) | number))
    goals = HindsightGoals.for_env({"ends_at_goal": False}, lambda cfg: Still(), {})
    return lambda: buffer.sample(ROWS, 0, relabel=goals)


def sb3() -> Callable[[], Any]:
    from stable_baselines3 import HerReplayBuffer
    from stable_baselines3.common.vec_env import DummyVecEnv

    env, n = DummyVecEnv([Still]), EPISODES * STEPS
    buffer = HerReplayBuffer(n, env.observation_space, env.action_space, env)
    columns = steps(n)
    for i in range(n):
        obs, next_obs = (
            {k: v[i : i + 1] for k, v in columns[name].items()} for name in ("obs", "next_obs")
        )
        row = (columns[name][i : i + 1] for name in ("action", "reward", "done"))
        buffer.add(obs, next_obs, *row, [{"TimeLimit.truncated": bool(columns["truncated"][i])}])
    return lambda: buffer.sample(ROWS)


def microseconds(draw: Callable[[], Any]) -> float:
    turns = []
    for _ in range(TURNS):
        start = time.process_time()
        for _ in range(DRAWS):
            draw()
        turns.append((time.process_time() - start) / DRAWS)
    return min(turns) * 1e6


def main(argv: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m benchmarks.goals", description=__doc__)
    p.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peer")
    p.add_argument("--side", choices=("ours", "sb3"), help=argparse.SUPPRESS)
    args = p.parse_args(argv)
    if args.side:
        print(json.dumps([microseconds({"ours": ours, "sb3": sb3}[args.side]())]))
        return 0
    with bench(args.peers, quick=False) as runner:
        found = {
            side: json.loads(
                runner.output([python, "-m", "benchmarks.goals", "--side", side], threads=1)
            )[0]
            for side, python in (("ours", sys.executable), ("sb3", runner.peers))
        }
    print(
        f"ours {found['ours']:.0f} us, SB3 {found['sb3']:.0f} us a draw of {ROWS} rows: ratio "
        f"{found['sb3'] / found['ours']:.2f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
