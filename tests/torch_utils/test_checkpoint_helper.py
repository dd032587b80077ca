import os
import signal

import pytest
import torch
from torch import nn

from ding.torch_utils import Adam, CountVar, auto_checkpoint, build_checkpoint_helper
from ding.utils.errors import CheckpointError


def test_round_trip():
    helper, model = build_checkpoint_helper({}), nn.Linear(2, 2)
    optimizer, count = Adam(model.parameters()), CountVar(3)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    count.add(4)
    helper.save("a.pth.tar", model, optimizer, last_iter=count)
    other = nn.Linear(2, 2)
    other_optimizer, other_count = Adam(other.parameters()), CountVar(0)
    helper.load("a.pth.tar", other, other_optimizer, last_iter=other_count)
    assert torch.equal(other.weight, model.weight) and other_count.val == 7
    assert other_optimizer.state_dict()["state"][0]["step"] == 1


def test_prefixes_and_masks():
    helper, model = build_checkpoint_helper(), nn.Linear(2, 2)
    helper.save("a.pth.tar", model, prefix_op="add", prefix="module.")
    other = nn.Linear(2, 2)
    kept = other.bias.detach().clone()
    options = dict(prefix_op="remove", prefix="module.")
    helper.load("a.pth.tar", other, state_dict_mask=["bias"], **options)
    assert torch.equal(other.weight, model.weight) and torch.equal(other.bias, kept)
    with pytest.raises(ValueError, match="'add' or 'remove'"):
        helper.load("a.pth.tar", other, prefix_op="drop", prefix="x")
    with pytest.raises(CheckpointError, match="holds no 'last_iter'"):
        helper.load("a.pth.tar", other, last_iter=CountVar(0), **options)


class Training:
    def __init__(self, end, save_error=None):
        self.end, self.save_error, self.saved = end, save_error, []

    def save_checkpoint(self, name):
        self.saved.append(name)
        if self.save_error is not None:
            raise self.save_error

    @auto_checkpoint
    def run(self, value=None):
        if self.end is not None:
            self.end()
        return value


def broken():
    raise KeyError("broken")


def test_saves_on_an_error_and_shows_that_error():
    training = Training(broken)
    with pytest.raises(KeyError, match="broken"):
        training.run()
    assert training.saved == ["ckpt_exception.pth.tar"]
    failing = Training(broken, save_error=OSError("disk full"))
    with pytest.raises(KeyError, match="broken"):
        failing.run()


def test_saves_when_told_to_end():
    before = signal.getsignal(signal.SIGTERM)
    training = Training(lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        training.run()
    assert training.saved and signal.getsignal(signal.SIGTERM) is before


def test_nothing_is_saved_when_all_goes_well():
    training = Training(None)
    assert training.run(value=3) == 3 and training.saved == []
