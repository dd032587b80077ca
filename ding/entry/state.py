"""The state of a whole run: saved as one file, restored bit for bit."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.errors import CheckpointError, ConfigError

logger = logging.getLogger(__name__)

VERSION = 1
STATE_NAME, PREVIOUS_NAME = "run_state.pth.tar", "run_state_previous.pth.tar"


def save_state(directory: Path, state: dict[str, Any]) -> None:
    """Replace the last state in one move; the one before it is kept."""
    path = directory / "ckpt" / STATE_NAME
    previous = directory / "ckpt" / PREVIOUS_NAME
    if path.exists():
        previous.unlink(missing_ok=True)
        os.link(path, previous)
    save_checkpoint(path, {"version": VERSION, **state})


def load_state(directory: Path) -> dict[str, Any]:
    """The last state, or the one before it if the last is damaged."""
    errors = []
    for name in (STATE_NAME, PREVIOUS_NAME):
        try:
            state = load_checkpoint(directory / "ckpt" / name, trusted=True)
        except CheckpointError as error:
            errors.append(str(error))
            continue
        if state.get("version") != VERSION:
            raise CheckpointError(
                f"'{directory}' was written by another version of ding and can't be resumed; "
                "start from its weights with --load-path"
            )
        if errors:
            logger.warning("%s; going on from the state before it", errors[0])
        return state
    raise CheckpointError(f"'{directory}' can't be resumed: {errors[0]}")


def find_run(exp_name: str) -> Path:
    """The newest run of that name (with or without a time stamp) that can be resumed."""
    base = Path(exp_name)
    candidates = [base, *base.parent.glob(f"{base.name}_[0-9][0-9][0-9][0-9][0-9][0-9]_*")]
    runs = [path for path in candidates if _state_files(path)]
    if not runs:
        raise CheckpointError(
            f"nothing to resume: no '{base}' with a ckpt/{STATE_NAME}; start without --resume"
        )
    return max(runs, key=lambda path: max(f.stat().st_mtime for f in _state_files(path)))


def _state_files(directory: Path) -> list[Path]:
    files = [directory / "ckpt" / name for name in (STATE_NAME, PREVIOUS_NAME)]
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
        for key in {*saved, *given} - {"exp_name", "checkpoint_seconds"}:
            inner = f"{path}.{key}" if path else str(key)
            found += _differences(saved.get(key), given.get(key), inner)
        return found
    same = _listed(saved) == _listed(given)
    return [] if same else [f"{path} was {saved!r}, is {given!r}"]


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
