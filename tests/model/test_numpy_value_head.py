import numpy as np
import pytest
import torch

from ding.model import C51DQN, QRDQN, RainbowDQN, numpy_policy
from ding.torch_utils.noise import reset_noise

OBS = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


def assert_same_values(model, obs=OBS, tolerance=1e-5):
    with torch.no_grad():
        wanted = model(torch.from_numpy(obs))
    for key, value in numpy_policy(model)(obs).items():
        np.testing.assert_allclose(value, wanted[key].numpy(), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("cls", [C51DQN, RainbowDQN, QRDQN])
def test_sequences(cls):
    assert_same_values(cls(4, 3, [16]), np.stack([OBS, 2 * OBS]))


def test_new_noise_is_seen():
    model = RainbowDQN(4, 3, [16])
    run = numpy_policy(model)
    before = run(OBS)["logit"]
    reset_noise(model)
    with torch.no_grad():
        wanted = model(torch.from_numpy(OBS))["logit"].numpy()
    assert not np.allclose(before, wanted)
    np.testing.assert_allclose(run(OBS)["logit"], wanted, atol=1e-5)


def test_large_logits_do_not_overflow():
    model = C51DQN(4, 3, [16])
    with torch.no_grad():
        model.head.main[-1].weight.mul_(1e4)
    assert_same_values(model, tolerance=1e-2)  # the logits themselves are that coarse
