import math

import pytest
import torch

from ding.rl_utils import ppg_data, ppg_joint_error


def data():
    new, old = torch.tensor([[0.25, 0.75], [0.5, 0.5]]), torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    return ppg_data(
        new.log(), old.log(), torch.tensor([0, 1]), torch.tensor([1.0, 0.1]), torch.zeros(2),
        torch.ones(2), None,
    )  # fmt: skip


def test_by_hand():
    loss = ppg_joint_error(data())
    assert loss.auxiliary_loss.item() == pytest.approx(0.5 * (0.64 + 0.81) / 2)
    divergence = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert loss.behavioral_cloning_loss.item() == pytest.approx(divergence / 2)
    free = ppg_joint_error(data(), use_value_clip=False)
    assert free.auxiliary_loss.item() == pytest.approx(0.5 * 0.81 / 2)


def test_cloning_pulls_back_to_the_old_policy():
    given = data()
    new, old = given.logit_new.requires_grad_(), given.logit_old.requires_grad_()
    ppg_joint_error(given).behavioral_cloning_loss.backward()
    # d KL / d logit = (new - old) / B
    expected = torch.tensor([[-0.125, 0.125], [0.0, 0.0]])
    torch.testing.assert_close(new.grad, expected)
    assert old.grad is None


def test_gradients():
    given = data()._replace(logit_old=torch.randn(2, 2).double(), value_old=torch.zeros(2).double())
    given = given._replace(return_=torch.ones(2).double())

    def losses(logit, value):
        return tuple(ppg_joint_error(given._replace(logit_new=logit, value_new=value)))

    inputs = (torch.randn(2, 2).double(), torch.tensor([0.5, 0.7]).double())
    assert torch.autograd.gradcheck(losses, [x.requires_grad_() for x in inputs])
