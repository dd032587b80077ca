"""The peer that is written here does the same work, and computes what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

pytest.importorskip("mpe2")

from benchmarks import agents, agents_work
from benchmarks.agents_ding import configs
from benchmarks.agents_epymarl import LEARNERS, Runner, _gae
from benchmarks.measure import BenchmarkError
from ding.config import compile_config
from ding.envs import get_vec_env_setting
from ding.pipeline.spaces import fit_model_to_env
from ding.policy import create_policy


def our_parameters(name: str, directory: str) -> int:
    main, create = configs(name, agents_work.job_of(name), directory, fast=True)
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    env_fn, _, evaluator = get_vec_env_setting(cfg.env)
    assert evaluator is not None
    fit_model_to_env(cfg.policy, env_fn(cfg=evaluator[0]))
    model = create_policy(cfg.policy, enable_field=["learn"]).learn_mode.get_attribute("model")
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", ["qmix", "mappo"])
def test_the_same_parameters_and_updates(name: str, tmp_path: Any) -> None:
    job, runner = replace(agents_work.job_of(name), epochs=2), Runner(8)
    learner = LEARNERS[name](job, runner.n_seen, runner.n_action)
    assert sum(p.numel() for p in learner.model.parameters()) == our_parameters(name, str(tmp_path))
    before = [p.clone() for p in learner.model.parameters()]
    plays = job.rollout // (8 * agents_work.EPISODE)
    updates = [learner.learn(runner.play(learner)) for _ in range(plays)]
    assert sum(updates) == job.updates // (job.env_steps // job.rollout)
    assert not all(map(torch.equal, before, learner.model.parameters()))


def test_advantages_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_work, "GAMMA", 0.5)
    monkeypatch.setattr(agents_work, "GAE_LAMBDA", 0.5)
    reward, value = torch.tensor([[1.0, 2.0]]), torch.tensor([[[4.0], [2.0], [8.0]]])
    # The errors are 1 + 1 - 4 and 2 + 4 - 2; the last value counts: a limit cuts off.
    assert _gae(reward, value).squeeze(-1).tolist() == [[-2 + 0.25 * 4, 4]]


def test_other_work_is_refused() -> None:
    one = dict(seconds=1.0, cpu_seconds=1.0, env_steps=8, updates=2, n_parameter=3)
    results = {"ours": [one], "epymarl": [{**one, "seconds": 3.0}], "benchmarl": [one]}
    row = agents.row_of("qmix", results)
    assert row["faster_peer"] == "benchmarl" and row["ratios"]["epymarl"]["middle"] == 3
    assert "MISSED (benchmarl)" in agents.table([row])
    for side, change in (("epymarl", {"n_parameter": 4}), ("benchmarl", {"updates": 3})):
        with pytest.raises(BenchmarkError, match=next(iter(change))):
            agents.row_of("qmix", {**results, side: [{**one, **change}]})
