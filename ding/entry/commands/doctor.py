"""`ding doctor`: what is installed, and what the machine offers."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

from ding.entry.commands.listing import aligned
from ding.entry.commands.table import Say

_NEEDED = ("torch", "numpy", "gymnasium")
_OPTIONAL = {
    "imageio_ffmpeg": "videos",
    "pygame": "pictures of classic-control envs",
    "ale_py": "Atari",
    "mujoco": "MuJoCo",
    "Box2D": "LunarLander",
    "minigrid": "MiniGrid",
    "pettingzoo": "several agents",
    "onnx": "ding export policy.onnx",
    "onnxruntime": "ding export policy.onnx",
    "ray": "ding -m dist",
}
_LEAST_DISK = 10**9


def add_options(p: argparse.ArgumentParser) -> None:
    """Take no options."""


def run(args: argparse.Namespace, say: Say) -> int:
    rows = [*_packages(), *_machine(), *_directory()]
    say(aligned(rows))
    missing = [name for mark, name, _ in rows if mark == "WRONG"]
    say(f"to mend: {', '.join(missing)}" if missing else "all that is needed is there")
    return 1 if missing else 0


Row = tuple[str, str, str]


def _packages() -> Iterator[Row]:
    from ding import __version__

    yield "ok", "ding", f"{__version__} with Python {platform.python_version()}"
    for name in _NEEDED:
        found = _version(name)
        yield ("ok", name, found) if found else ("WRONG", name, f"missing: pip install {name}")
    for name, purpose in _OPTIONAL.items():
        found = _version(name)
        yield "ok" if found else "-", name, f"{found or 'not installed'} ({purpose})"


def _version(module: str) -> str | None:
    """Version of the package that brings a module, without importing it."""
    if find_spec(module) is None:
        return None
    packages = packages_distributions().get(module)
    return version(packages[0]) if packages else "installed"


def _machine() -> Iterator[Row]:
    import torch

    cores, threads = os.cpu_count() or 1, os.environ.get("OMP_NUM_THREADS", "not set")
    yield "ok", "cores", f"{cores}, OMP_NUM_THREADS {threads}"
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield ("ok", "GPU", ", ".join(names)) if names else ("-", "GPU", "none that torch can use")


def _directory() -> Iterator[Row]:
    here = Path.cwd()
    if os.access(here, os.W_OK):
        yield "ok", "directory", f"{here} can be written"
    else:
        yield "WRONG", "directory", f"{here} cannot be written: runs go there"
    free = shutil.disk_usage(here).free
    mark = "ok" if free > _LEAST_DISK else "WRONG"
    yield mark, "disk", f"{free / 1e9:.0f} GB free"
