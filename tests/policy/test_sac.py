import torch

from ding.model import QAC
from ding.policy import SACPolicy
from ding.utils.batch import Rows
from policy.fakes import batch_of


def test_frozen_layers_stay_as_they_are() -> None:
    model = QAC(3, 2, action_space="reparameterization", twin_critic=True)
    frozen, free = (model.actor_head.main[i].weight for i in (0, 2))
    frozen.requires_grad_(False)
    before = frozen.clone(), free.detach().clone()
    cfg = dict(type="sac", model=dict(obs_shape=3, action_shape=2), learn=dict(batch_size=16))
    SACPolicy(cfg, model=model).learn_mode.forward(Rows(batch_of("sac")))
    assert torch.equal(frozen, before[0])
    assert not torch.equal(free, before[1])
