"""Mixers: the sum, and the monotonic mixture against its formula."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from ding.model import DuplexMixer, Mixer, MonotonicMixer, QMix, SumMixer, create_model
from ding.utils.errors import ConfigError, DingError


def test_a_sum_needs_no_state() -> None:
    assert SumMixer(2)(torch.tensor([[1.0, 2.0], [3.0, -5.0]]), None).tolist() == [3, -2]


@pytest.mark.parametrize("hypernet_embed", [0, 8])
def test_the_monotonic_mixture_is_that_of_the_paper(hypernet_embed: int) -> None:
    mixer = MonotonicMixer(3, 5, mixing_embed_dim=4, hypernet_embed=hypernet_embed)
    q, state = torch.randn(2, 7, 3), torch.randn(2, 7, 5)
    mixed = mixer(q, state)
    assert mixed.shape == (2, 7)
    s = state[1, 4]
    w1, w2 = mixer.hyper_w1(s).abs().view(3, 4), mixer.hyper_w2(s).abs()
    expected = F.elu(q[1, 4] @ w1 + mixer.hyper_b1(s)) @ w2 + mixer.value(s)[0]
    torch.testing.assert_close(mixed[1, 4], expected)


def test_more_of_any_agents_value_is_never_less_for_the_team() -> None:
    mixer = MonotonicMixer(3, 5)
    q = torch.randn(500, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(mixer(q, 3 * torch.randn(500, 5)).sum(), q)
    assert (gradient >= 0).all() and (gradient > 0).any()


def test_the_duplex_mixture_by_hand() -> None:
    """Both scales 2 and offsets 1; lambda is 0.5 * 0.5 * 4 = 1 for a key of 4, of one head."""
    mixer = DuplexMixer(2, 1, 4, n_action=3, n_head=1)
    for part, bias in (
        *((mixer.scale, -3.0), (mixer.offset, 1.0), (mixer.keys, -4.0)),
        *((mixer.of_agents, 0.0), (mixer.of_actions, 0.0)),
    ):
        part[-1].weight.data.zero_()
        part[-1].bias.data.fill_(bias)
    mixer.of_actions[-1].bias.data[1] = 100.0  # the second agent's weight is 2
    q = torch.tensor([[1.0, -3.0]], requires_grad=True)
    best, action = torch.tensor([[2.0, 5.0]]), torch.tensor([[0, 2]])
    total = mixer(q, torch.ones(1, 1), best=best, action=action)
    # V = 2 * 2 + 1 + 2 * 5 + 1 = 16; A = -2 and -16
    assert total.tolist() == pytest.approx([16 - 2 - 2 * 16])
    total.sum().backward()
    assert q.grad.tolist() == [[2, 2]], "advantages have no gradient of their own"


def test_the_duplex_mixture_is_best_where_all_agents_are() -> None:
    net, obs = model(mixer="qplex"), obs_of()
    q = torch.randn(5, 2, 3)
    joint = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    total = torch.stack([net.team(q, action.expand(5, 2), obs) for action in joint])
    allowed = joint[:, 0] != 0  # as the mask has it
    best = joint[allowed][total[allowed].argmax(dim=0)]
    q[:, 0, 0] = -1e9
    assert best.tolist() == q.argmax(dim=-1).tolist()
    weights = net.mixer.weights(obs["global_state"], best)
    assert (weights > 0).all() and weights.shape == (5, 2)


def test_the_dead_do_not_weigh_on_the_duplex_mixture() -> None:
    net, obs = model(mixer="qplex"), {**obs_of(), "alive": torch.tensor([[1.0, 0.0]] * 5)}
    q, action = torch.randn(5, 2, 3), torch.ones(5, 2, dtype=torch.long)
    other, moved = q.clone(), action.clone()
    other[:, 1] += 7
    moved[:, 1] = 2
    torch.testing.assert_close(net.team(q, action, obs), net.team(other, moved, obs))


def model(**settings: object) -> QMix:
    sizes = dict(agent_num=2, obs_shape=3, global_obs_shape=4, action_shape=3, hidden_size_list=[8])
    return create_model({"type": "qmix", **sizes, **settings})  # type: ignore[return-value]


def obs_of(batch: int = 5) -> dict[str, torch.Tensor]:
    mask = torch.ones(batch, 2, 3)
    mask[:, 0, 0] = 0
    return {
        "agent_state": torch.randn(batch, 2, 3),
        "global_state": torch.randn(batch, 4),
        "action_mask": mask,
    }


@pytest.mark.parametrize(
    ("lstm_type", "shared"),
    [("gru", True), ("normal", True), (None, True), ("gru", False), (None, False)],
)
def test_established_forward(lstm_type: str | None, shared: bool) -> None:
    net, obs = model(lstm_type=lstm_type, share_weights=shared), obs_of()
    first = net({"obs": obs, "prev_state": [[None, None]] * 5})
    assert first["logit"].shape == (5, 2, 3) and first["total_q"].shape == (5,)
    assert (first["logit"][:, 0, 0] < -1e6).all()
    greedy = first["logit"].argmax(-1)
    assert (greedy[:, 0] != 0).all()
    same = net({"obs": obs, "action": greedy})
    torch.testing.assert_close(same["total_q"], first["total_q"])
    if lstm_type is None:
        assert first["next_state"] is None
        return
    again = net({"obs": obs, "prev_state": first["next_state"]})
    unrolled = {key: torch.stack([value] * 2) for key, value in obs.items()}
    both = net({"obs": unrolled}, single_step=False)
    torch.testing.assert_close(both["logit"], torch.stack([first["logit"], again["logit"]]))
    torch.testing.assert_close(both["next_state"][3][1], again["next_state"][3][1])


def test_agents_that_are_dead_add_nothing() -> None:
    obs = {"alive": torch.tensor([[1.0, 0.0]])}
    q, action = torch.tensor([[[0.0, 2.0], [30.0, 0.0]]]), torch.tensor([[1, 0]])
    assert model(mixer=False).team(q, action, obs).tolist() == [2]
    assert model(mixer=None).team(q, action, obs).tolist() == [[2, 0]]


def test_a_mixer_says_what_it_lacks() -> None:
    with pytest.raises(ConfigError, match=r"MonotonicMixer needs a global state: .* policy 'vdn'"):
        model(global_obs_shape=None)
    with pytest.raises(DingError, match=r"the observation lacks 'global_state', which the value"):
        model().team(torch.ones(1, 2, 3), torch.zeros(1, 2).long(), {})
    with pytest.raises(ConfigError, match=r"global_obs_shape = \[2, 7\]: a mixer takes one"):
        model(global_obs_shape=[2, 7])
    with pytest.raises(DingError, match=r"unknown mixer 'qmixx'; did you mean 'qmix'"):
        model(mixer="qmixx")
    assert issubclass(SumMixer, Mixer)


def test_agents_with_weights_of_their_own() -> None:
    net, state = model(share_weights=False, mixer=None), torch.randn(4, 5, 2, 3)
    memory = torch.randn(5, 2, 8)
    q, after = net.values({"agent_state": state}, memory)
    assert q.shape == (4, 5, 2, 3)
    agents = net.agents
    gru = torch.nn.GRU(8, 8)
    for name, part in (("ih", agents.gates_of_input), ("hh", agents.gates_of_memory)):
        getattr(gru, f"weight_{name}_l0").data = part.weights[0][1].T.contiguous()
        getattr(gru, f"bias_{name}_l0").data = part.biases[0][1, 0]
    x = F.relu(state[:, :, 1] @ agents.encoder.weights[0][1] + agents.encoder.biases[0][1, 0])
    x, h = gru(x, memory[:, 1].unsqueeze(0).contiguous())
    expected = x @ agents.head.weights[0][1] + agents.head.biases[0][1, 0]
    torch.testing.assert_close(q[:, :, 1], expected)
    torch.testing.assert_close(after[:, 1], h[0])
    for settings in (dict(lstm_type="normal"), dict(dueling=True)):
        with pytest.raises(
            ConfigError, match=r"weights of their own \(share_weights = False\) have"
        ):
            model(share_weights=False, **settings)
