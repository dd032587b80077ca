import pytest
import torch
from torch import nn

from ding.model import QAC, VAC, DiscreteQAC, create_model
from ding.utils.errors import ConfigError

OBS = torch.randn(5, 4)


def linear_shapes(module):
    return [tuple(m.weight.shape) for m in module.modules() if isinstance(m, nn.Linear)]


def test_vac_modes():
    model = VAC(4, 3)
    both = model(OBS, mode="compute_actor_critic")
    assert both["logit"].shape == (5, 3) and both["value"].shape == (5,)
    assert torch.equal(both["logit"], model(OBS, mode="compute_actor")["logit"])
    assert torch.equal(both["value"], model(OBS, mode="compute_critic")["value"])
    with pytest.raises(ValueError, match="did you mean 'compute_actor'"):
        model(OBS, mode="compute_acto")


def test_vac_shares_its_encoder_or_not():
    obs_only = VAC(4, 2, share_encoder=True)
    obs_only(OBS, mode="compute_critic")["value"].sum().backward()
    assert obs_only.actor_encoder.main[0].weight.grad is not None
    apart = VAC(4, 2, share_encoder=False)
    apart(OBS, mode="compute_actor_critic")["value"].sum().backward()
    assert apart.actor_encoder.main[0].weight.grad is None
    assert apart.critic_encoder.main[0].weight.grad is not None


def test_vac_two_layers_of_64_apart():
    model = VAC(
        4,
        2,
        share_encoder=False,
        encoder_hidden_size_list=[64, 64],
        actor_head_layer_num=0,
        critic_head_layer_num=0,
        activation="tanh",
        orthogonal_init=True,
    )
    hidden = [(64, 4), (64, 64)]
    assert sorted(linear_shapes(model)) == sorted([*hidden, *hidden, (2, 64), (1, 64)])
    assert sum(isinstance(m, nn.Tanh) for m in model.modules()) == 4
    assert not any(isinstance(m, nn.ReLU) for m in model.modules())
    inner, policy = model.actor_encoder.main[2].weight, model.actor_head.main[0].weight
    torch.testing.assert_close(inner @ inner.T, 2 * torch.eye(64), atol=1e-4, rtol=0)
    torch.testing.assert_close(policy @ policy.T, 1e-4 * torch.eye(2), atol=1e-7, rtol=0)
    assert model.critic_head.main[0].weight.norm().item() == pytest.approx(1.0, abs=1e-5)


def test_vac_continuous():
    model = VAC(4, 2, action_space="continuous", orthogonal_init=True, bound_type="tanh")
    logit = model(OBS, mode="compute_actor")["logit"]
    assert logit["mu"].shape == logit["sigma"].shape == (5, 2)
    assert model.actor_head.mu.weight.norm(dim=1).tolist() == pytest.approx([0.01, 0.01], abs=1e-6)
    fixed = VAC(4, 2, action_space="continuous", sigma_type="fixed")
    assert fixed(OBS)["logit"]["sigma"][0].tolist() == pytest.approx([0.3, 0.3])


def test_vac_multi_discrete_with_mask():
    model = VAC(4, [2, 3], orthogonal_init=True)
    mask = [torch.ones(5, 2), torch.ones(5, 3)]
    output = model({"obs": OBS, "action_mask": mask}, mode="compute_actor_critic")
    assert [logit.shape for logit in output["logit"]] == [(5, 2), (5, 3)]
    assert output["action_mask"] is mask
    assert model.actor_head.heads[1].main[-1].weight.norm(dim=1).max() < 0.011


def test_qac_two_hidden_layers_of_256():
    size = {"actor_head_hidden_size": 256, "critic_head_hidden_size": 256}
    model = QAC(3, 1, "reparameterization", twin_critic=True, **size)
    assert linear_shapes(model.actor_head) == [(256, 3), (256, 256), (1, 256), (1, 256)]
    assert [tuple(w.shape) for w in model.critic_head.weights] == [
        (2, 4, 256),
        (2, 256, 256),
        (2, 256, 1),
    ]


def test_qac_reparameterization_and_twin_critic():
    model = QAC(4, 2, "reparameterization", twin_critic=True)
    logit = model(OBS, mode="compute_actor")["logit"]
    assert logit["mu"].shape == logit["sigma"].shape == (5, 2)
    q_value = model({"obs": OBS, "action": torch.randn(5, 2)}, mode="compute_critic")["q_value"]
    assert [q.shape for q in q_value] == [(5,), (5,)]
    assert not torch.equal(*q_value)


def test_qac_regression_single_critic_and_flat_actions():
    model = QAC(4, 1)
    action = model(OBS)["action"]
    assert action.shape == (5, 1) and action.abs().max() <= 1
    q = model({"obs": OBS, "action": action}, mode="compute_critic")["q_value"]
    flat = model({"obs": OBS, "action": action[:, 0]}, mode="compute_critic")["q_value"]
    assert q.shape == (5,) and torch.equal(q, flat)


def test_qac_gradient_of_the_actor_runs_through_the_critic():
    model = QAC(4, 2)
    action = model(OBS)["action"]
    model({"obs": OBS, "action": action}, mode="compute_critic")["q_value"].mean().backward()
    assert all(p.grad is not None for p in model.actor_head.parameters())


def test_qac_encodes_images_and_dicts_by_itself():
    image = QAC((3, 36, 36), 2).actor_encoder
    assert [m.out_channels for m in image.modules() if isinstance(m, nn.Conv2d)] == [32, 64, 64]
    parts = QAC({"near": 3, "far": {"left": 2}}, 2).actor_encoder.parts
    assert [part.output_size for part in parts] == [128, 128]
    frames = torch.randint(256, (2, 3, 36, 36), dtype=torch.uint8)
    model = QAC((3, 36, 36), 2, twin_critic=True, encoder_hidden_size_list=[4, 4, 8])
    q_value = model({"obs": frames, "action": model(frames)["action"]}, "compute_critic")["q_value"]
    assert len(q_value) == 2 and model.actor_encoder is not model.critic_encoder
    shared = QAC(4, 2, encoder_hidden_size_list=[8], share_encoder=True)
    assert shared.actor_encoder is shared.critic_encoder


def test_discrete_qac():
    model = DiscreteQAC(4, 3, twin_critic=True)
    assert model({"obs": OBS})["logit"].shape == (5, 3)
    assert [q.shape for q in model(OBS, "compute_critic")["q_value"]] == [(5, 3), (5, 3)]
    assert DiscreteQAC(4, 3)(OBS, "compute_critic")["q_value"].shape == (5, 3)
    with pytest.raises(ConfigError, match="number of actions"):
        DiscreteQAC(4, [2, 3])


@pytest.mark.parametrize("name", ["vac", "qac"])
def test_unknown_action_space(name):
    cfg = {"type": name, "obs_shape": 4, "action_shape": 2, "action_space": "hibrid"}
    with pytest.raises(ConfigError, match="unknown action_space 'hibrid'"):
        create_model(cfg)
