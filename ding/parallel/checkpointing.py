"""Checkpointing of a parallel run: learner, buffer and ledger as they were at one moment.

The parts are files of their own, in `policy/` and `data/`; a manifest in `ckpt/` names those that
belong together. It is replaced in one move when all of them are whole, so that what it names can
always be resumed.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ding.parallel.backend import Call, ServiceLostError, ignore
from ding.utils.checkpoint import whole_file
from ding.utils.errors import CheckpointError
from ding.utils.limits import Limits

if TYPE_CHECKING:
    from ding.parallel.coordinator import Coordinator

MANIFEST = "parallel_state.json"
_VERSION = 2
# Between two questions whether the buffer is written: they would keep it from being so.
_LOOK_SECONDS = 0.01


@dataclass(frozen=True)
class Saved:
    """What a manifest says."""

    number: int
    learner: str
    """Where its part is, in the directory of the run; so the next."""
    buffer: str | None
    ledger: dict[str, Any]
    found: dict[str, Any]
    seconds: float
    limits: dict[str, int]
    version: int = _VERSION


def load_manifest(directory: Path) -> Saved:
    path = directory / "ckpt" / MANIFEST
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        saved = Saved(**plain)
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"'{directory}' can't be resumed: {path}: {error}") from error
    missing = [n for n in (saved.learner, saved.buffer) if n and not (directory / n).is_file()]
    if saved.version != _VERSION or missing:
        why = f"{', '.join(missing)} is missing" if missing else "another version of ding wrote it"
        raise CheckpointError(f"'{directory}' can't be resumed: {why}")
    return saved


class Checkpointing:
    """One checkpoint after the other, without a pause for the collectors."""

    def __init__(
        self, coordinator: Coordinator, cfg: Any, limits: Limits, resumed: Saved | None
    ) -> None:
        self._c, self._directory = coordinator, Path(cfg.exp_name)
        self._every = cfg.checkpoint_seconds
        self.last = resumed
        """What was put in place last."""
        self._number = resumed.number if resumed else 0
        self._due = time.monotonic() + self._every
        self._before = resumed.seconds if resumed else 0.0
        self._started = time.monotonic()
        self._limits = limits
        self.count = 0
        """Checkpoints that were put in place."""
        self.wants_quiet = False
        self._look_due = 0.0
        self._open: set[str] = set()
        self._coming: dict[str, Any] | None = None

    @property
    def seconds(self) -> float:
        """Time of the run, with what it took before it was resumed."""
        return self._before + time.monotonic() - self._started

    @property
    def learner_file(self) -> str | None:
        return None if self.last is None else str(self._directory / self.last.learner)

    @property
    def is_busy(self) -> bool:
        return self.wants_quiet or self._coming is not None

    # --- saving --------------------------------------------------------------------------------

    def begin(self) -> None:
        if not self.is_busy:
            self.wants_quiet = True

    def go_on(self) -> None:
        """Take the next step of a checkpoint that is due, as far as nobody is in the way."""
        if not self.is_busy and time.monotonic() >= self._due:
            self.begin()
        c = self._c
        if self.wants_quiet and c.learner.idle and (c.buffer is None or c.buffer.idle):
            self._take()
        elif c.buffer is not None and "buffer" in self._open and c.buffer.idle:
            if time.monotonic() >= self._look_due:
                self._look_due = time.monotonic() + _LOOK_SECONDS
                c.ask(c.buffer, self._look, "is_saved", lost=self._give_up)
        elif self._coming is not None and not self._open:
            self._put_in_place()

    def _take(self) -> None:
        """Both parts as they are now; the buffer writes its own in the background."""
        c, self.wants_quiet = self._c, False
        self._number += 1
        names = {"learner": f"policy/learner_{self._number}.pth.tar", "buffer": None}
        self._open = {"learner"}
        learner = str(self._directory / str(names["learner"]))
        c.ask(c.learner, self._learner_saved, "save", learner, lost=self._give_up)
        if c.buffer is not None:
            names["buffer"] = f"data/buffer_{self._number}.bin"
            self._open |= {"buffer"}
            path = str(self._directory / str(names["buffer"]))
            c.ask(c.buffer, ignore, "save", path, lost=self._give_up)
        self._coming = {
            "number": self._number,
            **names,
            "ledger": c.ledger.plain(),
            "found": asdict(c.found),
            "seconds": self.seconds,
            "limits": asdict(self._limits),
        }

    def _learner_saved(self, call: Call, told: Any) -> None:
        self._open.discard("learner")

    def _look(self, call: Call, told: dict[str, Any]) -> None:
        if told["saved"]:
            self._open.discard("buffer")

    def _give_up(self, why: ServiceLostError) -> None:
        """A part is lost with its service: the last checkpoint stays what it is."""
        self._coming, self._open = None, set()
        self._due = time.monotonic()

    def _put_in_place(self) -> None:
        assert self._coming is not None
        saved, self._coming = Saved(**self._coming), None
        with whole_file(self._directory / "ckpt" / MANIFEST) as file:
            file.write(json.dumps(asdict(saved)).encode())
        kept = {Path(name).name.split(".")[0] for name in (saved.learner, saved.buffer) if name}
        for pattern in ("policy/learner_*.pth.tar", "data/buffer_*.bin"):
            for old in self._directory.glob(pattern):
                if old.name.split(".")[0] not in kept:
                    old.unlink()
        self.last, self._due = saved, time.monotonic() + self._every
        self.count += 1

    # --- restoring -----------------------------------------------------------------------------

    def restore_buffer(self) -> None:
        """What the last checkpoint has of it, if there is one; what came later is lost."""
        buffer, file = self._c.buffer, None if self.last is None else self.last.buffer
        if buffer is not None and file is not None:
            self._c.ask(buffer, ignore, "load", str(self._directory / file))

    def restore_rest(self) -> None:
        self.restore_buffer()
        if self.last is not None and self.last.found["state"]["history"]:
            self._c.ask(self._c.evaluator, ignore, "restore", self.last.found["state"])
