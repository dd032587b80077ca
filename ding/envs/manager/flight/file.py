"""Flight: the record of an episode that broke, as text for people and as a file to be replayed."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import traceback
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ding import __version__
from ding.envs.manager.columns import RowError, leaves
from ding.utils.batch import length, take, tree_map
from ding.utils.errors import DingError
from ding.utils.plain import NotPlainError, from_plain, name_of, to_plain

FORMAT = "ding flight 1"
TRUSTED = ("ding", "dizoo")
_SHOWN_ACTIONS = 8
_SHOWN_NUMBERS = 32
_MANAGER = str(Path(__file__).parents[1])
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


class FlightError(DingError):
    """A flight file that is missing, damaged or cannot be replayed."""


@dataclass(frozen=True, kw_only=True)
class Flight:
    """The episode of one env up to its failure; plain data only."""

    env_id: int
    env: dict[str, Any] | None
    """`{"call": "module:name", "args": ..., "kwargs": ...}` in plain form; None if it has none."""
    kind: str
    """Kind of fault: raised, timeout, died, nan, shape or reset."""
    error: str
    traceback: str
    seed: int | None
    """The last argument of `env.seed`; `resets` counts the resets from there to this episode."""
    dynamic_seed: bool | None
    resets: int
    episode_seed: int | None
    """The episode's own seed, if the env tells it."""
    step: int
    """Actions taken, with the one that failed; 0 if the reset failed."""
    actions: list[Any]
    """Columns of actions, one behind the other; more than one if their form changed."""
    reset_kwargs: dict[str, Any]
    hindrance: str
    """Why it cannot be replayed, or ''."""
    step_timeout: float | None
    reset_timeout: float | None
    versions: dict[str, str]
    time: str

    def rows(self) -> list[Any]:
        """Every action as a batch of one."""
        return [take(part, slice(k, k + 1)) for part in self.actions for k in range(length(part))]

    def last_actions(self) -> list[Any]:
        return [shown(take(row, 0)) for row in self.rows()[-_SHOWN_ACTIONS:]]

    def summary(self, path: Path | None = None, headline: str | None = None) -> str:
        """The text of an error: what happened (or `headline`), how to replay it, the traceback."""
        if headline is None:
            headline = (
                f"Env {self.env_id} {'step' if self.step else 'reset'} failed: {self.error} "
                f"(seed {self.seed}, episode step {self.step}, last actions {self.last_actions()})"
            )
        text = headline + place_in(self.traceback)
        if path is not None:
            text += f"; saved as {path}, {self.how_to_replay(path)}"
        return f"{text}\n{self.traceback.rstrip()}" if self.traceback else text

    def how_to_replay(self, path: Path) -> str:
        if self.hindrance:
            return f"but it cannot be replayed: {self.hindrance}"
        if self.env is None:
            return f"to replay it in Python: ding.envs.replay_flight({str(path)!r}, env_fn)"
        trust = "" if is_trusted(self.env["call"]) else " --trust"
        return f"to replay it: ding -m replay {shlex.quote(str(path))}{trust}"

    def save(self, directory: str | Path) -> Path:
        """Write a new file, whole or not at all, and give its path."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        body = asdict(replace(self, actions=[]))
        body |= {
            "actions": to_plain(self.actions),
            "reset_kwargs": to_plain(self.reset_kwargs),
            "last_actions": self.last_actions(),
        }
        text = json.dumps({"format": FORMAT, "check": _check(body), **body}, indent=1)
        stem = f"env{self.env_id}_{re.sub(r'[-:]', '', self.time).replace('T', '-')}_{self.kind}"
        temporary = directory / f".{stem}.{os.getpid()}.tmp"
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            return _published(temporary, directory, stem)
        finally:
            temporary.unlink(missing_ok=True)


def _published(temporary: Path, directory: Path, stem: str) -> Path:
    """A hard link never overwrites: two processes may save at the same moment."""
    for count in range(1, 10_000):
        path = directory / (f"{stem}.json" if count == 1 else f"{stem}-{count}.json")
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            continue
        except OSError:  # A file system without links.
            if path.exists():
                continue
            temporary.replace(path)
        return path
    raise FileExistsError(f"'{directory}' is full of files named {stem}")


def _check(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def load_flight(path: str | Path) -> Flight:
    """Read a flight file; nothing that it names is imported."""
    path = Path(path)
    if not path.is_file():
        raise FlightError(f"no flight file at '{path}'; give the path of a flight/*.json file")
    try:
        body = json.loads(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, f"no JSON ({error})") from error
    if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
        raise FlightError(f"'{path}' is no flight file of this version ('{FORMAT}')")
    if body.pop("check", None) != _check(body):
        raise _damaged(path, "its content does not match its check sum")
    del body["last_actions"]
    if body.keys() != {field.name for field in fields(Flight)}:
        raise _damaged(path, "fields are missing or unknown")
    try:
        for name in ("actions", "reset_kwargs"):
            body[name] = from_plain(body[name])
    except NotPlainError as error:
        raise _damaged(path, str(error)) from error
    return Flight(**body)


def _damaged(path: Path, reason: str) -> FlightError:
    return FlightError(f"flight file '{path}' is damaged or was edited: {reason}")


def describe_env(env_fn: Callable[[], Any]) -> dict[str, Any] | None:
    """How to make the env again, if its maker is importable and has plain arguments."""
    bound = env_fn if isinstance(env_fn, partial) else partial(env_fn)
    try:
        return {
            "call": name_of(bound.func),
            "args": to_plain(list(bound.args), names=True),
            "kwargs": to_plain(dict(bound.keywords), names=True),
        }
    except NotPlainError:
        return None


def is_trusted(name: str) -> bool:
    return name.partition(":")[0].partition(".")[0] in TRUSTED


def shown(row: Any) -> Any:
    """An action for people: numbers as they are, large arrays by their shape."""
    if isinstance(row, (dict, tuple)) and sum(np.size(leaf) for _, leaf in leaves(row, "")) > 0:
        return tree_map(shown, row)
    if isinstance(row, np.ndarray) and row.size > _SHOWN_NUMBERS:
        return f"<{row.dtype} {'x'.join(map(str, row.shape))}>"
    if isinstance(row, (np.ndarray, np.generic)):
        return row.tolist()
    return row if row is None or isinstance(row, (bool, int, float, str)) else repr(row)


def fault_kind(error: BaseException) -> str:
    """The `Flight.kind` of an exception that left `env.step`, or of a step that cannot be used."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, RowError):
        text = str(error)
        return "nan" if " is NaN" in text or " is inf" in text else "shape"
    return "raised"


def env_traceback(error: BaseException) -> str:
    """The traceback without the manager's frames; '' if the manager itself found the fault."""
    told = traceback.TracebackException.from_exception(error)
    frames = [f for f in told.stack if not f.filename.startswith(_MANAGER)]
    told.stack = traceback.StackSummary.from_list(frames)
    return "".join(told.format()) if frames else ""


def place_in(traceback_text: str) -> str:
    """The last place in a traceback, as the end of a sentence."""
    found = _FRAME.findall(traceback_text)
    return "; raised in {}:{} ({})".format(*found[-1]) if found else ""


def versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "gymnasium")}
    return {"python": platform.python_version(), "ding": __version__, **packages}
