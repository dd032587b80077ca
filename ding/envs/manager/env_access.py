"""Spaces and attributes of envs, as a manager shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ding.envs.manager.faults import Phase, fault_of
from ding.envs.manager.flight.file import place_in

METHOD, VALUE, MISSING = "method", "value", "missing"


@contextmanager
def attribute_errors_shown(what: str) -> Iterator[None]:
    """Raise an AttributeError of an env's code as an EnvError.

    One that leaves a property is lost: Python asks `__getattr__` instead.
    """
    try:
        yield
    except AttributeError as error:
        fault = fault_of(error, Phase.CALL)
        told = f"{what} failed: {fault.shown}{place_in(fault.traceback)}"
        raise fault.failure(told) from error


class ReferenceEnv:
    """The env that spaces are read from; made on first use."""

    def __init__(self, env_fn: Callable[[], Any]) -> None:
        self._env_fn = env_fn
        self._env: Any = None
        self._is_unused = False

    @property
    def env(self) -> Any:
        if self._env is None:
            self._env = self._env_fn()
            self._is_unused = True
            if getattr(self._env, "observation_space", None) is None:
                self._env.reset()
                self._env.close()
                self._is_unused = False
        return self._env

    def claim(self) -> Any:
        """The env to play in: one that was made only for a look at its spaces, or a new one."""
        self.replace(self._env if self._is_unused else self._env_fn())
        return self._env

    def replace(self, env: Any) -> None:
        self._env, self._is_unused = env, False


def close_quietly(env: Any) -> None:
    with suppress(Exception):  # A broken env need not close well.
        env.close()


def look_up(env: Any, name: str) -> tuple[str, Any]:
    """Kind and value of an env's attribute."""
    if not hasattr(env, name):
        return MISSING, repr(env)
    value = getattr(env, name)
    return (METHOD, None) if callable(value) and hasattr(value, "__self__") else (VALUE, value)


def attribute_values(
    name: str, found: Sequence[tuple[str, Any]], methods: Sequence[str]
) -> list[Any] | None:
    """Values of an attribute in all envs; None if it is one of the methods that may be called."""
    kinds = [kind for kind, _ in found]
    if MISSING in kinds:
        env = found[kinds.index(MISSING)][1]
        raise AttributeError(f"neither the env manager nor {env} has '{name}'")
    if METHOD not in kinds:
        return [value for _, value in found]
    if name not in methods:
        raise RuntimeError(
            f"env method '{name}' cannot be called through the manager; it offers "
            f"{', '.join(methods)}"
        )
    return None
