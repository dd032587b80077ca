"""Kernels: the same numbers as plain torch, and only where they pay."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import ding
from ding.rl_utils import (
    adder,
    compute_q_retraces,
    gae,
    gae_data,
    generalized_lambda_returns,
    nstep_transitions,
    quantile_huber,
    scan,
    td_dist,
    upgo_returns,
    vtrace_nstep_return,
)
from ding.rl_utils.gae import flat_advantages
from ding.rl_utils.scan import Worth, flat_scan, kernels, reverse_scan

ROOT = Path(__file__).parents[2]
ALWAYS = Worth(to_load=1, to_run=1)


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    """Kernels at any size."""
    for module, name in (
        (scan, "TIME_STEPS"), (scan, "ROWS"), (adder, "ROWS"), (td_dist, "PAIRS")
    ):  # fmt: skip
        monkeypatch.setattr(module, name, ALWAYS)


def both(compute, monkeypatch):
    """Plain and by kernel."""
    with monkeypatch.context() as off:
        off.setattr(ding, "enable_hpc_rl", False)
        plain = compute()
    return plain, compute()


def flags(kind, steps, width):
    drawn = torch.rand(steps, width) < 0.2
    return {"none": None, "bool": drawn, "int": drawn.long(), "float": drawn.float()}[kind]


def strided(x):
    """The same numbers, not contiguous."""
    return x.t().contiguous().t()


def computations(steps=20, width=3, kind="bool", layout=torch.clone):
    """Name to a function of (value (T + 1, B), reward (T, B), ratio (T, B, A))."""
    torch.manual_seed(steps)
    done, flag = flags(kind, steps, width), flags(kind, steps, width)
    following = layout(torch.randn(steps, width))
    action, q = torch.randint(2, (steps, width)), torch.randn(steps + 1, width, 2)
    alive = 1 - (torch.zeros(steps, width) if done is None else done.float())

    def retrace(value, reward, ratio):
        return compute_q_retraces(q, value.unsqueeze(-1), reward, action, alive, ratio)

    return {
        "gae": lambda v, r, _: gae(gae_data(v[:-1], following, r, done, flag)),
        "gae_by_done": lambda v, r, _: gae(gae_data(v[:-1], following, r, done, None)),
        "lambda_returns": lambda v, r, _: generalized_lambda_returns(v, r, 0.9, 0.8, done),
        "lambda_by_step": lambda v, r, m: generalized_lambda_returns(v, r, 0.9, m[..., 0], done),
        "upgo_returns": lambda v, r, _: upgo_returns(r, v),
        "vtrace_returns": lambda v, r, m: vtrace_nstep_return(m[..., 0], m[..., 1], r, v),
        "q_retraces": retrace,
    }


def inputs(steps, width, layout=torch.clone):
    torch.manual_seed(1)
    value, reward = layout(torch.randn(steps + 1, width)), layout(torch.randn(steps, width))
    return value, reward, torch.rand(steps, width, 2) * 1.5


NAMES = sorted(computations())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [1, 2, 200])
def test_same_bits(name, steps, monkeypatch):
    compute, given = computations(steps)[name], inputs(steps, 3)
    plain, kernel = both(lambda: compute(*given), monkeypatch)
    assert plain.shape == kernel.shape and torch.equal(plain, kernel)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["none", "int", "float"])
@pytest.mark.parametrize("layout", [torch.clone, strided])
def test_same_bits_for_all_flags_and_layouts(name, kind, layout, monkeypatch):
    compute, given = computations(9, 4, kind, layout)[name], inputs(9, 4, layout)
    plain, kernel = both(lambda: compute(*given), monkeypatch)
    assert torch.equal(plain, kernel)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [1, 2, 50])
def test_same_gradients(name, steps, monkeypatch):
    given = [x.requires_grad_() for x in inputs(steps, 3)]
    compute = computations(steps)[name]

    def gradients():
        out = compute(*given)
        weight = torch.linspace(-1, 1, out.numel()).view(out.shape)
        return torch.autograd.grad((out * weight).sum(), given, allow_unused=True)

    for plain, kernel in zip(*both(gradients, monkeypatch), strict=True):
        assert (plain is None) == (kernel is None)
        if plain is not None:
            torch.testing.assert_close(kernel, plain, rtol=1e-5, atol=1e-5)


def test_same_values_per_agent_and_without_a_batch_axis(monkeypatch):
    value, reward = torch.randn(30, 2, 3), torch.randn(30, 2)
    data = gae_data(value, value + 1, reward, torch.rand(30, 2) < 0.1, None)
    plain, kernel = both(lambda: gae(data), monkeypatch)
    assert plain.shape == (30, 2, 3) and torch.equal(plain, kernel)
    flat = gae_data(*torch.randn(3, 30), torch.rand(30) < 0.1, None)
    assert torch.equal(*both(lambda: gae(flat), monkeypatch))


def test_same_bits_of_flat_columns(monkeypatch):
    rng = np.random.default_rng(0)
    reward, value, next_value = rng.standard_normal((3, 300)).astype(np.float32)
    end = rng.random(300) < 0.1
    terminated = end & (rng.random(300) < 0.5)

    def advantages():
        discount, decay = np.where(terminated, 0.0, 0.99), np.where(end, 0.0, 0.9)
        return flat_advantages(reward, value, next_value, discount=discount, decay=decay)

    np.testing.assert_array_equal(*both(advantages, monkeypatch))
    steps = {"obs": value, "next_obs": value, "reward": reward, "done": terminated, "end": end}
    plain, kernel = both(lambda: nstep_transitions(steps, 5, 0.9)["reward"], monkeypatch)
    np.testing.assert_array_equal(plain, kernel)
    assert kernel.dtype == np.float32


def test_quantile_loss_and_slope(monkeypatch):
    torch.manual_seed(0)
    q, target, tau = torch.randn(4, 6).requires_grad_(), 3 * torch.randn(4, 5), torch.rand(1, 6)

    def run():
        loss = quantile_huber(q, target, tau, kappa=0.7)
        return loss, *torch.autograd.grad((loss * torch.arange(4)).sum(), q)

    for plain, kernel in zip(*both(run, monkeypatch), strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gae", "lambda_by_step", "vtrace_returns"])
def test_same_second_derivatives(name, monkeypatch):
    given = [x.requires_grad_() for x in inputs(9, 2)]
    compute = computations(9, 2)[name]

    def curvature():
        first = torch.autograd.grad(
            compute(*given).square().sum(), given, create_graph=True, allow_unused=True
        )
        total = sum(x.square().sum() for x in first if x is not None)
        return torch.autograd.grad(total, given[:2])

    for plain, kernel in zip(*both(curvature, monkeypatch), strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-4, atol=1e-4)


def test_second_derivative_of_the_quantile_loss(monkeypatch):
    torch.manual_seed(0)
    q, target, tau = torch.randn(3, 4).requires_grad_(), torch.randn(3, 5), torch.rand(3, 4)

    def curvature():
        loss = quantile_huber(q, target, tau).sum()
        (slope,) = torch.autograd.grad(loss, q, create_graph=True)
        return torch.autograd.grad(slope.square().sum(), q)[0]

    torch.testing.assert_close(*both(curvature, monkeypatch))


def test_transforms_of_torch_run_the_plain_version():
    value, reward, _ = inputs(9, 2)
    batched = torch.func.vmap(upgo_returns, in_dims=1, out_dims=1)(reward, value)
    assert torch.equal(batched, upgo_returns(reward, value))


def test_kernels_are_what_runs(monkeypatch):
    module = kernels(1, ALWAYS)

    def refuse(*args):
        raise ZeroDivisionError

    for name in ("gae", "lambda_returns", "upgo_returns", "vtrace_returns"):
        monkeypatch.setattr(module, name, refuse)
        with pytest.raises(ZeroDivisionError):
            computations()[name](*inputs(20, 3))
        wanting = [x.requires_grad_() for x in inputs(20, 3)]
        assert computations()[name](*wanting).requires_grad
    with pytest.raises(ZeroDivisionError):  # a recursion of advantages
        computations()["q_retraces"](*inputs(20, 3))
    for name in ("scan", "nstep_sums", "quantile_huber"):
        monkeypatch.setattr(module, name, refuse)
    with pytest.raises(ZeroDivisionError):
        computations()["gae"](*wanting)
    with pytest.raises(ZeroDivisionError):
        quantile_huber(torch.randn(2, 3), torch.randn(2, 3), torch.rand(1, 3))
    column, flag = np.zeros(3, np.float32), np.zeros(3, bool)
    with pytest.raises(ZeroDivisionError):
        flat_scan(np.zeros(3), np.zeros(3))
    with pytest.raises(ZeroDivisionError):
        steps = {"reward": column, "next_obs": column, "done": flag, "end": flag}
        nstep_transitions(steps, 2, 0.9)


def test_double_precision_and_no_rows_are_left_to_torch():
    delta = torch.ones(4, 2, dtype=torch.float64)
    assert reverse_scan(delta, delta / 2, delta[0]).dtype == torch.float64
    empty = gae(gae_data(*[torch.zeros(4, 0)] * 5))
    assert empty.shape == (4, 0)


def test_actions_are_checked():
    value, reward, ratio = inputs(4, 2)
    q, action = torch.zeros(5, 2, 2), torch.full((4, 2), 7)
    with pytest.raises(RuntimeError, match="out of bounds"):
        compute_q_retraces(q, value.unsqueeze(-1), reward, action, torch.ones(4, 2), ratio)


def test_kernels_as_python():
    """The source of the kernels, uncompiled, against their machine code."""
    module = kernels(1, ALWAYS)
    value, reward, other = (torch.randn(5, 2).numpy() for _ in range(3))
    g, column = np.float32(0.5), reward[:4, 0].copy()
    last = np.array([1, 2, 3, 3])
    calls = {
        "scan": (reward, other, value[0]),
        "scan_gradient": (reward, other),
        "gae": (reward, other, value, reward, other),
        "lambda_returns": (reward, other, value, g, g),
        "upgo_returns": (reward[:4], value),
        "vtrace_returns": (other, other, reward, other, value, reward),
        "nstep_sums": (column, last, np.array([1, 0.5], np.float32)),
        "quantile_huber": (value, other, np.abs(reward) % 1, g),
    }
    for name, arguments in calls.items():
        function = getattr(module, name)
        for compiled, plain in zip(function(*arguments), function.py_func(*arguments), strict=True):
            np.testing.assert_array_equal(compiled, plain, err_msg=name)


def test_numba_is_not_loaded_for_little_work():
    code = """
import sys, numpy as np, torch
from ding.rl_utils import gae, gae_data, quantile_huber
from ding.rl_utils.scan import flat_scan
flat_scan(np.zeros(2048), np.zeros(2048))
gae(gae_data(*[torch.zeros(100, 8)] * 5))
quantile_huber(torch.zeros(32, 8), torch.zeros(32, 8), torch.zeros(1, 8))
little = 'numba' in sys.modules
gae(gae_data(*[torch.zeros(512, 8)] * 5))
sys.exit(10 * little + ('numba' in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 1
