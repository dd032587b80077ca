"""The recursion behind every return, and the choice between plain torch and compiled kernels.

Letters in shapes: T time, B everything else. A kernel runs where it saves time, on float32 tensors
in main memory, as long as `ding.enable_hpc_rl` is set; its numbers are those of the plain version.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

KERNELS = "ding.rl_utils.kernels"


class Worth(NamedTuple):
    """Least amount of work for which a kernel pays."""

    to_load: int
    """Not loaded yet: numba takes 0.5 to 0.8 s, so a call must save about a millisecond."""
    to_run: int


TIME_STEPS = Worth(to_load=128, to_run=8)
"""A step of a loop in torch takes 5 to 10 microseconds."""
ROWS = Worth(to_load=2**14, to_run=2**7)
"""A row of a loop over Python floats, or of gathered windows, takes about 0.1 microseconds."""
PAIRS = Worth(to_load=2**16, to_run=2**16)
"""A pair of quantiles takes some 10 nanoseconds. By size alone, because here sums are taken in
another order than torch's: the last bits must not depend on what ran before."""


def kernels(work: int, worth: Worth) -> Any:
    """The module of kernels, or None where the plain version is to run."""
    # An attribute of the parent package, read at every call so that it can be set at any time.
    if not sys.modules["ding"].enable_hpc_rl or _is_traced():
        return None
    needed = worth.to_run if KERNELS in sys.modules else worth.to_load
    return import_module(KERNELS) if work >= needed else None


def _is_traced() -> bool:
    """Detect `torch.compile` and transforms of `torch.func`: tensors there have no memory."""
    # Private, since nothing public tells whether a transform is active.
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def wants_grad(tensors: Sequence[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def readable(tensors: Sequence[Tensor]) -> bool:
    """Whether kernels can work on them: float32, in main memory."""
    return all(t.dtype == torch.float32 and t.is_cpu and t.numel() for t in tensors)


def arrays(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """(T, ...) -> (T, B) each, without a copy where the memory allows."""
    return [_flat((t.detach() if t.requires_grad else t).numpy()) for t in tensors]


def _flat(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array if array.ndim == 2 else array.reshape(len(array), -1))


def fused(name: str, tensors: Sequence[Tensor], scalars: Sequence[float] = ()) -> Tensor | None:
    """Result of a kernel, shaped as the first of (T, ...) tensors; None: the plain version runs."""
    module = kernels(len(tensors[0]), TIME_STEPS)
    if module is None or wants_grad(tensors) or not readable(tensors):
        return None
    numbers = [np.float32(scalar) for scalar in scalars]
    found = getattr(module, name)(*arrays(tensors), *numbers)
    return torch.from_numpy(found).view(tensors[0].shape)


def reverse_scan(delta: Tensor, decay: Tensor, last: Tensor) -> Tensor:
    """x[t] = delta[t] + decay[t] * x[t + 1] for (T, ...) tensors, from x[T] = `last`."""
    if kernels(len(delta), TIME_STEPS) is not None:
        delta, decay = torch.broadcast_tensors(delta, decay)
        last = last.expand_as(delta[0])
        if readable((delta, decay, last)):
            return cast(Any, _Scan).apply(delta, decay, last)
    return _loop(delta, decay, last)


def _loop(delta: Tensor, decay: Tensor, last: Tensor) -> Tensor:
    later, out = last, []
    for now, factor in zip(reversed(delta.unbind()), reversed(decay.unbind()), strict=True):
        later = now + factor * later
        out.append(later)
    return torch.stack(out[::-1])


def flat_scan(delta: np.ndarray, decay: np.ndarray) -> np.ndarray:
    """`reverse_scan` of float64 columns (n, ...) and (n,) from zero, as float32."""
    if delta.ndim > 1:
        columns = delta.reshape(len(delta), -1).T
        found = np.stack([flat_scan(np.ascontiguousarray(column), decay) for column in columns], -1)
        return found.reshape(delta.shape)
    module = kernels(len(delta), ROWS)
    if module is not None:
        return module.scan(delta[:, None], decay[:, None], np.zeros(1)).ravel().astype(np.float32)
    # Plain floats: a loop over array elements takes several times as long.
    total, factor, later = delta.tolist(), decay.tolist(), 0.0
    for t in range(len(total) - 1, -1, -1):
        total[t] = later = total[t] + factor[t] * later
    return np.array(total, dtype=np.float32)


class _Scan(torch.autograd.Function):
    """`_loop` by a kernel in both directions."""

    @staticmethod
    def forward(ctx: Any, delta: Tensor, decay: Tensor, last: Tensor) -> Tensor:
        module = import_module(KERNELS)
        flat = arrays((delta, decay))
        out = torch.from_numpy(
            module.scan(*flat, np.ascontiguousarray(last.detach().numpy()).ravel())
        )
        out = out.view(delta.shape)
        ctx.save_for_backward(decay, last, out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        decay, last, out = ctx.saved_tensors
        delta_grad = _forward_scan(grads[0], decay)
        decay_grad = last_grad = None
        if ctx.needs_input_grad[1]:
            decay_grad = delta_grad * torch.cat([out[1:], last.unsqueeze(0)])
        if ctx.needs_input_grad[2]:
            last_grad = decay[-1] * delta_grad[-1]
        return delta_grad, decay_grad, last_grad


def _forward_scan(grad: Tensor, decay: Tensor) -> Tensor:
    """y[t] = grad[t] + decay[t - 1] * y[t - 1]."""
    if torch.is_grad_enabled():
        # A second derivative is wanted: this is the recursion above in a mirror.
        mirrored = torch.cat([torch.zeros_like(decay[:1]), decay[:-1]]).flip(0)
        return reverse_scan(grad.flip(0), mirrored, torch.zeros_like(grad[0])).flip(0)
    found = import_module(KERNELS).scan_gradient(*arrays((grad, decay)))
    return torch.from_numpy(found).view(grad.shape)
