import pytest
import torch

from ding.model import (
    BranchingHead,
    DistributionHead,
    FQFHead,
    PopArtVHead,
    QRDQNHead,
    QuantileHead,
    RainbowHead,
)
from ding.model.value_head import midpoints
from ding.utils.errors import ConfigError

X = torch.randn(5, 8)


@pytest.mark.parametrize("head_cls", [DistributionHead, RainbowHead])
def test_values_are_means_of_distributions(head_cls):
    head = head_cls(8, 3, n_atom=5, v_min=-2.0, v_max=2.0)
    output = head(X)
    assert output["distribution"].shape == (5, 3, 5)
    assert torch.allclose(output["distribution"].sum(-1), torch.ones(5, 3))
    atoms = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert torch.allclose(output["logit"], (output["distribution"] * atoms).sum(-1), atol=1e-6)
    sequence = head(X.expand(2, 5, 8))
    assert sequence["distribution"].shape == (2, 5, 3, 5)
    with pytest.raises(ConfigError, match="v_min < v_max"):
        head_cls(8, 3, v_min=1.0, v_max=1.0)


def test_rainbow_explores_by_noise():
    head = RainbowHead(8, 3)
    noisy, calm = head(X)["logit"], head.eval()(X)["logit"]
    assert not torch.allclose(noisy, calm)
    quiet = RainbowHead(8, 3, noise=False)
    assert torch.equal(quiet(X)["logit"], quiet.eval()(X)["logit"])


def test_fixed_quantiles():
    output = QRDQNHead(8, 3, num_quantiles=4)(X)
    assert output["q"].shape == (5, 3, 4) and output["tau"].shape == (5, 4, 1)
    assert output["tau"][0].flatten().tolist() == [0.125, 0.375, 0.625, 0.875]
    assert torch.allclose(output["logit"], output["q"].mean(-1))


def test_implicit_quantiles_are_drawn_while_training_only():
    head = QuantileHead(8, 3, num_quantiles=4)
    output = head(X)
    assert output["q"].shape == (4, 5, 3) and output["quantiles"].shape == (20, 1)
    assert not torch.equal(output["quantiles"], head(X)["quantiles"])
    head.eval()
    again = head(X, num_quantiles=2)
    assert torch.equal(again["logit"], head(X, num_quantiles=2)["logit"])
    # quantiles belong to q: (N * B, 1) against (N, B, A)
    tau = again["quantiles"].reshape(2, 5)
    assert tau[:, 0].tolist() == [0.25, 0.75]
    assert torch.allclose(head.main(X, tau.T)[:, 1], again["q"][1], atol=1e-6)


def test_fractions_can_be_the_same_for_all():
    head = QuantileHead(8, 3, layer_num=2, num_quantiles=4)
    even = midpoints(4, X).unsqueeze(0)
    for_each = head(X, tau=even.expand(5, -1))
    assert torch.allclose(head(X, tau=even)["q"], for_each["q"], atol=1e-6)
    over_time = head(X.expand(2, 5, 8), tau=even.expand(2, 5, 4))["logit"]
    assert torch.allclose(over_time[1], for_each["logit"], atol=1e-6)


def test_risk_bends_the_values_not_the_quantiles():
    calm = QuantileHead(8, 3).eval()
    torch.manual_seed(0)
    careful = QuantileHead(8, 3, beta_function_type="CVaR").eval()
    careful.load_state_dict(calm.state_dict())
    assert torch.equal(calm(X)["q"], careful(X)["q"])
    assert not torch.equal(calm(X)["logit"], careful(X)["logit"])
    with pytest.raises(ConfigError, match="unknown beta_function_type 'cvar'"):
        QuantileHead(8, 3, beta_function_type="cvar")


def test_proposed_quantiles():
    head = FQFHead(8, 3, num_quantiles=4)
    output = head(X)
    shapes = {key: tuple(value.shape) for key, value in output.items()}
    assert shapes == {
        "logit": (5, 3),
        "q": (5, 4, 3),
        "quantiles": (5, 5),
        "quantiles_hats": (5, 4),
        "q_tau_i": (5, 3, 3),
        "entropies": (5, 1),
    }
    edges = output["quantiles"]
    assert torch.allclose(edges[:, [0, -1]], torch.tensor([0.0, 1.0]).expand(5, 2))
    assert (edges.diff(dim=1) > 0).all()
    assert torch.allclose(output["quantiles_hats"], (edges[:, 1:] + edges[:, :-1]) / 2)
    expected = (edges.diff(dim=1).unsqueeze(-1) * output["q"]).sum(1)
    assert torch.allclose(output["logit"], expected, atol=1e-6)


def test_each_loss_of_fqf_moves_its_own_part():
    head, x = FQFHead(8, 3, num_quantiles=4), X.clone().requires_grad_()
    output = head(x)
    output["q"].sum().backward(retain_graph=True)
    assert head.quantiles_proposal.weight.grad is None and x.grad.abs().sum() > 0
    x.grad = None
    head.main.zero_grad()
    output["quantiles"].square().sum().backward()
    assert head.quantiles_proposal.weight.grad.abs().sum() > 0
    assert x.grad is None and all(p.grad is None for p in head.main.parameters())


@pytest.mark.parametrize("noise", [False, True])
def test_branches_share_a_value(noise):
    head = BranchingHead(8, 3, 4, noise=noise)
    q = head(X)["logit"]
    assert q.shape == (5, 3, 4)
    # Advantages are centred, so the mean of each branch is the value.
    assert torch.allclose(q.mean(-1), head.value(X).expand(5, 3), atol=1e-5)
    assert head(X.expand(2, 5, 8))["logit"].shape == (2, 5, 3, 4)


def test_popart_head():
    head = PopArtVHead(8, 1)
    before = head(X)["unnormalized_pred"]
    assert before.shape == (5,)
    head.popart.update_parameters(torch.randn(50) * 10 + 3)
    assert torch.allclose(head(X)["unnormalized_pred"], before, atol=1e-4)
    assert PopArtVHead(8, 2)(X)["pred"].shape == (5, 2)


def test_midpoints():
    assert midpoints(2, X).tolist() == [0.25, 0.75]
