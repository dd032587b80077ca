"""Save and load what a training is made of; save it also when the training breaks.

Files are written and read by `ding.utils.checkpoint`: whole or not at all, never executed.
"""

from __future__ import annotations

import functools
import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from torch import nn

from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.errors import CheckpointError

_log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


class CountVar:
    """A number that several parts of a training read and move on."""

    def __init__(self, init_val: int) -> None:
        self._val = init_val

    @property
    def val(self) -> int:
        return self._val

    def update(self, val: int) -> None:
        self._val = val

    def add(self, add_num: int) -> None:
        self._val += add_num


class CheckpointHelper:
    """Models, optimizers and counters to and from one file."""

    def save(
        self,
        path: str,
        model: nn.Module,
        optimizer: Any = None,
        *,
        prefix_op: str | None = None,
        prefix: str | None = None,
        **parts: Any,
    ) -> None:
        """`parts` (last_iter, last_epoch, dataset, ...) are counters or know `state_dict`."""
        state: dict[str, Any] = {"model": self._renamed(model.state_dict(), prefix_op, prefix)}
        for name, part in {"optimizer": optimizer, **parts}.items():
            if part is not None:
                state[name] = part.val if isinstance(part, CountVar) else part.state_dict()
        save_checkpoint(path, state)
        _log.info("saved a checkpoint to %s", path)

    def load(
        self,
        load_path: str,
        model: nn.Module,
        optimizer: Any = None,
        *,
        prefix_op: str | None = None,
        prefix: str | None = None,
        strict: bool = True,
        state_dict_mask: Sequence[str] = (),
        **parts: Any,
    ) -> None:
        """Load into whatever is given; parameters whose names hold a mask keep their values."""
        saved = load_checkpoint(load_path)
        state = self._renamed(saved["model"], prefix_op, prefix)
        kept = [name for name in state if any(mask in name for mask in state_dict_mask)]
        wanted = {name: value for name, value in state.items() if name not in kept}
        model.load_state_dict(wanted, strict=strict and not kept)
        for name, part in {"optimizer": optimizer, **parts}.items():
            if part is None:
                continue
            if name not in saved:
                raise CheckpointError(f"checkpoint '{load_path}' holds no '{name}'")
            (part.update if isinstance(part, CountVar) else part.load_state_dict)(saved[name])
        _log.info("loaded the checkpoint %s", load_path)

    @staticmethod
    def _renamed(
        state: Mapping[str, Any], prefix_op: str | None, prefix: str | None
    ) -> dict[str, Any]:
        """Names with `prefix` put before them ('add') or taken away ('remove')."""
        if prefix_op is None:
            return dict(state)
        if prefix_op not in ("add", "remove") or not prefix:
            raise ValueError(f"prefix_op is 'add' or 'remove' with a prefix, got '{prefix_op}'")
        if prefix_op == "add":
            return {prefix + name: value for name, value in state.items()}
        return {name.removeprefix(prefix): value for name, value in state.items()}


def build_checkpoint_helper(cfg: Any = None) -> CheckpointHelper:
    return CheckpointHelper()


def auto_checkpoint(func: F) -> F:
    """Decorator for methods: on an error, SIGINT or SIGTERM call `self.save_checkpoint`, then end.

    The file is `ckpt_exception.pth.tar` beside the others where the method takes a name.
    """

    @functools.wraps(func)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _terminate_as_interrupt():
            try:
                return func(self, *args, **kwargs)
            except BaseException:  # KeyboardInterrupt too; it goes on after the rescue.
                _rescue(self)
                raise

    return guarded  # type: ignore[return-value]


def _rescue(owner: Any) -> None:
    save = getattr(owner, "save_checkpoint", None)
    if save is None:
        _log.warning("%s has no save_checkpoint; nothing was saved", type(owner).__name__)
        return
    try:
        save("ckpt_exception.pth.tar")
    except Exception:
        # The error that ended the run is the one to show; this one is only told.
        _log.exception("the checkpoint after an error could not be saved")


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, where handlers can be set (the main thread) and none is."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(f"signal {number}")

    try:
        previous = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
