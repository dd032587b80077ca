import pytest
import torch

from ding.torch_utils import GLU, GumbelSoftmax, Lambda, NonegativeParameter, TanhParameter


def test_glu():
    gate = GLU(4, 3, 5)
    assert gate(torch.randn(2, 4), torch.randn(2, 5)).shape == (2, 3)
    image = GLU(4, 3, 5, input_type="conv2d")
    assert image(torch.randn(2, 4, 6, 6), torch.randn(2, 5, 6, 6)).shape == (2, 3, 6, 6)
    closed = torch.full((2, 5), 0.0)
    torch.nn.init.constant_(gate.gate.bias, -100.0)
    torch.nn.init.zeros_(gate.gate.weight)
    assert torch.allclose(gate(torch.randn(2, 4), closed), gate.linear.bias.expand(2, 3))
    with pytest.raises(ValueError, match="'fc' or 'conv2d'"):
        GLU(4, 3, 5, input_type="rnn")


def test_gumbel_softmax_draws_by_probability():
    logit = torch.tensor([0.2, 0.8]).log().expand(4000, 2).clone().requires_grad_()
    drawn = GumbelSoftmax()(logit, hard=True)
    assert set(drawn.detach().flatten().tolist()) == {0.0, 1.0}
    assert abs(drawn[:, 1].mean().item() - 0.8) < 0.05
    drawn[:, 0].sum().backward()
    assert logit.grad.abs().sum() > 0


def test_lambda():
    assert Lambda(lambda x: x + 1)(torch.tensor(1)) == 2


@pytest.mark.parametrize("kind", [NonegativeParameter, TanhParameter])
def test_bounded_parameters(kind):
    parameter = kind(torch.tensor([0.5]))
    assert torch.allclose(parameter(), torch.tensor([0.5]))
    optimizer = torch.optim.SGD(parameter.parameters(), lr=1.0)
    for _ in range(50):
        optimizer.zero_grad()
        parameter().sum().backward()
        optimizer.step()
    assert parameter.data.item() < 0.1 and parameter.data.item() > -1
    assert kind is TanhParameter or parameter.data.item() >= 0
    parameter.set_data(torch.tensor([0.25]))
    assert torch.allclose(parameter.data, torch.tensor([0.25]))
