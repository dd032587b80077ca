from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from easydict import EasyDict

from ding.config import (
    Config,
    read_config,
    read_config_with_system,
    read_config_yaml,
    save_config,
    save_config_py,
    save_config_yaml,
)
from ding.config.text import PlainData, to_python
from ding.utils.errors import ConfigError

TWO = "main_config = dict(a=dict(b=1))\ncreate_config = dict(policy=dict(type='dqn'))\n"


def written(folder: Path, text: str, name: str = "my_config.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_python_config_is_read_without_a_trace(tmp_path: Path) -> None:
    written(tmp_path, "SHARED = 7\n", "shared_by_test.py")
    text = "from shared_by_test import SHARED\nimport sys\nme = sys.modules[__name__]\n" + TWO
    before = set(sys.modules), list(sys.path)
    main, create = read_config(written(tmp_path, text + "main_config['a']['b'] = SHARED\n"))
    assert isinstance(main, EasyDict) and main.a.b == 7 and create.policy.type == "dqn"
    assert set(sys.modules) - before[0] <= {"shared_by_test"} and sys.path == before[1]
    sys.modules.pop("shared_by_test")


def test_a_script_below_main_is_not_run(tmp_path: Path) -> None:
    text = TWO + "if __name__ == '__main__':\n    raise SystemExit\n"
    assert read_config(str(written(tmp_path, text)))[0].a.b == 1


def test_what_is_read_is_the_callers_own(tmp_path: Path) -> None:
    path = written(tmp_path, TWO)
    read_config(path)[0].a.b = 5
    assert read_config(path)[0].a.b == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("main_config = dict()\n", "does not define create_config: create_config is the parts to"),
        ("x = 1\n", "does not define main_config and create_config"),
        ("main_config = 3\ncreate_config = {}\n", "main_config must be a dict, got int"),
        ("a = 1\nb = = 2\n", "my_config.py:2: invalid syntax"),
        ("a = 1\n\nb = a / 0\n", "my_config.py:3: ZeroDivisionError: division by zero"),
        ("import no_such_module_at_all\n", "my_config.py:1: ModuleNotFoundError: No module named"),
    ],
)
def test_a_broken_file_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    modules, paths = set(sys.modules), list(sys.path)
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        read_config(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert set(sys.modules) == modules and sys.path == paths


def test_wrong_paths_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no config file"):
        read_config(tmp_path / "none.py")
    with pytest.raises(ConfigError, match=r"ends in .py or .yaml or .yml, got '.*x.json'"):
        read_config(written(tmp_path, "{}", "x.json"))
    with pytest.raises(ConfigError, match=r"there is no config file"):
        read_config(_made(tmp_path / "folder.py"))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_parallel_runs_need_a_third_dict(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not define system_config"):
        read_config_with_system(written(tmp_path, TWO))
    path = written(tmp_path, TWO + "system_config = dict(n=1)\n")
    assert read_config_with_system(path)[2].n == 1
    assert read_config_with_system(written(tmp_path, TWO), required=False)[2] == {}


def test_config_holds_all_names_of_a_file(tmp_path: Path) -> None:
    names = Config.file_to_dict(written(tmp_path, TWO + "other = 3\n")).cfg_dict
    assert set(names) == {"main_config", "create_config", "other"}
    assert Config({"a": 1}).cfg_dict == {"a": 1} and Config().cfg_dict == {}


def test_yaml(tmp_path: Path) -> None:
    text = "main_config: {lr: 1e-3, big: 1E5, name: 1e, n: 3}\ncreate_config: {policy: {type: d}}\n"
    main, create = read_config(written(tmp_path, text, "c.yaml"))
    assert main == {"lr": 0.001, "big": 1e5, "name": "1e", "n": 3} and create.policy.type == "d"
    with pytest.raises(ConfigError, match=r"c.yaml:2: not valid YAML: mapping values"):
        read_config(written(tmp_path, "a: 1\nb: c: d\n", "c.yaml"))
    with pytest.raises(ConfigError, match=r"top level must be a dict, got list"):
        read_config_yaml(written(tmp_path, "- 1\n", "c.yml"))
    with pytest.raises(ConfigError, match=r"not valid YAML"):
        read_config_yaml(written(tmp_path, "a: !!python/object:os.system {}\n", "c.yml"))


SECTIONS: dict[str, Any] = {
    "main_config": {
        "inf": float("inf"),
        "low": -float("inf"),
        "t": (1,),
        "nested": {"l": [(1, 2), {"x": None}], "e": {}, "empty": ()},
        "text": 'a\'b\n"c"',
        "flag": True,
    },
    "create_config": {"policy": {"type": "dqn"}},
}


def test_python_files_read_back_equal(tmp_path: Path) -> None:
    save_config(SECTIONS, tmp_path / "c.py", save_formatted=True)
    for name in ("c.py", "formatted_c.py"):
        main, create = read_config(tmp_path / name)
        assert main == SECTIONS["main_config"] and create == SECTIONS["create_config"]
    assert "\n    'nested': {\n        'l':" in (tmp_path / "formatted_c.py").read_text()
    save_config_py({"a": 1}, tmp_path / "plain.py")
    assert (tmp_path / "plain.py").read_text() == "main_config = {'a': 1}\n"


def test_yaml_files_read_back_with_lists_for_tuples(tmp_path: Path) -> None:
    save_config(SECTIONS, tmp_path / "c.yaml", type_="yaml")
    main, _ = read_config(tmp_path / "c.yaml")
    assert main.inf == float("inf") and main.t == [1] and main.text == 'a\'b\n"c"'
    save_config_yaml({"a": (1, 2)}, tmp_path / "d.yaml")
    assert read_config_yaml(tmp_path / "d.yaml") == {"main_config": {"a": [1, 2]}}
    with pytest.raises(ConfigError, match=r"type_='py' or 'yaml', got 'json'"):
        save_config({}, tmp_path / "c", type_="json")


def test_source_of_plain_data() -> None:
    assert to_python({"a": [float("nan"), (2,)]}) == "{'a': [float('nan'), (2,)]}"
    assert to_python({"a": {}, "b": {"c": 1}}, True) == (
        "{\n    'a': {},\n    'b': {\n        'c': 1,\n    },\n}"
    )


def test_what_is_no_plain_data_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'a.b\[1\]' cannot be saved: .*builtins:len'"):
        PlainData().of({"a": {"b": [1, len]}})
    with pytest.raises(ConfigError, match=r"'a' cannot be saved: \{1\} \(set\); use numbers"):
        PlainData().of({"a": {1}})
    with pytest.raises(ConfigError, match=r"config key 3 in 'a' must be a string"):
        PlainData().of({"a": {3: 1}})
