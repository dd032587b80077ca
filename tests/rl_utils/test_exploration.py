import math

import pytest
import torch

from ding.rl_utils import (
    GaussianNoise,
    OUNoise,
    create_noise_generator,
    epsilon_greedy,
    get_epsilon_greedy_fn,
)
from ding.utils.errors import ConfigError


def test_linear_epsilon():
    eps = get_epsilon_greedy_fn(1.0, 0.2, 100, "linear")
    assert [eps(0), eps(50), eps(100), eps(1000)] == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_exponential_epsilon():
    eps = epsilon_greedy(0.95, 0.1, 10000)
    assert eps(0) == pytest.approx(0.95)
    assert eps(10000) == pytest.approx(0.1 + 0.85 / math.e)
    assert eps(10**7) == pytest.approx(0.1)


def test_epsilon_settings_are_checked():
    with pytest.raises(ConfigError, match="did you mean 'linear'"):
        get_epsilon_greedy_fn(1, 0, 10, "liner")
    with pytest.raises(ConfigError, match="decay must be positive, got 0"):
        get_epsilon_greedy_fn(1, 0, 0)


def test_gaussian_noise():
    noise = create_noise_generator("gauss", {"mu": 1.0, "sigma": 0.5})
    assert isinstance(noise, GaussianNoise)
    drawn = noise((10000,))
    assert drawn.mean().item() == pytest.approx(1.0, abs=0.05)
    assert drawn.std().item() == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ValueError, match="must not be negative"):
        GaussianNoise(sigma=-1)


def test_ou_noise_drifts_to_its_mean_and_resets():
    noise = OUNoise(mu=1.0, sigma=0.0, theta=0.5, dt=1.0, x0=0.0)
    assert [noise((1,)).item() for _ in range(3)] == [0.5, 0.75, 0.875]
    noise.reset()
    assert noise((1,)).item() == 0.5
    assert noise((2,)).tolist() == [0.5, 0.5]


def test_ou_noise_is_correlated_in_time():
    torch.manual_seed(0)
    noise = create_noise_generator("ou", {"dt": 1.0, "theta": 0.1, "sigma": 1.0})
    path = torch.cat([noise((1,)) for _ in range(2000)])
    correlation = torch.corrcoef(torch.stack([path[1:], path[:-1]]))[0, 1]
    assert correlation > 0.8


def test_unknown_noise():
    with pytest.raises(KeyError, match="unknown noise type 'gaus'; did you mean 'gauss'"):
        create_noise_generator("gaus", {})


def test_ou_noise_with_another_mean_or_start():
    noise = OUNoise(mu=1.0, sigma=0.0, theta=0.5, dt=1.0)
    assert noise((1,), mu=4.0).item() == 2.0
    noise.x0 = 3.0
    assert noise.x0 == 3.0 and noise((1,)).item() == 2.0
