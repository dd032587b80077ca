from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.data.minari import export_minari, import_minari
from ding.utils.batch import Rows
from ding.utils.errors import DingError

h5py = pytest.importorskip("h5py")


def episode(n: int, truncated: bool) -> Rows:
    rng = np.random.default_rng(n)
    obs: Any = {"a": rng.random((n + 1, 3)).astype(np.float32), "b": (rng.random(n + 1),)}
    ends = np.arange(n) == n - 1
    return Rows(
        {
            "obs": {"a": obs["a"][:-1], "b": (obs["b"][0][:-1],)},
            "next_obs": {"a": obs["a"][1:], "b": (obs["b"][0][1:],)},
            "action": np.arange(n),
            "reward": rng.random(n).astype(np.float32),
            "done": ends,
            "truncated": ends & truncated,
        }
    )


def test_episodes_survive_the_round_trip(tmp_path: Path) -> None:
    episodes = [episode(3, False), episode(12, True)]
    file = export_minari(tmp_path / "set", episodes)
    assert file == tmp_path / "set" / "data" / "main_data.hdf5"
    back = import_minari(tmp_path / "set")
    for ours, theirs in zip(episodes, back, strict=True):
        a, b = ours.columns, theirs.columns
        for key in ("action", "reward", "done", "truncated"):
            assert np.array_equal(a[key], b[key])
            assert a[key].dtype == b[key].dtype
        for key in ("obs", "next_obs"):
            assert np.array_equal(a[key]["a"], b[key]["a"])
            assert np.array_equal(a[key]["b"][0], b[key]["b"][0])
    with h5py.File(file) as raw:
        assert raw["episode_1"]["terminations"][()].sum() == 0
        assert raw["episode_1"]["truncations"][()].tolist() == [False] * 11 + [True]
        assert raw["episode_0"]["observations"]["a"].shape == (4, 3)
        assert raw.attrs["total_steps"] == 15


def test_damage_is_refused(tmp_path: Path) -> None:
    file = export_minari(tmp_path / "d.hdf5", [episode(50, False)])
    file.write_bytes(file.read_bytes()[:600])
    with pytest.raises(DingError, match="damaged"):
        import_minari(file)
    with pytest.raises(DingError, match="no dataset"):
        import_minari(tmp_path / "nothing")


def test_other_layouts_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.hdf5", "w") as out:
        group = out.create_group("episode_0")
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            group.create_dataset(name, data=np.zeros(3))
    with pytest.raises(DingError, match="3 observations for 3 steps"):
        import_minari(tmp_path / "x.hdf5")
