"""Pickles of rows: tensors, arrays, numbers, text and containers; nothing in them is executed.

A pickle names functions to call. Only the few that make tensors and arrays are known here, and each
name leads to code of this module that takes data alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any, ClassVar

import numpy as np

from ding.utils.checksum import without_checksum

_NUMERIC = "biufc"


class RefusedError(ValueError):
    """The pickle names something that is no data."""


def loads_data(raw: bytes) -> Any:
    """The content of a pickle, arrays and tensors as arrays; ValueError and others if it is bad."""
    file = BytesIO(without_checksum(raw))
    return _finished(_DataUnpickler(file).load())


class _Made:
    """Callable that a pickle may name; has no attributes that the pickle could change."""

    __slots__ = ()


class _DType(_Made):
    """Stands for a dtype while the pickle is read."""

    __slots__ = ("dtype",)

    def __init__(self, code: str, align: bool = False, copy: bool = False) -> None:
        self.dtype = np.dtype(code if type(code) is str else "V")
        if self.dtype.kind not in _NUMERIC:
            raise RefusedError(f"an array of {code!r}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1] if state[1] in ("<", ">") else "=")


class _Array(_Made):
    """Stands for an array while the pickle is read."""

    __slots__ = ("array",)

    def __init__(self, *_: Any) -> None:
        self.array = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, raw = state
        self.array = _from_bytes(raw, dtype, shape, "F" if is_fortran else "C")


def _from_bytes(raw: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    if type(dtype) is not _DType or not isinstance(raw, (bytes, bytearray)):
        raise RefusedError("an array of objects")
    flat = np.frombuffer(raw, dtype.dtype)
    return flat.reshape(shape, order="F" if order == "F" else "C").copy()


class _Scalar(_Made):
    __slots__ = ()

    def __call__(self, dtype: Any, raw: Any) -> Any:
        return _from_bytes(raw, dtype, (), "C").item()


class _FromBuffer(_Made):
    __slots__ = ()

    def __call__(self, raw: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
        return _from_bytes(raw, dtype, shape, order)


class _Latin1(_Made):
    """Bytes in pickles of older protocols."""

    __slots__ = ()

    def __call__(self, text: Any, encoding: Any = "latin1") -> bytes:
        return str(text).encode("latin1")


class _Storage(_Made):
    __slots__ = ()

    def __call__(self, raw: Any) -> Any:
        import torch

        return torch.load(BytesIO(raw), map_location="cpu", weights_only=True)


class _Tensor(_Made):
    __slots__ = ()

    def __call__(self, storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> np.ndarray:
        """Copy the view that torch describes; it must not reach out of the storage."""
        import torch

        if not isinstance(storage, torch.storage.TypedStorage):
            raise RefusedError("a tensor without numbers")
        flat = torch.empty(0, dtype=storage.dtype).set_(storage._untyped_storage)
        spans = zip(size, stride, strict=True)
        last = offset + sum((n - 1) * step for n, step in spans)
        if min((offset, *size, *stride)) < 0 or (0 not in size and last >= len(flat)):
            raise RefusedError("a tensor that is larger than its numbers")
        return flat.as_strided(tuple(size), tuple(stride), offset).clone().numpy()


class _DataUnpickler(pickle.Unpickler):
    _names: ClassVar[dict[tuple[str, str], Any]] = {
        ("torch._utils", "_rebuild_tensor_v2"): _Tensor(),
        ("torch.storage", "_load_from_bytes"): _Storage(),
        ("_codecs", "encode"): _Latin1(),
        ("collections", "OrderedDict"): dict,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _DType,
        **{
            (f"numpy.{core}.multiarray", name): made
            for core in ("core", "_core")
            for name, made in (("_reconstruct", _Array), ("scalar", _Scalar()))
        },
        **{(f"numpy.{core}.numeric", "_frombuffer"): _FromBuffer() for core in ("core", "_core")},
    }

    def find_class(self, module: str, name: str) -> Any:
        made: Callable[..., Any] | None = self._names.get((module, name))
        if made is None:
            raise RefusedError(f"it names {module}.{name}, which is no data; no code was run")
        return made

    def persistent_load(self, pid: Any) -> Any:
        raise RefusedError("it refers to something outside of the file")


def _finished(value: Any) -> Any:
    """The arrays in place of what stood for them."""
    kind = type(value)
    if kind is _Array:
        return value.array
    if kind is dict:
        return {key: _finished(one) for key, one in value.items()}
    if kind is list:
        return [_finished(one) for one in value]
    if kind is tuple:
        return tuple(_finished(one) for one in value)
    return value
