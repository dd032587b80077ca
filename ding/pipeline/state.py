"""State of a whole run: saved without a pause in the training, restored bit for bit.

What is in the replay buffer goes to a file of its own in the background. The rest waits under
another name until that file is whole: a state that can be seen can be resumed.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ding.utils.checkpoint import flush_directory, load_checkpoint, save_checkpoint
from ding.utils.errors import CheckpointError, ConfigError
from ding.worker.buffer import IBuffer, datafile
from ding.worker.buffer.snapshot import Snapshot

logger = logging.getLogger(__name__)

VERSION = 4
STATE_NAME, PREVIOUS_NAME = "run_state.pth.tar", "run_state_previous.pth.tar"
_COMING_NAME = ".run_state_coming.tmp"
_BUFFER_NAME = "run_buffer_{}.bin"


class StateKeeper:
    """Saves one state of a run after the other, and keeps the last two."""

    def __init__(
        self, directory: Path, buffer: IBuffer | None, resumed: Mapping[str, Any] | None = None
    ) -> None:
        self._directory, self._buffer = directory / "ckpt", buffer
        self._snapshot: Snapshot | None = None
        self._last_file: str | None = resumed["buffer_file"] if resumed else None

    @property
    def is_busy(self) -> bool:
        """Whether a state is being saved; it is put in place as soon as it is whole."""
        if self._snapshot is not None and self._snapshot.done:
            self.finish()
        return self._snapshot is not None

    def save(self, state: dict[str, Any]) -> None:
        """Begin to save the state of the run and its buffer as they are now."""
        self.finish()
        buffer = self._buffer
        if buffer is None or not hasattr(buffer, "snapshot"):
            content = None if buffer is None else buffer.state_dict()
            self._write(state | {"buffer": content, "buffer_file": None})
            self._put_in_place(None)
            return
        path = self._directory / self._unused_name()
        self._snapshot = buffer.snapshot(path)
        try:
            self._write(state | {"buffer": None, "buffer_file": path.name})
        except BaseException:
            self._snapshot.join()
            self._snapshot = None
            path.unlink(missing_ok=True)
            raise

    def finish(self) -> None:
        """Wait until what is being saved is in place."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            self._put_in_place(snapshot.wait().name)

    def _write(self, state: dict[str, Any]) -> None:
        save_checkpoint(self._directory / _COMING_NAME, {"version": VERSION, **state})

    def _put_in_place(self, buffer_file: str | None) -> None:
        """Replace the last state in one move; the one before it is kept."""
        path, previous = self._directory / STATE_NAME, self._directory / PREVIOUS_NAME
        if path.exists():
            previous.unlink(missing_ok=True)
            os.link(path, previous)
        (self._directory / _COMING_NAME).replace(path)
        flush_directory(self._directory)
        for file in self._directory.glob(_BUFFER_NAME.format("*")):
            if file.name not in (buffer_file, self._last_file):
                file.unlink()
        self._last_file = buffer_file

    def _unused_name(self) -> str:
        names = map(_BUFFER_NAME.format, count())
        return next(name for name in names if not (self._directory / name).exists())


def load_state(directory: Path) -> dict[str, Any]:
    """The last state, or the one before it if the last is damaged."""
    errors = []
    for name in (STATE_NAME, PREVIOUS_NAME):
        try:
            state = _loaded(directory / "ckpt" / name)
        except CheckpointError as error:
            errors.append(str(error))
            continue
        if errors:
            logger.warning("%s; going on from the state before it", errors[0])
            # The next one that is saved must not push out the good one.
            (directory / "ckpt" / PREVIOUS_NAME).replace(directory / "ckpt" / STATE_NAME)
        return state
    raise CheckpointError(f"'{directory}' can't be resumed: {errors[0]}")


def _loaded(path: Path) -> dict[str, Any]:
    state = load_checkpoint(path, trusted=True)
    if state.get("version") != VERSION:
        raise CheckpointError(
            f"'{path}' was written by another version of ding and can't be resumed; start from "
            "its weights with --load-path"
        )
    if state["buffer_file"] is not None:
        meta, arrays = datafile.read(path.parent / state["buffer_file"])
        state["buffer"] = {**meta, "arrays": arrays}
    return state


def find_run(exp_name: str, names: Sequence[str] = (STATE_NAME, PREVIOUS_NAME)) -> Path:
    """The newest run of that name (with or without a time stamp) that can be resumed.

    It has one of these files among its checkpoints.
    """
    runs = {path: files for path in runs_of(exp_name) if (files := _state_files(path, names))}
    if not runs:
        raise CheckpointError(
            f"nothing to resume: no '{Path(exp_name)}' with a ckpt/{names[0]}; start without "
            "--resume"
        )
    return max(runs, key=lambda path: max(f.stat().st_mtime for f in runs[path]))


def runs_of(exp_name: str) -> list[Path]:
    """Where runs of that name may be: with or without a time stamp."""
    base = Path(exp_name)
    return [base, *base.parent.glob(f"{base.name}_[0-9][0-9][0-9][0-9][0-9][0-9]_*")]


def discard(directory: Path) -> None:
    """Remove a run that has not begun, unless it has records of envs that failed."""
    if not any(directory.glob("flight/*.json")):
        shutil.rmtree(directory)


def _state_files(directory: Path, names: Sequence[str]) -> list[Path]:
    files = [directory / "ckpt" / name for name in names]
    return [file for file in files if file.is_file()]


def check_same_config(saved: Any, given: Any) -> None:
    """Refuse to continue a run with other settings than it was begun with."""
    different = sorted(path for path in _differences(saved, given, ""))
    if different:
        raise ConfigError(
            "--resume continues a run as it was, but these settings differ: "
            f"{'; '.join(different[:5])}. Undo the change, or start a new run with --load-path"
        )


def _differences(saved: Any, given: Any, path: str) -> list[str]:
    if isinstance(saved, Mapping) and isinstance(given, Mapping):
        found = []
        for key in {*saved, *given} - {"exp_name", "checkpoint_seconds", "callbacks"}:
            inner = f"{path}.{key}" if path else str(key)
            found += _differences(saved.get(key), given.get(key), inner)
        return found
    same = _listed(saved) == _listed(given)
    return [] if same else [f"{path} was {saved!r}, is {given!r}"]


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
