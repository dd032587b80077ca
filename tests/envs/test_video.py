from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import BaseEnvManager, DingEnvWrapper
from ding.envs.video import EpisodeRecorder, _even
from ding.utils.errors import DingError

CFG = {"env_id": "CartPole-v1", "max_episode_steps": 2}


def play(env: DingEnvWrapper) -> None:
    env.reset()
    while not env.step(0).done:
        pass


def test_episodes_become_files(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    env = DingEnvWrapper(cfg=CFG)
    env.seed(0, dynamic_seed=False)
    first = env.reset()
    env.enable_save_replay(str(tmp_path / "videos"))
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "CartPole-v1_episode_0.mp4").write_bytes(b"keep")
    env.seed(0, dynamic_seed=False)
    assert np.array_equal(env.reset(), first)
    env.step(0)
    play(env)
    env.close()
    files = sorted(path.name for path in (tmp_path / "videos").iterdir())
    assert files == [f"CartPole-v1_episode_{i}.mp4" for i in range(3)]
    sizes = [path.stat().st_size for path in sorted((tmp_path / "videos").iterdir())]
    assert sizes[0] == 4
    assert min(sizes[1:]) > 500


def test_manager_records_every_env(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    manager = BaseEnvManager([lambda: DingEnvWrapper(cfg=CFG)] * 2, {"episode_num": 1})
    manager.enable_save_replay(str(tmp_path))
    with manager:
        manager.launch()
        while not manager.done:
            manager.step(manager.random_action())
        assert all(img.shape == (400, 600, 3) for img in manager.ready_imgs.values())
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ValueError, match="got 1 replay paths for 2 envs"):
        manager.enable_save_replay([str(tmp_path)])


def test_collectors_do_not_record() -> None:
    cfg = {**CFG, "replay_path": "x", "collector_env_num": 1, "evaluator_env_num": 1}
    assert DingEnvWrapper.create_collector_env_cfg(cfg)[0]["replay_path"] is None
    assert DingEnvWrapper.create_evaluator_env_cfg(cfg)[0]["replay_path"] == "x"


def test_given_env_must_be_able_to_render(tmp_path: Path) -> None:
    env = DingEnvWrapper(gym.make("CartPole-v1"), {"replay_path": str(tmp_path)})
    with pytest.raises(DingError, match="make the env with render_mode='rgb_array', it has None"):
        env.reset()


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def fake(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("imageio"):
            raise ImportError(f"No module named '{name}'", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fake)
    with pytest.raises(DingError, match=r"imageio: pip install 'ding-engine\[video\]'"):
        play(DingEnvWrapper(cfg={**CFG, "replay_path": str(tmp_path)}))
    assert list(tmp_path.iterdir()) == []


def test_odd_frames_are_padded() -> None:
    assert _even(np.zeros((3, 5, 3), dtype=np.uint8)).shape == (4, 6, 3)
    assert _even(np.zeros((4, 6, 3), dtype=np.uint8)).shape == (4, 6, 3)


def test_slashes_in_ids() -> None:
    assert EpisodeRecorder("x", "ALE/Pong-v5").name == "ALE_Pong-v5"
