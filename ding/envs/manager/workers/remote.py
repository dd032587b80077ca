"""Calls of env methods in workers: rare, pickled, one call at a time."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ding.envs.manager.workers.channel import Command, Fault
from ding.envs.manager.workers.worker import METHOD, MISSING
from ding.utils.errors import EnvError


class Calls:
    """Calls that wait for their replies."""

    def __init__(self) -> None:
        self.pending: set[int] = set()
        self._replies: dict[int, Any] = {}

    def answered(self, unit: int, reply: Any) -> None:
        """With what the method returned, or with a `Fault`."""
        if unit in self.pending:
            self.pending.discard(unit)
            self._replies[unit] = reply

    def call(self, host: Host, units: Sequence[int], name: str, args: Sequence[Any]) -> list[Any]:
        for unit, given in zip(units, args, strict=True):
            self.pending.add(unit)
            host._command(unit, Command.CALL, pickle.dumps((name, given)))
        while self.pending:
            host._pump()
        replies = [self._replies.pop(unit) for unit in units]
        for unit, reply in zip(units, replies, strict=True):
            if isinstance(reply, Fault):
                message = f"env {unit % host.env_num}: '{name}' failed: {reply.shown}"
                raise EnvError(message) from reply.cause()
        return replies


def seen(name: str, found: Sequence[tuple[str, Any]], offered: Sequence[str]) -> list[Any] | None:
    """Values of an attribute in all envs; None if it is a method that may be called."""
    kinds = [kind for kind, _ in found]
    if MISSING in kinds:
        env = found[kinds.index(MISSING)][1]
        raise AttributeError(f"neither the env manager nor {env} has '{name}'")
    if METHOD not in kinds:
        return [value for _, value in found]
    if name not in offered:
        raise RuntimeError(
            f"env method '{name}' cannot be called through the manager; it offers "
            f"{', '.join(offered)}"
        )
    return None


class Host(Protocol):
    @property
    def env_num(self) -> int: ...

    def _command(self, unit: int, kind: Command, pickled: bytes = b"") -> None: ...

    def _pump(self) -> None: ...

    def _call(self, ids: Sequence[int], name: str, *args: Any) -> list[Any]: ...


class RemoteEnv:
    """Stands for an env in a worker; its methods can be called."""

    def __init__(self, host: Host, env_id: int) -> None:
        self._host, self._env_id = host, env_id

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args: self._host._call([self._env_id], name, *args)[0]
