"""Record of the torch functions that a network's forward calls, for any number of rows.

The forward runs for real on sampled rows under a `TorchFunctionMode`, so that Python's control flow
over shapes, dtypes and the structure of the observation needs no special care. It runs twice, on
different numbers of rows: what differs between both records is the number of rows, or the forward
is not a function of its input and weights alone and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

TorchFunction = Callable[..., Any]


class UnsupportedError(Exception):
    """Only torch can run this forward."""


class Rows(NamedTuple):
    """Integer that is `factor` times the number of rows."""

    factor: int


Dim = int | Rows


class Call(NamedTuple):
    function: TorchFunction
    args: Sequence[Any]
    kwargs: dict[str, Any]
    result: Any


def _getters(*names: str) -> set[TorchFunction]:
    return {getattr(Tensor, name).__get__ for name in names}


# Answers of these are Python values; an answer that depends on the rows shows up in a later call.
_METADATA: set[TorchFunction] = {
    *_getters("dtype", "shape", "ndim", "device", "is_cpu", "is_cuda", "requires_grad", "layout"),
    *(Tensor.size, Tensor.dim, Tensor.numel, Tensor.__len__, Tensor.is_floating_point),
}


class Recorder(TorchFunctionMode):
    """List of the calls of `known` functions; any other function is refused before it runs."""

    def __init__(self, known: Collection[TorchFunction], outside: Collection[Tensor]) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._known = known
        self._outside = {tensor.untyped_storage().data_ptr() for tensor in outside}

    def __torch_function__(
        self,
        func: TorchFunction,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        # `with torch.no_grad()` is a call of the latter; gradients are off anyway.
        if func in _METADATA or func.__name__ == "_set_grad_enabled":
            return func(*args, **kwargs)
        if func not in self._known:
            raise UnsupportedError(f"NumPy does not know {func}")
        if is_in_place(func, kwargs) and not self._is_own(args[0]):
            raise UnsupportedError(f"{func} changes what the forward has not made itself")
        result = func(*args, **kwargs)
        self.calls.append(Call(func, args, kwargs, result))
        return result

    def _is_own(self, tensor: Tensor) -> bool:
        is_result = any(tensor is leaf for call in self.calls for leaf in leaves(call.result))
        return is_result and tensor.untyped_storage().data_ptr() not in self._outside


def is_in_place(function: TorchFunction, kwargs: dict[str, Any]) -> bool:
    name = function.__name__
    return (name.endswith("_") and not name.endswith("__")) or bool(kwargs.get("inplace"))


def leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (dict, list, tuple)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(part)
    else:
        yield tree


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Refuse a forward that keeps something in its modules, and put back what was there."""
    tables = [
        table
        for module in model.modules()
        for table in (vars(module), module._parameters, module._buffers, module._modules)
    ]
    before = [dict(table) for table in tables]
    try:
        yield
    finally:
        changed = False
        for table, old in zip(tables, before, strict=True):
            if table.keys() != old.keys() or any(table[key] is not old[key] for key in old):
                changed = True
                table.clear()
                table.update(old)
    if changed:
        raise UnsupportedError("the forward keeps something from call to call")


class Unifier:
    """Two records of the same calls as one: tensors become values, row counts become `Rows`."""

    def __init__(self, n_row: tuple[int, int]) -> None:
        self._n_row = n_row
        self._values: tuple[dict[int, Any], dict[int, Any]] = ({}, {})

    def bind(self, tensors: tuple[Tensor, Tensor], value: object) -> None:
        """Let both tensors stand for `value` from here on."""
        for values, tensor in zip(self._values, tensors, strict=True):
            values[id(tensor)] = value

    def dims(self, one: Sequence[int], two: Sequence[int]) -> tuple[Dim, ...]:
        if len(one) != len(two):
            raise UnsupportedError("the number of axes depends on the number of rows")
        return tuple(self._dim(*pair) for pair in zip(one, two, strict=True))

    def _dim(self, one: int, two: int) -> Dim:
        if one == two:
            return one
        factor, rest = divmod(one, self._n_row[0])
        if rest or two != factor * self._n_row[1]:
            raise UnsupportedError(f"{one} for {self._n_row[0]} rows, {two} for {self._n_row[1]}")
        return Rows(factor)

    def merge(self, one: Any, two: Any) -> Any:
        if isinstance(one, Tensor):
            values = [known.get(id(t)) for known, t in zip(self._values, (one, two), strict=True)]
            if values[0] is None or values[0] is not values[1]:
                raise UnsupportedError("a tensor that is neither input nor parameter nor buffer")
            return values[0]
        if type(one) is not type(two):
            raise UnsupportedError(f"the forward used {one!r} and then {two!r}")
        if isinstance(one, dict):
            self._same(list(one), list(two))
            return {key: self.merge(one[key], two[key]) for key in one}
        if isinstance(one, (list, tuple)):
            self._same(len(one), len(two))
            parts = [self.merge(a, b) for a, b in zip(one, two, strict=True)]
            return parts if isinstance(one, list) else tuple(parts)
        if isinstance(one, slice):
            ends = ((one.start, two.start), (one.stop, two.stop), (one.step, two.step))
            return slice(*(self.merge(*pair) for pair in ends))
        if type(one) is int:
            return self._dim(one, two)
        self._same(one, two)
        return one

    @staticmethod
    def _same(one: object, two: object) -> None:
        if one != two:
            raise UnsupportedError(f"the forward used {one!r} and then {two!r}")
