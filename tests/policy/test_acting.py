import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController

from ding.model import DQN
from ding.policy import DQNPolicy, acting
from ding.policy.acting import acting_model
from ding.utils.batch import Rows
from policy.fakes import batch_of


def blas_threads() -> list[int]:
    found = ThreadpoolController().select(internal_api="openblas")
    return [library["num_threads"] for library in found.info()]


@pytest.mark.parametrize("obs_shape", [4, [1, 36, 36]])
def test_numpy_keeps_to_one_thread_whoever_runs_the_model(obs_shape: int | list[int]) -> None:
    acting._use_one_blas_thread.cache_clear()
    with ThreadpoolController().select(internal_api="openblas").limit(limits=2):
        if blas_threads() != [2]:
            pytest.skip("NumPy's products know no threads here")
        acting_model(DQN(obs_shape, 2, encoder_hidden_size_list=[8, 8, 8]))
        assert blas_threads() == [1]


@pytest.mark.parametrize("obs_shape", [[4], [1, 36, 36]])
def test_the_same_values_as_the_model(obs_shape: list[int]) -> None:
    model = DQN(obs_shape, 2, encoder_hidden_size_list=[8, 8, 8])
    obs = np.random.default_rng(0).normal(size=(3, *obs_shape)).astype(np.float32)
    with torch.no_grad():
        wanted = model(torch.from_numpy(obs))["logit"].numpy()
    given = acting_model(model)(obs)["logit"]
    assert type(given) is np.ndarray
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fields", [["learn", "collect"], ["collect", "learn"]])
def test_acting_follows_learning_in_whatever_order_modes_are_made(fields: list[str]) -> None:
    model = DQN(3, 4, encoder_hidden_size_list=[16])
    cfg = dict(type="dqn", model=dict(obs_shape=3, action_shape=4), learn=dict(learning_rate=0.1))
    policy = DQNPolicy(cfg, model=model, enable_field=fields)
    batch = batch_of("dqn")
    before = policy._q(batch["obs"])["logit"]
    policy.learn_mode.forward(Rows(batch))
    with torch.no_grad():
        wanted = model(torch.from_numpy(batch["obs"]))["logit"].numpy()
    np.testing.assert_allclose(policy._q(batch["obs"])["logit"], wanted, atol=1e-5)
    assert not np.allclose(before, wanted, atol=1e-3)
