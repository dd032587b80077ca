"""Datasets of whole episodes in HDF5, in the layout that Minari uses. Needs h5py.

`<directory>/data/main_data.hdf5`: a group per episode with observations (one more than steps),
actions, rewards, terminations and truncations; dicts and tuples of arrays are groups of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ding.data.hdf5 import h5py, read_tree, write_tree
from ding.rl_utils.adder import terminated
from ding.utils.batch import Rows, columns_of, concat, take
from ding.utils.errors import DingError

_FILE = Path("data") / "main_data.hdf5"
_STEPS = {
    "action": "actions",
    "reward": "rewards",
    "terminated": "terminations",
    "truncated": "truncations",
}


def dataset_file(path: str | Path) -> Path:
    """The HDF5 file of a dataset: its directory or the file itself may be named."""
    path = Path(path)
    return path if path.suffix in (".hdf5", ".h5") else path / _FILE


def export_minari(path: str | Path, episodes: Sequence[Sequence[Any]]) -> Path:
    """Write episodes (steps with obs, action, reward, next_obs, done, maybe truncated)."""
    file = dataset_file(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        with h5py().File(temporary, "w") as out:
            steps = 0
            for i, episode in enumerate(episodes):
                columns = columns_of(episode)
                group = out.create_group(f"episode_{i}")
                n = len(columns["reward"])
                group.attrs.update({"id": i, "total_steps": n})
                write_tree(group, "observations", _observations(columns))
                for name, dataset in _STEPS.items():
                    write_tree(group, dataset, _flags(columns, name))
                steps += n
            out.attrs.update({"total_episodes": len(episodes), "total_steps": steps})
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return file


def _observations(columns: Mapping[str, Any]) -> Any:
    return concat([columns["obs"], take(columns["next_obs"], slice(-1, None))])


def _flags(columns: Mapping[str, Any], name: str) -> Any:
    if name not in ("terminated", "truncated"):
        return columns[name]
    over = terminated(columns)
    return over if name == "terminated" else np.asarray(columns["done"]).astype(bool) & ~over


def import_minari(path: str | Path) -> list[Rows]:
    """The episodes of a dataset as steps, to be pushed into a buffer or learned from."""
    file = dataset_file(path)
    if not file.is_file():
        raise DingError(f"no dataset at '{file}'; give a directory with {_FILE} or an .hdf5 file")
    try:
        with h5py().File(file, "r") as source:
            names = [name for name in source if name.startswith("episode_")]
            ordered = sorted(names, key=lambda name: int(name.split("_")[1]))
            return [_episode(source[name], name) for name in ordered]
    except (OSError, KeyError, ValueError) as error:
        raise DingError(
            f"dataset '{file}' is damaged, truncated or in another layout: {error}; nothing was "
            "imported"
        ) from error


def _episode(group: Any, name: str) -> Rows:
    observations = read_tree(group["observations"])
    parts = {key: read_tree(group[dataset]) for key, dataset in _STEPS.items()}
    n = len(parts["reward"])
    if _length(observations) != n + 1:
        raise ValueError(f"{name} has {_length(observations)} observations for {n} steps")
    terminated, truncated = parts.pop("terminated"), parts["truncated"].astype(bool)
    return Rows(
        {
            "obs": take(observations, slice(0, n)),
            **parts,
            "next_obs": take(observations, slice(1, n + 1)),
            "done": terminated.astype(bool) | truncated,
            "truncated": truncated,
        }
    )


def _length(tree: Any) -> int:
    while isinstance(tree, (dict, tuple)):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return len(tree)
