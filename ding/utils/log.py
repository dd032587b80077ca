"""What a worker writes down: text, and scalars for TensorBoard, in a directory of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)


class WorkerLog:
    """`<exp_name>/log/<worker>/`; nothing is created before the first line or number is written.

    A worker that is made by hand, without the name of a run, writes nothing but to `tb_logger`.
    """

    def __init__(self, exp_name: str | None, worker: str, tb_logger: Any = None) -> None:
        self.directory = None if exp_name is None else Path(exp_name) / "log" / worker
        self.worker = worker
        self._given_writer = tb_logger
        self._writer: Any = tb_logger
        self._text: logging.Logger | None = None

    def info(self, message: str) -> None:
        if self._text is None and self.directory is not None:
            self._text = self._open_text(self.directory)
        if self._text is not None:
            self._text.info(message)

    def scalars(self, values: Mapping[str, Any], step: int) -> None:
        """Numbers under their full names, e.g. `evaluator_step/reward_mean`."""
        if self._writer is None and self.directory is not None and values:
            from ding.utils.event_file import EventWriter

            self._writer = EventWriter(str(self.directory))
        if self._writer is None:
            return
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    @property
    def tb_logger(self) -> Any:
        return self._writer

    def _open_text(self, directory: Path) -> logging.Logger:
        text = logging.Logger(self.worker)
        handler = _TextFile(directory / f"{self.worker}_logger.txt", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        text.addHandler(handler)
        return text

    def close(self) -> None:
        """Close what was opened here; a writer that was handed in stays open."""
        if self._writer is not None and self._given_writer is None:
            self._writer.close()
        if self._text is not None:
            for handler in self._text.handlers:
                handler.close()
        self._writer, self._text = self._given_writer, None


class _TextFile(logging.FileHandler):
    """Takes lines until one can't be written; that is said once, and the rest is dropped."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self.stream is None:
                self.stream = self._open()
            self.stream.write(f"{self.format(record)}\n")
            self.stream.flush()
        except OSError as error:
            self.addFilter(lambda _: False)
            where = self.baseFilename
            logger.warning("no more lines go to '%s' (%s); the training goes on", where, error)

    def close(self) -> None:
        # A disk that was full once is told already.
        with suppress(OSError):
            super().close()


def table(values: Mapping[str, Any]) -> str:
    """Names and values on one aligned line per three entries, for text logs."""
    cells = [f"{name}: {_short(value)}" for name, value in values.items()]
    width = max((len(cell) for cell in cells), default=0)
    rows = [cells[i : i + 3] for i in range(0, len(cells), 3)]
    return "\n".join("  ".join(cell.ljust(width) for cell in row).rstrip() for row in rows)


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
