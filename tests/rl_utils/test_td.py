"""Cores of temporal-difference targets, by hand."""

import math

import pytest
import torch

from ding.rl_utils.td import (
    at_action,
    branching_target,
    double_q_target,
    lambda_returns,
    munchausen_bonus,
    sequence_returns,
    soft_value,
    td_target,
    weighted_mean,
)

REWARD, DISCOUNT = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.0])  # the second terminated


@pytest.mark.parametrize("leading", [(3,), (3, 2)])
@pytest.mark.parametrize("rest", [(4,), (4, 5)])
def test_entries_of_the_action_taken(leading, rest):
    shape = (*leading, *rest)
    x = torch.arange(math.prod(shape)).reshape(shape)
    action = torch.randint(0, 4, leading)
    found = at_action(x, action)
    assert found.shape == (*leading, *rest[1:])
    for where in torch.cartesian_prod(*map(torch.arange, leading)).reshape(-1, len(leading)):
        index = tuple(where.tolist())
        assert torch.equal(found[index], x[(*index, action[index].item())])


def test_nothing_follows_a_termination():
    next_value = torch.tensor([[4.0, 6.0], [8.0, 8.0]])
    assert td_target(REWARD, DISCOUNT, next_value).tolist() == [[3.0, 4.0], [2.0, 2.0]]
    assert td_target(REWARD, DISCOUNT, next_value[:, 0]).tolist() == [3.0, 2.0]


def test_one_network_picks_and_the_other_values():
    pick, value = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[9.0, 2.0], [9.0, 9.0]])
    double = double_q_target(REWARD, DISCOUNT, q_pick=pick, q_value=value)
    assert double.tolist() == [2.0, 2.0]
    single = double_q_target(REWARD, DISCOUNT, q_pick=value, q_value=value)
    assert single.tolist() == [5.5, 2.0]


def test_branches_share_the_mean_value_or_have_their_own():
    next_value = torch.tensor([[2.0, 4.0], [8.0, 8.0]])
    assert branching_target(REWARD, DISCOUNT, next_value).tolist() == [[2.5], [2.0]]
    own = branching_target(REWARD, DISCOUNT, next_value, mean=False)
    assert own.tolist() == [[2.0, 3.0], [2.0, 2.0]]


def test_soft_values_count_the_entropy():
    q, alpha = torch.tensor([[1.0, 3.0, 2.0]], dtype=torch.float64), 0.5
    log_pi = torch.log_softmax(q / alpha, dim=-1)
    wanted = (log_pi.exp() * (q - alpha * log_pi)).sum(dim=-1)
    torch.testing.assert_close(soft_value(q, alpha), wanted)
    bonus = munchausen_bonus(q, torch.tensor([1]), alpha)
    torch.testing.assert_close(bonus, alpha * log_pi[:, 1])


def test_lambda_returns_between_one_step_and_the_whole_trajectory():
    reward, value = torch.tensor([1.0, 1.0, 1.0]), torch.tensor([2.0, 4.0, 8.0])
    discount = torch.tensor([0.5, 0.5, 0.5])
    assert lambda_returns(reward, discount, value, 0.0).tolist() == [2.0, 3.0, 5.0]
    assert lambda_returns(reward, discount, value, 1.0).tolist() == [2.75, 3.5, 5.0]
    terminated = torch.tensor([0.5, 0.0, 0.5])
    assert lambda_returns(reward, terminated, value, 1.0).tolist() == [1.5, 1.0, 5.0]


def test_sequences_stop_at_the_last_value_they_have():
    reward, discount = torch.ones(3, 1), torch.full((3, 1), 0.5)
    value = torch.tensor([[8.0], [8.0], [8.0], [16.0]])
    every = torch.ones(3, 1, dtype=torch.bool)
    assert sequence_returns(reward, discount, value, every, 2).flatten().tolist() == [3.5, 5.5, 9.0]
    short = torch.tensor([[True], [True], [False]])
    returns = sequence_returns(reward, discount, value, short, 2).flatten().tolist()
    assert returns[:2] == [3.5, 5.0]


def test_weighted_mean():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert weighted_mean(x, None) == 2.5
    assert weighted_mean(x, torch.tensor([1.0, 0.0])) == 1.0
