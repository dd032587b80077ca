import numpy as np
import pytest
import torch
from torch import nn

from ding.model import (
    C51DQN,
    DQN,
    PDQN,
    QAC,
    QACDIST,
    QRDQN,
    VAC,
    DiscreteQAC,
    HybridQAC,
    RainbowDQN,
    numpy_forward,
    numpy_policy,
)

OBS = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


def assert_same(expected, actual):
    if isinstance(expected, dict):
        assert list(expected) == list(actual)
        for key in expected:
            assert_same(expected[key], actual[key])
    elif isinstance(expected, list):
        for one, other in zip(expected, actual, strict=True):
            assert_same(one, other)
    else:
        assert isinstance(actual, np.ndarray) and actual.dtype == np.float32
        assert actual.shape == tuple(expected.shape)
        np.testing.assert_allclose(actual, expected.detach().numpy(), atol=1e-6, rtol=1e-5)


def as_tensors(x):
    return {k: as_tensors(v) for k, v in x.items()} if isinstance(x, dict) else torch.from_numpy(x)


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(4, 3),
        nn.Linear(4, 3, bias=False),
        nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)),
        nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Identity(), nn.Linear(8, 2)),
        nn.Sequential(nn.Tanh(), nn.Linear(4, 8), nn.ReLU(), nn.ReLU()),
        nn.Sequential(nn.Sequential(nn.Linear(4, 8), nn.SiLU()), nn.Sequential(nn.Linear(8, 2))),
        nn.Sequential(nn.Linear(4, 8), nn.ELU(0.5), nn.Linear(8, 8), nn.LeakyReLU(0.2)),
        nn.Sequential(nn.Flatten(), nn.Linear(4, 8), nn.Sigmoid()),
        nn.Sequential(),
    ],
)
def test_plain_modules(module):
    before = OBS.copy()
    assert_same(module(torch.from_numpy(OBS)), numpy_forward(module)(OBS))
    assert np.array_equal(OBS, before)


HYBRID = {"action_type_shape": 3, "action_args_shape": 2}
CONTINUOUS = {"action_space": "continuous"}
VARIANTS = [
    (DQN(4, 2), None),
    (DQN(4, [2, 3], [16], dueling=False, head_layer_num=0, activation="silu"), None),
    (DQN(4, 2, [16, 16], norm_type="LN", head_layer_num=2, activation="elu"), None),
    (VAC(4, 3), "compute_actor"),
    (VAC(4, 3), "compute_critic"),
    (VAC(4, 3), "compute_actor_critic"),
    (VAC(4, 3, share_encoder=False, activation="tanh"), "compute_actor_critic"),
    (VAC(4, [3, 2], actor_head_layer_num=0), "compute_actor_critic"),
    (VAC(4, 2, **CONTINUOUS), "compute_actor_critic"),
    (VAC(4, 2, **CONTINUOUS, sigma_type="conditioned", bound_type="tanh"), "compute_actor"),
    (VAC(4, 2, **CONTINUOUS, sigma_type="fixed", actor_head_layer_num=0), "compute_actor"),
    (QAC(4, 2), "compute_actor"),
    (QAC(4, 1, "reparameterization", twin_critic=True), "compute_actor"),
    (QAC(4, 1, encoder_hidden_size_list=[8]), "compute_actor"),
    (DiscreteQAC(4, 3, twin_critic=True, activation="leaky_relu"), "compute_actor"),
    (QACDIST(4, 2), "compute_actor"),
    (HybridQAC(4, HYBRID), "compute_actor"),
    (PDQN(4, HYBRID), "compute_continuous"),
    (C51DQN(4, 3, [16], v_min=-1.0, v_max=5.0, n_atom=11), None),
    (C51DQN(4, [2, 3], [16], noise=True, n_atom=5), None),
    (RainbowDQN(4, 3, [16], head_layer_num=2), None),
    (RainbowDQN(4, 3, [16]).eval(), None),
    (RainbowDQN(4, 3, [16], noise=False), None),
    (QRDQN(4, 3, [16], num_quantiles=7), None),
    (QRDQN(4, [2, 3], [16], head_layer_num=0), None),
]


@pytest.mark.parametrize(("model", "mode"), VARIANTS)
def test_models(model, mode):
    run = numpy_policy(model, mode)
    call = (lambda x: model(x)) if mode is None else (lambda x: model(x, mode))
    assert_same(call(torch.from_numpy(OBS)), run(OBS))
    assert_same(call(torch.from_numpy(OBS)), run(OBS.astype(np.float64)))
    assert_same(call({"obs": torch.from_numpy(OBS)}), run({"obs": OBS}))


@pytest.mark.parametrize(
    ("obs_shape", "obs"),
    [
        ({"a": 2, "b": (2, 3)}, {"a": OBS[:, :2], "b": np.ones((8, 2, 3), np.float32)}),
        ((2, 2), OBS.reshape(8, 2, 2)),
        ((), OBS[:, 0]),
        (3, np.arange(24, dtype=np.uint8).reshape(8, 3)),
        (3, np.arange(24).reshape(8, 3)),
    ],
)
def test_observations_of_other_kinds(obs_shape, obs):
    model = DQN(obs_shape, 2, [16])
    assert_same(model(as_tensors(obs)), numpy_policy(model)(obs))


def test_mask_is_carried_by_actors_only():
    mask, model = np.ones((8, 3), np.float32), VAC(4, 3)
    x = {"obs": OBS, "action_mask": mask}
    assert numpy_policy(model, "compute_actor")(x)["action_mask"] is mask
    assert list(numpy_policy(model, "compute_critic")(x)) == ["value"]


def test_weight_changes_in_place_are_seen():
    model = VAC(4, 2, **CONTINUOUS)
    run = numpy_policy(model, "compute_actor_critic")
    before = run(OBS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    output = model(torch.from_numpy(OBS), "compute_actor_critic")
    (
        output["value"].sum() + output["logit"]["mu"].sum() + output["logit"]["sigma"].sum()
    ).backward()
    optimizer.step()
    after = model(torch.from_numpy(OBS), "compute_actor_critic")
    assert not np.allclose(before["value"], after["value"].detach().numpy())
    assert_same(after, run(OBS))
    model.load_state_dict(VAC(4, 2, **CONTINUOUS).state_dict())
    assert_same(model(torch.from_numpy(OBS), "compute_actor_critic"), run(OBS))


def test_outputs_are_fresh_arrays():
    model = VAC(4, 2, **CONTINUOUS, sigma_type="fixed")
    run = numpy_policy(model, "compute_actor")
    run(OBS)["logit"]["sigma"][:] = 7
    assert run(OBS)["logit"]["sigma"][0, 0] == np.float32(0.3)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def hooked(module):
    module.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    "module",
    [
        nn.Conv2d(1, 1, 1),
        nn.GRU(4, 4),
        nn.GELU(),
        Doubled(4, 2),
        nn.Linear(4, 2).double(),
        nn.Sequential(nn.Linear(4, 2), nn.Dropout()),
        nn.Sequential(hooked(nn.Linear(4, 2)), nn.ReLU()),
        nn.Sequential(nn.Linear(4, 2), hooked(nn.ReLU())),
        nn.LayerNorm((4, 4)),
        nn.Flatten(0),
        nn.Linear(4, 2, device="meta"),
    ],
)
def test_anything_else_is_left_to_torch(module):
    assert numpy_forward(module) is None


def test_models_left_to_torch():
    assert numpy_policy(DQN((1, 36, 36), 2)) is None
    assert numpy_policy(DQN(4, 2), "compute_actor") is None
    assert numpy_policy(QAC(4, 2), "compute_critic") is None
    assert numpy_policy(nn.Linear(4, 2)) is None
    assert numpy_policy(hooked(DQN(4, 2))) is None
    watched = QAC(4, 2, "reparameterization")
    hooked(watched.actor_head.mu)
    assert numpy_policy(watched, "compute_actor") is None
    replaced = QAC(4, 2, "reparameterization")
    replaced.actor_head.mu = Doubled(64, 2)
    assert numpy_policy(replaced, "compute_actor") is None


def test_pdqn_values_given_arguments():
    model = PDQN(4, HYBRID)
    x = {"state": OBS, "action_args": OBS[:, :2]}
    run = numpy_policy(model, "compute_discrete")
    assert_same(model(as_tensors(x), "compute_discrete"), run(x))
    mask = [[1, 0], [0, 1], [0, 0]]
    own = PDQN(4, HYBRID, multi_pass=True, action_mask=mask)
    assert numpy_policy(own, "compute_discrete") is None
