"""Targets of C51 by hand; `established` has the references of all losses."""

import pytest
import torch

from ding.rl_utils.td_dist import categorical_target, cross_entropy


def test_atoms_move_by_reward_and_discount():
    next_p = torch.tensor([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    reward, discount = torch.tensor([0.25, 1.0, 5.0]), torch.tensor([0.5, 0.0, 0.9])
    m = categorical_target(reward, discount, next_p, -1.0, 1.0)
    # 0.25 + 0.5 * 1 = 0.75; terminated: all at the reward; beyond the last atom: all there
    wanted = [[0.0, 0.25, 0.75], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    assert torch.allclose(m, torch.tensor(wanted))


def test_cross_entropy_by_hand():
    p, m = torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([[0.0, 1.0, 0.0]])
    assert cross_entropy(p.log(), m).item() == pytest.approx(1.3862944)
