"""Run small networks in NumPy on the very memory of their torch weights.

Acting in a handful of envs is bound by torch's cost per call, not by arithmetic. The forward of any
model whose functions are all listed in `numpy_ops` is traced once for each kind of observation and
becomes a flat NumPy function; other models, devices, dtypes, models with hooks and large models are
left to torch. In both cases arrays go in and arrays come out.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ding.model.numpy_ops import OPERATIONS
from ding.model.numpy_program import FLOAT32, Program, Value
from ding.model.tracing import (
    Call,
    Recorder,
    Unifier,
    UnsupportedError,
    is_in_place,
    leaves,
    unchanged,
)
from ding.torch_utils.data_helper import to_ndarray
from ding.utils.batch import tree_map
from ding.utils.data.collate_fn import as_tensor

_logger = logging.getLogger(__name__)

Forward = Callable[[Any], Any]
Slot = tuple[dict[str, Any], str]
"""Where a module keeps a parameter or buffer, and under which name."""

# Where torch begins to be faster: 8 rows take 19 us (torch 82) with 14,000 weights, 138 (111) with
# 200,000.
MAX_WEIGHTS = 200_000

_TOLERANCE = 1e-3
_N_ROW = (2, 3)
_DTYPES = {
    dtype: torch.empty(0, dtype=dtype).numpy().dtype
    for dtype in (torch.float32, torch.bool, torch.uint8, torch.int32, torch.int64)
}


class NumpyForward:
    """`model(x, mode)` from arrays to arrays, without gradients.

    It follows the weights: changes in place are seen since the memory is the same, and every call
    looks whether a parameter was replaced or moved (80 ns for each of them). It follows `train()`
    and `eval()` of the whole model, but not a submodule that is exchanged after the first call.
    """

    def __init__(self, model: nn.Module, mode: str | None = None) -> None:
        self._model, self._mode = model, mode
        self._forward: Forward = model if mode is None else partial(model, mode=mode)
        self._forget()

    @property
    def model(self) -> nn.Module:
        return self._model

    @property
    def forward(self) -> Forward:
        """The same from tensors to tensors."""
        return self._forward

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies trace anew: theirs is another model."""
        return NumpyForward, (self._model, self._mode)

    def _forget(self) -> None:
        self._functions: dict[Any, Forward] = {}
        self._programs: list[BoundProgram] = []
        self._slots: list[Slot] = []
        self._pointers: list[int] = []

    def __call__(self, x: Any) -> Any:
        try:
            if [table[name].data_ptr() for table, name in self._slots] != self._pointers:
                self._bind()
        except (KeyError, AttributeError):  # A parameter is gone, or became None.
            self._forget()
        kind = (x.shape[1:], x.dtype) if type(x) is np.ndarray else _kind(x)
        key = (kind, self._model.training)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self._new_function(x)
        return function(x)

    def in_torch(self, x: Any) -> Any:
        device = next((p.device for p in self._model.parameters()), torch.device("cpu"))
        with torch.no_grad():
            inputs = tree_map(lambda leaf: as_tensor(leaf).to(device), x)
            return to_ndarray(self._forward(inputs))

    def in_numpy(self, x: Any) -> BoundProgram:
        """A program for observations like `x`; raises `UnsupportedError` where there is none."""
        program, rows = BoundProgram(self._model, self._forward, x), sampled(x, n_row=5, seed=2)
        if not _same(program.function(rows), self.in_torch(rows)):
            name = type(self._model).__name__
            _logger.warning("%s gives other numbers in NumPy; it acts in torch", name)
            raise UnsupportedError("NumPy differs from torch")
        return program

    def _new_function(self, x: Any) -> Forward:
        try:
            program = self.in_numpy(x)
        except UnsupportedError as reason:
            _logger.debug("%s acts in torch: %s", type(self._model).__name__, reason)
            return self.in_torch
        self._programs.append(program)
        slots = {(id(table), name): (table, name) for table, name in self._slots}
        slots |= {(id(table), name): (table, name) for table, name in program.slots.values()}
        self._slots = list(slots.values())
        self._pointers = [table[name].data_ptr() for table, name in self._slots]
        return program.function

    def _bind(self) -> None:
        """Read the weights where they are now."""
        try:
            for program in self._programs:
                program.bind()
        except UnsupportedError:  # Weights of another kind than those that were traced.
            self._forget()
        self._pointers = [table[name].data_ptr() for table, name in self._slots]


def _items(x: Any) -> list[tuple[Any, Any]] | None:
    """Keys and parts of a nested observation; None of an array."""
    if isinstance(x, dict):
        return list(x.items())
    return list(enumerate(x)) if isinstance(x, (list, tuple)) else None


def _kind(x: Any) -> Any:
    """Structure, shapes without the rows, and dtypes of an observation: what a program is for."""
    if isinstance(x, np.ndarray):
        return x.shape[1:], x.dtype
    items = _items(x)
    return type(x) if items is None else tuple([(key, _kind(part)) for key, part in items])


def _paths(x: Any) -> list[tuple[str, np.ndarray]]:
    """Source of the way to each array of an observation, in the order of `leaves`."""
    items = _items(x)
    if items is None:
        return [("", x)]
    return [(f"[{key!r}]{path}", leaf) for key, part in items for path, leaf in _paths(part)]


def sampled(x: Any, n_row: int, seed: int) -> Any:
    """Rows like those of the arrays in `x`; floats get noise, lest all rows be the same."""
    rng = np.random.default_rng(seed)

    def sample(leaf: Any) -> np.ndarray:
        if not isinstance(leaf, np.ndarray) or leaf.dtype.kind not in "fiub" or not leaf.ndim:
            raise UnsupportedError("observations that are not arrays of numbers")
        rows = np.resize(leaf, (n_row, *leaf.shape[1:]))
        if leaf.dtype.kind == "f":
            rows = (rows + rng.standard_normal(rows.shape)).astype(leaf.dtype)
        return rows

    return tree_map(sample, x)


def _same(found: Any, wanted: Any) -> bool:
    for mine, theirs in zip(leaves(found), leaves(wanted), strict=True):
        if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return False
        scale = 1.0 + np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
        if not np.allclose(mine, theirs, 0, _TOLERANCE * scale, equal_nan=True):
            return False
    return True


class BoundProgram:
    """The traced forward as `function`, which reads the weights from where `bind` found them."""

    def __init__(self, model: nn.Module, forward: Forward, x: Any) -> None:
        translation = _Translation(_slots(model))
        one, two = (_record(model, forward, x, n_row) for n_row in _N_ROW)
        unpack = translation.unpack(x, one.inputs, two.inputs)
        translation.translate(one.calls, two.calls)
        output = translation.unifier.merge(one.output, two.output)
        views, source = translation.program.source(unpack, output)
        self.slots = translation.used_slots(output)
        self._weights = {name: translation.weights[name] for name in self.slots}
        if sum(table[key].numel() for table, key in self.slots.values()) > MAX_WEIGHTS:
            raise UnsupportedError("a large model")
        self._namespace: dict[str, Any] = {**vars(np), **translation.program.constants}
        self._views = compile(views, "<views of weights>", "exec")
        self.bind()
        exec(compile(source, "<NumPy forward>", "exec"), self._namespace)
        self.function: Forward = self._namespace["forward"]

    def bind(self) -> None:
        for name, (table, key) in self.slots.items():
            tensor, traced = table[key], self._weights[name]
            if not _is_readable(tensor) or tensor.shape != traced.shape:
                raise UnsupportedError("weights of another kind")
            self._namespace[name] = tensor.detach().numpy()
        exec(self._views, self._namespace)


def _is_readable(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.is_cpu and tensor.dtype is torch.float32


def _slots(model: nn.Module) -> dict[str, Slot]:
    """Parameters and buffers that NumPy can read, by the names that they get in a program."""
    tables: list[dict[str, Any]] = []
    for module in model.modules():
        tables += [module._parameters, module._buffers]
    slots = [(table, key) for table in tables for key in table if _is_readable(table[key])]
    return {f"w{i}": slot for i, slot in enumerate(slots)}


class _Record(NamedTuple):
    inputs: list[Tensor]
    calls: list[Call]
    output: Any


def _record(model: nn.Module, forward: Forward, x: Any, n_row: int) -> _Record:
    if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):
        raise UnsupportedError("hooks")
    if not all(parameter.is_cpu for parameter in model.parameters()):
        raise UnsupportedError("another device")
    inputs = tree_map(as_tensor, sampled(x, n_row, seed=n_row))
    found = list(leaves(inputs))
    recorder = Recorder(OPERATIONS, [*found, *model.parameters(), *model.buffers()])
    with unchanged(model), torch.no_grad(), recorder:
        output = forward(inputs)
    return _Record(found, recorder.calls, output)


class _Translation:
    """Steps of a program for two records of the same calls."""

    def __init__(self, slots: dict[str, Slot]) -> None:
        self.program, self.unifier, self._slots = Program(), Unifier(_N_ROW), slots
        self.weights: dict[str, Value] = {}
        for name, (table, key) in slots.items():
            shape = tuple(table[key].shape)
            weight = Value(name, shape, FLOAT32, is_bound=True, is_writable=False)
            self.weights[name] = weight
            self.unifier.bind((table[key], table[key]), weight)

    def used_slots(self, output: Any) -> dict[str, Slot]:
        operands = [x for step in self.program.steps for x in step.operands]
        used = {value.name for value in (*operands, *leaves(output)) if isinstance(value, Value)}
        return {name: slot for name, slot in self._slots.items() if name in used}

    def unpack(self, x: Any, one: list[Tensor], two: list[Tensor]) -> list[str]:
        """Lines that take the arrays out of the observation."""
        lines = []
        for i, (path, array) in enumerate(_paths(x)):
            value = self._like(one[i], two[i], f"x{i}", is_writable=array.dtype == np.float64)
            self.unifier.bind((one[i], two[i]), value)
            cast = ".astype(float32)" if array.dtype == np.float64 else ""
            lines.append(f"x{i} = x{path}{cast}")
        return [*lines, "n = len(x0)"]

    def translate(self, one: list[Call], two: list[Call]) -> None:
        if len(one) != len(two):
            raise UnsupportedError("other calls for another number of rows")
        for first, second in zip(one, two, strict=True):
            if first.function != second.function:
                raise UnsupportedError("other calls for another number of rows")
            self._call(first, second)

    def _call(self, one: Call, two: Call) -> None:
        args = self.unifier.merge(list(one.args), list(two.args))
        kwargs = self.unifier.merge(one.kwargs, two.kwargs)
        result = self.program.result = self._like(one.result, two.result)
        operation = OPERATIONS[one.function]
        try:
            inspect.signature(operation).bind(self.program, *args, **kwargs)
        except TypeError as error:
            raise UnsupportedError(f"{one.function}: {error}") from error
        if is_in_place(one.function, one.kwargs) and self.program.is_shared(args[0]):
            raise UnsupportedError(f"{one.function} of something that is seen elsewhere")
        value = operation(self.program, *args, **kwargs)
        if (value.shape, value.dtype) != (result.shape, result.dtype):
            raise UnsupportedError(f"{one.function} gives another kind of array in NumPy")
        self.unifier.bind((one.result, two.result), value)

    def _like(self, one: Tensor, two: Tensor, name: str = "", is_writable: bool = True) -> Value:
        if one.dtype not in _DTYPES:
            raise UnsupportedError(f"arrays of {one.dtype}")
        shape = self.unifier.dims(one.shape, two.shape)
        return Value(name, shape, _DTYPES[one.dtype], is_writable=is_writable)
