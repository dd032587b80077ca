import torch

from ding.torch_utils import ScaledDotProductAttention, Transformer


def net():
    return Transformer(5, head_dim=4, hidden_dim=16, output_dim=8, layer_num=2)


def test_shape_and_gradients():
    model = net()
    output = model(torch.randn(2, 3, 5))
    assert output.shape == (2, 3, 8)
    output.square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_masked_entities_change_nothing():
    model, x = net(), torch.randn(2, 3, 5)
    mask = torch.tensor([[True, True, False]] * 2)
    other = x.clone()
    other[:, 2] = 100.0
    assert torch.allclose(model(x, mask)[:, :2], model(other, mask)[:, :2], atol=1e-5)
    assert torch.allclose(model(x, mask)[:, :2], model(x[:, :2]), atol=1e-5)


def test_order_of_entities_does_not_matter():
    model, x = net(), torch.randn(2, 3, 5)
    order = torch.tensor([2, 0, 1])
    assert torch.allclose(model(x[:, order]), model(x)[:, order], atol=1e-5)


def test_attention_by_hand():
    q = torch.tensor([[[[2.0, 0.0]]]])
    k = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    v = torch.tensor([[[[1.0], [0.0]]]])
    # Scores 2 / sqrt(2) and 0.
    expected = torch.sigmoid(torch.tensor(2.0**0.5))
    assert torch.allclose(ScaledDotProductAttention(2)(q, k, v).squeeze(), expected)
    nothing = torch.zeros(1, 1, 1, 2, dtype=torch.bool)
    assert ScaledDotProductAttention(2)(q, k, v, nothing).isfinite().all()
