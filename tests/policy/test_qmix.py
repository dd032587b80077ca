"""QMIX, VDN and IDQN: targets worked out by hand, memory of agents, the dead, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ding.policy import IDQNPolicy, QMIXPolicy, VDNPolicy
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError, DingError

GAMMA = 0.5


class Counter(nn.Module):
    """Q of action a is (what the agent sees + the steps it remembers) * (a + 1), times a weight."""

    memory_size = 1
    mixer: Any = None

    def __init__(self, summed: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.summed = summed

    def values(self, obs: Any, memory: Any) -> tuple[Tensor, Tensor]:
        state = obs["agent_state"]  # (T, B, A, 1)
        first = torch.zeros_like(state[0]) if memory is None else memory
        steps = first + torch.arange(len(state)).view(-1, 1, 1, 1)
        q = self.weight * (state + steps) * torch.tensor([1.0, 2.0, 3.0])
        return q, steps[-1] + 1

    def team(self, q: Tensor, action: Tensor, obs: Any) -> Tensor:
        q = q.gather(-1, action.unsqueeze(-1)).squeeze(-1) * obs["alive"]
        return q.sum(-1) if self.summed else q


def batch(**changes: Any) -> Rows:
    """One sequence of three steps, of which the last does not exist; two agents."""
    see = np.array([[[1, 2], [3, 4], [3, 4]]], np.float32)[..., None]
    after = np.array([[[3, 4], [5, 6], [5, 6]]], np.float32)[..., None]
    mask = np.ones((1, 3, 2, 3), np.float32)
    mask[..., 2] = 0  # the best action is forbidden
    alive = np.ones((1, 3, 2), np.float32)
    obs = {"agent_state": see, "action_mask": mask, "alive": alive}
    columns = dict(
        obs=obs,
        next_obs={**obs, "agent_state": after},
        action=np.array([[[0, 1], [1, 0], [1, 0]]]),
        reward=np.array([[1, 2, 2]], np.float32),
        done=np.array([[False, False, False]]),
        truncated=np.array([[False, False, False]]),
        mask=np.array([[1, 1, 0]], np.float32),
        prev_state=np.array([[[10], [20]]], np.float32),
    )
    return Rows({**columns, **changes})


def policy_of(kind: type[QMIXPolicy], **learn: Any) -> QMIXPolicy:
    cfg = dict(discount_factor=GAMMA, learn=learn)
    return kind(cfg, model=Counter(summed=kind is not IDQNPolicy))


# Steps that agents remember at t: 10 + t and 20 + t. Values of action 0 at t = 0, 1, 2 (twice
# that of action 1, which is the best one allowed): first 11, 14, 17; second 22, 25, 28.
TAKEN = [[11, 44], [28, 25]]
TARGET = [1 + GAMMA * (28 + 50), 2 + GAMMA * (34 + 56)]


def loss_of(policy: QMIXPolicy, rows: Rows) -> float:
    return float(policy.learn_mode.forward(rows)["total_loss"])


@pytest.mark.parametrize("double_q", [False, True])
def test_the_target_of_the_team(double_q: bool) -> None:
    errors = [TARGET[t] - sum(TAKEN[t]) for t in range(2)]
    loss = loss_of(policy_of(VDNPolicy, double_q=double_q), batch())
    assert loss == pytest.approx(np.mean(np.square(errors)))


def test_rewards_of_agents_are_summed_for_the_team() -> None:
    reward = np.array([[[0.25, 0.75], [3, -1], [3, -1]]], np.float32)
    assert loss_of(policy_of(VDNPolicy), batch(reward=reward)) == pytest.approx(
        loss_of(policy_of(VDNPolicy), batch())
    )


@pytest.mark.parametrize("own", [False, True])
def test_the_target_of_every_agent(own: bool) -> None:
    rewards = [[4, 6], [7, 8]] if own else [[1, 1], [2, 2]]
    nexts = [[28, 50], [34, 56]]
    error = np.array(rewards) + GAMMA * np.array(nexts) - np.array(TAKEN)
    rows = batch(reward=np.array([[*rewards, rewards[1]]], np.float32)) if own else batch()
    assert loss_of(policy_of(IDQNPolicy), rows) == pytest.approx(np.square(error).mean())


@pytest.mark.parametrize(("truncated", "kept"), [(False, 0), (True, 1)])
def test_a_limit_bootstraps_and_an_end_does_not(truncated: bool, kept: int) -> None:
    done, cut = np.array([[False, True, True]]), np.array([[False, truncated, truncated]])
    errors = [TARGET[0] - 55, 2 + kept * GAMMA * 90 - 53]
    loss = loss_of(policy_of(VDNPolicy), batch(done=done, truncated=cut))
    assert loss == pytest.approx(np.mean(np.square(errors)))


def test_the_dead_are_left_out() -> None:
    """The second agent dies at the end of the first step."""
    rows = batch()
    obs, next_obs = dict(rows.columns["obs"]), dict(rows.columns["next_obs"])
    obs["alive"] = np.array([[[1, 1], [1, 0], [1, 0]]], np.float32)
    next_obs["alive"] = np.array([[[1, 0], [1, 0], [1, 0]]], np.float32)
    dying = batch(obs=obs, next_obs=next_obs)
    first = 1 + GAMMA * 28 - 11, 2 + GAMMA * 34 - 28
    alone = [first[0], 1 - 44, first[1]]
    assert loss_of(policy_of(IDQNPolicy), dying) == pytest.approx(np.mean(np.square(alone)))
    team = [1 + GAMMA * 28 - 55, first[1]]
    assert loss_of(policy_of(VDNPolicy), dying) == pytest.approx(np.mean(np.square(team)))


def seen(n: int, **parts: Any) -> dict[int, Any]:
    obs = {"agent_state": np.ones((2, 1), np.float32), "alive": np.ones(2, np.float32), **parts}
    return dict.fromkeys(range(n), obs)


def test_what_agents_remember_is_stored_and_forgotten() -> None:
    policy = policy_of(VDNPolicy)
    collect = policy.collect_mode
    memory = [collect.forward(seen(3), eps=0.0)[1]["prev_state"].tolist() for _ in range(3)]
    assert memory == [[[0], [0]], [[1], [1]], [[2], [2]]]
    collect.reset([1])
    again = collect.forward(seen(4), eps=0.0)
    assert [again[i]["prev_state"][0, 0] for i in range(4)] == [3, 0, 3, 0]
    other = policy_of(VDNPolicy)
    other._set_memory(policy._get_memory())
    assert other.collect_mode.forward(seen(4), eps=0.0)[2]["prev_state"].tolist() == [[4], [4]]


def test_masks_hold_for_every_agent() -> None:
    policy = policy_of(VDNPolicy)
    mask = np.array([[1, 0, 0], [0, 1, 1]], np.float32)
    for eps in (0.0, 1.0):
        output = policy.collect_mode.forward(seen(50, action_mask=mask), eps=eps)
        actions = np.stack([row["action"] for row in output.values()])
        assert set(actions[:, 0]) == {0}
        assert set(actions[:, 1]) == ({2} if eps == 0 else {1, 2})
    dead = np.array([1, 0], np.float32)
    output = policy.collect_mode.forward(seen(9, action_mask=0 * mask + dead[:, None], alive=dead))
    assert {int(row["action"][1]) for row in output.values()} == {0}


def test_a_mask_that_allows_nothing_is_an_error() -> None:
    mask = np.array([[1, 0, 0], [0, 0, 0]], np.float32)
    with pytest.raises(DingError, match=r"action_mask of agent 1 in env 0 allows no action; allow"):
        policy_of(VDNPolicy).eval_mode.forward(seen(1, action_mask=mask))


@pytest.mark.parametrize(
    ("learn", "message"),
    [
        (
            dict(target_update_freq=10),
            "target_update_theta = 0.008 and target_update_freq = 10: se",
        ),
        (dict(compile=True), "compile = True needs policy.learn.optim_type = 'adam'"),
        (dict(optim_type="sgd"), "policy.learn.optim_type = 'sgd'"),
    ],
)
def test_settings_that_exclude_each_other(learn: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        policy_of(QMIXPolicy, **learn)


@pytest.mark.parametrize("optim_type", ["rmsprop", "adam"])
def test_one_batch_can_be_learnt(optim_type: str) -> None:
    """The weight of all values goes to where r + gamma Q' meets Q."""
    policy = policy_of(VDNPolicy, optim_type=optim_type, learning_rate=0.01, weight_decay=0.0)
    losses = [loss_of(policy, batch()) for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
