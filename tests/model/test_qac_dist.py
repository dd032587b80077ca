import pytest
import torch

from ding.model import QACDIST
from ding.utils.errors import ConfigError

OBS, ACTION = torch.randn(5, 4), torch.randn(5, 2)


@pytest.mark.parametrize("options", [{}, {"encoder_hidden_size_list": [8], "share_encoder": True}])
def test_critic_is_a_distribution(options):
    model = QACDIST(4, 2, v_min=-1.0, v_max=1.0, n_atom=11, **options)
    output = model({"obs": OBS, "action": ACTION}, "compute_critic")
    assert output["q_value"].shape == (5, 1) and output["distribution"].shape == (5, 1, 11)
    assert output["q_value"].abs().max() <= 1
    action = model(OBS)["action"]
    assert action.shape == (5, 2) and action.abs().max() <= 1


def test_gaussian_actor_and_single_action():
    model = QACDIST(4, 1, "reparameterization")
    assert model(OBS)["logit"]["mu"].shape == (5, 1)
    output = model({"obs": OBS, "action": torch.randn(5)}, "compute_critic")
    assert output["q_value"].shape == (5, 1)


def test_other_heads_are_refused():
    with pytest.raises(ConfigError, match="'categorical', got 'quantile'"):
        QACDIST(4, 2, critic_head_type="quantile")
