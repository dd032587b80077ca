"""HDF5 trees: nested dicts and tuples of arrays as groups of datasets. Needs h5py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from ding.utils.errors import DingError

_INDEX = "_index_"


def h5py() -> Any:
    try:
        return import_module("h5py")
    except ModuleNotFoundError as error:
        raise DingError(
            "HDF5 files need h5py; install it with: pip install 'ding-engine[demonstrations]'"
        ) from error


def leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Arrays of a tree with the names of their datasets."""
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from leaves(part, f"{path}/{key}")
    elif isinstance(tree, tuple):
        for i, part in enumerate(tree):
            yield from leaves(part, f"{path}/{_INDEX}{i}")
    else:
        yield path, tree


def write_tree(group: Any, name: str, tree: Any, **options: Any) -> None:
    for path, array in leaves(tree, name):
        group.create_dataset(path, data=array, **options)


def read_tree(node: Any, read: Callable[[Any], Any] = lambda dataset: dataset[()]) -> Any:
    """The tree below a group, each dataset by `read`."""
    if not hasattr(node, "keys"):
        return read(node)
    parts = {key: read_tree(node[key], read) for key in node}
    if parts and all(key.startswith(_INDEX) for key in parts):
        return tuple(parts[f"{_INDEX}{i}"] for i in range(len(parts)))
    return parts
