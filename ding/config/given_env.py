"""Classes and functions in the env section of a config, as 'module:name', which can be saved."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ding.config.tree import short
from ding.utils.errors import ConfigError


def with_places(main: dict[str, Any]) -> dict[str, Any]:
    """The config with classes and functions in `env.env_id` and `env.env_wrapper` by name."""
    env = main.get("env")
    if not isinstance(env, Mapping):
        return main
    named = dict(env)
    if _is_code(env.get("env_id")):
        named["env_id"] = _place_of(env["env_id"], "env.env_id")
    if isinstance(env.get("env_wrapper"), (list, tuple)):
        named["env_wrapper"] = [
            _named_wrapper(wrapper, f"env.env_wrapper[{i}]")
            for i, wrapper in enumerate(env["env_wrapper"])
        ]
    return {**main, "env": named}


def _named_wrapper(wrapper: Any, path: str) -> Any:
    if isinstance(wrapper, Mapping):
        kind = wrapper.get("type")
        return {**wrapper, "type": _place_of(kind, path)} if _is_code(kind) else wrapper
    return _place_of(wrapper, path) if _is_code(wrapper) else wrapper


def _is_code(value: Any) -> bool:
    return callable(value) or hasattr(value, "reset")


def _place_of(value: Any, path: str) -> str:
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
    if name and getattr(sys.modules.get(module), name, None) is value:
        return f"{module}:{name}"
    what = "is one env, and a run makes several" if hasattr(value, "reset") else "has no name"
    if isinstance(value, type):
        what = "is a class inside of a function"
    elif getattr(value, "__name__", "<lambda>") != "<lambda>":
        what = "is a function inside of another one"
    raise ConfigError(
        f"config key '{path}' = {short(value)} {what}: define a class or function in a module and "
        "name it, like 'my_module:MyEnv'"
        + (", or call ding.train(env, policy)" if path == "env.env_id" else "")
    )
