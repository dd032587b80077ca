import torch

from ding.rl_utils import gae, gae_data

VALUE, NEXT_VALUE, REWARD = [1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [1.0, 1.0, 1.0]


def column(values):
    return torch.tensor(values).unsqueeze(1)


def test_gae_by_hand():
    # deltas 1 + 0.5 * next - value = 1, 0.5, 0; decay 0.25
    data = gae_data(column(VALUE), column(NEXT_VALUE), column(REWARD), None, None)
    assert gae(data, gamma=0.5, lambda_=0.5).flatten().tolist() == [1.125, 0.5, 0.0]


def test_gae_done_zeroes_and_cuts_flag_only_cuts():
    done = column([0.0, 1.0, 0.0])
    data = gae_data(column(VALUE), column(NEXT_VALUE), column(REWARD), done, None)
    # second delta 1 - 2 = -1
    assert gae(data, 0.5, 0.5).flatten().tolist() == [0.75, -1.0, 0.0]
    flagged = data._replace(done=None, traj_flag=column([1.0, 0.0, 0.0]))
    assert gae(flagged, 0.5, 0.5).flatten().tolist() == [1.0, 0.5, 0.0]


def test_gae_leaves_its_input_alone():
    data = gae_data(
        column(VALUE), column(NEXT_VALUE), column(REWARD), column([0.0, 1.0, 0.0]), None
    )
    before = [field.clone() for field in data[:4]]
    gae(data)
    assert all(torch.equal(a, b) for a, b in zip(before, data[:4], strict=True))


def test_gae_with_a_value_per_agent():
    value = torch.tensor([[[1.0, 2.0]], [[2.0, 3.0]]])
    data = gae_data(value, torch.zeros(2, 1, 2), torch.ones(2, 1), torch.zeros(2, 1), None)
    # deltas [0, -1] and [-1, -2]
    assert gae(data, 0.5, 0.5)[:, 0].tolist() == [[-0.25, -1.5], [-1.0, -2.0]]
