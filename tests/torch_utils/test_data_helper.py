from __future__ import annotations

import numpy as np
import torch

from ding.torch_utils import to_device, to_dtype, to_list, to_ndarray, to_tensor
from torch_utils.regression import net


def test_moving_data() -> None:
    tree = {"a": [np.zeros(2), 1.5], "b": (np.float64(2), None, "text"), "n": 3}
    tensors = to_tensor(tree)
    assert tensors["a"][0].dtype == torch.float32
    assert tensors["b"][1:] == (None, "text")
    assert tensors["n"].dtype == torch.int64
    assert to_tensor({"a": 1, "b": 2}, ignore_keys=("b",))["b"] == 2
    assert to_tensor([1, 2], dtype=torch.float32)[0].dtype == torch.float32
    back = to_ndarray(tensors)
    assert back["a"][0].tolist() == [0, 0]
    assert to_ndarray(tensors["n"], dtype=np.int8).dtype == np.int8
    assert to_list({"x": torch.arange(2), "s": "a"}) == {"x": [0, 1], "s": "a"}
    assert to_dtype([torch.zeros(1), "a"], torch.float64)[0].dtype == torch.float64
    moved = to_device(
        {"x": torch.zeros(1), "skip": "y", "net": net()}, "cpu", ignore_keys=("skip",)
    )
    assert moved["skip"] == "y"
    assert to_device([torch.zeros(1)], "cpu")[0].device.type == "cpu"
