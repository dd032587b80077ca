"""Files of demonstrations: HDF5 with a checksum, read as fast as NumPy reads arrays.

Attributes of the root: format, version, env_id, obs_space and action_space (JSON), seed, versions
(JSON), return_mean, return_std, return_min, return_max, random_returns (JSON), checksum. Datasets:
obs, action, reward, terminated, truncated (a row per step), episode_length and final_obs (a row per
episode); nested observations are groups.
"""

from __future__ import annotations

import json
import os
import platform
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ding import __version__
from ding.data.demonstrations import Demonstrations, Origin
from ding.data.hdf5 import h5py, leaves, read_tree, write_tree
from ding.data.space_text import space_from_text, space_to_text
from ding.utils.errors import DemonstrationError

FORMAT, VERSION = "ding_demonstrations", 1
_COLUMNS = ("obs", "action", "reward", "terminated", "truncated")
_PART = 1 << 20
"""Bytes that are read and summed at once, while they are in the processor's cache."""
_MOST_PACKED = 2000
"""A compressed dataset cannot be more times as large as its file."""


def refuse_existing(path: str | Path) -> Path:
    """A path that may be written: nothing is there yet."""
    path = Path(path)
    if path.exists():
        raise DemonstrationError(f"'{path}' exists and is not overwritten; give another name")
    return path


def save(path: str | Path, demonstrations: Demonstrations) -> Path:
    """Write all of it or nothing."""
    path = refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    tree = {
        **demonstrations.columns,
        "episode_length": demonstrations.lengths,
        "final_obs": demonstrations.final_obs,
    }
    about = _about(demonstrations)
    sums = {name: _column_sum(np.asarray(leaf)) for name, leaf in leaves(tree, "")}
    try:
        with h5py().File(temporary, "w") as file:
            for name, column in tree.items():
                write_tree(file, name, column)
            file.attrs.update({**about, "checksum": _checksum(about, sums)})
        os.link(temporary, path)  # Unlike a rename it fails if a file has come there meanwhile.
    except FileExistsError:
        refuse_existing(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _about(demonstrations: Demonstrations) -> dict[str, Any]:
    origin, returns = demonstrations.origin, demonstrations.returns
    versions = {"ding": __version__, "python": platform.python_version(), "numpy": np.__version__}
    about = {
        "format": FORMAT,
        "version": VERSION,
        "env_id": origin.env_id,
        "obs_space": origin.obs_space and space_to_text(origin.obs_space),
        "action_space": origin.action_space and space_to_text(origin.action_space),
        "seed": origin.seed,
        "versions": json.dumps({**versions, **origin.versions}, sort_keys=True),
        "return_mean": float(returns.mean()),
        "return_std": float(returns.std()),
        "return_min": float(returns.min()),
        "return_max": float(returns.max()),
        "random_returns": json.dumps(origin.random_returns),
    }
    return {name: value for name, value in about.items() if value is not None}


def load(path: Path, file: Any) -> Demonstrations:
    """Read an open file of this format, and compare its checksum."""
    about = {name: _plain(value) for name, value in file.attrs.items()}
    if about.get("version") != VERSION:
        raise DemonstrationError(
            f"'{path}' has version {about.get('version')} of the format, this ding reads {VERSION}"
        )
    reader = _Reader(path)
    names = (*_COLUMNS, "episode_length", "final_obs")
    tree = {name: read_tree(file[name], reader) for name in names}
    checksum = about.pop("checksum", None)
    if checksum != _checksum(about, reader.sums):
        raise DemonstrationError(f"'{path}' is damaged: its checksum is another one")
    lengths, final_obs = tree.pop("episode_length"), tree.pop("final_obs")
    return Demonstrations(tree, lengths, final_obs, _origin(about, str(path)))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _origin(about: dict[str, Any], name: str) -> Origin:
    obs, action = about.get("obs_space"), about.get("action_space")
    return Origin(
        env_id=about.get("env_id"),
        obs_space=space_from_text(obs) if obs else None,
        action_space=space_from_text(action) if action else None,
        seed=about.get("seed"),
        versions=json.loads(about["versions"]),
        random_returns=tuple(json.loads(about["random_returns"])),
        name=name,
    )


class _Reader:
    """Reads datasets and sums them up; contiguous ones directly from the file."""

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, path.stat().st_size
        self.sums: dict[str, int] = {}

    def __call__(self, dataset: Any) -> np.ndarray:
        offset = dataset.id.get_offset()
        n_bytes = dataset.size * dataset.dtype.itemsize
        if dataset.dtype.kind not in "biuf" or dataset.external or dataset.is_virtual:
            raise ValueError(f"{dataset.name} holds {dataset.dtype}, not plain numbers")
        if n_bytes > self._size * (1 if offset is not None else _MOST_PACKED):
            raise ValueError(f"{dataset.name} would take {n_bytes} bytes, the file {self._size}")
        name = dataset.name
        if offset is None:
            array = dataset[()]
            self.sums[name] = _column_sum(array)
        else:
            array, self.sums[name] = self._read(offset, dataset.shape, dataset.dtype)
        return array

    def _read(self, offset: int, shape: Any, dtype: np.dtype) -> tuple[np.ndarray, int]:
        array = np.empty(shape, dtype)
        raw = array.reshape(-1).view(np.uint8)
        sums = []
        with self._path.open("rb", buffering=0) as file:
            file.seek(offset)
            for part in _parts(raw):
                if file.readinto(part.data) != len(part):
                    raise ValueError("the file ends too early")
                sums.append(_sum(part))
        if dtype.kind == "b" and raw.max(initial=0) > 1:
            raise ValueError("a flag is neither 0 nor 1")
        return array, _joint(array, sums)


def _parts(raw: np.ndarray) -> list[np.ndarray]:
    return [raw[i : i + _PART] for i in range(0, len(raw), _PART)]


def _column_sum(array: np.ndarray) -> int:
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return _joint(array, [_sum(part) for part in _parts(raw)])


def _sum(part: np.ndarray) -> int:
    """Sum of the 64-bit words modulo 2**64: sees every changed bit at the speed of memory."""
    whole = len(part) // 8 * 8
    rest = int.from_bytes(part[whole:].tobytes(), "little")
    return (int(np.add.reduce(part[:whole].view(np.uint64))) + rest) % 2**64


def _joint(array: np.ndarray, sums: list[int]) -> int:
    head = f"{array.dtype.str}{array.shape}".encode()
    return zlib.crc32(np.array(sums, np.uint64).tobytes(), zlib.crc32(head))


def _checksum(about: dict[str, Any], sums: dict[str, int]) -> int:
    """CRC-32 of the attributes and of the sums of all columns."""
    return zlib.crc32(json.dumps([about, sums], sort_keys=True).encode())
