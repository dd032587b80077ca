"""Bundles: an agent as one file, which loading never runs code from.

A zip of `agent.json` (spaces, policy config, wrappers, normalisers) and of `arrays/*.npy` without
pickles, with a checksum of the whole at its end.
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ding import __version__
from ding.agent.card import Card
from ding.agent.spaces import plain_space, space_of
from ding.utils.batch import tree_map
from ding.utils.checkpoint import whole_file
from ding.utils.checksum import DamagedError, SummingWriter, check_file
from ding.utils.errors import CheckpointError
from ding.utils.plain import NotPlainError, from_plain, to_plain

FORMAT, VERSION = "ding-agent", 1
_HEADER, _ARRAY, _MEMBER = "agent.json", "arrays/{}.npy", "__member__"
_PLAIN_FIELDS = ("policy", "env", "time_wrappers", "wrappers", "act_scale", "progress")
_SPACES = ("observation_space", "action_space")
_OURS = ("ding", "dizoo")


def write_bundle(path: str | Path, card: Card, parts: Mapping[str, Any]) -> None:
    """Write card and acting parts, all of them or nothing."""
    arrays: list[np.ndarray] = []

    def referred(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        arrays.append(leaf)
        return {_MEMBER: len(arrays) - 1}

    header = {
        "format": FORMAT,
        "format_version": VERSION,
        "ding": __version__,
        **{name: _plain(name, getattr(card, name)) for name in _PLAIN_FIELDS},
        **{name: plain_space(getattr(card, name)) for name in _SPACES},
        "own_env": card.own_env,
        "parts": to_plain(tree_map(referred, dict(parts))),
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_HEADER, json.dumps(header, indent=1))
        for i, array in enumerate(arrays):
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            archive.writestr(_ARRAY.format(i), member.getvalue())
    with whole_file(path) as file:
        writer = SummingWriter(file)
        writer.write(content.getvalue())
        writer.close()


def _plain(name: str, value: Any) -> Any:
    try:
        return to_plain(_without_easydict(value), names=True)
    except NotPlainError as error:
        raise CheckpointError(
            f"the agent cannot be saved, since its {name} is no plain data: {error}; define what "
            "it names at the top of a module"
        ) from error


def _without_easydict(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _without_easydict(value) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(map(_without_easydict, tree))
    return tree


def is_bundle(path: Path) -> bool:
    """Whether the file is a zip with a header like that of a bundle."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return _HEADER in archive.namelist()


def read_bundle(path: Path, *, trusted: bool = False) -> tuple[Card, dict[str, Any]]:
    """Card and acting parts. Unless `trusted`, modules that the file names are not imported."""
    try:
        check_file(path)
        with zipfile.ZipFile(path) as archive:
            header = _checked_header(json.loads(archive.read(_HEADER)), path)
            parts = _parts(from_plain(header["parts"]), archive)
        if not trusted:
            _check_modules(header, path)
        return _card(header, trusted), parts
    except DamagedError as error:
        raise CheckpointError(f"bundle '{path}' is damaged: {error}") from error
    except (KeyError, ValueError, TypeError, AttributeError, OSError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"bundle '{path}' is damaged: {error!r}") from error


def _checked_header(header: Any, path: Path) -> dict[str, Any]:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else type(header).__name__
        raise CheckpointError(f"'{path}' is no bundle: its format is {found!r}, not '{FORMAT}'")
    if header["format_version"] != VERSION:
        raise CheckpointError(
            f"bundle '{path}' has format version {header['format_version']} (written by ding "
            f"{header.get('ding')}); ding {__version__} reads version {VERSION}"
        )
    return header


def _parts(tree: Any, archive: zipfile.ZipFile) -> Any:
    if isinstance(tree, dict) and set(tree) == {_MEMBER}:
        member = io.BytesIO(archive.read(_ARRAY.format(int(tree[_MEMBER]))))
        return np.load(member, allow_pickle=False)
    if isinstance(tree, dict):
        return {key: _parts(value, archive) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_parts(value, archive) for value in tree)
    return tree


def _card(header: Mapping[str, Any], trusted: bool) -> Card:
    def named(name: str) -> Any:
        """Resolve `module:name`; `_check_modules` has found that it may be imported."""
        module, _, attribute = name.partition(":")
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        if not (trusted or (isinstance(found, type) and issubclass(found, gym.Wrapper))):
            raise NotPlainError(f"'{name}' is no wrapper class; if you know it, pass trusted=True")
        return found

    for part in (header, header["env"] or {}):
        for place in _wrapper_places(part):
            named(place)

    fields: dict[str, Any] = {name: from_plain(header[name], named) for name in _PLAIN_FIELDS}
    fields |= {name: space_of(header[name]) for name in _SPACES}
    # Bundles that were written before have no such entry.
    return Card(**fields, own_env=bool(header.get("own_env", False)))


def _check_modules(header: Mapping[str, Any], path: Path) -> None:
    for module in sorted(set(_modules(header))):
        if module.split(".")[0] not in _OURS and module not in sys.modules:
            raise CheckpointError(
                f"bundle '{path}' needs the module '{module}'; a bundle imports nothing by itself: "
                f"import it first, or pass trusted=True"
            )


def _modules(tree: Any) -> Iterator[str]:
    """Modules that a header names."""
    if isinstance(tree, dict):
        if isinstance(tree.get("__name__"), str):
            yield tree["__name__"].partition(":")[0]
        if isinstance(env_id := tree.get("env_id"), str) and ":" in env_id:
            yield env_id.partition(":")[0]  # gymnasium.make imports what stands before the colon
        names: Iterable[str] = tree.get("import_names") or ()
        yield from [names] if isinstance(names, str) else names
        yield from (place.partition(":")[0] for place in _wrapper_places(tree))
    for value in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(value, (dict, list)):
            yield from _modules(value)


def _wrapper_places(tree: Mapping[str, Any]) -> Iterator[str]:
    """Wrappers of one level that are named by 'module:Class'."""
    for key in ("env_wrapper", "time_wrappers", "wrappers"):
        for wrapper in tree.get(key) or ():
            kind = wrapper.get("type") if isinstance(wrapper, dict) else wrapper
            if isinstance(kind, str) and ":" in kind:
                yield kind
