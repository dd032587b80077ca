import pytest
import torch

from ding.model import ACER, PG, PPG
from ding.utils.errors import ConfigError

OBS = torch.randn(5, 4)


def test_pg():
    assert PG(4, 2)(OBS)["logit"].shape == (5, 2)
    assert [x.shape for x in PG(4, [2, 3])(OBS)["logit"]] == [(5, 2), (5, 3)]
    gaussian = PG(4, 2, "continuous")(OBS)["logit"]
    assert gaussian["mu"].shape == gaussian["sigma"].shape == (5, 2)
    assert "action_mask" in PG(4, 2)({"obs": OBS, "action_mask": torch.ones(5, 2)})
    with pytest.raises(ConfigError, match="did you mean 'discrete'"):
        PG(4, 2, "discret")


def test_value_network_of_ppg_is_its_own():
    model = PPG(4, 2)
    assert model(OBS, "compute_actor_critic").keys() == {"logit", "value"}
    model({"obs": OBS}, "compute_critic")["value"].sum().backward()
    assert all(p.grad is None for p in model.actor_critic.parameters())
    model(OBS, "compute_actor_critic")["value"].sum().backward()
    assert model.actor_critic.critic_head.main[0].weight.grad is not None


def test_acer_has_action_values():
    model = ACER(4, 3)
    assert model(OBS, "compute_critic")["q_value"].shape == (5, 3)
    assert model(OBS)["logit"].shape == (5, 3)
    assert model.actor_encoder is not model.critic_encoder
