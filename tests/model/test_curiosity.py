import torch

from ding.model import ICMNetwork, InverseNetwork, RndNetwork

OBS, NEXT = torch.randn(5, 4), torch.randn(5, 4)


def test_rnd_target_is_never_trained():
    model = RndNetwork(4, [8, 8])
    predicted, target = model(OBS)
    assert predicted.shape == target.shape == (5, 8)
    (predicted - target).square().sum().backward()
    assert all(p.grad is None for p in model.target.parameters())
    assert all(p.grad is not None for p in model.predictor.parameters())


def test_inverse_network_learns_the_action():
    torch.manual_seed(0)
    model, action = InverseNetwork(4, 3, [16, 8]), torch.arange(5) % 3
    assert model({"obs": OBS}, inference=True).shape == (5, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(40):
        logit, prob = model({"obs": OBS, "next_obs": NEXT})
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logit, action).backward()
        optimizer.step()
    assert torch.allclose(prob.sum(-1), torch.ones(5))
    assert torch.equal(logit.argmax(-1), action)


def test_icm():
    model = ICMNetwork((4, 64, 64), 3, [4, 4, 4, 8])
    frames = torch.zeros(2, 4, 64, 64, dtype=torch.uint8)
    real, predicted, logit = model(frames, frames, torch.tensor([0, 2]))
    assert real.shape == predicted.shape == (2, 8) and logit.shape == (2, 3)
    (real.sum() + predicted.sum() + logit.sum()).backward()
    assert all(p.grad is not None for p in model.parameters())
