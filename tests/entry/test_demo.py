"""Making demonstrations: by functions, by trained policies, and from the command line."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.data.demo_formats import load_demonstrations
from ding.entry import (
    collect_demo_data,
    collect_episodic_demo_data,
    episode_to_transitions,
    episode_to_transitions_filter,
    offline_data_save_type,
    record,
    serial_pipeline,
)
from ding.entry.cli import main
from ding.utils.errors import DingError
from entry.configs import config_file

pytest.importorskip("h5py")


def upright(obs: Any) -> int:
    """Push to where the pole falls; returns about 500."""
    position, speed, angle, turning = obs
    return int(angle + 0.5 * turning + 0.05 * position + 0.1 * speed > 0)


def test_a_function_is_recorded(tmp_path: Path) -> None:
    demos = record(upright, "CartPole-v1", 3, tmp_path / "d.hdf5", seed=5)
    assert demos.returns.tolist() == [500.0, 500.0, 500.0]
    assert demos.columns["truncated"].sum() == 3
    again = load_demonstrations(tmp_path / "d.hdf5")
    assert np.array_equal(again.columns["obs"], demos.columns["obs"])
    assert (again.origin.env_id, again.origin.seed) == ("CartPole-v1", 5)
    first, _ = gym.make("CartPole-v1").reset(seed=5)
    assert np.array_equal(demos.columns["obs"][0], first)
    assert 9 < np.mean(again.origin.random_returns) < 60
    # What was seen next is what was seen next.
    rows = demos.steps().columns
    assert np.array_equal(rows["next_obs"][:499], rows["obs"][1:500])


def test_actions_that_are_none_are_refused(tmp_path: Path) -> None:
    for action in (2, 0.5, [0, 1]):
        with pytest.raises(DingError, match=r"actions are Discrete\(2\)"):
            record(lambda _, a=action: a, "CartPole-v1", 1, tmp_path / "d.hdf5")
    with pytest.raises(DingError, match="0 episodes"):
        record(upright, "CartPole-v1", 0)
    assert not list(tmp_path.iterdir())


def test_a_poor_expert_is_told(tmp_path: Path, caplog: Any, capsys: Any) -> None:
    record(lambda _: 0, "CartPole-v1", 3, tmp_path / "d.hdf5")
    assert "no better than random" in caplog.text
    assert main(["demo", "show", "d.hdf5"]) == 0
    assert "WARNING    no better than random" in capsys.readouterr().out


@pytest.fixture
def run(tmp_path: Path, capsys: Any) -> Path:
    config_file(tmp_path)
    serial_pipeline("cfg.py", seed=0, max_train_iter=20)
    capsys.readouterr()
    return tmp_path / "run"


def test_make_show_and_check(run: Path, capsys: Any) -> None:
    assert main(["demo", "make", "run", "--episodes", "3", "-o", "d.hdf5", "-s", "2"]) == 0
    page = capsys.readouterr().out
    demos = load_demonstrations("d.hdf5")
    assert demos.n_episode == 3
    assert demos.origin.env_id == "CartPole-v1"
    assert len(demos.origin.random_returns) >= 5
    assert f"episodes   3, {demos.n_step} steps" in page
    assert main(["demo", "show", "d.hdf5", "--picture", "d.png"]) == 0
    assert capsys.readouterr().out == page
    assert Path("d.png").read_bytes().startswith(b"\x89PNG")
    assert max(map(len, page.splitlines())) <= 80
    assert main(["demo", "check", "d.hdf5", "-c", "cfg.py"]) == 0
    assert "fits CartPole-v1: 3 episodes" in capsys.readouterr().out
    # The same seed plays the same episodes.
    assert main(["demo", "make", "run", "--episodes", "3", "-o", "e.hdf5", "-s", "2"]) == 0
    assert np.array_equal(load_demonstrations("e.hdf5").columns["obs"], demos.columns["obs"])


def bad(argv: list[str], message: str, capsys: Any) -> None:
    before = {p: p.stat().st_mtime_ns for p in Path().rglob("*")}
    assert main(["demo", *argv]) == 1
    told = capsys.readouterr().err.strip()
    assert re.search(message, told), told
    assert len(told.splitlines()) == 1
    assert {p: p.stat().st_mtime_ns for p in Path().rglob("*")} == before


def test_bad_input_is_one_line(run: Path, capsys: Any) -> None:
    record(upright, "CartPole-v1", 1, "d.hdf5")
    Path("empty").touch()
    make = ["make", "run", "-o"]
    bad([*make, "d.hdf5"], "'d.hdf5' exists and is not overwritten", capsys)
    bad([*make, "x.hdf5", "--episodes", "0"], "0 episodes", capsys)
    bad([*make, "x.hdf5", "--load-path", "no.tar"], "no checkpoint at 'no.tar'", capsys)
    bad(["make", ".", "-o", "x.hdf5"], "no total_config.py", capsys)
    bad(["show", "empty"], "'empty' is empty", capsys)
    bad(["show", "cfg.py"], "neither HDF5 nor a pickle", capsys)
    bad(["show", "nothing"], "no demonstrations at 'nothing'", capsys)
    bad(["check", "d.hdf5"], "check against what", capsys)
    spoken = r"env 'CartPole-v1', but the run's env is 'Acrobot-v1'"
    bad(["check", "d.hdf5", "-e", "Acrobot-v1", "-p", "dqn"], spoken, capsys)


def test_another_scale_of_actions_is_refused(tmp_path: Path, capsys: Any) -> None:
    record(lambda obs: [-1.5 * obs[2]], "Pendulum-v1", 1, "d.hdf5")
    spoken = r"Box\(-2.0, 2.0.*Box\(-1.0, 1.0.*scaled_to"
    bad(["check", "d.hdf5", "-e", "pendulum", "-p", "sac"], spoken, capsys)


PATH = "run/ckpt/ckpt_best.pth.tar"


def test_collect_samples_in_three_formats(run: Path) -> None:
    for name, written in (("d.hdf5", "d.hdf5"), ("d.pkl", "d.pkl")):
        samples = collect_demo_data("cfg.py", 0, 50, name, state_dict_path=PATH)
        assert len(samples) == 50
        demos = load_demonstrations(written)
        assert demos.n_step == 50
        assert np.array_equal(demos.columns["obs"][7], samples[7]["obs"])
    offline_data_save_type(samples, "deep/d.pkl", "hdf5")
    flat = load_demonstrations("deep/d_demos.hdf5")
    assert np.array_equal(flat.columns["obs"], demos.columns["obs"])
    assert np.array_equal(flat.columns["truncated"], demos.columns["truncated"])
    with pytest.raises(DingError, match=r"policy\.collect\.save_path"):
        collect_demo_data("cfg.py", 0, 50, state_dict_path=PATH)
    with pytest.raises(DingError, match="exists"):
        collect_demo_data("cfg.py", 0, 50, "d.pkl", state_dict_path=PATH)


def test_established_pickles_are_rows_of_tensors(run: Path) -> None:
    collect_demo_data("cfg.py", 0, 20, "d.pkl", state_dict_path=PATH)
    rows = pickle.loads(Path("d.pkl").read_bytes())
    assert len(rows) == 20
    assert rows[0]["obs"].shape == (4,)
    assert rows[3]["obs"].untyped_storage().nbytes() == 16  # and not the whole column


def test_episodes_become_transitions(run: Path) -> None:
    episodes = collect_episodic_demo_data("cfg.py", 0, 3, "e.pkl", state_dict_path=PATH)
    lengths = [len(episode) for episode in episodes]
    assert load_demonstrations("e.pkl").lengths.tolist() == lengths
    flat = episode_to_transitions("e.pkl", "t.pkl", nstep=1)
    assert len(flat) == sum(lengths)
    assert load_demonstrations("t.pkl").lengths.tolist() == lengths
    best = max(lengths)
    kept = episode_to_transitions_filter("e.pkl", "f.pkl", 2, min_episode_return=best)
    assert len(kept) == best * lengths.count(best)
    assert kept[0]["reward"].tolist() == [1.0, 1.0]
    with pytest.raises(DingError, match="no episode of 3 returns 600"):
        episode_to_transitions_filter("e.pkl", "g.pkl", 1, 600)
    Path("bad.pkl").write_bytes(b"\x80\x04")
    with pytest.raises(DingError, match=r"'bad.pkl' cannot be read"):
        episode_to_transitions("bad.pkl", "g.pkl", 1)


def test_episodes_in_our_format(run: Path) -> None:
    collect_episodic_demo_data("cfg.py", 0, 2, "e.hdf5", state_dict_path=PATH)
    assert load_demonstrations("e.hdf5").n_episode == 2
