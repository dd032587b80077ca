"""Episodes as mp4 files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ding.utils.errors import DingError


def has_screen() -> bool:
    """Whether a window can be opened."""
    if os.environ.get("SDL_VIDEODRIVER") == "dummy":
        return False
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


class EpisodeRecorder:
    """Writes one file per episode; a file that exists is never overwritten.

    A file begins with the second frame: an episode that nobody plays leaves none.
    """

    def __init__(self, directory: str | Path, name: str) -> None:
        self.directory = Path(directory)
        self.name = name.replace("/", "_")
        self.episode = 0
        self._writer: Any = None
        self._first: np.ndarray | None = None
        if not has_screen():
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame looks for one, and complains

    def add(self, env: Any) -> None:
        """Append the env's current frame, and begin a file if there is none."""
        rendered = env.render()
        frame = _even(np.asarray(rendered[-1] if isinstance(rendered, list) else rendered))
        if self._writer is None and self._first is None:
            self._first = frame
            return
        if self._writer is None:
            self._writer = _open_writer(self._new_path(), env.metadata.get("render_fps", 30))
            self._writer.append_data(self._first)
        self._writer.append_data(frame)

    def end_episode(self) -> None:
        self._first = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _new_path(self) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        while True:
            path = self.directory / f"{self.name}_episode_{self.episode}.mp4"
            self.episode += 1
            try:
                path.touch(exist_ok=False)  # Reserved: other envs may record to this directory too.
            except FileExistsError:
                continue
            return path


def _open_writer(path: Path, fps: float) -> Any:
    try:
        import imageio
        import imageio_ffmpeg  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        path.unlink()
        raise DingError(
            f"saving replays needs {error.name}: pip install 'ding-engine[video]'"
        ) from error
    return imageio.get_writer(path, fps=fps, macro_block_size=1)


def _even(frame: np.ndarray) -> np.ndarray:
    """Repeat the last row or column where a side is odd, which the usual pixel format forbids."""
    height, width = frame.shape[:2]
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
