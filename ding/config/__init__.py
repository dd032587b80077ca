"""Configs: read, merge with declared defaults, check, explain and save them."""

from ding.config.compile import compile_config
from ding.config.explain import CompiledConfig, explain, override
from ding.config.files import (
    Config,
    read_config,
    read_config_with_system,
    read_config_yaml,
    save_config,
    save_config_py,
    save_config_yaml,
)
from ding.config.schema import (
    REQUIRED,
    deep_merge_dicts,
    default_config_of,
    to_easydict,
)

__all__ = [
    "REQUIRED",
    "CompiledConfig",
    "Config",
    "compile_config",
    "deep_merge_dicts",
    "default_config_of",
    "explain",
    "override",
    "read_config",
    "read_config_with_system",
    "read_config_yaml",
    "save_config",
    "save_config_py",
    "save_config_yaml",
    "to_easydict",
]
