"""Readers of demonstrations: our files, pickles of rows, HDF5 of flat columns, Minari datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ding.data import demo_file
from ding.data.demonstrations import Demonstrations, Origin
from ding.data.hdf5 import h5py, read_tree
from ding.data.minari import dataset_file, import_minari
from ding.data.safe_pickle import loads_data
from ding.data.step_columns import STEP_KEYS
from ding.utils.batch import Rows
from ding.utils.errors import DemonstrationError, DingError

_HDF5, _PICKLE = b"\x89HDF\r\n\x1a\n", b"\x80"


def load_demonstrations(path: str | Path) -> Demonstrations:
    """Read demonstrations in any format that is known; executes nothing that is in a file."""
    path = Path(path)
    if path.is_dir():
        return _load_minari(path)
    if not path.is_file():
        raise DemonstrationError(
            f"no demonstrations at '{path}'; make some with: ding demo make RUN -o {path}"
        )
    with path.open("rb") as file:
        head = file.read(len(_HDF5))
    try:
        return _load_file(path, head)
    except DingError:
        raise
    except Exception as error:  # A foreign file can break a reader in any way.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise DemonstrationError(
            f"'{path}' is damaged, cut off or holds no demonstrations ({reason[:160]}); nothing "
            "was run or changed"
        ) from error


def _load_file(path: Path, head: bytes) -> Demonstrations:
    if not head:
        raise DemonstrationError(f"'{path}' is empty")
    if head == _HDF5:
        return _load_hdf5(path)
    if head.startswith(_PICKLE):
        return _load_pickle(path)
    raise DemonstrationError(
        f"'{path}' is neither HDF5 nor a pickle; demonstrations are files of `ding demo make`, "
        "pickled lists of steps, HDF5 with obs, action, reward, done, next_obs, or Minari datasets"
    )


def _load_hdf5(path: Path) -> Demonstrations:
    with h5py().File(path, "r") as file:
        if file.attrs.get("format") == demo_file.FORMAT:
            return demo_file.load(path, file)
        if "episode_0" in file:
            return _load_minari(path)
        lacking = [key for key in STEP_KEYS if key not in file]
        if lacking:
            raise DemonstrationError(
                f"'{path}' is HDF5 without {', '.join(lacking)}: no demonstrations"
            )
        keys = [key for key in (*STEP_KEYS, "truncated") if key in file]
        steps = Rows({key: read_tree(file[key]) for key in keys})
    return Demonstrations.of_steps(steps, Origin(name=str(path)))


def _load_pickle(path: Path) -> Demonstrations:
    rows, origin = loads_data(path.read_bytes()), Origin(name=str(path))
    if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
        return Demonstrations.of_episodes(rows, origin)
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        return Demonstrations.of_steps(rows, origin)
    raise DemonstrationError(
        f"'{path}' holds no list of steps (dicts) or of episodes (lists of dicts)"
    )


def _load_minari(path: Path) -> Demonstrations:
    origin = Origin(name=str(path), env_id=_minari_env(path))
    return Demonstrations.of_episodes(import_minari(path), origin)


def _minari_env(path: Path) -> str | None:
    """Env id that a dataset names, in its file or beside it."""
    file = dataset_file(path)
    described: dict[str, Any] = {}
    if (beside := file.parent / "metadata.json").is_file():
        described = json.loads(beside.read_text())
    elif file.is_file():
        with h5py().File(file, "r") as source:
            described = dict(source.attrs)
    spec = described.get("env_spec")
    named = json.loads(spec) if isinstance(spec, (str, bytes)) else spec
    found = named.get("id") if isinstance(named, dict) else None
    return found if isinstance(found, (str, np.str_)) else None
