"""Pickled configs carry plain data; anything else is refused before it can do harm."""

from __future__ import annotations

import copyreg
import math
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from easydict import EasyDict

from ding.config.pickled import _PlainUnpickler, load_pickled, save_pickled
from ding.utils.errors import ConfigError

GOOD: dict[str, Any] = {
    "main_config": {"exp_name": "a", "env": {"stop_value": 195.5, "shape": (4, (2,), [1, None])}},
    "create_config": {"policy": {"type": "dqn"}, "players": {0: "a", 1: "b"}},
    "system_config": {},
    "seed": 3,
}
WHOLE = {"version": 1, **GOOD}


def changed(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def refused(raw: bytes, path: Path) -> str:
    """The message; nothing that the file could do may have happened."""
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load_pickled(path)
    message = str(caught.value)
    assert "\n" not in message and path.name in message
    return message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.py.pkl"


def test_what_is_written_is_read(path: Path) -> None:
    save_pickled(path, GOOD)
    assert load_pickled(path) == GOOD
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_changed_bit_is_refused(path: Path) -> None:
    save_pickled(path, GOOD)
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 3):
        raw = bytearray(content)
        raw[bit // 8] ^= 1 << bit % 8
        assert "write it again" in refused(bytes(raw), path)


def test_a_file_without_a_checksum_is_read_and_pickle_reads_one_with_it(path: Path) -> None:
    path.write_bytes(pickle.dumps(WHOLE, protocol=4))
    assert load_pickled(path) == GOOD
    save_pickled(path, GOOD)
    assert pickle.loads(path.read_bytes()) == WHOLE


def test_easydicts_and_numpy_scalars_become_plain(path: Path) -> None:
    main = EasyDict(a=dict(b=[dict(c=1)]), f=np.float32(0.5), i=np.int64(2), t=np.bool_(True))
    save_pickled(path, changed(main_config=main))
    got = load_pickled(path)["main_config"]
    assert got == {"a": {"b": [{"c": 1}]}, "f": 0.5, "i": 2, "t": True}
    kinds = [got, got["a"], got["a"]["b"][0], got["f"], got["i"], got["t"]]
    assert [type(one) for one in kinds] == [dict, dict, dict, float, int, bool]


def test_every_atom_survives(path: Path) -> None:
    atoms = ["ä\ud800", "", 0, -1, 255, 2**31, -(2**63), 10**400, 1e-300, -0.0, True, False, None]
    save_pickled(path, changed(main_config={"atoms": atoms, "inf": -math.inf, "nan": math.nan}))
    got = load_pickled(path)["main_config"]
    assert got["atoms"] == atoms and [type(a) for a in got["atoms"]] == [type(a) for a in atoms]
    assert got["inf"] == -math.inf and math.isnan(got["nan"])


@pytest.mark.parametrize("protocol", [4, 5])
def test_pickles_of_others_are_read_if_plain(path: Path, protocol: int) -> None:
    shared = ["the same list twice"]
    content = {**WHOLE, "main_config": {"a": shared, "b": shared, "long": "x" * 70000}}
    path.write_bytes(pickle.dumps(content, protocol))
    assert load_pickled(path)["main_config"] == content["main_config"]


class Marker:
    def __reduce__(self) -> Any:
        return os.system, ("touch harm",)


@pytest.mark.parametrize(
    ("value", "kind", "fix"),
    [
        (lambda: None, "function", "name it by a string, or register it in a module that create_"),
        (Marker, "type", "name it by a string, like 'config.test_pickled:Marker', or register it"),
        (np.zeros(2), "ndarray", "use numbers, strings, lists and dicts"),
        (Path("a"), "PosixPath", "use numbers, strings, lists and dicts"),
        ({1, 2}, "set", "use numbers, strings, lists and dicts"),
        (b"raw", "bytes", "use numbers, strings, lists and dicts"),
        (1 + 2j, "complex", "use numbers, strings, lists and dicts"),
    ],
)
def test_what_is_not_plain_is_named_with_its_fix(
    path: Path, value: Any, kind: str, fix: str
) -> None:
    main = {"env": {"parts": [0, {"fn": value}]}}
    with pytest.raises(ConfigError) as caught:
        save_pickled(path, changed(main_config=main))
    message = str(caught.value)
    assert "config key 'main_config.env.parts[1].fn' cannot be saved: " in message
    assert f" ({kind}); {fix}" in message
    assert ("import_names" in message) == callable(value)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("key", [(1, 2), 1.5, None, True, Marker])
def test_keys_are_strings_or_whole_numbers(path: Path, key: Any) -> None:
    with pytest.raises(
        ConfigError, match=r" in 'main_config\.env' must be a string or a whole number"
    ):
        save_pickled(path, changed(main_config={"env": {key: 1}}))


def test_a_config_in_itself_is_refused(path: Path) -> None:
    main: dict[str, Any] = {}
    main["me"] = main
    with pytest.raises(ConfigError, match=r"main_config\.me\.me.*nested deeper than 100"):
        save_pickled(path, changed(main_config=main))


def test_a_huge_config_is_refused(path: Path) -> None:
    with pytest.raises(ConfigError, match="name large data by the path of its file"):
        save_pickled(path, changed(main_config={"text": "x" * 2**25}))
    with pytest.raises(ConfigError, match="one value too many; 100000"):
        save_pickled(path, changed(main_config={"list": [0] * (10**5 + 1)}))


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_pickled(path, GOOD)

    def full(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        save_pickled(path, changed(seed=4))
    monkeypatch.undo()
    assert load_pickled(path)["seed"] == 3
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_not_run(path: Path, protocol: int) -> None:
    raw = pickle.dumps({**WHOLE, "main_config": Marker()}, protocol)
    message = refused(raw, path)
    assert "carries more than plain data" in message and "no code in it was run" in message
    assert not (path.parent / "harm").exists() and not Path("harm").exists()
    pickle.loads(raw)  # It would have.
    assert Path("harm").exists()


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"cos\nsystem\n(S'touch harm'\ntR.", "GLOBAL"),
        (b"(S'touch harm'\nios\nsystem\n.", "STRING"),
        (b"(cos\nsystem\n\x8c\ntouch harmo.", "GLOBAL"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\ntouch harm\x85R.", "STACK_GLOBAL"),
        (b"Pa name\n.", "PERSID"),
        (b"\x80\x04\x8c\x01aQ.", "BINPERSID"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02\x83\x01\x02.", "EXT2"),
        (b"\x80\x02\x84\x01\x02\x03\x04.", "EXT4"),
        (b"\x80\x04}}b.", "BUILD"),
        (b"\x80\x04))\x81.", "NEWOBJ"),
        (b"\x80\x04)R.", "REDUCE"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"\x80\x04}r\xff\xff\xff\xff.", "LONG_BINPUT"),
        (b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x00.", "BYTEARRAY8"),
    ],
)
def test_every_other_instruction_is_refused(path: Path, raw: bytes, name: str) -> None:
    message = refused(raw, path)
    assert name in message or (name == "BYTEARRAY8" and "damaged" in message)
    assert not Path("harm").exists()


def test_extension_codes_are_refused_also_when_known(path: Path) -> None:
    copyreg.add_extension("os", "system", 240)  # type: ignore[no-untyped-call]
    try:
        raw = pickle.dumps({**WHOLE, "main_config": os.system}, 2)
        assert "more than plain data" in refused(raw, path)
        assert "EXT1" in refused(b"\x80\x02\x82\xf0.", path)
    finally:
        copyreg.remove_extension("os", "system", 240)  # type: ignore[no-untyped-call]


def test_the_second_guard_stands_alone() -> None:
    from io import BytesIO

    with pytest.raises(ConfigError, match=r"system\) and is refused; no code was run"):
        _PlainUnpickler(BytesIO(pickle.dumps(Marker()))).load()
    with pytest.raises(ConfigError, match="outside of the file"):
        _PlainUnpickler(BytesIO(b"Pa name\n.")).load()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"garbage",
        b"\x80\x04",
        b"\x80\x04.",
        b"\x80\x63}.",
        b"\x80\x04]]s.",
        b"\x80\x04}](h\x05u.",
        b"\x80\x04}]K\x01s.",
        b"\x80\x04h\x07.",
        b"\x80\x04\x8c\x02\xff\xfe.",
        b"\x80\x04X\xff\xff\xff\x7fab.",
        pickle.dumps(WHOLE)[:-1],
        pickle.dumps(WHOLE)[:40],
        pickle.dumps(WHOLE) + b"more",
        pickle.dumps(WHOLE).replace(b"main", b"\xff\xff\xff\xff"),
        bytes(range(256)) * 16,
    ],
)
def test_a_damaged_file_is_one_message(path: Path, raw: bytes) -> None:
    message = refused(raw, path)
    assert "damaged, cut short or no config" in message or "more than plain data" in message


def test_every_cut_and_every_flipped_byte_is_one_message(path: Path) -> None:
    """Or a config of the right form: letters may change."""
    raw = pickle.dumps(WHOLE, 4)
    for i in range(len(raw)):
        for broken in (raw[:i], raw[:i] + bytes([raw[i] ^ 0x15]) + raw[i + 1 :]):
            path.write_bytes(broken)
            try:
                assert sorted(load_pickled(path)) == sorted(GOOD)
            except ConfigError as error:
                assert "\n" not in str(error)


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pkl", tmp_path):
        with pytest.raises(ConfigError, match=r"there is no config '.*--module config"):
            load_pickled(path)


def test_a_huge_file_is_refused_unread(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)  # Takes no room on the disk.
    with pytest.raises(ConfigError, match="larger than 16777216 bytes"):
        load_pickled(path)


def test_a_deep_file_is_refused(path: Path) -> None:
    deep = b"]" * 200_000 + b"a" * 199_999
    start, end = b"\x80\x04}\x8c\x01a", b"s."
    assert "nested deeper than 100" in refused(start + deep + end, path)


def test_a_small_file_of_very_many_values_is_refused(path: Path) -> None:
    """Lists of the same list twice, again and again, would take more memory than there is."""
    raw = b"\x80\x04]\x94"
    for i in range(60):
        raw += b"](h" + struct.pack("B", i) + b"h" + struct.pack("B", i) + b"e\x94"
    assert len(raw) < 600
    message = refused(raw + b".", path)
    assert "one value too many; 100000" in message


def test_a_file_with_a_dict_in_itself_is_refused(path: Path) -> None:
    assert "or in itself" in refused(b"\x80\x04}\x94\x8c\x01ah\x00s.", path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "config key 'config' must be a dict, got [1] (list)"),
        ({}, "'version' is required: the form that this ding reads"),
        (
            {**WHOLE, "version": 2},
            "'version' must be one of 1 (the form that this ding reads), got",
        ),
        ({"version": 1, "seed": 0}, "config key 'main_config' is required"),
        (
            {**WHOLE, "code": 1},
            "unknown config key 'code' (= 1); valid: create_config, main_config",
        ),
        ({**WHOLE, "main_config": []}, "'main_config' must be dict, got [] (list)"),
        ({**WHOLE, "seed": True}, "'seed' must be int, got True (bool)"),
        ({**WHOLE, "seed": "0"}, "'seed' must be int, got '0' (str)"),
    ],
)
def test_the_form_is_checked(path: Path, content: Any, message: str) -> None:
    assert message in refused(pickle.dumps(content), path)


def test_the_form_is_checked_before_writing(path: Path) -> None:
    with pytest.raises(ConfigError, match="'seed' is required"):
        save_pickled(path, {key: GOOD[key] for key in GOOD if key != "seed"})
    assert not path.exists()
