import pytest
import torch

from ding.torch_utils import hamming_distance, levenshtein_distance


@pytest.mark.parametrize(
    ("pred", "target", "expected"),
    [
        ([1, 2, 3], [1, 2, 3], 0),
        ([1, 2, 3], [], 3),
        ([], [4, 5], 2),
        ([1, 4, 6, 4, 1], [1, 6, 4, 4, 1], 2),
        ([1, 2], [2, 1, 3], 2),
    ],
)
def test_levenshtein(pred, target, expected):
    distance = levenshtein_distance(torch.LongTensor(pred), torch.LongTensor(target))
    assert distance.item() == expected


def test_levenshtein_with_a_cost_of_equal_entries():
    a, b = torch.LongTensor([1, 2]), torch.LongTensor([1, 2])
    extra = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 1.0])
    distance = levenshtein_distance(a, b, *extra, extra_fn=lambda p, t: (p - t).abs())
    assert distance.item() == 0.5
    with pytest.raises(ValueError, match="together or not at all"):
        levenshtein_distance(a, b, pred_extra=extra[0])


def test_hamming():
    pred, target = torch.tensor([[0, 1, 1], [1, 1, 1]]), torch.tensor([[1, 1, 0], [1, 1, 1]])
    assert hamming_distance(pred, target).tolist() == [2, 0]
    assert hamming_distance(pred, target, torch.tensor([0.5, 1, 3])).tolist() == [3.5, 0]
    with pytest.raises(ValueError, match="must agree"):
        hamming_distance(pred, target[:1])
