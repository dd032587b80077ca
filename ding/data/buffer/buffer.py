"""The interface of buffers with middleware.

A middleware is `f(action, chain, *args, **kwargs)`: it is called instead of the action ('push',
'sample', 'update', 'delete', 'clear') and calls `chain(*args, **kwargs)` to go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

Middleware = Callable[..., Any]


@dataclass
class BufferedData:
    data: Any
    index: str
    meta: dict[str, Any]


def apply_middleware(action: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a method: all middleware is asked first, the one used last outermost."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(buffer: Buffer, *args: Any, **kwargs: Any) -> Any:
            chain: Callable[..., Any] = partial(method, buffer)
            for middleware in buffer._middleware:
                chain = partial(middleware, action, chain)
            return chain(*args, **kwargs)

        return call

    return decorate


class Buffer(ABC):
    def __init__(self, size: int) -> None:
        self._size = size
        self._middleware: list[Middleware] = []

    @property
    def size(self) -> int:
        return self._size

    def use(self, middleware: Middleware) -> Buffer:
        self._middleware.append(middleware)
        return self

    def view(self) -> Buffer:
        """The same elements with middleware of its own, on top of what is here."""
        other = copy(self)
        other._middleware = list(self._middleware)
        return other

    @abstractmethod
    def push(self, data: Any, meta: dict[str, Any] | None = None) -> BufferedData: ...

    @abstractmethod
    def sample(self, size: int | None = None, **kwargs: Any) -> list[Any]: ...

    @abstractmethod
    def update(self, index: str, data: Any = None, meta: dict[str, Any] | None = None) -> bool: ...

    @abstractmethod
    def delete(self, index: str | list[str]) -> None: ...

    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def get(self, idx: int) -> BufferedData: ...

    @abstractmethod
    def get_by_index(self, index: str) -> BufferedData | None: ...

    @abstractmethod
    def clear(self) -> None: ...
