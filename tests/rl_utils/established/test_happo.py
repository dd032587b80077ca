import math

import pytest
import torch

from ding.rl_utils import (
    happo_data,
    happo_error,
    happo_error_continuous,
    happo_policy_data,
    happo_policy_error,
    ppo_data,
    ppo_data_continuous,
    ppo_error,
    ppo_error_continuous,
)


def logits(*probs):
    return torch.tensor([[p, 1 - p] for p in probs]).log()


ACTION = torch.tensor([0, 0])
VALUES = [torch.tensor([1.0, 0.1]), torch.zeros(2)]


def test_factor_of_the_agents_before():
    # ratio 2 clipped to 1.2, times 3; ratio 1 with a negative advantage, times 0.5
    factor = torch.tensor([[3.0], [0.5]])
    data = happo_policy_data(
        logits(0.8, 0.5), logits(0.4, 0.5), ACTION, torch.tensor([1.0, -2.0]), None, factor
    )
    loss, info = happo_policy_error(data)
    assert loss.policy_loss.item() == pytest.approx(-(3.6 - 1.0) / 2)
    assert info.clipfrac.item() == 0.5 and info.approx_kl.item() == pytest.approx(-math.log(2) / 2)
    # 100 times the second objective is bounded by 3 times the advantage
    far = data._replace(factor=torch.tensor([[3.0], [100.0]]))
    assert happo_policy_error(far, dual_clip=3.0)[0][0].item() == pytest.approx(-(3.6 - 6.0) / 2)
    with pytest.raises(ValueError, match="dual_clip must be greater than 1"):
        happo_policy_error(data, dual_clip=0.5)


@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_first_agent_is_plain_ppo(dual_clip):
    adv, return_ = torch.tensor([1.0, -3.0]), torch.ones(2)
    columns = (logits(0.8, 0.5), logits(0.4, 0.5), ACTION, *VALUES, adv, return_, None)
    plain = ppo_error(ppo_data(*columns), dual_clip=dual_clip)
    first = happo_error(happo_data(*columns, torch.ones(2, 1)), dual_clip=dual_clip)
    assert first == plain
    gauss = [{"mu": torch.randn(2, 3), "sigma": torch.rand(2, 3) + 0.5} for _ in range(2)]
    columns = (*gauss, torch.randn(2, 3), *VALUES, adv, return_, torch.rand(2))
    plain = ppo_error_continuous(ppo_data_continuous(*columns), dual_clip=dual_clip)
    first = happo_error_continuous(happo_data(*columns, torch.ones(2, 1)), dual_clip=dual_clip)
    assert first == plain


def test_gradients():
    torch.manual_seed(0)
    old, adv, factor = (
        torch.randn(3, 2).double(),
        torch.randn(3).double(),
        torch.rand(3, 1).double(),
    )

    def loss(new):
        data = happo_policy_data(new, old, torch.tensor([0, 1, 1]), adv, None, factor)
        return tuple(happo_policy_error(data, clip_ratio=10.0)[0])

    assert torch.autograd.gradcheck(
        loss, torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    )
