"""Files of demonstrations: they come back as they were, and bad ones do nothing but be refused."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from data.test_demonstrations import steps, two_episodes
from ding.data.demo_formats import load_demonstrations
from ding.data.demonstrations import Demonstrations, Origin
from ding.data.minari import export_minari
from ding.data.safe_pickle import loads_data
from ding.data.space_text import space_from_text, space_to_text
from ding.utils.batch import Rows
from ding.utils.errors import DemonstrationError

h5py = pytest.importorskip("h5py")


def test_our_file_comes_back_bit_by_bit(tmp_path: Path) -> None:
    before = two_episodes(seed=3, random_returns=(1.0, 0.5))
    after = load_demonstrations(before.save(tmp_path / "deep" / "d.hdf5"))
    for key, column in before.columns.items():
        assert after.columns[key].dtype == column.dtype
        assert np.array_equal(after.columns[key], column)
    assert np.array_equal(after.lengths, before.lengths)
    assert np.array_equal(after.final_obs, before.final_obs)
    origin = after.origin
    assert (origin.env_id, origin.seed, origin.random_returns) == ("Line-v0", 3, (1.0, 0.5))
    assert origin.obs_space == before.origin.obs_space
    assert origin.action_space == spaces.Discrete(2)
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["d.hdf5"]
    with h5py.File(tmp_path / "deep" / "d.hdf5") as file:
        assert file.attrs["return_mean"] == 4.5
        assert file.attrs["return_max"] == 6.0


def nested(n: int) -> Rows:
    obs = np.arange(n + 1, dtype=np.float32)[:, None]
    frame = np.zeros((n, 1, 4, 4), np.uint8)
    parts = [{"frame": frame, "both": (part, part + 1)} for part in (obs[:-1], obs[1:])]
    return steps(n, obs=parts[0], next_obs=parts[1])


def test_nested_observations_and_recompressed_files(tmp_path: Path) -> None:
    before = Demonstrations.of_steps(nested(40))
    path = before.save(tmp_path / "d.hdf5")
    with h5py.File(path) as file, h5py.File(tmp_path / "gzip.hdf5", "w") as packed:
        packed.attrs.update(file.attrs)

        def copy(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                packed.create_dataset(name, data=item[()], compression="gzip")

        file.visititems(copy)
    for name in ("d.hdf5", "gzip.hdf5"):
        after = load_demonstrations(tmp_path / name)
        assert after.columns["obs"]["frame"].dtype == np.uint8
        assert np.array_equal(after.columns["obs"]["both"][1], before.columns["obs"]["both"][1])
        rows = after.steps().columns
        assert rows["next_obs"]["both"][0][:, 0].tolist() == list(range(1, 41))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = two_episodes().save(tmp_path / "d.hdf5")
    before = path.read_bytes()
    with pytest.raises(DemonstrationError, match="exists and is not overwritten"):
        two_episodes().save(path)
    assert path.read_bytes() == before


def test_every_changed_byte_is_found(tmp_path: Path) -> None:
    """In the data; a change of what HDF5 keeps beside it either breaks it or says the same."""
    path = Demonstrations.of_steps(steps(400)).save(tmp_path / "d.hdf5")
    raw = path.read_bytes()
    with h5py.File(path) as file:
        places = [
            (file[name].id.get_offset(), file[name].nbytes)
            for name in ("obs", "action", "reward", "terminated", "episode_length", "final_obs")
        ]
    rng = np.random.default_rng(0)
    for offset, n in places:
        at = offset + int(rng.integers(n))
        changed = bytearray(raw)
        changed[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(DemonstrationError, match=r"checksum|damaged|NaN"):
            load_demonstrations(path)


def test_cut_off_files_are_refused(tmp_path: Path) -> None:
    path = Demonstrations.of_steps(steps(400)).save(tmp_path / "d.hdf5")
    raw = path.read_bytes()
    for n in (0, 5, 8, 100, 2000, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:n])
        with pytest.raises(DemonstrationError, match=r"empty|damaged|neither"):
            load_demonstrations(path)


def test_changed_attributes_are_found(tmp_path: Path) -> None:
    path = two_episodes().save(tmp_path / "d.hdf5")
    with h5py.File(path, "a") as file:
        file.attrs["env_id"] = "Ring-v0"
    with pytest.raises(DemonstrationError, match="checksum"):
        load_demonstrations(path)


def rows_of_tensors(n: int) -> list[dict[str, Any]]:
    return [
        {
            "obs": torch.tensor([float(i), 0.0]),
            "action": torch.tensor([i % 3]),
            "reward": torch.tensor([0.5]),
            "next_obs": torch.tensor([float(i + 1), 0.0]),
            "done": i == n - 1,
            "collect_iter": 0,
        }
        for i in range(n)
    ]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_established_pickles(protocol: int, tmp_path: Path) -> None:
    flat, deep = tmp_path / "flat.pkl", tmp_path / "deep.pkl"
    flat.write_bytes(pickle.dumps(rows_of_tensors(4), protocol))
    deep.write_bytes(pickle.dumps([rows_of_tensors(4), rows_of_tensors(2)[:1]], protocol))
    demos = load_demonstrations(flat)
    assert demos.columns["obs"].tolist() == [[0, 0], [1, 0], [2, 0], [3, 0]]
    assert demos.columns["action"].tolist() == [0, 1, 2, 0]
    assert demos.returns.tolist() == [2.0]
    both = load_demonstrations(deep)
    assert both.lengths.tolist() == [4, 1]
    assert both.columns["truncated"].tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickles_of_arrays(protocol: int) -> None:
    given = {
        "c": np.arange(6, dtype=np.int16).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(3, dtype=">f4"),
        "flag": np.array([True, False]),
        "one": np.float64(0.25),
        "view": torch.arange(12).reshape(3, 4)[:, 1::2],
        "plain": (1, "a", None, b"x", [2.0]),
    }
    read = loads_data(pickle.dumps(given, protocol))
    for key in ("c", "f", "big", "flag"):
        assert np.array_equal(read[key], given[key])
    assert read["one"] == 0.25
    assert read["view"].tolist() == [[1, 3], [5, 7], [9, 11]]
    assert read["plain"] == given["plain"]


class Harmful:
    def __init__(self, target: Path, by: Any = os.system) -> None:
        self.target, self.by = target, by

    def __reduce__(self) -> Any:
        return self.by, (f"touch {self.target}",)


def torch_bomb(target: Path) -> bytes:
    """A tensor whose numbers are a pickle that runs code, as torch.load would."""
    from io import BytesIO

    inner = BytesIO()
    torch.save(Harmful(target), inner, _use_new_zipfile_serialization=False)

    class Storage:
        def __reduce__(self) -> Any:
            return torch.storage._load_from_bytes, (inner.getvalue(),)

    return pickle.dumps([{"obs": Storage()}])


def object_array() -> bytes:
    array = np.empty(1, object)
    array[0] = 3
    return pickle.dumps([{"obs": array}])


def test_pickles_with_more_than_data_are_refused_and_not_run(tmp_path: Path) -> None:
    target, path = tmp_path / "harm", tmp_path / "bad.pkl"
    contents = [
        pickle.dumps([{"obs": Harmful(target)}]),
        pickle.dumps([{"obs": Harmful(target, eval)}]),
        pickle.dumps(Path("x")),
        torch_bomb(target),
        object_array(),
        pickle.dumps(rows_of_tensors(4))[:-40],
        pickle.dumps({"obs": [1.0]}),
        pickle.dumps([]),
        b"\x80\x04garbage",
    ]
    for raw in contents:
        path.write_bytes(raw)
        with pytest.raises(DemonstrationError, match=str(path)):
            load_demonstrations(path)
    assert not target.exists()


def test_a_tensor_cannot_reach_out_of_its_numbers() -> None:
    class Wide:
        def __reduce__(self) -> Any:
            storage = torch.arange(4).storage()._untyped_storage
            typed = torch.storage.TypedStorage(
                wrap_storage=storage, dtype=torch.int64, _internal=True
            )
            return torch._utils._rebuild_tensor_v2, (typed, 2, (4,), (1,), False, {})

    with pytest.warns(UserWarning, match="TypedStorage"):
        raw = pickle.dumps(Wide())
    with pytest.raises(ValueError, match="larger than its numbers"):
        loads_data(raw)


def test_flat_columns_of_hdf5(tmp_path: Path) -> None:
    path = tmp_path / "x.hdf5"
    columns = steps(4).columns
    with h5py.File(path, "w") as file:
        for key, column in columns.items():
            file.create_dataset(key, data=column, compression="gzip")
    demos = load_demonstrations(path)
    assert demos.returns.tolist() == [10.0]
    with h5py.File(path, "a") as file:
        del file["done"]
    with pytest.raises(DemonstrationError, match="without done"):
        load_demonstrations(path)


def test_minari(tmp_path: Path) -> None:
    export_minari(tmp_path / "set", [steps(3), steps(2, 4.0)])
    described = '{"env_spec": "{\\"id\\": \\"Line-v0\\"}"}'
    (tmp_path / "set" / "data" / "metadata.json").write_text(described)
    demos = load_demonstrations(tmp_path / "set")
    assert demos.lengths.tolist() == [3, 2]
    assert demos.returns.tolist() == [6.0, 3.0]
    assert demos.origin.env_id == "Line-v0"
    shutil.rmtree(tmp_path / "set")
    with pytest.raises(DemonstrationError, match="no demonstrations at"):
        load_demonstrations(tmp_path / "set")


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-np.inf, np.inf, (3,), np.float32),
        spaces.Box(np.array([0.1, -1], np.float32), np.array([0.7, 2], np.float32)),
        spaces.Box(0, 255, (1, 4, 4), np.uint8),
        spaces.Discrete(4, start=2),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Tuple([spaces.Discrete(3)])}),
    ],
)
def test_spaces_survive_as_text(space: Any) -> None:
    assert space_from_text(space_to_text(space)) == space


def test_a_space_of_no_fixed_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="Sequence"):
        space_to_text(spaces.Sequence(spaces.Discrete(2)))
    assert Origin().name == "the demonstrations"
