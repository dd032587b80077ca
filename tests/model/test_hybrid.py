import pytest
import torch

from ding.model import PDQN, HybridQAC, HybridVAC, create_model, model_wrap
from ding.utils.errors import ConfigError

B = 5
OBS = torch.randn(B, 4)
SHAPE = {"action_type_shape": (3,), "action_args_shape": 2}


def test_vac_by_action_space():
    model = create_model(
        {"type": "vac", "obs_shape": 4, "action_shape": SHAPE, "action_space": "hybrid"}
    )
    assert isinstance(model, HybridVAC)
    output = model(OBS, "compute_actor_critic")
    logit = output["logit"]
    assert logit["action_type"].shape == (B, 3) and logit["action_args"]["mu"].shape == (B, 2)
    assert output["value"].shape == (B,)
    assert torch.equal(output["value"], model(OBS, "compute_critic")["value"])
    sampler = model_wrap(model, "hybrid_reparam_multinomial_sample")
    action = sampler.forward(OBS, mode="compute_actor")["action"]
    assert action["action_type"].shape == (B,) and action["action_args"].shape == (B, 2)
    masked = model({"obs": OBS, "action_mask": torch.ones(B, 3)})
    assert "action_mask" in masked
    apart = HybridVAC(4, SHAPE, share_encoder=False)
    assert apart(OBS, "compute_actor_critic")["value"].shape == (B,)


@pytest.mark.parametrize("twin", [False, True])
def test_qac_by_action_space(twin):
    model = create_model(
        {"type": "continuous_qac", "obs_shape": 4, "action_shape": SHAPE, "twin_critic": twin},
        action_space="hybrid",
    )
    assert isinstance(model, HybridQAC)
    actor = model(OBS)
    assert actor["logit"].shape == (B, 3) and actor["action_args"].abs().max() <= 1
    action = {"action_type": torch.full((B,), 1), "action_args": actor["action_args"]}
    critic = model({"obs": OBS, "action": action}, "compute_critic")["q_value"]
    sure = 100.0 * torch.nn.functional.one_hot(action["action_type"], 3).float()
    again = model({"obs": OBS, "action": action, "logit": sure}, "compute_critic")["q_value"]
    pairs = zip(critic, again, strict=True) if twin else [(critic, again)]
    for one, other in pairs:
        assert one.shape == (B,) and torch.allclose(one, other, atol=1e-6)


def test_pdqn_in_one_pass():
    model = PDQN(4, SHAPE)
    args = model(OBS)["action_args"]
    assert args.shape == (B, 2)
    output = model({"state": OBS, "action_args": args}, "compute_discrete")
    assert output["logit"].shape == (B, 3) and output["action_args"] is args
    same = model({"obs": OBS, "action_args": args}, "compute_discrete")
    assert torch.equal(same["logit"], output["logit"])
    output["logit"].sum().backward()
    assert all(p.grad is not None for p in model.continuous_parameters())


def test_pdqn_in_several_passes_keeps_arguments_apart():
    mask = [[1, 0], [0, 1], [0, 0]]
    model = PDQN(4, SHAPE, multi_pass=True, action_mask=mask, dueling=False)
    args = torch.randn(B, 2, requires_grad=True)
    logit = model({"state": OBS, "action_args": args}, "compute_discrete")["logit"]
    for kind, own in enumerate(mask):
        (grad,) = torch.autograd.grad(logit[:, kind].sum(), args, retain_graph=True)
        assert (grad.abs().sum(0) > 0).tolist() == [bool(flag) for flag in own]


def test_mistakes():
    with pytest.raises(ConfigError, match="dict of action_type_shape and action_args_shape"):
        PDQN(4, 3)
    with pytest.raises(ConfigError, match="action_type_shape must be one number"):
        PDQN(4, {"action_type_shape": [2, 2], "action_args_shape": 2})
    with pytest.raises(ConfigError, match="set both or none"):
        PDQN(4, SHAPE, multi_pass=True)
    with pytest.raises(ConfigError, match=r"must be \(3, 2\), is \(1, 2\)"):
        PDQN(4, SHAPE, multi_pass=True, action_mask=[[1, 0]])
