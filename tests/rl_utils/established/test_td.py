import numpy as np
import pytest
import torch
from torch import nn

from ding.rl_utils import (
    discount_cumsum,
    generalized_lambda_returns,
    nstep_return,
    nstep_return_data,
    q_1step_td_data,
    q_1step_td_error,
    q_nstep_td_data,
    q_nstep_td_error,
    q_v_1step_td_data,
    q_v_1step_td_error,
    td_lambda_data,
    td_lambda_error,
    v_1step_td_data,
    v_1step_td_error,
    v_nstep_td_data,
    v_nstep_td_error,
)

Q = [[1.0, 2.0], [3.0, 4.0]]
NEXT_Q = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
ACTION, NEXT_ACTION = torch.tensor([0, 1]), torch.tensor([1, 0])
DONE = torch.tensor([0.0, 1.0])


def test_q_1step():
    # targets 1 + 0.5 * 20 = 11 and 2 (terminated); errors 10 and -2
    q = torch.tensor(Q, requires_grad=True)
    next_q = NEXT_Q.clone().requires_grad_()
    reward = torch.tensor([1.0, 2.0])
    data = q_1step_td_data(q, next_q, ACTION, NEXT_ACTION, reward, DONE, None)
    loss = q_1step_td_error(data, gamma=0.5)
    assert loss.item() == pytest.approx((100 + 4) / 2)
    loss.backward()
    assert q.grad.tolist() == [[-10.0, 0.0], [0.0, 2.0]]
    assert next_q.grad is None
    weighted = q_1step_td_error(data._replace(weight=torch.tensor([0.0, 1.0])), gamma=0.5)
    assert weighted.item() == pytest.approx(2.0)


def test_done_may_be_boolean():
    data = q_1step_td_data(
        torch.tensor(Q), NEXT_Q, ACTION, NEXT_ACTION, torch.tensor([1.0, 2.0]), DONE.bool(), None
    )
    assert q_1step_td_error(data, gamma=0.5).item() == pytest.approx(52.0)


def test_q_v_1step():
    data = q_v_1step_td_data(
        torch.tensor(Q), torch.tensor([6.0, 8.0]), ACTION, torch.tensor([1.0, 2.0]), DONE, None
    )
    loss, per_sample = q_v_1step_td_error(data, gamma=0.5)
    assert per_sample.tolist() == [9.0, 4.0] and loss.item() == 6.5


def test_v_1step():
    v, next_v, reward = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 4.0]), torch.tensor([1.0, 1.0])
    loss, per_sample = v_1step_td_error(v_1step_td_data(v, next_v, reward, DONE, None), 0.5)
    assert per_sample.tolist() == [4.0, 1.0] and loss.item() == 2.5
    _, endless = v_1step_td_error(v_1step_td_data(v, next_v, reward, None, None), 0.5)
    assert endless.tolist() == [4.0, 1.0]


def test_nstep_return():
    reward = torch.tensor([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    data = nstep_return_data(reward, torch.tensor([8.0, 8.0]), DONE)
    # 1 + 2/2 + 4/4 = 3, plus 8/8 where not terminated
    assert nstep_return(data, 0.5, 3).tolist() == [4.0, 3.0]
    short = torch.tensor([0.25, 0.25])
    assert nstep_return(data, 0.5, 3, value_gamma=short).tolist() == [5.0, 3.0]
    # per sample: gamma 1 gives 7 + 8
    assert nstep_return(data._replace(done=torch.zeros(2)), [0.5, 1.0], 3).tolist() == [4.0, 15.0]
    with pytest.raises(ValueError, match=r"reward must be \(nstep, B\) with nstep 2, got \(3, 2\)"):
        nstep_return(data, 0.5, 2)


def test_q_nstep():
    reward = torch.tensor([[1.0, 1.0], [2.0, 2.0]])
    data = q_nstep_td_data(torch.tensor(Q), NEXT_Q, ACTION, NEXT_ACTION, reward, DONE, None)
    # targets 1 + 1 + 20/4 = 7 and 2; errors 6 and -2
    loss, per_sample = q_nstep_td_error(data, 0.5, nstep=2)
    assert per_sample.tolist() == [36.0, 4.0] and loss.item() == 20.0
    summed = data._replace(reward=torch.tensor([2.0, 2.0]))
    assert q_nstep_td_error(summed, 0.5, nstep=2, cum_reward=True)[1].tolist() == [36.0, 4.0]
    value_gamma = torch.tensor([0.5, 0.5])
    for one, cum in ((data, False), (summed, True)):
        per_sample = q_nstep_td_error(one, 0.5, 2, cum_reward=cum, value_gamma=value_gamma)[1]
        assert per_sample.tolist() == [121.0, 4.0]
    absolute = q_nstep_td_error(data, 0.5, 2, criterion=nn.L1Loss(reduction="none"))[1]
    assert absolute.tolist() == [6.0, 2.0]


def test_q_nstep_weight_scales_the_loss_only():
    reward, weight = torch.tensor([[1.0, 1.0]]), torch.tensor([2.0, 0.0])
    data = q_nstep_td_data(torch.tensor(Q), NEXT_Q, ACTION, NEXT_ACTION, reward, DONE, weight)
    loss, per_sample = q_nstep_td_error(data, 0.5)
    assert per_sample.tolist() == [100.0, 9.0] and loss.item() == 100.0


def test_v_nstep():
    reward = torch.tensor([[1.0, 1.0], [2.0, 2.0]])
    v, next_v = torch.tensor([1.0, 1.0]), torch.tensor([4.0, 4.0])
    data = v_nstep_td_data(v, next_v, reward, DONE, None, None)
    assert v_nstep_td_error(data, 0.5, 2)[1].tolist() == [4.0, 1.0]
    longer = data._replace(value_gamma=torch.tensor([1.0, 1.0]))
    assert v_nstep_td_error(longer, 0.5, 2)[1].tolist() == [25.0, 1.0]


def test_lambda_returns():
    value = torch.tensor([[0.0], [2.0], [4.0]])
    reward = torch.tensor([[1.0], [1.0]])
    # last: 1 + 0.5 * 4 = 3; first: 1 + 0.5 * (0.5 * 2 + 0.5 * 3) = 2.25
    assert generalized_lambda_returns(value, reward, 0.5, 0.5).flatten().tolist() == [2.25, 3.0]
    assert generalized_lambda_returns(value, reward, 0.5, 0.0).flatten().tolist() == [2.0, 3.0]
    done = torch.tensor([[1.0], [0.0]])
    ended = generalized_lambda_returns(value, reward, 0.5, 0.5, done)
    assert ended.flatten().tolist() == [1.0, 3.0]


def test_td_lambda():
    value = torch.tensor([[0.0], [2.0], [4.0]], requires_grad=True)
    data = td_lambda_data(value, torch.tensor([[1.0], [1.0]]), None)
    loss = td_lambda_error(data, gamma=0.5, lambda_=0.5)
    assert loss.item() == pytest.approx(0.5 * (2.25**2 + 1) / 2)
    loss.backward()
    assert value.grad.flatten().tolist() == [-1.125, -0.5, 0.0]


def test_td_lambda_weight_per_sample_or_step():
    value, reward = torch.zeros(3, 2), torch.tensor([[1.0, 3.0], [1.0, 3.0]])
    data = td_lambda_data(value, reward, torch.tensor([0.0, 1.0]))
    per_sample = td_lambda_error(data, gamma=0.0)
    assert per_sample.item() == pytest.approx(0.5 * (9 + 9) / 4)
    per_step = torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    assert td_lambda_error(data._replace(weight=per_step), 0.0).item() == pytest.approx(4.5 / 4)


def test_agents_share_reward_done_and_weight():
    q = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]])
    action, next_action = torch.tensor([[0, 1], [0, 1]]), torch.tensor([[1, 1], [0, 0]])
    reward, weight = torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.tensor([1.0, 0.0])
    data = q_nstep_td_data(q, 4 * q, action, next_action, reward, DONE, weight)
    # targets 2 + (8, 16) / 4 for the first, 2 for the second, terminated one
    loss, per_sample = q_nstep_td_error(data, 0.5, nstep=2)
    assert per_sample.tolist() == [[9.0, 4.0], [1.0, 4.0]] and loss.item() == 13 / 4
    summed = data._replace(reward=torch.tensor([2.0, 2.0]))
    value_gamma = torch.tensor([0.25, 0.25])
    again = q_nstep_td_error(summed, 0.5, 2, cum_reward=True, value_gamma=value_gamma)
    assert torch.equal(again[1], per_sample)
    v = torch.tensor([[8.0, 16.0], [8.0, 16.0]])
    _, soft = q_v_1step_td_error(q_v_1step_td_data(q, v, action, reward[0], DONE, weight), 0.5)
    assert soft.tolist() == [[16.0, 25.0], [0.0, 9.0]]
    _, values = v_1step_td_error(v_1step_td_data(v, v, reward[0], DONE, None), 0.5)
    assert values.tolist() == [[9.0, 49.0], [49.0, 225.0]]


def test_discounted_sums_of_what_is_left():
    x = np.array([1.0, 2.0, 4.0])
    assert discount_cumsum(x).tolist() == [7.0, 6.0, 4.0]
    assert discount_cumsum(x, 0.5).tolist() == [3.0, 4.0, 4.0] and x.tolist() == [1.0, 2.0, 4.0]


def test_factors_may_differ_by_step():
    value, reward = torch.tensor([[0.0], [2.0], [4.0]]), torch.ones(2, 1)
    gamma, mix = torch.tensor([[0.5], [0.25]]), torch.tensor([[1.0], [0.0]])
    returns = generalized_lambda_returns(value, reward, gamma, mix)
    assert returns.flatten().tolist() == [1 + 0.5 * 2, 1 + 0.25 * 4]


def test_gradients():
    torch.manual_seed(0)
    q, v = (torch.randn(*shape).double().requires_grad_() for shape in ((2, 2), (4, 2)))
    reward = torch.randn(3, 2).double().requires_grad_()
    steps = reward.detach()
    value = torch.randn(2).double()

    def losses(q, v):
        row = q_nstep_td_data(q, NEXT_Q.double(), ACTION, NEXT_ACTION, steps, DONE, None)
        one = q_1step_td_data(*row[:4], steps[0], DONE, None)
        soft = q_v_1step_td_data(q, value, ACTION, steps[0], DONE, None)
        single = v_1step_td_data(v[0], value, steps[0], DONE, None)
        several = v_nstep_td_data(v[0], value, steps, DONE, None, None)
        return (
            q_nstep_td_error(row, 0.9, 3)[0],
            q_1step_td_error(one, 0.9),
            q_v_1step_td_error(soft, 0.9)[0],
            v_1step_td_error(single, 0.9)[0],
            v_nstep_td_error(several, 0.9, 3)[0],
        )

    assert torch.autograd.gradcheck(losses, (q, v))
    assert torch.autograd.gradcheck(
        lambda v, r: generalized_lambda_returns(v, r, 0.9, 0.8), (v, reward)
    )
