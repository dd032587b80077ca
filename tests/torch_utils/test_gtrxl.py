import pytest
import torch

from ding.torch_utils import GRUGatingUnit, GTrXL
from ding.torch_utils.gtrxl import _shifted

T, B, C, E, M = 6, 2, 3, 8, 5


def net(**kwargs):
    options = dict(head_dim=4, embedding_dim=E, layer_num=2, memory_len=M)
    return GTrXL(C, **{**options, **kwargs})


@pytest.mark.parametrize("gru_gating", [True, False])
def test_shapes_and_gradients(gru_gating):
    model = net(gru_gating=gru_gating)
    output = model(torch.randn(T, B, C))
    assert output["logit"].shape == (T, B, E)
    assert output["memory"].shape == (3, M, B, E)
    assert not output["memory"].requires_grad
    output["logit"].square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    model.reset_memory()
    assert model(torch.randn(B, T, C), batch_first=True, return_mem=False).keys() == {"logit"}


def test_the_future_is_not_seen():
    model, x = net(), torch.randn(T, B, C)
    other = x.clone()
    other[4:] += 1.0
    whole = model(x)["logit"]
    model.reset_memory()
    changed = model(other)["logit"]
    assert torch.allclose(whole[:4], changed[:4], atol=1e-6)
    assert not torch.allclose(whole[4:], changed[4:], atol=1e-3)


def test_memory_reaches_the_next_segment_and_can_be_put_back():
    model, x = net(), torch.randn(T, B, C)
    fresh = model(x)["logit"]
    memory = model.get_memory()
    remembering = model(x)["logit"]
    assert not torch.allclose(fresh, remembering, atol=1e-3)
    model.reset_memory(state=memory)
    assert torch.allclose(model(x)["logit"], remembering, atol=1e-6)
    forgotten = memory.clone()
    forgotten[:, :, 0] = 0
    model.reset_memory(state=forgotten)
    half = model(x)["logit"]
    assert torch.allclose(half[:, 0], fresh[:, 0], atol=1e-6)
    assert torch.allclose(half[:, 1], remembering[:, 1], atol=1e-6)


def test_memory_holds_the_latest_inputs_of_each_layer():
    model, x = net(), torch.randn(T, B, C)
    memory = model(x[:2])["memory"]
    embedded = model.embedding(x[:2])
    assert torch.equal(memory[0, -2:], embedded) and memory[:, :-2].abs().sum() == 0
    later = model(x[2:3])["memory"]
    assert torch.equal(later[:, :-1], memory[:, 1:])


def test_one_step_at_a_time_equals_one_segment_where_both_see_the_same():
    # One layer, and both look at the M latest steps: the memory alone makes up the context.
    model, x = net(layer_num=1, memory_len=M), torch.randn(M + 1, B, C)
    model(x[:M])
    together = model(x[M:])["logit"]
    model.reset_memory()
    for step in x[:M]:
        model(step.unsqueeze(0))
    assert torch.allclose(model(x[M:])["logit"], together, atol=1e-6)


def test_relative_shift_by_hand():
    # Columns are distances 2, 1, 0; key j of query t is at distance (S - T) + t - j.
    score = torch.tensor([[[[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]]]])
    shifted = _shifted(score)[0, 0]
    assert shifted[0, :2].tolist() == [1.0, 0.0]
    assert shifted[1].tolist() == [2.0, 1.0, 0.0]


def test_gate_lets_its_first_input_pass_at_first():
    gate, x, y = GRUGatingUnit(4, bg=20.0), torch.randn(3, 4), torch.randn(3, 4)
    assert torch.allclose(gate(x, y), x, atol=1e-4)


def test_wrong_batch_is_explained():
    model = net()
    model(torch.randn(T, B, C))
    with pytest.raises(ValueError, match=r"does not fit a batch of 3.*reset_memory"):
        model(torch.randn(T, 3, C))
