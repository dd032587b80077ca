import contextlib
import copy

import numpy as np
import pytest
import torch
from torch import nn

from ding.model import (
    ACER,
    BDQ,
    C51DQN,
    DQN,
    IQN,
    PDQN,
    PG,
    PPG,
    QAC,
    QACDIST,
    QRDQN,
    VAC,
    DiscreteQAC,
    HybridQAC,
    HybridVAC,
    NumpyForward,
    RainbowDQN,
    SQNModel,
)
from ding.model import numpy_forward as forward_module
from ding.model.numpy_ops import OPERATIONS
from ding.model.tracing import UnsupportedError
from ding.torch_utils import Adam
from ding.torch_utils.noise import reset_noise

OBS = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


def assert_same(expected, actual, tolerance=1e-5):
    if isinstance(expected, dict):
        assert list(expected) == list(actual)
        for key in expected:
            assert_same(expected[key], actual[key], tolerance)
    elif isinstance(expected, list):
        for one, other in zip(expected, actual, strict=True):
            assert_same(one, other, tolerance)
    else:
        assert isinstance(actual, np.ndarray) and actual.dtype == np.float32
        assert actual.shape == tuple(expected.shape)
        wanted = expected.detach().numpy()
        np.testing.assert_allclose(actual, wanted, atol=tolerance, rtol=tolerance)


def as_tensors(x):
    return {k: as_tensors(v) for k, v in x.items()} if isinstance(x, dict) else torch.from_numpy(x)


def in_numpy(model, mode=None, x=OBS):
    """Its function for arrays; raises where there is none in NumPy."""
    run = NumpyForward(model, mode)
    run.in_numpy(x)
    return run


def assert_left_to_torch(model, reason, mode=None, x=OBS):
    run = NumpyForward(model, mode)
    with pytest.raises(UnsupportedError, match=reason):
        run.in_numpy(x)
    return run


def same_as_torch(model, x=OBS, mode=None, tolerance=1e-5):
    options = {} if mode is None else {"mode": mode}
    with torch.no_grad():
        wanted = model(as_tensors(x), **options)
    assert_same(wanted, in_numpy(model, mode, x)(x), tolerance)


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
        nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Dropout().eval()),
        nn.Sequential(
            nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.LayerNorm((2, 3)), nn.Softmax(1)
        ),
        nn.Sequential(nn.Hardtanh(-0.5, 0.5), nn.Linear(4, 2), nn.LogSoftmax(-1)),
        nn.Sequential(nn.Flatten(0), nn.Tanh()),
        nn.Sequential(nn.Tanh(), nn.LayerNorm(4, elementwise_affine=False)),
    ],
)
def test_plain_modules(module):
    before = OBS.copy()
    same_as_torch(module)
    assert np.array_equal(OBS, before)


class Written(nn.Module):
    """A forward as a user may write it."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = nn.Linear(4, 4), nn.Parameter(torch.rand(2, 4))
        self.register_buffer("shift", torch.rand(4))

    def forward(self, x):
        batch, width = x.shape
        y = torch.relu(self.inner(x)) * self.scale[0] + self.shift
        y = y - y.mean(dim=1, keepdim=True) / 2 + (1.0 - x).clamp(min=-0.5) ** 2
        pairs = y.view(batch, width // 2, 2).transpose(1, 2)
        joined = torch.cat([pairs.reshape(batch, -1), -y[:, 1:3], x.abs().sqrt()], dim=-1)
        even = torch.arange(width, dtype=x.dtype).unsqueeze(0).expand(len(x), -1)
        masked = torch.where(x > 0, x.exp(), 2 / (even + 1))
        return {"both": [joined, masked], "top": x.amax(dim=-1), "scale": self.scale}


def test_a_forward_of_the_users_own():
    same_as_torch(Written())


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
    (HybridVAC(4, HYBRID), "compute_actor_critic"),
    (PDQN(4, HYBRID), "compute_continuous"),
    (PG(4, 3), None),
    (PG(4, 2, **CONTINUOUS), None),
    (PPG(4, 3), "compute_actor"),
    (PPG(4, 3), "compute_critic"),
    (PPG(4, 3), "compute_actor_critic"),
    (ACER(4, 3), "compute_actor"),
    (C51DQN(4, 3, [16], v_min=-1.0, v_max=5.0, n_atom=11), None),
    (C51DQN(4, [2, 3], [16], noise=True, n_atom=5), None),
    (RainbowDQN(4, 3, [16], head_layer_num=2), None),
    (RainbowDQN(4, 3, [16]).eval(), None),
    (RainbowDQN(4, 3, [16], noise=False), None),
    (QRDQN(4, 3, [16], num_quantiles=7), None),
    (QRDQN(4, [2, 3], [16], head_layer_num=0), None),
    (IQN(4, 3, [16]).eval(), None),
    (BDQ(4, 2, 3, encoder_hidden_size_list=[16]), None),
    (SQNModel(4, 2), None),
]


@pytest.mark.parametrize(("model", "mode"), VARIANTS)
def test_models(model, mode):
    same_as_torch(model, mode=mode)
    same_as_torch(model, {"obs": OBS}, mode)
    run = in_numpy(model, mode)
    call = (lambda x: model(x)) if mode is None else (lambda x: model(x, mode))
    assert_same(call(torch.from_numpy(OBS)), run(OBS.astype(np.float64)))
    for n_row in (1, 3, 8, 20):
        obs = np.resize(OBS, (n_row, 4))
        assert_same(call(torch.from_numpy(obs)), run(obs))
    assert len(run._programs) == 2  # one for each dtype, whatever the number of rows


@pytest.mark.parametrize(
    ("obs_shape", "obs"),
    [
        ({"a": 2, "b": (2, 3)}, {"a": OBS[:, :2], "b": np.ones((8, 2, 3), np.float32)}),
        ((2, 2), OBS.reshape(8, 2, 2)),
        ((), OBS[:, 0]),
        (3, np.arange(24, dtype=np.uint8).reshape(8, 3)),
        (3, np.arange(24).reshape(8, 3)),
        (3, np.arange(24).reshape(8, 3) % 2 == 0),
    ],
)
def test_observations_of_other_kinds(obs_shape, obs):
    same_as_torch(DQN(obs_shape, 2, [16]), obs)


@pytest.mark.parametrize("cls", [DQN, C51DQN, RainbowDQN, QRDQN])
def test_sequences(cls):
    same_as_torch(cls(4, 3, [16]), np.stack([OBS, 2 * OBS]))


def test_mask_is_carried_by_actors_only():
    mask, model = np.ones((8, 3), np.float32), VAC(4, 3)
    x = {"obs": OBS, "action_mask": mask}
    assert in_numpy(model, "compute_actor", x)(x)["action_mask"] is mask
    assert list(in_numpy(model, "compute_critic", x)(x)) == ["value"]
    several = {"obs": OBS, "action_mask": [mask, mask]}
    assert in_numpy(VAC(4, [3, 3]), "compute_actor", several)(several)["action_mask"][1] is mask


def test_pdqn_values_given_arguments():
    x = {"state": OBS, "action_args": OBS[:, :2]}
    same_as_torch(PDQN(4, HYBRID), x, "compute_discrete")


def test_large_logits_do_not_overflow():
    model = C51DQN(4, 3, [16])
    with torch.no_grad():
        model.head.main[-1].weight.mul_(1e2)
    same_as_torch(model, tolerance=1e-3)  # the logits themselves are that coarse


# --- live weights --------------------------------------------------------------------------------


def forbid_torch(model):
    def forward(*args, **kwargs):
        raise AssertionError("ran in torch")

    model.forward = forward


def test_torch_is_not_asked_again():
    model = DQN(4, 2)
    run = NumpyForward(model)
    wanted = run(OBS)["logit"]
    forbid_torch(model)
    np.testing.assert_allclose(run(OBS[:5])["logit"], wanted[:5], atol=1e-6)


def test_weight_changes_in_place_are_seen():
    model = VAC(4, 2, **CONTINUOUS)
    run = in_numpy(model, "compute_actor_critic")
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


def replace_parameter(model):
    model.head.value[0].weight = nn.Parameter(torch.randn(64, 64))


def move(model):
    Adam(model.parameters())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)


def reload(model):
    model.load_state_dict(DQN(4, 2).state_dict(), assign=True)


def to_double_and_back(model):
    model.double().float()
    with torch.no_grad():
        model.encoder.main[0].bias.add_(1.0)


@pytest.mark.parametrize("change", [replace_parameter, move, reload, to_double_and_back])
def test_weights_that_moved_are_read_again(change):
    model = DQN(4, 2)
    run = NumpyForward(model)
    before = run(OBS)["logit"]
    change(model)
    with torch.no_grad():
        wanted = model(torch.from_numpy(OBS))
    forbid_torch(model)
    assert_same(wanted, run(OBS))
    assert not np.allclose(before, wanted["logit"].numpy())


def test_weights_of_another_kind_go_to_torch_and_come_back():
    model = nn.Linear(4, 2)
    run = NumpyForward(model)
    wanted = run(OBS)
    model.to(torch.bfloat16)
    with pytest.raises(RuntimeError, match="dtype"):
        run(OBS)
    model.float()
    np.testing.assert_allclose(run(OBS), wanted, atol=0.05)


def test_a_parameter_that_is_taken_away_is_noticed():
    model = nn.Sequential(nn.Linear(4, 2))
    run = NumpyForward(model)
    run(OBS)
    model[0].bias = None
    assert_same(model(torch.from_numpy(OBS)), run(OBS))
    nn.utils.parametrizations.weight_norm(model[0])
    assert_same(model(torch.from_numpy(OBS)), run(OBS))


def test_weights_that_are_not_finite_give_what_torch_gives():
    model = nn.Linear(4, 2)
    with torch.no_grad():
        model.bias[0] = float("nan")
    found = in_numpy(model)(OBS)
    assert np.isnan(found[:, 0]).all() and np.isfinite(found[:, 1]).all()


def test_new_noise_is_seen():
    model = RainbowDQN(4, 3, [16])
    run = in_numpy(model)
    before = run(OBS)["logit"]
    reset_noise(model)
    with torch.no_grad():
        wanted = model(torch.from_numpy(OBS))["logit"].numpy()
    assert not np.allclose(before, wanted)
    np.testing.assert_allclose(run(OBS)["logit"], wanted, atol=1e-5)


def test_eval_and_train_are_followed():
    model = RainbowDQN(4, 3, [16])
    run = in_numpy(model)
    with_noise = run(OBS)["logit"]
    model.eval()
    assert_same(model(torch.from_numpy(OBS)), run(OBS))
    assert not np.allclose(run(OBS)["logit"], with_noise)
    model.train()
    np.testing.assert_array_equal(run(OBS)["logit"], with_noise)


def test_a_copy_has_weights_of_its_own():
    run = NumpyForward(DQN(4, 2))
    before = run(OBS)["logit"]
    other = copy.deepcopy(run)
    with torch.no_grad():
        next(other._model.parameters()).add_(1.0)
    assert not np.allclose(other(OBS)["logit"], before)
    np.testing.assert_array_equal(run(OBS)["logit"], before)


def test_outputs_are_fresh_arrays():
    model = VAC(4, 2, **CONTINUOUS, sigma_type="fixed")
    run = in_numpy(model, "compute_actor")
    run(OBS)["logit"]["sigma"][:] = 7
    assert run(OBS)["logit"]["sigma"][0, 0] == np.float32(0.3)
    run = in_numpy(Written())
    wanted = run(OBS)["scale"].copy()
    run(OBS)["scale"][:] = 7
    np.testing.assert_array_equal(run(OBS)["scale"], wanted)


# --- what is left to torch -----------------------------------------------------------------------


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_a_layer_of_another_kind_is_not_mistaken_for_its_base():
    same_as_torch(Doubled(4, 2))


def hooked(module):
    module.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.GRU(4, 4), "does not know"),
        (nn.GELU(), "does not know"),
        (nn.BatchNorm1d(4), "has not made itself"),
        (nn.Sequential(nn.Linear(4, 2), nn.Dropout()), "dropout"),
        (nn.Sequential(hooked(nn.Linear(4, 2)), nn.ReLU()), "hooks"),
        (nn.Sequential(nn.Linear(4, 2), hooked(nn.ReLU())), "hooks"),
        (hooked(DQN(4, 2)), "hooks"),
        (nn.Sequential(nn.ReLU(inplace=True)), "has not made itself"),
        (IQN(4, 2, [8]), "does not know"),  # draws fractions
        (nn.Linear(4, 60_000), "large"),
        (nn.Linear(4, 2, device="meta"), "another device"),
    ],
)
def test_anything_else_is_left_to_torch(module, reason):
    assert_left_to_torch(module, reason)


def test_images_are_left_to_torch():
    obs = np.zeros((2, 1, 36, 36), np.float32)
    model = DQN((1, 36, 36), 2, [8, 8, 8])
    run = assert_left_to_torch(model, "does not know", x=obs)
    assert_same(model(torch.from_numpy(obs)), run(obs))


def test_multi_pass_is_left_to_torch():
    own = PDQN(4, HYBRID, multi_pass=True, action_mask=[[1, 0], [0, 1], [0, 0]])
    x = {"state": OBS, "action_args": OBS[:, :2]}
    assert_left_to_torch(own, "does not know", "compute_discrete", x)


class Forward(nn.Module):
    """Calls the function that it was given, with itself."""

    def __init__(self, function):
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.ones(4))
        self.count, self.kept = 0, None
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        return self.function(self, x)


def counts(self, x):
    self.count += 1
    return x * self.count


def remembers(self, x):
    self.kept = x.tanh() if self.kept is None else (self.kept + x).tanh()
    return self.kept


def counts_in_a_buffer(self, x):
    self.seen.add_(1.0)
    return x * self.seen


def branches_on_values(self, x):
    return x if x.sum() > 0 else -x


def mixes_rows(self, x):
    return x - x.mean(dim=0)


def uses_a_tensor_from_outside(self, x):
    return x + CONSTANT


def in_double(self, x):
    return x.double()


def changes_the_input(self, x):
    return x.add_(1.0)


def changes_what_has_a_view(self, x):
    y = x * 2
    view = y[:, 0]
    y.add_(1.0)
    return view


CONSTANT = torch.ones(4)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (counts, "from call to call"),
        (remembers, "from call to call"),
        (counts_in_a_buffer, "has not made itself"),
        (branches_on_values, "does not know"),
        (mixes_rows, "rows depend on each other"),
        (uses_a_tensor_from_outside, "neither input nor parameter"),
        (in_double, "does not know"),
        (changes_the_input, "has not made itself"),
        (changes_what_has_a_view, "seen elsewhere"),
        (lambda self, x: torch.rand_like(x), "does not know"),
        (lambda self, x: {"x": x, "n": 3}, "output that is int"),
        (lambda self, x: x.reshape(-1, 2)[: len(x) + 1], "rows"),
    ],
)
def test_forwards_that_are_no_function_of_input_and_weights(function, reason):
    run = assert_left_to_torch(Forward(function), reason)
    assert run._model.count == 0 and run._model.kept is None and float(run._model.seen) == 0


def test_a_forward_that_remembers_goes_on_in_torch():
    one, two = Forward(remembers), Forward(remembers)
    run = NumpyForward(one)
    for scale in (1.0, 2.0, -1.0):
        obs = np.float32(scale) * OBS
        assert_same(two(torch.from_numpy(obs)), run(obs))


def test_neither_torch_nor_numpy_draws_random_numbers_for_the_trace():
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    for model in (DQN(4, 2), Forward(lambda self, x: torch.rand_like(x))):
        torch.set_rng_state(torch_state)
        with contextlib.suppress(UnsupportedError):
            NumpyForward(model).in_numpy(OBS)
        assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)


def test_a_wrong_translation_is_noticed(monkeypatch, caplog):
    monkeypatch.setitem(OPERATIONS, torch.tanh, lambda g, x: g.ufunc("sin", x))
    model = nn.Sequential(nn.Linear(4, 2), nn.Tanh())
    run = assert_left_to_torch(model, "differs")
    assert "gives other numbers in NumPy" in caplog.text
    assert_same(model(torch.from_numpy(OBS)), run(OBS))


def test_weights_count_where_they_are_used(monkeypatch):
    monkeypatch.setattr(forward_module, "MAX_WEIGHTS", 100)
    model = QAC(4, 2, actor_head_hidden_size=4, critic_head_hidden_size=512)
    in_numpy(model, "compute_actor")
