"""What a worker writes down: text, and scalars for TensorBoard, in a directory of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class WorkerLog:
    """`<exp_name>/log/<worker>/`; nothing is created before the first line or number is written."""

    def __init__(self, exp_name: str, worker: str, tb_logger: Any = None) -> None:
        self.directory = Path(exp_name) / "log" / worker
        self.worker = worker
        self._given_writer = tb_logger
        self._writer: Any = tb_logger
        self._text: logging.Logger | None = None

    def info(self, message: str) -> None:
        if self._text is None:
            self._text = self._open_text()
        self._text.info(message)

    def scalars(self, values: Mapping[str, Any], step: int) -> None:
        """Numbers under their full names, e.g. `evaluator_step/reward_mean`."""
        if not values:
            return
        if self._writer is None:
            from tensorboardX import SummaryWriter

            self._writer = SummaryWriter(str(self.directory))
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    @property
    def tb_logger(self) -> Any:
        return self._writer

    def _open_text(self) -> logging.Logger:
        self.directory.mkdir(parents=True, exist_ok=True)
        logger = logging.Logger(self.worker)
        handler = logging.FileHandler(self.directory / f"{self.worker}_logger.txt")
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
        return logger

    def close(self) -> None:
        """Close what was opened here; a writer that was handed in stays open."""
        if self._writer is not None and self._given_writer is None:
            self._writer.close()
        if self._text is not None:
            for handler in self._text.handlers:
                handler.close()
        self._writer, self._text = self._given_writer, None


def table(values: Mapping[str, Any]) -> str:
    """Names and values on one aligned line per three entries, for text logs."""
    cells = [f"{name}: {_short(value)}" for name, value in values.items()]
    width = max((len(cell) for cell in cells), default=0)
    rows = [cells[i : i + 3] for i in range(0, len(cells), 3)]
    return "\n".join("  ".join(cell.ljust(width) for cell in row).rstrip() for row in rows)


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
