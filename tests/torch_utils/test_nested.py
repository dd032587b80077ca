import pytest
import torch

from ding.torch_utils import (
    fold_batch,
    get_null_data,
    get_shape0,
    get_tensor_data,
    same_shape,
    squeeze,
    to_item,
    unfold_batch,
    unsqueeze,
    unsqueeze_repeat,
    zeros_like,
)

TREE = {"a": torch.ones(2, 3), "b": [torch.ones(2)]}


def test_shapes():
    assert same_shape([torch.ones(2, 3), torch.zeros(2, 3)])
    assert not same_shape([torch.ones(2), torch.ones(3)])
    assert get_shape0(TREE) == 2
    assert unsqueeze(TREE, 1)["b"][0].shape == (2, 1)
    assert squeeze(unsqueeze(TREE))["a"].shape == (2, 3)
    repeated = unsqueeze_repeat({"a": torch.tensor([1, 2])}, 3)["a"]
    assert repeated.tolist() == [[1, 2]] * 3
    assert zeros_like(TREE)["b"][0].tolist() == [0, 0]


def test_folding():
    x = torch.arange(24).reshape(2, 3, 4)
    folded, shape = fold_batch(x)
    assert folded.shape == (6, 4) and torch.equal(unfold_batch(folded, shape), x)
    single, shape = fold_batch(x[0, 0])
    assert single.shape == (1, 4) and torch.equal(unfold_batch(single, shape), x[0, 0])


def test_values():
    assert to_item({"a": torch.tensor([3]), "b": torch.ones(2), "c": "x"})["a"] == 3
    with pytest.raises(ValueError, match="not one number"):
        to_item(torch.ones(2), ignore_error=False)
    x = torch.ones(2, requires_grad=True)
    copy = get_tensor_data({"x": x})["x"]
    assert not copy.requires_grad and copy.data_ptr() != x.data_ptr()


def test_null_data_counts_for_nothing():
    row = {"obs": torch.ones(2), "reward": torch.ones(1), "done": False}
    first, second = get_null_data(row, 2)
    assert first["null"] and first["done"] and first["reward"].item() == 0
    assert first["obs"] is not second["obs"] and torch.equal(first["obs"], row["obs"])
