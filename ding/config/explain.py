"""A compiled config, and where each of its values came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.config.merge import Origin
from ding.config.schema import deep_merge_dicts
from ding.config.tree import MISSING, lookup, plain_dict, put, values_of
from ding.utils.errors import ConfigError, nearest

# EasyDict turns every attribute, even a class's own, into an item: what is no config value is
# written past it, into the instance's `__dict__`, where copying and pickling find it.
_ORIGINS = "_origins"
_CREATE = "_create_config"


class CompiledConfig(EasyDict):  # type: ignore[misc]
    """The merged, checked config: an EasyDict that remembers where its values came from."""


def compiled(
    tree: Mapping[str, Any], origins: Mapping[str, Origin], create_config: Mapping[str, Any]
) -> CompiledConfig:
    cfg = CompiledConfig(tree)
    object.__setattr__(cfg, _ORIGINS, dict(origins))
    object.__setattr__(cfg, _CREATE, plain_dict(create_config))
    return cfg


def origins_of(cfg: Any) -> dict[str, Origin]:
    """Dotted path to origin; empty for a dict that was not compiled."""
    return dict(getattr(cfg, "__dict__", {}).get(_ORIGINS, {}))


def create_config_of(cfg: Any) -> dict[str, Any] | None:
    """The create_config that a compiled config was made with."""
    return getattr(cfg, "__dict__", {}).get(_CREATE)


def override(
    main_config: Mapping[str, Any], values: Mapping[str, Any], source: str = "command line"
) -> CompiledConfig:
    """A copy of main_config with values set at dotted paths, remembered as coming from `source`."""
    tree = plain_dict(deep_merge_dicts({}, main_config))
    for path, value in values.items():
        put(tree, path, value)
    origins = origins_of(main_config) | {path: Origin(source) for path in values}
    return compiled(tree, origins, create_config_of(main_config) or {})


def explain(cfg: Mapping[str, Any], path: str = "") -> str:
    """The value at a path, who set it and what it means: `64 (default of DQNPolicy): doc`.

    A section is explained value by value, one a line.
    """
    value = lookup(cfg, path) if path else cfg
    if value is MISSING:
        raise ConfigError(f"no config key '{path}'{_nearest_path(cfg, path)}")
    origins = origins_of(cfg)
    if isinstance(value, Mapping) and value:
        lines = [f"{p} = {_line(v, _origin(p, origins))}" for p, v in values_of(value, path)]
        return "\n".join(lines)
    return _line(value, _origin(path, origins))


def _origin(path: str, origins: Mapping[str, Origin]) -> Origin | None:
    """That of the value or, inside of a dict that was given as a whole, of the dict."""
    while path and path not in origins:
        path = path.rpartition(".")[0]
    return origins.get(path)


def _line(value: Any, origin: Origin | None) -> str:
    if origin is None:
        return repr(value)
    of = f" of {origin.owner}" if origin.source == "default" and origin.owner else ""
    return f"{value!r} ({origin.source}{of})" + (f": {origin.doc}" if origin.doc else "")


def _nearest_path(cfg: Mapping[str, Any], path: str) -> str:
    paths = [p for p, _ in values_of(cfg)]
    key = path.rpartition(".")[2]
    same = [p for p in paths if p.rpartition(".")[2] == key]
    sections = {p[:i] for p in paths for i, letter in enumerate(p) if letter == "."}
    return nearest(path, same) if same else nearest(path, [*sections, *paths])
