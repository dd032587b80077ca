"""Algorithms for several agents: whose rewards they learn from, no memory, parts elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from conformance.claims import CLAIMS, OF_AGENTS, Cell, home
from conformance.configs import config_of, trained
from conformance.worlds import WorldEnv
from ding.utils.batch import ByEnv, stack, stacked_of
from ding.utils.limits import Limits
from tests.entry.lockstep import generators, parallel, serial


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)


def weights(algorithm: str, **env: Any) -> list[torch.Tensor]:
    policy = trained(config_of(home(algorithm), 32, **env), max_train_iter=1)
    return [p.detach().clone() for p in policy._model.parameters()]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("algorithm", OF_AGENTS)
def test_whose_rewards_are_learned_from(algorithm: str) -> None:
    """The team gets the same whether the first agent or the second gets the larger part."""
    one, other = (weights(algorithm, each=True, reversed=turned) for turned in (False, True))
    assert same(one, other) is not CLAIMS[algorithm].own_rewards


@pytest.mark.parametrize("algorithm", [name for name in OF_AGENTS if CLAIMS[name].recurrent])
def test_without_memory_the_past_is_nothing(algorithm: str) -> None:
    config = config_of(Cell(algorithm, "vector", "discrete_agents", masked=True), dies=True)
    config[0]["policy"]["model"]["lstm_type"] = None
    policy = trained(config, max_train_iter=2)
    world, ids = WorldEnv(config[0]["env"]), np.arange(20)
    space = world.observation_space
    past, now = (stack([space.sample() for _ in ids]) for _ in range(2))
    for obs in (past, now):
        obs["action_mask"][:], obs["alive"][:] = 1, 1

    def acted(*history: Any) -> Any:
        policy.collect_mode.reset()
        for obs in history:
            _, output = stacked_of(policy.collect_mode.forward(ByEnv(ids, obs), eps=0.0))
        return output

    output = acted(past, now)
    assert "prev_state" not in output
    np.testing.assert_array_equal(output["action"], acted(now)["action"])


@pytest.mark.parametrize("algorithm", OF_AGENTS)
def test_in_lockstep_a_parallel_run_is_the_serial_one(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With masks, deaths and a reward of each agent."""
    monkeypatch.setattr("ding.policy.sac.SACPolicy._add_noise", same_noise)
    masked = CLAIMS[algorithm].masks
    cell = home(algorithm)._replace(masked=masked)
    results = []
    for name, run in (("serial", serial), ("parallel", parallel)):
        config = config_of(cell, dies=True, each=True)
        config[0]["exp_name"] = name
        config[1]["env_manager"] = dict(type="base")
        with generators(monkeypatch):
            results.append(run(config, Limits(env_step=64)))
    (parts, history), (other_parts, other_history) = results
    assert history == other_history and "reward_mean_agent_1" in history[-1]
    assert same(*(torch.utils._pytree.tree_leaves(tree) for tree in (parts, other_parts)))


def same_noise(_: Any, batch: Any) -> None:
    """A row has the same noise whoever learns from it."""
    batch["noise"] = torch.sin(9 * batch["action"])
    batch["next_noise"] = torch.sin(7 * batch["action"])
