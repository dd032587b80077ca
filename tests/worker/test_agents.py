"""An agent axis on observations, masks, actions, rewards and alive flags, from env to update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ding.envs import create_env_manager
from ding.utils.batch import Batch, columns_of
from ding.worker import (
    BaseSerialEvaluator,
    EpisodeCollector,
    NaiveReplayBuffer,
    SampleCollector,
)
from worker.agent_fakes import A, AgentNetwork, AgentsPolicy, K, M, logged_steps, makers

GAMMA = 0.9
MANAGERS = [
    dict(type="base"),
    dict(type="subprocess", shared_memory=True, envs_per_worker=1),
    dict(type="subprocess", shared_memory=True, envs_per_worker=2, copy_on_get=False),
    dict(type="async_subprocess", shared_memory=True, envs_per_worker=1),
]


def policy_of(nstep: int = 1) -> AgentsPolicy:
    return AgentsPolicy(dict(nstep=nstep), model=AgentNetwork())


def samples_of(folder: Path, nstep: int) -> dict[tuple[float, ...], dict[str, Any]]:
    """n-step samples by a plain loop over the log, by what the first agent saw."""
    samples = {}
    for log in logged_steps(folder):
        for t, first in enumerate(log):
            steps = []
            for step in log[t : t + nstep]:
                steps.append(step)
                if step["done"]:
                    break
            last = steps[-1]
            reward = sum(GAMMA**k * np.array(s["reward"]) for k, s in enumerate(steps))
            terminated = last["done"] and not last["truncated"]
            samples[tuple(first["obs"]["agent_state"][0])] = {
                **first,
                "reward": reward,
                "next_obs": last["next_obs"],
                "discount": 0.0 if terminated else GAMMA ** len(steps),
                "n_steps": len(steps),
            }
    return samples


def assert_logged(columns: Batch, logged: dict[Any, Any], nstep: int = 1) -> None:
    for i, key in enumerate(map(tuple, columns["obs"]["agent_state"][:, 0].tolist())):
        step = logged[key]
        for name in ("agent_state", "action_mask", "alive"):
            assert columns["obs"][name][i].tolist() == step["obs"][name], name
            assert columns["next_obs"][name][i].tolist() == step["next_obs"][name], name
        assert columns["action"][i].tolist() == step["action"]
        assert columns["reward"][i] == pytest.approx(step["reward"], rel=1e-6)
        if nstep > 1:
            assert columns["discount"][i] == pytest.approx(step["discount"], rel=1e-6)


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("nstep", [1, 3])
def test_every_number_is_the_envs_own(manager: Any, nstep: int, tmp_path: Path) -> None:
    policy = policy_of(nstep)
    env = create_env_manager(manager, makers(3, tmp_path, deaths={1: 3}))
    buffer = NaiveReplayBuffer(
        dict(replay_buffer_size=1000, nstep=nstep, discount_factor=GAMMA, deepcopy=False)
    )
    with SampleCollector(env=env, policy=policy.collect_mode, exp_name=str(tmp_path)) as collector:
        for _ in range(4):
            samples = collector.collect(30)
            columns = samples.columns
            assert columns["obs"]["agent_state"].shape == (30, A, K)
            assert columns["obs"]["action_mask"].shape == (30, A, M)
            assert columns["action"].shape == columns["reward"].shape == (30, A)
            assert columns["done"].shape == (30,)
            assert_logged(columns, samples_of(tmp_path, 1))
            buffer.push(samples)
    drawn = buffer.sample(buffer.count())
    logged = samples_of(tmp_path, nstep)
    if nstep == 1:
        assert_logged(drawn.columns, logged)
    else:
        # The newest steps' successors may not have come: their chains are shorter there.
        whole = [
            logged[tuple(row)]["discount"] == pytest.approx(discount)
            for row, discount in zip(
                drawn.columns["obs"]["agent_state"][:, 0].tolist(),
                drawn.columns["discount"].tolist(),
                strict=True,
            )
        ]
        assert sum(whole) >= 120 - 3 * nstep
        kept = np.flatnonzero(whole)
        columns = columns_of([drawn[i] for i in kept.tolist()])
        assert_logged(columns, logged, nstep)
    policy.learn_mode.forward(drawn)
    seen = policy.seen[0]
    assert torch.equal(seen["reward"], torch.from_numpy(columns_of(drawn)["reward"]))
    assert seen["action"].shape == (120, A)
    assert seen["obs"]["action_mask"].shape == (120, A, M)
    assert (seen["obs"]["alive"] == 0).any()


def test_masks_were_kept_to_and_dead_agents_learn_nothing(tmp_path: Path) -> None:
    policy = policy_of()
    env = create_env_manager(dict(type="base"), makers(2, tmp_path, deaths={0: 2}))
    with SampleCollector(env=env, policy=policy.collect_mode, exp_name=str(tmp_path)) as collector:
        samples = collector.collect(40)
        obs, action = samples.columns["obs"], samples.columns["action"]
        assert np.take_along_axis(obs["action_mask"], action[..., None], -1).all()
        error = policy.learn_mode.forward(samples)["error"]
        assert (error[obs["alive"] == 0] == 0).all()
        assert (error[obs["alive"] == 1] != 0).all()
        totals: dict[tuple[int, int], float] = {}
        ended = set()
        for log in logged_steps(tmp_path):
            for step in log:
                key = (step["env"], step["episode"])
                totals[key] = totals.get(key, 0.0) + sum(step["reward"])
                ended |= {key} if step["done"] else set()
        assert collector.episode_count == len(ended)
        assert collector.recent_return == pytest.approx(np.mean([totals[key] for key in ended]))


def test_episodes_and_evaluation_have_the_axis_too(tmp_path: Path) -> None:
    policy = policy_of()
    folder = tmp_path / "collect"
    folder.mkdir()
    env = create_env_manager(dict(type="base"), makers(2, folder, truncate=()))
    with EpisodeCollector(env=env, policy=policy.collect_mode, exp_name=str(tmp_path)) as collector:
        for episode in collector.collect(4):
            assert_logged(episode.columns, samples_of(folder, 1))
    env = create_env_manager(dict(type="base"), makers(2, tmp_path, truncate=()))
    with BaseSerialEvaluator(
        dict(n_episode=2), env=env, policy=policy.eval_mode, exp_name=str(tmp_path)
    ) as evaluator:
        returns = list(evaluator.eval().reward)
    expected = [sum(sum(step["reward"]) for step in log) for log in logged_steps(tmp_path)]
    assert returns == pytest.approx(expected)
