import torch

from ding.torch_utils import NoiseLinearLayer, noise_block, noisy_mlp, reset_noise


def test_noise_only_while_training_and_until_reset():
    layer, x = NoiseLinearLayer(4, 3), torch.randn(5, 4)
    noisy = layer(x)
    assert torch.equal(noisy, layer(x))
    layer.reset_noise()
    assert not torch.equal(noisy, layer(x))
    layer.eval()
    assert torch.equal(layer(x), x @ layer.weight_mu.T + layer.bias_mu)
    assert not torch.allclose(layer(x), noisy)


def test_equals_a_linear_layer_with_the_noisy_matrix():
    layer, x = NoiseLinearLayer(4, 3), torch.randn(5, 4)
    factors = torch.outer(layer.out_noise, layer.in_noise)
    weight = layer.weight_mu + layer.weight_sigma * factors
    bias = layer.bias_mu + layer.bias_sigma * layer.out_noise
    assert torch.allclose(layer(x), x @ weight.T + bias, atol=1e-6)


def test_reset_reaches_every_layer_in_place():
    net = noisy_mlp([4, 8, 2], "relu", "LN")
    layers = [m for m in net.modules() if isinstance(m, NoiseLinearLayer)]
    before = [(m.in_noise, m.in_noise.clone()) for m in layers]
    reset_noise(net)
    assert len(layers) == 2
    assert all(m.in_noise is kept for m, (kept, _) in zip(layers, before, strict=True))
    assert not any(torch.equal(kept, old) for kept, old in before)


def test_gradients_reach_means_and_deviations():
    block = noise_block(4, 3, "tanh", "LN", use_dropout=True)
    block(torch.randn(5, 4)).square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in block.parameters())
