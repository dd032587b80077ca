"""Training on simple_spread that all sides do, stated once. Imports none of them.

Three agents, eight envs in one process, episodes of 25 joint steps. `hidden` are the layers of
agents and, for MAPPO, of critics. QMIX: 20 updates of 125 joint steps (5 episodes) after every 200.
MAPPO: 10 passes over 1,600 joint steps (64 episodes) in minibatches of 400.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.work import Work

N_AGENT, EPISODE = 3, 25
GAMMA, GAE_LAMBDA, CLIP, ENTROPY_WEIGHT = 0.9, 0.95, 0.2, 0.01
TARGET_THETA, CLIP_NORM, MIXING = 0.005, 10.0, 32
BUFFER = 20_000
EPS_END, EPS_STEPS = 0.05, 4000

JOBS = {
    "qmix": Work(
        env_id="simple_spread_v3",
        n_env=8,
        env_steps=40 * 200,
        batch_size=125,
        learning_rate=5e-4,
        hidden=(64, 64),
        rollout=200,
        epochs=20,
        turns=10,
    ),
    "mappo": Work(
        env_id="simple_spread_v3",
        n_env=8,
        env_steps=5 * 1600,
        batch_size=400,
        learning_rate=7e-4,
        hidden=(128, 128),
        rollout=1600,
        epochs=10,
        turns=5,
    ),
}
_QUICK = {"qmix": 8 * 200, "mappo": 2 * 1600}


def job_of(name: str, quick: bool = False) -> Work:
    return replace(JOBS[name], env_steps=_QUICK[name], turns=2) if quick else JOBS[name]
