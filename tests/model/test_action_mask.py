import numpy as np
import pytest
import torch

from ding.model.action_mask import masked, split_mask, wraps_obs


def test_an_observation_is_taken_out_of_its_wrapping_unless_it_has_that_key_itself():
    mask = torch.ones(2, 3)
    x = {"obs": torch.zeros(2, 4), "action_mask": mask, "other": 1}
    obs, found = split_mask(x, wraps_obs(4))
    assert obs is x["obs"] and list(found) == ["action_mask"] and found["action_mask"] is mask
    assert split_mask(x, wraps_obs({"obs": 4, "action_mask": 3})) == (x, {})
    assert split_mask(mask, True) == (mask, {})
    assert split_mask({"obs": mask}, True) == (mask, {})


@pytest.mark.parametrize("make", [torch.tensor, np.array])
def test_what_is_not_allowed_never_wins(make):
    logit = make([[1.0, 5.0, 2.0], [-3.0, -1.0, -2.0]])
    before = logit + 0
    found = masked(logit, make([[1, 0, 1], [1, 0, 0]]))
    assert found.argmax(-1).tolist() == [2, 0]
    assert found[0][0] == 1.0 and np.isfinite(np.asarray(found)).all()
    assert (logit == before).all()
    assert masked(logit, None) is logit
    assert torch.softmax(torch.as_tensor(found), -1)[:, 1].tolist() == [0.0, 0.0]
