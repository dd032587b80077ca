"""NumPy steps for torch functions, under the names and arguments that torch gives them.

Whatever is not listed here, or called with other arguments, is left to torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ding.model.numpy_program import Program, Value, dims
from ding.model.tracing import Rows, TorchFunction, UnsupportedError

Operation = TypeVar("Operation", bound=Callable[..., Value])
Axes = int | Sequence[int]

OPERATIONS: dict[TorchFunction, Callable[..., Value]] = {}

_BOOL = np.dtype(bool)
_SAME_NAME = ("tanh", "exp", "log", "cos", "sin", "sqrt", "square", "minimum", "maximum")
_UFUNCS = {name: name for name in _SAME_NAME}
_UFUNCS |= {"abs": "absolute", "neg": "negative", "pow": "power", "__pow__": "power"}
_ARITHMETIC = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"}
_COMPARISONS = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal"}
_COMPARISONS |= {"eq": "equal", "ne": "not_equal"}


def _operation(*names: str) -> Callable[[Operation], Operation]:
    """Register for the functions of these names, be they functions or methods of tensors."""

    def register(operation: Operation) -> Operation:
        homes = (torch, Tensor, F)
        found = [getattr(home, name) for name in names for home in homes if hasattr(home, name)]
        OPERATIONS.update(dict.fromkeys(found, operation))
        return operation

    return register


def _register_ufuncs() -> None:
    for name, ufunc in (_UFUNCS | _ARITHMETIC).items():
        _operation(name, f"{name}_")(lambda g, *inputs, ufunc=ufunc: g.ufunc(ufunc, *inputs))
    for name, ufunc in _ARITHMETIC.items():
        _operation(f"__r{name}__")(lambda g, x, y, ufunc=ufunc: g.ufunc(ufunc, y, x))
    for name, ufunc in _COMPARISONS.items():
        _operation(name)(lambda g, x, y, ufunc=ufunc: g.ufunc(ufunc, x, y, dtype=_BOOL))


_register_ufuncs()


# --- products ------------------------------------------------------------------------------------


@_operation("matmul", "mm", "bmm")
def _matmul(g: Program, x: Value, y: Value) -> Value:
    source = "{t} = {0}.dot({1})" if len(y.shape) <= 2 else "{t} = matmul({0}, {1})"
    return g.fresh(source, x, y, shape=g.result.shape)


@_operation("linear")
def _linear(g: Program, x: Value, weight: Value, bias: Value | None = None) -> Value:
    y = _matmul(g, x, _transposed(g, weight, -2, -1))
    return y if bias is None else g.ufunc("add", y, bias)


@_operation("addmm", "baddbmm")
def _addmm(g: Program, bias: Value, x: Value, y: Value) -> Value:
    return g.ufunc("add", _matmul(g, x, y), bias)


# --- activations ---------------------------------------------------------------------------------


@_operation("relu", "relu_")
def _relu(g: Program, x: Value, *, inplace: bool = False) -> Value:
    return g.ufunc("maximum", x, 0.0)


@_operation("sigmoid", "sigmoid_")
def _sigmoid(g: Program, x: Value) -> Value:
    # tanh cannot overflow where exp would.
    y = g.ufunc("tanh", g.ufunc("multiply", x, 0.5))
    return g.ufunc("multiply", g.ufunc("add", y, 1.0), 0.5)


@_operation("silu")
def _silu(g: Program, x: Value, *, inplace: bool = False) -> Value:
    return g.ufunc("multiply", _sigmoid(g, x), x)


@_operation("elu")
def _elu(g: Program, x: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    negative = g.ufunc("multiply", g.ufunc("expm1", g.ufunc("minimum", x, 0.0)), alpha)
    return g.ufunc("add", negative, g.ufunc("maximum", x, 0.0))


@_operation("leaky_relu")
def _leaky_relu(g: Program, x: Value, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    is_positive = g.ufunc("greater_equal", x, 0.0, dtype=_BOOL)
    return _where(g, is_positive, x, g.ufunc("multiply", x, negative_slope))


@_operation("clamp", "clamp_")
def _clamp(
    g: Program, x: Value, min: Value | float | None = None, max: Value | float | None = None
) -> Value:
    x = x if min is None else g.ufunc("maximum", x, min)
    return x if max is None else g.ufunc("minimum", x, max)


@_operation("hardtanh")
def _hardtanh(
    g: Program, x: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Value:
    return _clamp(g, x, min_val, max_val)


@_operation("dropout")
def _dropout(
    g: Program, x: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    if training:
        raise UnsupportedError("dropout")
    return x


def _where(g: Program, condition: Value, x: Value | float, y: Value | float) -> Value:
    source, shape = "{t} = where({0}, {1}, {2})", g.result.shape
    return g.fresh(source, condition, g.operand(x), g.operand(y), shape=shape)


OPERATIONS[torch.where] = _where  # the method of tensors has its arguments in another order


# --- reductions ----------------------------------------------------------------------------------


def _axes(dim: Axes) -> Sequence[int]:
    return [dim] if isinstance(dim, int) else dim


@_operation("sum")
def _sum(g: Program, x: Value, dim: Axes, keepdim: bool = False) -> Value:
    return g.reduce("add", x, _axes(dim), keepdims=keepdim)


@_operation("amax")
def _amax(g: Program, x: Value, dim: Axes, keepdim: bool = False) -> Value:
    return g.reduce("maximum", x, _axes(dim), keepdims=keepdim)


@_operation("mean")
def _mean(g: Program, x: Value, dim: Axes, keepdim: bool = False) -> Value:
    total = _sum(g, x, dim, keepdim)
    sizes = [size for size in (x.shape[axis] for axis in _axes(dim)) if isinstance(size, int)]
    return g.ufunc("multiply", total, 1.0 / math.prod(sizes))


@_operation("softmax")
def _softmax(g: Program, x: Value, dim: int, *, dtype: None = None, _stacklevel: int = 3) -> Value:
    p = g.ufunc("exp", g.ufunc("subtract", x, g.reduce("maximum", x, [dim])))
    return g.ufunc("divide", p, g.reduce("add", p, [dim]))


@_operation("log_softmax")
def _log_softmax(
    g: Program, x: Value, dim: int, *, dtype: None = None, _stacklevel: int = 3
) -> Value:
    shifted = g.ufunc("subtract", x, g.reduce("maximum", x, [dim]))
    return g.ufunc("subtract", shifted, g.ufunc("log", _sum(g, g.ufunc("exp", shifted), dim, True)))


@_operation("layer_norm")
def _layer_norm(
    g: Program,
    x: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    axes = range(-len(normalized_shape), 0)
    centred = g.ufunc("subtract", x, _mean(g, x, axes, True))
    variance = _mean(g, g.ufunc("square", centred), axes, True)
    y = g.ufunc("divide", centred, g.ufunc("sqrt", g.ufunc("add", variance, eps)))
    y = y if weight is None else g.ufunc("multiply", y, weight)
    return y if bias is None else g.ufunc("add", y, bias)


# --- shapes and dtypes ---------------------------------------------------------------------------


@_operation("reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze")
@_operation("contiguous", "detach")
def _reshape(g: Program, x: Value, *sizes: Any, dim: Any = None, start_dim: int = 0) -> Value:
    return g.reshaped(x, g.result.shape)


@_operation("expand", "expand_as")
def _expand(g: Program, x: Value, *sizes: Any) -> Value:
    if g.result.shape == x.shape:
        return x
    # A view whose rows are the same memory would take longer to make, and nobody could write to it.
    source = f"{{t}} = empty({dims(g.result.shape)}, '{x.dtype}'); {{t}}[...] = {{0}}"
    return g.fresh(source, x, shape=g.result.shape, dtype=x.dtype)


@_operation("transpose")
def _transposed(g: Program, x: Value, dim0: int, dim1: int) -> Value:
    order = list(range(len(x.shape)))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return g.view(f".transpose({order})", x, tuple(x.shape[axis] for axis in order))


@_operation("movedim")
def _movedim(g: Program, x: Value, source: int, destination: int) -> Value:
    order = list(range(len(x.shape)))
    order.insert(destination % len(order), order.pop(source))
    return g.view(f".transpose({order})", x, tuple(x.shape[axis] for axis in order))


OPERATIONS[Tensor.mT.__get__] = lambda g, x: _transposed(g, x, -2, -1)  # type: ignore[attr-defined]


@_operation("__getitem__")
def _getitem(g: Program, x: Value, index: Any) -> Value:
    return g.view(f"[{_index(index)}]", x, g.result.shape)


def _index(index: Any) -> str:
    if isinstance(index, slice):
        parts = (index.start, index.stop, index.step)
        return ":".join("" if part is None else _index(part) for part in parts)
    if index is None or index is Ellipsis or type(index) is int:
        return "..." if index is Ellipsis else str(index)
    if type(index) is not tuple:
        raise UnsupportedError(f"an index that is {type(index).__name__}")
    return "".join(f"{_index(part)}, " for part in index)


@_operation("cat", "concat")
def _cat(g: Program, tensors: Sequence[Value], dim: int = 0) -> Value:
    if len({x.dtype for x in tensors}) > 1:
        raise UnsupportedError("arrays of several dtypes in one")
    places = "".join(f"{{{i}}}, " for i in range(len(tensors)))
    source = f"{{t}} = concatenate(({places}), axis={dim})"
    return g.fresh(source, *tensors, shape=g.result.shape, dtype=tensors[0].dtype)


@_operation("float", "to")
def _to(g: Program, x: Value, *to: Any, dtype: Any = None, device: Any = None) -> Value:
    dtype = g.result.dtype
    if dtype == x.dtype:
        return x
    return g.fresh(f"{{t}} = {{0}}.astype('{dtype}')", x, shape=x.shape, dtype=dtype)


@_operation("arange")
def _arange(g: Program, *ends: float, dtype: Any = None, device: Any = None) -> Value:
    if any(isinstance(end, Rows) for end in ends):
        raise UnsupportedError("a number for each row")
    return g.constant(np.arange(*ends, dtype=g.result.dtype))
