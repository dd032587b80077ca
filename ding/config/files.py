"""Config files: read `.py` and `.yaml`, write both."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from easydict import EasyDict

from ding.config.explain import CompiledConfig, create_config_of
from ding.config.parts import EXAMPLE
from ding.config.schema import to_easydict
from ding.config.text import PlainData, to_python
from ding.config.tree import lookup, plain_dict
from ding.utils.errors import ConfigError

_EXAMPLES = {
    "main_config": (
        "the settings of the run, for example main_config = dict(exp_name='cartpole_dqn', "
        "env=dict(stop_value=195, n_evaluator_episode=5), policy=dict(on_policy=False, ...))"
    ),
    "create_config": f"the parts to build, for example {EXAMPLE}",
    "system_config": (
        "how a parallel run is laid out, for example system_config = dict(coordinator=dict(), "
        "path_data='./data', path_policy='./policy')"
    ),
}
_SECTIONS = tuple(_EXAMPLES)
_WIDTH = 80


def read_config(path: str | Path) -> tuple[EasyDict, EasyDict]:
    """`main_config` and `create_config` of a `.py` or `.yaml` file."""
    main, create = _read_sections(path, ("main_config", "create_config"))
    return main, create


def read_config_with_system(
    path: str | Path, *, required: bool = True
) -> tuple[EasyDict, EasyDict, EasyDict]:
    """Like `read_config`, with `system_config`; unless it is `required` that may be missing."""
    optional = () if required else ("system_config",)
    main, create, system = _read_sections(path, _SECTIONS, optional)
    return main, create, system


def read_config_yaml(path: str | Path) -> EasyDict:
    """A whole YAML file."""
    file = _existing(path, (".yaml", ".yml"))
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=_YamlLoader)
    except (UnicodeDecodeError, yaml.reader.ReaderError) as error:
        raise ConfigError(f"{file}: not valid YAML: what it holds is no text") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}:{line}: not valid YAML: {error.problem}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: the top level must be a dict, got {type(content).__name__}")
    return EasyDict(content)


def save_config(
    cfg: Mapping[str, Any], path: str | Path, type_: str = "py", save_formatted: bool = False
) -> None:
    """Write a config as `type_` py or yaml; `save_formatted`: beside it one key a line (py)."""
    if type_ == "yaml":
        save_config_yaml(cfg, path)
    elif type_ == "py":
        save_config_py(cfg, path)
    else:
        raise ConfigError(f"config files are saved as type_='py' or 'yaml', got {type_!r}")
    if save_formatted:
        file = Path(path)
        formatted = file.with_name(f"formatted_{file.stem}.py")
        _write(formatted, config_text(cfg, width=0))


def save_config_py(cfg: Mapping[str, Any], path: str | Path) -> None:
    _write(path, config_text(cfg))


def save_config_yaml(cfg: Mapping[str, Any], path: str | Path) -> None:
    """YAML knows no tuples: they come back as lists."""
    _write(path, yaml.safe_dump(PlainData().of(_sections_of(cfg)), sort_keys=False))


def config_text(cfg: Mapping[str, Any], *, width: int = _WIDTH) -> str:
    """The text of a Python config file; sections that fit into `width` are on one line."""
    sections = PlainData().of(_sections_of(cfg))
    lines = [f"{name} = {to_python(v, True, width=width)}" for name, v in sections.items()]
    return "\n".join(lines) + "\n"


class Config:
    """What a Python config file defines, as the attribute `cfg_dict`."""

    def __init__(self, cfg_dict: Mapping[str, Any] | None = None) -> None:
        self.cfg_dict: dict[str, Any] = dict(cfg_dict or {})

    @staticmethod
    def file_to_dict(path: str | Path) -> Config:
        names = _run(_existing(path, (".py",)))
        return Config({k: v for k, v in names.items() if not k.startswith("__")})


def _sections_of(cfg: Mapping[str, Any]) -> dict[str, Any]:
    if cfg and all(key in _SECTIONS for key in cfg):
        return dict(cfg)
    create = create_config_of(cfg) if isinstance(cfg, CompiledConfig) else None
    return {"main_config": cfg} | ({"create_config": create} if create else {})


def _read_sections(
    path: str | Path, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> list[EasyDict]:
    file = _existing(path, (".py", ".yaml", ".yml"))
    found = Config.file_to_dict(file).cfg_dict if file.suffix == ".py" else read_config_yaml(file)
    if isinstance(lookup(found, "main_config.policy.type"), str):
        found = {"create_config": {}, **found}  # main_config names its parts itself
    found = {**{name: {} for name in optional}, **found}
    missing = [name for name in names if name not in found]
    if missing:
        needs = "; ".join(f"{name} is {_EXAMPLES[name]}" for name in missing)
        raise ConfigError(f"config file '{file}' does not define {' and '.join(missing)}: {needs}")
    for name in names:
        if not isinstance(found[name], Mapping):
            kind = type(found[name]).__name__
            raise ConfigError(f"config file '{file}': {name} must be a dict, got {kind}")
    return [to_easydict(plain_dict(found[name])) for name in names]


def _existing(path: str | Path, suffixes: tuple[str, ...]) -> Path:
    file = Path(path).expanduser()
    if file.suffix not in suffixes:
        raise ConfigError(f"a config file ends in {' or '.join(suffixes)}, got '{path}'")
    if not file.is_file():
        raise ConfigError(f"there is no config file '{path}' (looked for {file.absolute()})")
    return file


def _run(file: Path) -> dict[str, Any]:
    """Execute a config file in a module of its own; neither bytecode nor module is left behind."""
    module = ModuleType(f"_ding_config_{re.sub(r'[^0-9a-zA-Z_]', '_', file.stem)}")
    module.__file__ = str(file)
    try:
        code = compile(file.read_bytes(), str(file), "exec")
        with _importable(module, file.absolute().parent):
            exec(code, module.__dict__)
    except SyntaxError as error:
        raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{file}:{_line_in(file, error)}: {reason}") from error
    return module.__dict__


@contextmanager
def _importable(module: ModuleType, folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]
        sys.path.remove(str(folder))


def _line_in(file: Path, error: Exception) -> int | str:
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or "?" for f in reversed(frames) if f.filename == str(file)), "?")


def _write(path: str | Path, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


class _YamlLoader(yaml.SafeLoader):
    """Reads `1e-3` as a number, which plain YAML 1.1 takes for a string; refuses a key twice."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        lines: dict[str, int] = {}  # before `<<` adds keys, which own ones may replace
        for key, _ in node.value:
            line = lines.setdefault(key.value, key.start_mark.line + 1)
            if line != key.start_mark.line + 1:
                problem = f"the key '{key.value}' stands twice, first in line {line}"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        super().flatten_mapping(node)


_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)
