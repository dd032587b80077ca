import pytest
import torch
from torch import nn

from ding.model import DQN, create_model, get_model_cls
from ding.utils.errors import ConfigError, DingError


def test_outputs_for_vectors_images_and_dicts():
    assert DQN(4, 2)(torch.randn(3, 4))["logit"].shape == (3, 2)
    frames = torch.zeros(1, 4, 84, 84, dtype=torch.uint8)
    assert DQN((4, 84, 84), 6)(frames)["logit"].shape == (1, 6)
    both = DQN({"a": 2, "b": 3}, 2, [8])
    assert both({"a": torch.ones(3, 2), "b": torch.ones(3, 3)})["logit"].shape == (3, 2)


def test_several_actions_give_a_list():
    logits = DQN(4, [2, 3])(torch.randn(5, 4))["logit"]
    assert [logit.shape for logit in logits] == [(5, 2), (5, 3)]
    assert DQN(4, [2])(torch.randn(5, 4))["logit"].shape == (5, 2)


def test_obs_in_a_dict_carries_the_mask():
    model, obs, mask = DQN(4, 2), torch.randn(3, 4), torch.ones(3, 2)
    output = model({"obs": obs, "action_mask": mask})
    assert output["action_mask"] is mask
    assert torch.equal(output["logit"], model(obs)["logit"])
    assert "action_mask" not in model({"obs": obs})


def test_a_dict_observation_may_have_an_entry_named_obs():
    model = DQN({"obs": 2, "b": 3}, 2, [8])
    assert model({"obs": torch.ones(3, 2), "b": torch.ones(3, 3)})["logit"].shape == (3, 2)


def test_exact_sizes_can_be_asked_for():
    model = DQN(4, 2, [64, 64], dueling=False, head_layer_num=0, activation="tanh")
    shapes = [tuple(m.weight.shape) for m in model.modules() if isinstance(m, nn.Linear)]
    assert shapes == [(64, 4), (64, 64), (2, 64)]
    wide = DQN(4, 2, [64, 32], dueling=False, head_hidden_size=16)
    shapes = [tuple(m.weight.shape) for m in wide.modules() if isinstance(m, nn.Linear)]
    assert shapes == [(64, 4), (32, 64), (16, 32), (2, 16)]


def test_create_model_from_config():
    model = create_model({"type": "dqn", "import_names": [], "obs_shape": 4}, action_shape=3)
    assert isinstance(model, DQN) and model(torch.randn(1, 4))["logit"].shape == (1, 3)
    assert get_model_cls({"type": "dqn"}) is DQN


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        ({"obs_shape": 4, "action_shap": 2}, "'action_shap'.*did you mean 'action_shape'"),
        ({"obs_shape": 4}, "DQN lacks 'action_shape'"),
        ({"obs_shape": 4, "action_shape": 2.5}, "action_shape must be a positive integer"),
        ({"obs_shape": "a", "action_shape": 2}, "obs_shape must be a positive integer"),
        ({"obs_shape": 4, "action_shape": 2, "activation": "rleu"}, "did you mean 'relu'"),
    ],
)
def test_create_model_explains_mistakes(cfg, message):
    with pytest.raises(ConfigError, match=message):
        create_model({"type": "dqn", **cfg})


def test_unknown_model():
    with pytest.raises(ConfigError, match=r"lacks 'type'; valid: .*discrete_qac, dqn"):
        create_model({"obs_shape": 4})
    with pytest.raises(DingError, match="unknown model 'dqm'; did you mean 'dqn'"):
        create_model({"type": "dqm"})
