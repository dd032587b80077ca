"""Learners that train one policy together, and what they average between them.

All members of a group call the same methods in the same order; each call waits for all of them.
What computes gradients or statistics asks for the `current` group, which is None outside of one.
"""

from __future__ import annotations

import itertools
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.utils.errors import DingError

_distributed: Any = torch.distributed  # whose types do not tell all of this

TIMEOUT = 60.0
"""Seconds that members wait for each other."""


class GroupError(DingError):
    """Another learner of the group is gone, or did not come in time."""


class Group(ABC):
    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    @abstractmethod
    def average_(self, tensor: Tensor) -> None:
        """Overwrite by the mean over all members."""

    @abstractmethod
    def broadcast_(self, tensor: Tensor) -> None:
        """Overwrite by the tensor of rank 0."""

    @abstractmethod
    def close(self) -> None:
        """Leave; the others get an error when they next wait for this member."""

    def _lost(self) -> GroupError:
        return GroupError(
            f"another learner is gone: rank {self.rank} of {self.size} waited for it in vain"
        )


class GlooGroup(Group):
    """Members in processes of their own, connected by TCP."""

    def __init__(self, store: Any, rank: int, size: int, address: str, timeout: float) -> None:
        """`address`, of this machine, is the only one that is listened on."""
        super().__init__(rank, size)
        # The class itself, not the default group of torch.distributed: that one is one per process
        # for good, and this one must be made anew when a member was replaced.
        gloo = _distributed.ProcessGroupGloo
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname=address)]
        options._timeout = timedelta(seconds=timeout)
        options._threads = 1
        self._store = store  # rank 0's ends with it, and others may still be reading
        try:
            self._gloo: Any = gloo(store, rank, size, options)
        except RuntimeError as error:
            raise self._lost() from error

    def average_(self, tensor: Tensor) -> None:
        self._run(lambda dense: self._gloo.allreduce([dense]), tensor)
        tensor.div_(self.size)

    def broadcast_(self, tensor: Tensor) -> None:
        self._run(lambda dense: self._gloo.broadcast(dense, 0), tensor)

    def _run(self, start: Callable[[Tensor], Any], tensor: Tensor) -> None:
        if self._gloo is None:
            raise self._lost()
        dense = tensor.contiguous()
        try:
            start(dense).wait()
        except RuntimeError as error:
            self.close()  # or those who wait for this one would wait until their time is up
            raise self._lost() from error
        if dense is not tensor:
            tensor.copy_(dense)

    def close(self) -> None:
        self._gloo = self._store = None


class ThreadGroup(Group):
    """Members in threads of one process."""

    def __init__(self, table: _Table, rank: int, timeout: float) -> None:
        super().__init__(rank, len(table.places))
        self._table, self._timeout = table, timeout
        self._meet()

    def average_(self, tensor: Tensor) -> None:
        places = self._table.places
        places[self.rank] = tensor
        self._meet()
        mean = torch.stack(places).mean(dim=0)
        self._meet()  # all have read before anyone writes
        tensor.copy_(mean)

    def broadcast_(self, tensor: Tensor) -> None:
        self._table.places[self.rank] = tensor
        self._meet()
        if self.rank:
            tensor.copy_(self._table.places[0])
        self._meet()

    def _meet(self) -> None:
        try:
            self._table.barrier.wait(self._timeout)
        except threading.BrokenBarrierError as error:
            raise self._lost() from error

    def close(self) -> None:
        self._table.barrier.abort()


class _Table:
    """Where the members of a `ThreadGroup` meet, with a place for each."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.places: list[Tensor] = [torch.empty(0)] * size


# --- meetings ------------------------------------------------------------------------------------

_meetings: dict[str, Any] = {}
"""Groups that were opened in this process and are yet to be joined."""
_numbers = itertools.count()


def open_meeting(size: int, *, host: str = "127.0.0.1", in_threads: bool = False) -> str:
    """Value that rank 0 gives to all, itself too, to join; `host` is its address for others."""
    if in_threads:
        meeting = f"threads:{next(_numbers)}"
        _meetings[meeting] = _Table(size)
        return meeting
    listening = socket.create_server((host, 0))
    port = listening.getsockname()[1]
    meeting = f"tcp://{host}:{port}"
    _meetings[meeting] = _distributed.TCPStore(
        host,
        port,
        is_master=True,
        wait_for_workers=False,
        # Left to itself it listens on all interfaces.
        master_listen_fd=listening.detach(),
    )
    return meeting


def join_meeting(meeting: str, rank: int, size: int, *, timeout: float = TIMEOUT) -> Group:
    """Waits until all have come."""
    if meeting.startswith("threads:"):
        if meeting not in _meetings:
            raise GroupError(f"'{meeting}' is over, or was opened in another process")
        group = ThreadGroup(_meetings[meeting], rank, timeout)
        _meetings.pop(meeting, None)
        return group
    host, _, port = meeting.removeprefix("tcp://").rpartition(":")
    try:
        store = _meetings.pop(meeting) if rank == 0 else _store_at(host, int(port), timeout)
        store.set_timeout(timedelta(seconds=timeout))
        return GlooGroup(store, rank, size, _address_towards(host, int(port)), timeout)
    except (KeyError, OSError, RuntimeError) as error:
        raise GroupError(f"rank {rank} of {size} can't join '{meeting}': {error}") from error


def cancel_meeting(meeting: str) -> None:
    """Nobody is to join it any more."""
    _meetings.pop(meeting, None)


def _store_at(host: str, port: int, timeout: float) -> Any:
    seconds = timedelta(seconds=timeout)
    return _distributed.TCPStore(host, port, timeout=seconds, wait_for_workers=False)


def _address_towards(host: str, port: int) -> str:
    """That of this machine by which the other one reaches it: loopback if it is the same."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))  # sends nothing
        return probe.getsockname()[0]


# --- the group of this thread --------------------------------------------------------------------


class _Current(threading.local):
    group: Group | None = None


_current = _Current()


def current() -> Group | None:
    """The group that this thread learns in."""
    return _current.group


@contextmanager
def use(group: Group | None) -> Iterator[None]:
    """Learn in this group here; an error leaves it, so that the others do not wait."""
    before, _current.group = _current.group, group
    try:
        yield
    except BaseException:
        if group is not None:
            group.close()
        raise
    finally:
        _current.group = before


def own_rows(order: np.ndarray, batch_size: int) -> tuple[np.ndarray, int]:
    """Rows of this member in every batch, of those that all members have in the same `order`.

    And how many that are of each. All take as many: what is left of the last batch is dropped.
    """
    group = current()
    if group is None:
        return order, batch_size
    batch_size = min(batch_size, len(order))
    each = batch_size // group.size
    batches = order[: len(order) // batch_size * batch_size].reshape(-1, batch_size)
    return batches[:, group.rank * each : (group.rank + 1) * each].reshape(-1), each


def worked_out_together(values_of: Callable[[slice], np.ndarray], n: int) -> np.ndarray:
    """Values (n,) of rows that all members have: each works out a part, and all get all."""
    group = current()
    if group is None:
        return values_of(slice(None))
    rows = slice(group.rank * n // group.size, (group.rank + 1) * n // group.size)
    values = torch.zeros(n)
    values[rows] = torch.from_numpy(values_of(rows))
    group.average_(values)
    return (values * group.size).numpy()
