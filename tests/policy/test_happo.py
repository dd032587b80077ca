"""HAPPO: turns in random order, the ratios of those before, and networks of one's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from ding.model import create_model
from ding.policy import HAPPOPolicy
from ding.utils.batch import Rows, columns_of, tree_map
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed


def policy_of(agents: int = 2, **learn: Any) -> Any:
    set_pkg_seed(0)
    model = dict(agent_obs_shape=1, global_obs_shape=1, action_shape=2, agent_num=agents)
    learn = dict(batch_size=4, epoch_per_collect=1, adv_norm=False, value_norm=False) | learn
    return HAPPOPolicy(dict(model=model, learn=learn, collect=dict(n_sample=4)))


def batch(agents: int = 2, **changes: Any) -> dict[str, Any]:
    columns = dict(
        obs={"agent_state": torch.ones(4, agents, 1), "global_state": torch.ones(4, 1)},
        action=torch.zeros(4, agents, dtype=torch.long),
        log_prob=torch.full((4, agents), math.log(0.5)),
        advantage=torch.tensor([[1.0], [2.0], [3.0], [-4.0]]).expand(4, agents),
        factor=torch.tensor([1.0, 2.0, 0.5, 1.0]),
    )
    return {**columns, **changes}


def make_even(policy: Any, chance: float = 0.5, agent: int | None = None) -> None:
    """Let agents take action 0 with this chance, whatever they see."""
    actors = policy._model.actors if agent is None else [policy._model.actors[agent]]
    with torch.no_grad():
        for actor in actors:
            last = actor.main[-1]
            last.weight.zero_()
            last.bias.copy_(torch.tensor([chance, 1 - chance]).log())


def test_the_objective_is_that_of_those_before_times_the_own() -> None:
    policy = policy_of()
    make_even(policy)
    _, metrics = policy._agent_loss(batch(), agent=1)
    assert float(metrics["policy_loss"]) == pytest.approx(-(1 + 4 + 1.5 - 4) / 4)
    make_even(policy, 0.75, agent=1)  # 1.5 times as likely: cut off at 1.2 where it gains
    _, metrics = policy._agent_loss(batch(), agent=1)
    gained = 1.2 * 1 + 2 * 1.2 * 2 + 0.5 * 1.2 * 3
    assert float(metrics["policy_loss"]) == pytest.approx(-(gained - 1.5 * 4) / 4)


def test_the_dead_take_no_part() -> None:
    policy = policy_of()
    make_even(policy, 0.75)
    alive = torch.tensor([[1.0, 1], [1, 0], [1, 1], [1, 0]])
    obs = {**batch()["obs"], "alive": alive}
    make_even(policy, agent=1)
    _, metrics = policy._agent_loss(batch(obs=obs), agent=1)
    assert float(metrics["policy_loss"]) == pytest.approx(-(1 + 1.5) / 2)
    make_even(policy, 0.75)
    columns = {k: v for k, v in batch(obs=obs).items() if k != "factor"}
    assert policy._ratio(columns, 0) == pytest.approx([1.5, 1.5, 1.5, 1.5])
    assert policy._ratio(columns, 1) == pytest.approx([1.5, 1, 1.5, 1])


def test_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the product of the ratios of those before; the order is drawn anew."""
    policy, orders = policy_of(agents=3), []
    for _ in range(12):
        turns: list[tuple[int, float]] = []

        def step_of(agent: int, turns: list[tuple[int, float]]) -> Any:
            def step(one: dict[str, Any]) -> Any:
                turns.append((agent, float(one["factor"][0])))
                return torch.zeros(()), {}

            return step

        policy._turns = [(policy._turns[i][0], step_of(i, turns)) for i in range(3)]
        ratio = lambda columns, agent: np.full(4, 2.0 + agent, np.float32)  # noqa: E731
        monkeypatch.setattr(policy, "_ratio", ratio)
        policy._turns_of_all(tree_map(np.asarray, batch(3)))
        order = [agent for agent, _ in turns]
        assert sorted(order) == [0, 1, 2]
        factors = np.cumprod([1.0, *(2.0 + agent for agent in order[:2])])
        assert [factor for _, factor in turns] == pytest.approx(factors)
        orders.append(tuple(order))
    assert len(set(orders)) > 2


def test_a_turn_moves_one_network() -> None:
    policy = policy_of(learning_rate=0.1)
    before = {k: v.clone() for k, v in policy._model.state_dict().items()}
    policy._turns[1][1](batch())
    after = policy._model.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved and all(name.startswith("actors.1.") for name in moved)


def test_rewards_of_agents_are_those_of_the_team() -> None:
    def returns(reward: Any) -> Any:
        policy = policy_of()
        rows = dict(
            obs={k: v.numpy() for k, v in batch()["obs"].items()},
            next_obs={k: v.numpy() for k, v in batch()["obs"].items()},
            action=np.zeros((4, 2), np.int64),
            logit=np.zeros((4, 2, 2), np.float32),
            reward=np.array(reward, np.float32),
            done=np.array([False, False, False, True]),
        )
        return columns_of(policy.collect_mode.get_train_sample(Rows(rows)))["return"]

    assert returns([[1, 2], [0, 1], [3, 0], [1, 1]]) == pytest.approx(returns([3, 1, 3, 2]))


def test_agents_differ_and_are_asked_one_by_one() -> None:
    torch.manual_seed(0)
    for space in ("discrete", "continuous"):
        sizes = dict(agent_obs_shape=2, global_obs_shape=3, action_shape=2, agent_num=3)
        model = create_model({"type": "havac", "action_space": space, **sizes})
        obs = {"agent_state": torch.ones(4, 3, 2), "global_state": torch.ones(4, 3)}
        whole = model(obs, "compute_actor_critic")
        logit = whole["logit"] if space == "discrete" else whole["logit"]["mu"]
        assert logit.shape == (4, 3, 2) and whole["value"].shape == (4, 3)
        one = model(obs, "compute_actor_critic", agent_idx=1)
        alone = one["logit"] if space == "discrete" else one["logit"]["mu"]
        assert torch.equal(alone, logit[:, 1]) and torch.equal(one["value"], whole["value"][:, 1])
        assert not torch.equal(logit[:, 0], logit[:, 1])


def test_turns_have_no_teacher() -> None:
    with pytest.raises(ConfigError, match=r"policy.learn.teacher = .* use policy 'mappo'"):
        policy_of(teacher=dict(path="clone.pth.tar"))
