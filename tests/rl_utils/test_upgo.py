import numpy as np
import pytest
import torch

from ding.rl_utils import tb_cross_entropy, upgo_loss, upgo_returns


def reference(reward, value):
    """The definition of AlphaStar, backwards, one number at a time."""
    steps, width = reward.shape
    out = np.zeros_like(reward)
    for i in range(width):
        later = value[steps, i]
        for t in reversed(range(steps)):
            if t + 1 < steps and reward[t + 1, i] + value[t + 2, i] < value[t + 1, i]:
                later = value[t + 1, i]
            out[t, i] = later = reward[t, i] + later
    return out


def test_returns_by_hand():
    value = torch.tensor([[0.0], [5.0], [1.0], [2.0]])
    reward = torch.tensor([[1.0], [1.0], [1.0]])
    # last 1 + 2; then 1 + 3 (3 >= 1); the step after the first gives 1 + 1 < 5: its value stands
    assert upgo_returns(reward, value).flatten().tolist() == [6.0, 4.0, 3.0]


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_returns_against_a_reference(steps):
    rng = np.random.default_rng(steps)
    reward, value = rng.standard_normal((steps, 4)), rng.standard_normal((steps + 1, 4))
    found = upgo_returns(torch.tensor(reward), torch.tensor(value))
    np.testing.assert_allclose(found, reference(reward, value))


def test_loss_against_a_reference():
    torch.manual_seed(0)
    logit, action = torch.randn(4, 3, 5).double(), torch.randint(5, (4, 3))
    rho, reward, value = torch.rand(4, 3).double(), torch.randn(4, 3).double(), torch.randn(5, 3)
    value = value.double()
    log_prob = torch.distributions.Categorical(logits=logit).log_prob(action).numpy()
    advantage = rho.numpy() * (reference(reward.numpy(), value.numpy()) - value[:-1].numpy())
    loss = upgo_loss(logit, rho, action, reward, value)
    assert loss.item() == pytest.approx(-(advantage * log_prob).mean())


def test_actions_of_several_parts():
    logit = torch.tensor([0.25, 0.75]).log().expand(1, 1, 2, 2)
    action, mask = torch.tensor([[[0, 1]]]), torch.tensor([[[1.0, 0.0]]])
    both = tb_cross_entropy(logit, action)
    assert both.shape == (1, 1) and both.exp().item() == pytest.approx(0.25 * 0.75)
    assert tb_cross_entropy(logit, action, mask).exp().item() == pytest.approx(0.25)


def test_gradients():
    torch.manual_seed(1)
    reward, value = (torch.randn(n, 2, dtype=torch.float64, requires_grad=True) for n in (5, 6))
    assert torch.autograd.gradcheck(upgo_returns, (reward, value))
    logit = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    rho, action = torch.rand(5, 2).double(), torch.randint(3, (5, 2))

    def loss(logit):
        return upgo_loss(logit, rho, action, reward.detach(), value.detach())

    assert torch.autograd.gradcheck(loss, logit)
