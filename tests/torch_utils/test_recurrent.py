import pytest
import torch

from ding.torch_utils import get_lstm, sequence_mask
from ding.torch_utils.recurrent import split_state
from ding.utils.errors import ConfigError

T, B, N, H = 5, 3, 4, 6
TYPES = ["normal", "pytorch", "gru"]


@pytest.fixture
def x():
    return torch.randn(T, B, N)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("n_layer", [1, 2])
def test_shapes_and_gradients(kind, n_layer, x):
    rnn = get_lstm(kind, N, H, n_layer)
    output, state = rnn(x)
    assert output.shape == (T, B, H) and len(state) == B
    assert all(value.shape == (n_layer, 1, H) for value in state[0].values())
    output.square().sum().backward()
    assert all(p.grad is not None for p in rnn.parameters())


@pytest.mark.parametrize("kind", TYPES)
def test_states_in_any_form_continue_the_sequence(kind, x):
    rnn = get_lstm(kind, N, H, 2)
    whole, last = rnn(x, list_next_state=False)
    first, listed = rnn(x[:2])
    second, after = rnn(x[2:], listed)
    assert torch.allclose(torch.cat([first, second]), whole, atol=1e-6)
    stacked = {key: torch.cat([one[key] for one in listed], dim=1) for key in listed[0]}
    again, _ = rnn(x[2:], stacked)
    assert torch.equal(again, second)
    for one, other in zip(after, split_state(last), strict=True):
        assert all(torch.allclose(one[key], other[key], atol=1e-6) for key in one)


@pytest.mark.parametrize("kind", TYPES)
def test_one_env_can_begin_anew(kind, x):
    rnn = get_lstm(kind, N, H)
    _, state = rnn(x)
    fresh, _ = rnn(x)
    mixed, _ = rnn(x, [state[0], None, state[2]])
    assert torch.allclose(mixed[:, 1], fresh[:, 1], atol=1e-6)
    assert not torch.allclose(mixed[:, 0], fresh[:, 0], atol=1e-3)


@pytest.mark.parametrize("kind", TYPES)
def test_an_episode_may_begin_inside_the_sequence(kind, x):
    rnn = get_lstm(kind, N, H)
    reset = torch.zeros(T, B)
    reset[2, 1] = reset[4, 0] = 1
    output, _ = rnn(x, reset=reset)
    whole, tail = rnn(x)[0], rnn(x[2:])[0]
    assert torch.allclose(output[2:, 1], tail[:, 1], atol=1e-6)
    assert torch.allclose(output[:, 2], whole[:, 2], atol=1e-6)
    assert torch.allclose(output[4, 0], rnn(x[4:])[0][0, 0], atol=1e-6)


def test_without_norm_it_is_the_textbook_lstm(x):
    own, theirs = get_lstm("normal", N, H, norm_type=None), get_lstm("pytorch", N, H)
    with torch.no_grad():
        # The gates of nn.LSTM come in the order in, forget, new, out.
        order = torch.cat([torch.arange(k * H, (k + 1) * H) for k in (0, 1, 3, 2)])
        theirs.main.weight_ih_l0[order] = own.wx[0].weight
        theirs.main.weight_hh_l0[order] = own.wh[0].weight
        theirs.main.bias_ih_l0.zero_()
        theirs.main.bias_hh_l0.zero_()
    assert torch.allclose(own(x)[0], theirs(x)[0], atol=1e-5)


def test_mistakes(x):
    with pytest.raises(ConfigError, match="did you mean 'normal'"):
        get_lstm("norml", N, H)
    rnn = get_lstm("gru", N, H)
    with pytest.raises(ValueError, match="2 states for a batch of 3"):
        rnn(x, [None, rnn(x)[1][0]])


def test_sequence_mask():
    assert sequence_mask(torch.tensor([1, 3])).tolist() == [[True, False, False], [True] * 3]
    assert sequence_mask(torch.tensor([[1]]), max_len=2).tolist() == [[True, False]]
