import copy
import pickle

import pytest
import torch
from torch import nn

from ding.model import DQN, IModelWrapper, model_wrap, register_wrapper
from ding.model.wrapper import WRAPPERS


class Says(nn.Module):
    """Answers every call with the same output."""

    def __init__(self, **output):
        super().__init__()
        self.output = output
        self.weight = nn.Parameter(torch.zeros(2))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x=None, **kwargs):
        return self.output


LOGIT = torch.tensor([[0.0, 1.0, 2.0], [5.0, 1.0, 0.0]])
MASK = torch.tensor([[1, 1, 0], [0, 1, 1]])
MANY = LOGIT.repeat(2000, 1)
MANY_MASK = MASK.repeat(2000, 1)


def actions(name, *args, **kwargs):
    output = kwargs.pop("output")
    return model_wrap(Says(**output), name).forward(*args, **kwargs)["action"]


def test_wrapping_shares_the_model():
    model = DQN(4, 2)
    wrapped = model_wrap(model_wrap(model, "base"), wrapper_name="argmax_sample")
    assert wrapped.encoder is model.encoder
    assert next(wrapped.parameters()) is next(model.parameters())
    obs = torch.randn(3, 4)
    assert torch.equal(wrapped(obs)["action"], model(obs)["logit"].argmax(1))
    with pytest.raises(AttributeError):
        _ = wrapped.nothing_of_this_name


def test_base_wraps_anything():
    assert model_wrap(model_wrap, wrapper_name="base").info() == "BaseModelWrapper -> model_wrap"


def test_info_shows_the_nesting():
    wrapped = model_wrap(model_wrap(DQN(4, 2), "argmax_sample"), "teacher")
    assert wrapped.info() == (
        "TeacherNetworkWrapper -> ArgmaxSampleWrapper -> BaseModelWrapper -> DQN"
    )
    assert wrapped.info("_action") == "TeacherNetworkWrapper -> ArgmaxSampleWrapper._action"
    assert wrapped.info("encoder").endswith("DQN.encoder")


def test_wrappers_can_be_copied_and_pickled():
    wrapped = model_wrap(DQN(4, 2), "argmax_sample")
    obs = torch.randn(3, 4)
    for twin in (copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
        assert twin._model._model is not wrapped._model._model
        assert torch.equal(twin(obs)["logit"], wrapped(obs)["logit"])


def test_unknown_and_own_wrappers():
    with pytest.raises(TypeError, match="did you mean 'argmax_sample'"):
        model_wrap(DQN(4, 2), "argmax_sampel")
    with pytest.raises(TypeError, match="subclass of IModelWrapper"):
        register_wrapper("dictionary", dict)

    class Negated(IModelWrapper):
        def forward(self, *args, **kwargs):
            return {"logit": -self._model.forward(*args, **kwargs)["logit"]}

    register_wrapper("negated_for_test", Negated)
    both = model_wrap(model_wrap(Says(logit=LOGIT), "negated_for_test"), "argmax_sample")
    assert both.forward(None)["action"].tolist() == [0, 2]


def test_every_established_name_can_be_imported():
    assert len(WRAPPERS.query()) >= 21
    assert all(issubclass(WRAPPERS.get(name), IModelWrapper) for name in WRAPPERS.query())


def test_argmax_respects_the_mask_and_leaves_logits_alone():
    model = Says(logit=LOGIT.clone(), action_mask=MASK)
    output = model_wrap(model, "argmax_sample").forward(None)
    assert output["action"].tolist() == [1, 1]
    assert torch.equal(output["logit"], LOGIT)
    assert "action" not in model.output


def test_argmax_of_several_heads():
    output = {"logit": [LOGIT, -LOGIT], "action_mask": [MASK, torch.ones(2, 3)]}
    picked = actions("argmax_sample", output=output)
    assert [a.tolist() for a in picked] == [[1, 1], [0, 2]]


def test_multinomial_follows_the_softmax():
    prob = torch.tensor([[0.1, 0.3, 0.6]]).repeat(20000, 1)
    drawn = actions("multinomial_sample", output={"logit": prob.log()})
    share = torch.bincount(drawn, minlength=3) / 20000
    torch.testing.assert_close(share, prob[0], atol=0.02, rtol=0)
    cold = actions("multinomial_sample", alpha=0.01, output={"logit": prob.log()})
    assert cold.eq(2).float().mean() > 0.999


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("multinomial_sample", {}),
        ("eps_greedy_sample", {"eps": 0.7}),
        ("eps_greedy_multinomial_sample", {"eps": 0.5, "alpha": 2.0}),
    ],
)
def test_masked_actions_are_never_chosen(name, kwargs):
    picked = actions(name, output={"logit": MANY, "action_mask": MANY_MASK}, **kwargs)
    assert MANY_MASK.gather(1, picked.unsqueeze(1)).all()
    assert len(picked[::2].unique()) == len(picked[1::2].unique()) == 2


def test_eps_greedy_draws_per_row():
    logit = torch.tensor([[0.0, 0.0, 0.0, 9.0]]).repeat(20000, 1)
    picked = actions("eps_greedy_sample", eps=0.4, output={"logit": logit})
    share = torch.bincount(picked, minlength=4) / 20000
    torch.testing.assert_close(share, torch.tensor([0.1, 0.1, 0.1, 0.7]), atol=0.02, rtol=0)


@pytest.mark.parametrize("eps", [[0.0, 1.0], {0: 0.0, 7: 1.0}, torch.tensor([0.0, 1.0])])
def test_eps_may_differ_by_row(eps):
    logit = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    drawn = [actions("eps_greedy_sample", eps=eps, output={"logit": logit}) for _ in range(60)]
    assert {a[0].item() for a in drawn} == {1}
    assert {a[1].item() for a in drawn} == {0, 1}


def test_eps_greedy_multinomial_samples_when_it_does_not_explore():
    logit = torch.tensor([[0.5, 0.5, 0.0]]).log().repeat(4000, 1)
    picked = actions("eps_greedy_multinomial_sample", eps=0.0, output={"logit": logit})
    assert set(picked.tolist()) == {0, 1}


GAUSS = {"mu": torch.ones(5000, 1), "sigma": torch.full((5000, 1), 0.5)}


def test_gaussian_samples():
    assert torch.equal(actions("deterministic_sample", output={"logit": GAUSS}), GAUSS["mu"])
    drawn = actions("reparam_sample", output={"logit": GAUSS})
    assert drawn.mean().item() == pytest.approx(1, abs=0.05)
    assert drawn.std().item() == pytest.approx(0.5, abs=0.05)
    pair = actions("deterministic_sample", output={"logit": [GAUSS["mu"], GAUSS["sigma"]]})
    assert torch.equal(pair, GAUSS["mu"])


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("hybrid_argmax_sample", {}),
        ("hybrid_eps_greedy_sample", {"eps": 0.0}),
        ("hybrid_eps_greedy_multinomial_sample", {"eps": 0.0, "alpha": 0.01}),
    ],
)
def test_hybrid_actions_keep_the_models_arguments(name, kwargs):
    args = torch.randn(2, 2)
    picked = actions(name, output={"logit": LOGIT, "action_args": args}, **kwargs)
    assert picked["action_type"].tolist() == [2, 0]
    assert picked["action_args"] is args


def test_hybrid_actions_with_gaussian_arguments():
    logit = {"action_type": 1000 * LOGIT, "action_args": {"mu": LOGIT, "sigma": 0.1 + 0 * LOGIT}}
    greedy = actions("hybrid_deterministic_argmax_sample", output={"logit": logit})
    assert greedy["action_type"].tolist() == [2, 0]
    assert torch.equal(greedy["action_args"], LOGIT)
    drawn = actions("hybrid_reparam_multinomial_sample", output={"logit": logit})
    assert drawn["action_type"].tolist() == [2, 0]
    assert 0 < (drawn["action_args"] - LOGIT).abs().max() < 1


def test_combinations_have_no_repetition():
    best = actions("combination_argmax_sample", 2, output={"logit": LOGIT})
    assert best.tolist() == [[2, 1], [0, 1]]
    drawn = actions(
        "combination_multinomial_sample", 2, output={"logit": MANY, "action_mask": MANY_MASK}
    )
    assert drawn.sort(1).values.unique(dim=0).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("name", "arguments", "kwargs"),
    [
        ("argmax_sample", (), {}),
        ("multinomial_sample", (), {}),
        ("eps_greedy_sample", (), {"eps": 0.5}),
        ("eps_greedy_sample", (), {"eps": [0.0, 0.5, 1.0]}),
        ("eps_greedy_multinomial_sample", (), {"eps": 0.5, "alpha": 2.0}),
        ("combination_argmax_sample", (1,), {}),
        ("combination_multinomial_sample", (1,), {}),
    ],
)
def test_agents_choose_each_by_its_own_logits_and_mask(name, arguments, kwargs):
    mask = torch.tensor([[[0, 1, 0, 1], [1, 0, 1, 0]]]).expand(3, 2, 4)
    logit = torch.arange(24.0).reshape(3, 2, 4)
    for _ in range(20):
        drawn = actions(name, *arguments, **kwargs, output={"logit": logit, "action_mask": mask})
        drawn = drawn.squeeze(-1) if arguments else drawn
        assert drawn.shape == (3, 2)
        assert mask.gather(-1, drawn.unsqueeze(-1)).all()


def test_action_noise_stays_in_range():
    action = torch.full((500, 1), 0.9)
    noisy = model_wrap(
        Says(action=action),
        "action_noise",
        noise_kwargs={"sigma": 1.0},
        noise_range={"min": -0.5, "max": 0.5},
    ).forward(None)["action"]
    assert noisy.min().item() == pytest.approx(0.4) and noisy.max() == 1.0
    assert torch.equal(action, torch.full((500, 1), 0.9))


def test_action_noise_of_hybrid_actions_touches_only_arguments():
    kinds = torch.tensor([1, 2])
    says = Says(action={"action_type": kinds, "action_args": torch.zeros(2, 1)})
    noisy = model_wrap(says, "action_noise", noise_type="ou").forward(None)["action"]
    assert noisy["action_type"] is kinds and noisy["action_args"].abs().sum() > 0


class Counts(nn.Module):
    """Recurrent in the simplest way: the state is the number of calls."""

    def forward(self, data):
        previous = [0 if s is None else s for s in data["prev_state"]]
        return {"logit": data["obs"], "next_state": [s + 1 for s in previous]}


def test_hidden_state_keeps_one_state_per_env():
    wrapped = model_wrap(Counts(), "hidden_state", state_num=3, save_prev_state=True)
    data = {"obs": torch.zeros(3)}
    assert wrapped.forward(data)["prev_state"] == [None, None, None]
    assert wrapped.forward({"obs": torch.zeros(1)}, data_id=[1])["prev_state"] == [1]
    wrapped.reset(data_id=[0])
    output = wrapped.forward(data, data_id=[0, 1, 2])
    assert output["prev_state"] == [None, 2, 1]
    assert "next_state" not in output and "prev_state" not in data
    wrapped.reset(state=[5, 6, 7])
    assert wrapped.forward(data)["prev_state"] == [5, 6, 7]


def test_reset_reaches_the_inner_wrappers():
    inner = model_wrap(Counts(), "hidden_state", state_num=1, save_prev_state=True)
    outer = model_wrap(inner, "argmax_sample")
    data = {"obs": torch.zeros(1, 2)}
    outer.forward(data)
    outer.reset()
    assert outer.forward(data)["prev_state"] == [None]


def test_target_assigns_every_freq_updates():
    model = Says()
    target = model_wrap(model, "target", update_type="assign", update_kwargs={"freq": 3})
    with torch.no_grad():
        model.weight.fill_(1.0)
    seen = []
    for _ in range(3):
        seen.append(target.weight[0].item())
        target.update(model.state_dict())
    assert seen == [0.0, 0.0, 0.0] and target.weight[0] == 1.0
    with torch.no_grad():
        model.weight.fill_(2.0)
    target.update(model.state_dict(), direct=True)
    assert target.weight[0] == 2.0


def test_target_moves_parameters_by_theta():
    model = Says()
    target = model_wrap(model, "target", update_type="momentum", update_kwargs={"theta": 0.25})
    with torch.no_grad():
        model.weight.fill_(1.0)
        model.count.fill_(1.0)
    target.update(model.state_dict())
    target.update(model.state_dict())
    assert target.weight.tolist() == [0.4375, 0.4375]
    assert target.count.item() == 0.0
    assert not target.weight.requires_grad and model.weight.requires_grad


@pytest.mark.parametrize(
    ("update_type", "update_kwargs", "message"),
    [
        ("asign", {"freq": 1}, "did you mean 'assign'"),
        ("assign", {"theta": 0.1}, "needs update_kwargs {'freq'"),
        ("momentum", None, "needs update_kwargs {'theta'"),
    ],
)
def test_target_settings_are_checked(update_type, update_kwargs, message):
    with pytest.raises(ValueError, match=message):
        model_wrap(Says(), "target", update_type=update_type, update_kwargs=update_kwargs)


def test_teacher_gives_no_gradient():
    output = model_wrap(DQN(4, 2), "teacher").forward(torch.randn(1, 4))
    assert not output["logit"].requires_grad


class Echo(nn.Module):
    """Logits are the observations (T, B, ...) themselves."""

    def forward(self, obs):
        return {"logit": obs, "length": len(obs)}


def test_transformer_input_remembers_by_env():
    wrapped = model_wrap(Echo(), "transformer_input", seq_len=2)

    def step(*values, data_id=None):
        obs = torch.tensor(values).reshape(-1, 1)
        return wrapped.forward(obs, data_id=data_id)

    first = step(1.0, 10.0)
    assert first["input_seq"][:, :, 0].tolist() == [[1.0, 10.0], [0.0, 0.0]]
    assert first["logit"].flatten().tolist() == [1.0, 10.0]
    step(2.0, data_id=[0])
    third = step(3.0, 11.0)
    assert third["input_seq"][:, :, 0].tolist() == [[2.0, 10.0], [3.0, 11.0]]
    assert third["logit"].flatten().tolist() == [3.0, 11.0]
    wrapped.reset(data_id=[0])
    assert step(4.0, 12.0)["input_seq"][:, :, 0].tolist() == [[4.0, 11.0], [0.0, 12.0]]


def test_transformer_segment_joins_the_parts():
    obs = torch.randn(5, 2, 3)
    output = model_wrap(Echo(), "transformer_segment", seq_len=2).forward(obs)
    assert torch.equal(output["logit"], obs) and output["length"] == 1


class Remembers(nn.Module):
    def reset_memory(self, batch_size, state=None):
        self.memory = torch.zeros(1, 1, batch_size, 1) if state is None else state

    def forward(self, x):
        return {"logit": self.memory.flatten(), "memory": self.memory + x}


def test_transformer_memory_is_the_wrappers_own():
    model = Remembers()
    one, other = (model_wrap(model, "transformer_memory", batch_size=2) for _ in range(2))
    one.forward(1.0)
    other.forward(5.0)
    assert one.forward(1.0)["logit"].tolist() == [1.0, 1.0]
    one.reset(data_id=[0])
    assert one.forward(0.0)["logit"].tolist() == [0.0, 2.0]
    one.reset()
    assert one.forward(0.0)["logit"].tolist() == [0.0, 0.0]
