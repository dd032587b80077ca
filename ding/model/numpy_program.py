"""Straight-line NumPy programs: their values, their steps, and the source that is made of them.

Values that only depend on weights by way of views (`weight.T`) are bound once: they follow every
change of the weights in place. Steps overwrite an operand that nobody reads any more, since at a
handful of rows a new array costs as much as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ding.model.tracing import Dim, Rows, UnsupportedError, leaves

FLOAT32 = np.dtype(np.float32)

Shape = tuple[Dim, ...]


@dataclass(eq=False)
class Value:
    """An array of the program; `base` is the value whose memory it shares, if not its own."""

    name: str
    shape: Shape
    dtype: np.dtype
    is_bound: bool = False
    """Known before the program runs: a view of a weight, or a constant."""
    is_constant: bool = False
    is_writable: bool = True
    base: Value | None = None

    @property
    def owner(self) -> Value:
        return self if self.base is None else self.base.owner


@dataclass
class Step:
    target: Value
    source: str
    """A statement with places for the target {t} and for the operands {0}, {1}, ..."""
    operands: Sequence[Value]
    is_ufunc: bool = False


@dataclass
class Program:
    """Steps in order, made by the functions of `numpy_ops` from the calls of a trace."""

    steps: list[Step] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    result: Value = field(default_factory=lambda: Value("", (), FLOAT32))
    """Shape and dtype of what the current call gives."""

    # --- making steps --------------------------------------------------------------------------

    def constant(self, array: Any) -> Value:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return Value(name, np.shape(array), np.asarray(array).dtype, True, True, False)

    def operand(self, x: Value | float) -> Value:
        """Numbers as arrays: `maximum` of 8 x 64 takes 450 ns with one, 590 with a scalar."""
        return x if isinstance(x, Value) else self.constant(np.array(x, np.float32))

    def ufunc(self, name: str, *inputs: Value | float, dtype: np.dtype = FLOAT32) -> Value:
        operands = [self.operand(x) for x in inputs]
        if dtype == FLOAT32 and any(x.dtype != FLOAT32 for x in operands):
            raise UnsupportedError(f"{name} of other numbers than float32")
        shape = _broadcast([x.shape for x in operands])
        places = ", ".join(f"{{{i}}}" for i in range(len(operands)))
        is_constant = all(x.is_constant for x in operands)
        target = self._value(shape, dtype, is_bound=is_constant, is_constant=is_constant)
        self.steps.append(Step(target, f"{{t}} = {name}({places}{{out}})", operands, True))
        return target

    def fresh(
        self, source: str, *operands: Value, shape: Shape, dtype: np.dtype = FLOAT32
    ) -> Value:
        """Result of an expression, in memory of its own."""
        target = self._value(shape, dtype)
        self.steps.append(Step(target, source, operands))
        return target

    def view(self, source: str, x: Value, shape: Shape, *, copies: bool = False) -> Value:
        """Another view of the same numbers; where it `copies` it must be made anew each time."""
        is_bound = x.is_constant or (x.is_bound and not copies)
        target = self._value(
            shape, x.dtype, is_bound=is_bound, is_constant=x.is_constant, base=x.owner
        )
        self.steps.append(Step(target, f"{{t}} = {{0}}{source}", [x]))
        return target

    def reshaped(self, x: Value, shape: Shape) -> Value:
        if shape == x.shape:
            return x
        rows = [isinstance(dim, Rows) for dim in shape]
        to = tuple(-1 if r and sum(rows) == 1 else d for d, r in zip(shape, rows, strict=True))
        return self.view(f".reshape({dims(to)})", x, shape, copies=True)

    def reduce(self, name: str, x: Value, axes: Sequence[int], *, keepdims: bool = True) -> Value:
        axes = sorted(axis % len(x.shape) for axis in axes)
        if any(isinstance(x.shape[axis], Rows) for axis in axes):
            raise UnsupportedError("rows depend on each other")
        kept = [1 if i in axes else dim for i, dim in enumerate(x.shape)]
        shape = kept if keepdims else [dim for i, dim in enumerate(x.shape) if i not in axes]
        axis = axes[0] if len(axes) == 1 else tuple(axes)
        source = f"{{t}} = {name}.reduce({{0}}, axis={axis}, keepdims={keepdims})"
        return self.fresh(source, x, shape=tuple(shape), dtype=x.dtype)

    def _value(self, shape: Shape, dtype: np.dtype, **kind: Any) -> Value:
        return Value(f"v{len(self.steps)}", tuple(shape), dtype, **kind)

    def is_shared(self, x: Value) -> bool:
        """Whether a change of `x` would show in something else."""
        if x.owner is not x or x.is_bound or not x.is_writable:
            return True
        return any(step.target.owner is x and step.target is not x for step in self.steps)

    # --- source --------------------------------------------------------------------------------

    def source(self, unpack: Sequence[str], output: Any) -> tuple[str, str]:
        """Statements that bind views and constants, and the function `forward(x)`."""
        last_use = self._last_use(output)
        bound, body = [], list(unpack)
        for i, step in enumerate(self.steps):
            names = [x.name for x in step.operands]
            if step.target.is_bound:
                bound.append(step.source.format(*names, t=step.target.name, out=""))
                continue
            out = next(
                (x for x in step.operands if self._may_overwrite(step, x, i, last_use)), None
            )
            written = "" if out is None or not step.is_ufunc else f", out={out.name}"
            body.append(step.source.format(*names, t=step.target.name, out=written))
        lines = "".join(f"    {line}\n" for line in (*body, f"return {self._literal(output)}"))
        return "\n".join(bound), f"def forward(x):\n{lines}"

    @staticmethod
    def _may_overwrite(step: Step, x: Value, i: int, last_use: dict[int, int]) -> bool:
        owner, target = x.owner, step.target
        is_free = owner.is_writable and not owner.is_bound and last_use[id(owner)] == i
        return is_free and x.shape == target.shape and x.dtype == target.dtype

    def _last_use(self, output: Any) -> dict[int, int]:
        """Index of the last step that reads any view of each value's memory."""
        last = {id(x.owner): i for i, step in enumerate(self.steps) for x in step.operands}
        outputs = [leaf for leaf in leaves(output) if isinstance(leaf, Value)]
        return last | {id(value.owner): len(self.steps) for value in outputs}

    def _literal(self, tree: Any) -> str:
        if isinstance(tree, Value):
            # The weights' own memory is not handed out.
            return f"{tree.name}.copy()" if tree.owner.is_bound else tree.name
        if isinstance(tree, dict):
            return "{" + ", ".join(f"{k!r}: {self._literal(v)}" for k, v in tree.items()) + "}"
        if isinstance(tree, list):
            return "[" + ", ".join(self._literal(v) for v in tree) + "]"
        if type(tree) is tuple:
            return "(" + "".join(f"{self._literal(v)}, " for v in tree) + ")"
        raise UnsupportedError(f"an output that is {type(tree).__name__}")


def dims(shape: Shape) -> str:
    """Source of a shape; `n` is the number of rows."""
    parts = [f"n * {dim.factor}" if isinstance(dim, Rows) else str(dim) for dim in shape]
    return "(" + "".join(f"{part}, " for part in parts) + ")"


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    n_axis = max(len(shape) for shape in shapes)
    padded = [(1,) * (n_axis - len(shape)) + shape for shape in shapes]
    return tuple(next((d for d in axis if d != 1), 1) for axis in zip(*padded, strict=True))
