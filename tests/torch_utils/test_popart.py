import torch

from ding.torch_utils import PopArt


def test_outputs_are_preserved_and_targets_normalised():
    layer, x = PopArt(4, 2, beta=1.0), torch.randn(5, 4)
    before = layer(x)["unnormalized_pred"]
    weight = layer.linear.weight
    targets = torch.randn(1000, 2) * torch.tensor([3.0, 0.1]) + torch.tensor([7.0, -2.0])
    new = layer.update_parameters(targets)
    assert torch.allclose(layer(x)["unnormalized_pred"], before, atol=1e-4)
    assert not torch.allclose(layer(x)["pred"], before, atol=1e-1)
    assert layer.linear.weight is weight
    normal = layer.normalized(targets)
    assert torch.allclose(normal.mean(0), torch.zeros(2), atol=1e-3)
    assert torch.allclose(normal.std(0), torch.ones(2), atol=1e-2)
    assert torch.allclose(new["new_mean"], targets.mean(0))


def test_statistics_by_hand():
    layer = PopArt(1, 1, beta=0.5)
    layer.update_parameters(torch.tensor([2.0, 4.0]))
    # mean 0.5 * 3, mean square 0.5 * 1 + 0.5 * 10, deviation sqrt(5.5 - 1.5^2)
    assert layer.mu.item() == 1.5
    assert abs(layer.sigma.item() - 3.25**0.5) < 1e-6
