"""Files that are either whole or not there: atomic writing, checked reading."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from ding.utils.batch import tree_map
from ding.utils.checksum import SummingWriter, check_file
from ding.utils.errors import CheckpointError

_NUMPY = "__ndarray__"


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """To write under a temporary name, flush, then rename: a reader never sees half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def save_checkpoint(path: str | Path, state: dict[str, Any]) -> None:
    """Write all of it or nothing."""
    import torch

    with whole_file(path) as file:
        writer = SummingWriter(file)
        torch.save(_pack(state), cast("BinaryIO", writer))
        writer.close()


def load_checkpoint(
    path: str | Path, device: str = "cpu", *, trusted: bool = False
) -> dict[str, Any]:
    """Read a checkpoint. Unless `trusted`, nothing but tensors and plain data is accepted."""
    import torch

    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at '{path}'; give the path of a .pth.tar file")
    try:
        check_file(path)
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception as e:  # A foreign file can break the reader in any way.
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise CheckpointError(
            f"cannot read checkpoint '{path}': it is damaged, truncated or not a checkpoint "
            f"({reason[:160]}); use an older one from the same directory"
        ) from e
    if not isinstance(state, dict):
        raise CheckpointError(f"checkpoint '{path}' holds a {type(state).__name__}, not a dict")
    return _unpack(state, trusted)


def _pack(state: Any) -> Any:
    """NumPy arrays to marked tensors: the safe loader knows tensors only."""
    import torch

    def pack(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            if leaf.dtype == object:
                return {_NUMPY: pickle.dumps(leaf), "dtype": "object"}
            raw = np.ascontiguousarray(leaf).reshape(-1).view(np.uint8)
            shape = list(leaf.shape)
            return {_NUMPY: torch.from_numpy(raw), "dtype": leaf.dtype.str, "shape": shape}
        return leaf.item() if isinstance(leaf, np.generic) else leaf

    return tree_map(pack, state)


def _unpack(tree: Any, trusted: bool) -> Any:
    if isinstance(tree, dict):
        if _NUMPY in tree:
            return _array(tree, trusted)
        return {key: _unpack(value, trusted) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_unpack(value, trusted) for value in tree)
    return tree


def _array(packed: dict[str, Any], trusted: bool) -> np.ndarray:
    if packed["dtype"] == "object":
        if not trusted:
            raise CheckpointError("the checkpoint holds Python objects; load it with trusted=True")
        return pickle.loads(packed[_NUMPY])
    raw = packed[_NUMPY].numpy()
    return raw.view(np.dtype(packed["dtype"])).reshape(packed["shape"]).copy()


def flush_directory(directory: Path) -> None:
    """Files that were renamed in it stay so also if the machine stops now."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
