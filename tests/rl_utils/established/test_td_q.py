import math

import numpy as np
import pytest
import torch

from ding.rl_utils import (
    bdq_nstep_td_error,
    dqfd_nstep_td_data,
    dqfd_nstep_td_error,
    dqfd_nstep_td_error_with_rescale,
    m_q_1step_td_data,
    m_q_1step_td_error,
    q_nstep_sql_td_error,
    q_nstep_td_data,
    q_nstep_td_error,
    q_nstep_td_error_with_rescale,
    value_inv_transform,
    value_transform,
)

DONE = torch.tensor([0.0, 1.0])
Q, NEXT_Q = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[10.0, 20.0], [30.0, 40.0]])
ACTION, NEXT_ACTION = torch.tensor([0, 1]), torch.tensor([1, 0])
REWARD = torch.tensor([[1.0, 1.0], [2.0, 2.0]])


def double(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_munchausen_by_hand():
    tau, alpha, gamma = 0.5, 0.9, 0.5
    target_q, next_q = np.array([[0.0, 0.2], [0.0, 3.0]]), np.array([[1.0, 2.0], [3.0, 3.0]])
    weight = np.exp(target_q / tau)
    log_pi = np.log(weight / weight.sum(1, keepdims=True))
    gain = tau * log_pi[[0, 1], [1, 0]]
    pi = np.exp(next_q / tau) / np.exp(next_q / tau).sum(1, keepdims=True)
    soft = (pi * (next_q - tau * np.log(pi))).sum(1)
    target = np.array([1.0, 2.0]) + alpha * np.clip(gain, -1, 1) + gamma * soft * [1, 0]
    data = m_q_1step_td_data(
        Q,
        torch.tensor(target_q).float(),
        torch.tensor(next_q).float(),
        torch.tensor([1, 0]),
        torch.tensor([1.0, 2.0]),
        DONE,
        None,
    )
    loss, per_sample, gap, clipped = m_q_1step_td_error(data, gamma, tau, alpha)
    expected = (np.array([2.0, 3.0]) - target) ** 2
    assert per_sample.tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert loss.item() == pytest.approx(expected.mean(), rel=1e-5)
    assert gap.item() == pytest.approx(1.6) and clipped.tolist() == [0.0, 1.0]


def test_branches_have_their_own_targets_and_share_the_rest():
    q = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]], requires_grad=True)
    next_q = torch.tensor([[[4.0, 8.0], [12.0, 16.0]]])
    action, next_action = torch.tensor([[0, 1]]), torch.tensor([[1, 0]])
    data = q_nstep_td_data(q, next_q, action, next_action, REWARD[:, :1], DONE[:1], None)
    # targets 2 + 8 / 4 = 4 and 2 + 12 / 4 = 5; errors 3 and 1
    loss, per_sample = bdq_nstep_td_error(data, 0.5, nstep=2)
    assert per_sample.tolist() == [5.0] and loss.item() == 5.0
    loss.backward()
    assert q.grad.flatten().tolist() == [-3.0, 0.0, 0.0, -1.0]
    summed = data._replace(reward=torch.tensor([2.0]), weight=torch.tensor([2.0]))
    assert bdq_nstep_td_error(summed, 0.5, nstep=2, cum_reward=True)[0].item() == 10.0
    short = bdq_nstep_td_error(data, 0.5, 2, value_gamma=torch.tensor([0.5]))[1]
    assert short.tolist() == [(25.0 + 16.0) / 2]


def test_rescaled_targets():
    data = q_nstep_td_data(Q, value_transform(NEXT_Q), ACTION, NEXT_ACTION, REWARD, DONE, None)
    # the plain targets are 2 + 20 / 4 = 7 and 2
    target = value_transform(torch.tensor([7.0, 2.0]))
    per_sample = q_nstep_td_error_with_rescale(data, 0.5, nstep=2)[1]
    torch.testing.assert_close(per_sample, (torch.tensor([1.0, 4.0]) - target) ** 2)
    same = q_nstep_td_error_with_rescale(
        data, 0.5, 2, trans_fn=lambda x: x, inv_trans_fn=lambda x: x
    )
    torch.testing.assert_close(same, q_nstep_td_error(data, 0.5, 2))


def test_soft_values():
    data = q_nstep_td_data(Q, NEXT_Q / 10, ACTION, NEXT_ACTION, REWARD, DONE, None)
    soft = [2 * math.log(math.exp(0.5) + math.exp(1)), 2 * math.log(math.exp(1.5) + math.exp(2))]
    loss, per_sample, value = q_nstep_sql_td_error(data, 0.5, alpha=2.0, nstep=2)
    assert value.tolist() == pytest.approx(soft)
    expected = [(1 - (2 + soft[0] / 4)) ** 2, 4.0]
    assert per_sample.tolist() == pytest.approx(expected)
    assert loss.item() == pytest.approx(sum(expected) / 2)


def test_infinite_soft_values_are_bounded():
    next_q = torch.tensor([[float("inf"), 0.0], [-float("inf"), -float("inf")]])
    data = q_nstep_td_data(Q, next_q, ACTION, NEXT_ACTION, REWARD[:1], torch.zeros(2), None)
    assert q_nstep_sql_td_error(data, 0.5, alpha=1.0)[2].tolist() == [20.0, -20.0]


def dqfd_data(**changes):
    one_step = torch.tensor([[6.0, 8.0], [2.0, 4.0]])
    data = dqfd_nstep_td_data(
        Q, NEXT_Q, ACTION, NEXT_ACTION, REWARD, DONE, torch.zeros(2), None, one_step, ACTION,
        torch.tensor([1.0, 0.0]),
    )  # fmt: skip
    return data._replace(**changes)


def test_dqfd_by_hand():
    # n-step targets 7 and 2, one-step targets 1 + 6 / 2 = 4 and 1 + 4 / 2 = 3, q 1 and 4
    # supervised: best of (1, 2 + 0.8) less 1 for the expert, nothing for the other
    loss, per_sample, parts = dqfd_nstep_td_error(dqfd_data(), 0.5, 1.0, 10.0, 0.8, 2.0, nstep=2)
    assert per_sample.tolist() == pytest.approx([36 + 2 * 9 + 18, 4 + 2 * 1])
    assert loss.item() == pytest.approx((72 + 6) / 2)
    assert [part.item() for part in parts] == pytest.approx([20.0, 5.0, 0.9])
    weighted = dqfd_data(weight=torch.tensor([0.0, 1.0]))
    assert dqfd_nstep_td_error(weighted, 0.5, 1.0, 10.0, 0.8, 2.0, 2)[0].item() == 3.0


def test_dqfd_summed_rewards_must_be_of_one_step():
    with pytest.raises(ValueError, match="no one-step reward with nstep 2"):
        dqfd_nstep_td_error(dqfd_data(), 0.5, 1.0, 1.0, 0.8, nstep=2, cum_reward=True)
    one = dqfd_data(reward=REWARD[0])
    summed = dqfd_nstep_td_error(one, 0.5, 1.0, 1.0, 0.8, cum_reward=True)[1]
    plain = dqfd_nstep_td_error(dqfd_data(reward=REWARD[:1]), 0.5, 1.0, 1.0, 0.8)[1]
    torch.testing.assert_close(summed, plain)


def test_dqfd_rescaled():
    data = dqfd_data()
    plain = dqfd_nstep_td_error(data, 0.5, 1.0, 1.0, 0.8, 1.0, nstep=2)
    same = dqfd_nstep_td_error_with_rescale(
        data, 0.5, 1.0, 1.0, 1.0, 0.8, nstep=2, trans_fn=lambda x: x, inv_trans_fn=lambda x: x
    )
    torch.testing.assert_close(same, plain)
    squashed = data._replace(
        next_n_q=value_transform(NEXT_Q), new_n_q_one_step=value_transform(data.new_n_q_one_step)
    )
    _, _, parts = dqfd_nstep_td_error_with_rescale(squashed, 0.5, 1.0, 0.0, 1.0, 0.8, nstep=2)
    n_step = (data.q[[0, 1], [0, 1]] - value_transform(torch.tensor([7.0, 2.0]))) ** 2
    torch.testing.assert_close(parts[0], n_step.mean())
    assert value_inv_transform(value_transform(NEXT_Q)).allclose(NEXT_Q)


@pytest.mark.parametrize("kind", ["munchausen", "branches", "rescaled", "soft", "dqfd"])
def test_gradients(kind):
    torch.manual_seed(0)
    next_q, reward = torch.randn(2, 2).double(), torch.randn(2, 2).double()

    def loss(q):
        data = q_nstep_td_data(q, next_q, ACTION, NEXT_ACTION, reward, DONE, None)
        if kind == "munchausen":
            row = m_q_1step_td_data(q, next_q, next_q, ACTION, reward[0], DONE, None)
            return m_q_1step_td_error(row, 0.9, 0.5, 0.9)[0]
        if kind == "branches":
            branches = data._replace(
                q=q[:, None], next_n_q=next_q[:, None], action=ACTION[:, None],
                next_n_action=NEXT_ACTION[:, None],
            )  # fmt: skip
            return bdq_nstep_td_error(branches, 0.9, 2)[0]
        if kind == "rescaled":
            return q_nstep_td_error_with_rescale(data, 0.9, 2)[0]
        if kind == "soft":
            return q_nstep_sql_td_error(data, 0.9, 0.5, 2)[0]
        expert = dqfd_nstep_td_data(
            *data[:6], DONE, None, next_q, NEXT_ACTION, torch.ones(2).double()
        )
        return dqfd_nstep_td_error(expert, 0.9, 1.0, 1.0, 0.8, nstep=2)[0]

    assert torch.autograd.gradcheck(loss, double(2, 2))
