from __future__ import annotations

import random
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.checksum import SummingWriter, with_checksum, without_checksum
from ding.utils.errors import CheckpointError, DingError, nearest
from ding.utils.log import WorkerLog, table
from ding.utils.registry import POLICY_REGISTRY, REGISTRIES, Registry, class_of, import_names
from ding.utils.seed import new_generator, rng_state, set_pkg_seed, set_rng_state


def test_everything_comes_back_exactly(tmp_path: Path) -> None:
    state = {
        "tensor": torch.randn(3),
        "array": np.array([[1, 2]], dtype=np.int16),
        "scalar": np.float64(0.1),
        "none": np.zeros((0, 3), dtype=np.uint8),
        "zero": np.array(3.5),
        "flags": np.array([True, False]),
        "nested": [1, ("a", {"b": 2.5})],
        "huge": 2**100,
    }
    save_checkpoint(tmp_path / "deep" / "x.pth.tar", state)
    loaded = load_checkpoint(tmp_path / "deep" / "x.pth.tar")
    assert torch.equal(loaded["tensor"], state["tensor"])  # type: ignore[arg-type]
    for key in ("array", "none", "zero", "flags"):
        assert loaded[key].dtype == state[key].dtype  # type: ignore[attr-defined]
        assert np.array_equal(loaded[key], state[key])  # type: ignore[arg-type]
        assert loaded[key].shape == state[key].shape  # type: ignore[attr-defined]
    assert loaded["scalar"] == 0.1
    assert loaded["nested"] == state["nested"]
    assert loaded["huge"] == 2**100


def test_objects_are_for_trusted_files_only(tmp_path: Path) -> None:
    column = np.empty(1, dtype=object)
    column[0] = {1, 2}
    save_checkpoint(tmp_path / "x", {"c": column})
    with pytest.raises(CheckpointError, match="trusted"):
        load_checkpoint(tmp_path / "x")
    assert load_checkpoint(tmp_path / "x", trusted=True)["c"][0] == {1, 2}


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x"
    save_checkpoint(path, {"a": 1})

    def fail(*args: Any) -> None:
        args[1].write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(path, {"a": 2})
    monkeypatch.undo()
    assert load_checkpoint(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_any_damage_is_a_checkpoint_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_checkpoint(path, {"a": torch.arange(100), "b": np.arange(5)})
    content = path.read_bytes()
    rng = random.Random(0)
    for _ in range(40):
        cut = content[: rng.randrange(len(content))]
        noise = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300)))
        for broken in (cut, noise, b"\x80\x02" + noise, cut[:50] + noise):
            path.write_bytes(broken)
            with pytest.raises(CheckpointError, match=r"cannot read checkpoint|holds a"):
                load_checkpoint(path)


def flips(content: bytes, n: int) -> Iterator[bytes]:
    """The content with one bit changed: anywhere, and everywhere in the last 40 bytes."""
    rng = random.Random(0)
    bits = 8 * len(content)
    for bit in [rng.randrange(bits) for _ in range(n)] + list(range(bits - 320, bits)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def test_a_changed_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.pth.tar"
    save_checkpoint(path, {"a": torch.arange(500.0), "b": np.arange(5), "c": "text", "d": 0.5})
    for content in flips(path.read_bytes(), 100):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"x\.pth\.tar.*use an older one") as caught:
            load_checkpoint(path)
        assert "\n" not in str(caught.value)


def test_torch_and_zip_read_what_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "x.pth.tar"
    save_checkpoint(path, {"a": torch.arange(3), "n": 2})
    assert torch.load(path, weights_only=True)["a"].tolist() == [0, 1, 2]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        content = path.read_bytes()[:-12]
        assert archive.comment == b"dingcrc1" + zlib.crc32(content).to_bytes(4, "little")


@pytest.mark.parametrize("is_zip", [True, False])
def test_files_without_a_checksum_are_read(is_zip: bool, tmp_path: Path) -> None:
    torch.save({"n": 2}, tmp_path / "x", _use_new_zipfile_serialization=is_zip)
    assert load_checkpoint(tmp_path / "x") == {"n": 2}


def test_a_writer_that_sums_what_comes_in_any_pieces() -> None:
    content = bytes(range(256))
    for sizes in ([256], [1] * 256, [22, 234], [21, 1, 200, 34], [0, 256]):
        file, at = BytesIO(), 0
        writer = SummingWriter(file)
        for size in sizes:
            writer.write(memoryview(content)[at : at + size])
            at += size
        writer.close()
        assert file.getvalue() == with_checksum(content)
        assert without_checksum(file.getvalue()) == content


def test_nearest() -> None:
    assert nearest("lerning_rate", ["learning_rate", "x"]) == "; did you mean 'learning_rate'?"
    assert nearest("zzz", ["b", "a"]) == "; valid: a, b"
    assert nearest("zzz", []) == ""


# --- registry ------------------------------------------------------------------------------------


def test_registry_resolves_on_use() -> None:
    registry = Registry("thing", {"deque": "collections:deque"})
    assert registry.query() == ["deque"]
    assert registry.build("deque", [1]).__class__.__name__ == "deque"
    assert "deque" in registry
    with pytest.raises(DingError, match="unknown thing 'deqe'; did you mean 'deque'"):
        registry.get("deqe")


def test_registering() -> None:
    registry = Registry("thing")

    @registry.register("mine")
    class Mine:
        pass

    @registry.register()
    class Named:
        pass

    assert registry.get("mine") is Mine
    assert registry.get("Named") is Named
    registry.register("mine")(Mine)
    with pytest.raises(DingError, match="registered already"):
        registry.register("mine")(Named)
    registry.register("mine", force=True)(Named)
    assert registry.get("mine") is Named
    file, line = registry.query_details()["mine"]
    assert file == __file__
    assert line > 0


def test_class_of_imports_first() -> None:
    assert class_of(POLICY_REGISTRY, {"type": "dqn"}).__name__ == "DQNPolicy"
    with pytest.raises(DingError, match="no_such_module_x"):
        import_names("no_such_module_x")


def test_every_registered_name_can_be_imported() -> None:
    for registry in REGISTRIES.values():
        for name in registry.query():
            assert callable(registry.get(name))


# --- seeds and logs ------------------------------------------------------------------------------


def draws() -> tuple[Any, ...]:
    own = new_generator().random()
    return random.random(), np.random.rand(), float(torch.rand(())), own


def test_seeds_and_their_state() -> None:
    set_pkg_seed(3)
    first = draws()
    state = rng_state()
    second = draws()
    set_rng_state(state)
    assert draws() == second
    set_pkg_seed(3)
    assert draws() == first
    set_pkg_seed(2**40)
    with pytest.raises(DingError, match="seed = -1"):
        set_pkg_seed(-1)


def test_rng_state_survives_a_file(tmp_path: Path) -> None:
    set_pkg_seed(3)
    save_checkpoint(tmp_path / "x", {"rng": rng_state()})
    wanted = draws()
    set_rng_state(load_checkpoint(tmp_path / "x")["rng"])
    assert draws() == wanted


def test_log_writes_nothing_before_the_first_line(tmp_path: Path) -> None:
    log = WorkerLog(str(tmp_path / "run"), "learner")
    assert not (tmp_path / "run").exists()
    log.info("hello")
    log.scalars({"a/b": 1.0}, 3)
    log.close()
    files = sorted(p.name for p in (tmp_path / "run" / "log" / "learner").iterdir())
    assert files[-1] == "learner_logger.txt"
    assert files[0].startswith("events.out.tfevents")
    text = (tmp_path / "run" / "log" / "learner" / "learner_logger.txt").read_text()
    assert text.endswith("hello\n")


def test_table() -> None:
    assert table({"a": 1.23456789, "bb": 2}).split() == ["a:", "1.23457", "bb:", "2"]
    assert table({}) == ""
