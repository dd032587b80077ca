"""The first updates of a task: what they make of the weights, and which files' code they run.

`python ledger/probe.py NAME SEED UPDATES DIRECTORY [KEY=VALUE ...] [--trace]` prints it as JSON.
It is run by path, with the `ding` of any commit, so it uses only what all of them have.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any


def probe(name: str, seed: int, updates: int, directory: str, settings: dict[str, str]) -> str:
    """Train for so many updates; returns a digest of the model's weights."""
    from ding.config import override
    from ding.entry import serial_pipeline

    main, create = configs_of(name)
    main = override(main, {"exp_name": directory, **settings})
    serial_pipeline([main, create], seed=seed, max_train_iter=updates)
    checkpoints = Path(directory, "ckpt").glob("iteration_*.pth.tar")
    last = max(checkpoints, key=lambda path: int(path.name.split("_")[1].split(".")[0]))
    return digest_of(_read(last)["model"])


def configs_of(name: str) -> tuple[Any, Any]:
    """Those of a module of the zoo, or defaults: `{"env": {...}, "policy": ..., "steps": N}`."""
    if not name.startswith("{"):
        loaded = import_module(name)
        return loaded.main_config, loaded.create_config
    from ledger.defaults import default_configs

    return default_configs(**json.loads(name))


def _read(path: Path) -> dict[str, Any]:
    from ding.utils.checkpoint import load_checkpoint

    return load_checkpoint(path, trusted=True)


def digest_of(weights: dict[str, Any]) -> str:
    """Of every bit of these tensors and of their names."""
    whole = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        array = tensor.detach().cpu().numpy()
        whole.update(f"{name} {array.dtype} {array.shape}".encode())
        whole.update(array.tobytes())
    return whole.hexdigest()[:16]


class Trace:
    """The files below a directory of which some function is run meanwhile, in this thread."""

    def __init__(self, root: Path) -> None:
        self._root, self._seen = root, set[CodeType]()

    def __enter__(self) -> Trace:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: Any, event: str, arg: Any) -> None:
        if event == "call":
            self._seen.add(frame.f_code)

    @property
    def files(self) -> list[str]:
        """By their paths from the root; bodies of modules and classes only define things."""
        ran = {Path(c.co_filename) for c in self._seen if c.co_flags & inspect.CO_OPTIMIZED}
        return sorted(
            path.relative_to(self._root).as_posix()
            for path in ran
            if path.is_relative_to(self._root)
        )


def imported_from(package: str, root: Path) -> list[str]:
    """Files of a package's loaded modules: envs may run in other processes, configs run nothing."""
    files = [m.__file__ for name, m in sys.modules.items() if name.split(".")[0] == package]
    return sorted(Path(file).relative_to(root).as_posix() for file in files if file)


def main(argv: list[str]) -> None:
    import ding

    tracing = "--trace" in argv
    name, seed, updates, directory, *more = [a for a in argv if a != "--trace"]
    settings = dict(item.split("=", 1) for item in more)
    if ding.__file__ is None:
        raise RuntimeError("no ding beside this probe")
    root = Path(ding.__file__).parents[1]
    again = partial(probe, name, int(seed), int(updates))
    digest, files = again(f"{directory}/first", settings), []
    if tracing:
        # Once more: by now all is imported, and what imports run is not what a training runs.
        with Trace(root) as trace:
            repeated = again(f"{directory}/second", settings) == digest
        if not repeated:
            raise RuntimeError(f"{name} gives other weights when it is run again with this seed")
        ours = {*trace.files, *imported_from("dizoo", root)}
        files = sorted(f for f in ours if f.startswith(("ding/", "dizoo/")))
    sys.stdout.write("\n" + json.dumps({"digest": digest, "files": files}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
