import pytest
import torch

from ding.rl_utils import beta_function_map
from ding.rl_utils.beta_function import CVaR, Pow, cpw

X = torch.tensor([0.0, 0.25, 0.5, 1.0])


@pytest.mark.parametrize("name", ["uniform", "CPW", "Pow"])
def test_ends_stay(name):
    found = beta_function_map[name](X)
    assert found[0] == 0 and found[-1] == 1 and (found.diff() > 0).all()


def test_by_hand():
    assert beta_function_map["uniform"](0.3) == 0.3
    assert cpw(0.5, eta=0.5) == pytest.approx(0.5**0.5 / (2 * 0.5**0.5) ** 2)
    assert CVaR(X, eta=0.1).tolist() == pytest.approx([0.0, 0.025, 0.05, 0.1])
    assert Pow(0.25, eta=1.0) == 0.5
    assert Pow(0.75, eta=-1.0) == 0.5
    assert Pow(X, eta=0.0).tolist() == X.tolist()


def test_risk():
    # a risk-averse distortion looks at lower fractions
    assert Pow(0.5, eta=-2.0) < 0.5 < Pow(0.5, eta=2.0)
    with pytest.raises(ValueError, match=r"eta of CVaR must be in \(0, 1\], got 1.5"):
        CVaR(0.5, eta=1.5)
