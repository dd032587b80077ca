"""Win rate and returns of agents, from an evaluation to all places where a run tells of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.entry.cli import main
from ding.entry.parallel import parallel_pipeline
from ding.envs import AgentsSpace, BaseEnv, BaseEnvTimestep
from ding.parallel.backend import InlineBackend
from ding.utils import ENV_REGISTRY

from .configs import CREATE, changed
from .configs import QMIX as MAIN

TOLD = "win rate 0.50, by agent 3.0, 30.0"


@ENV_REGISTRY.register("tug_of_war")
class TugOfWar(BaseEnv):
    """Two agents get 1 and 10 at each of three steps; every other episode is won."""

    _observation_space = gym.spaces.Box(-9, 9, (2, 1), np.float32)
    _action_space = AgentsSpace(gym.spaces.Discrete(2), 2)
    _reward_space = gym.spaces.Box(-99, 99, (2,), np.float32)
    episodes = 0

    def reset(self) -> Any:
        self.t, self.episodes = 0, self.episodes + 1
        return np.zeros((2, 1), np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        self.t += 1
        info = {"win": self.episodes % 2 == 0} if self.t == 3 else {}
        obs, reward = np.zeros((2, 1), np.float32), np.array([1, 10], np.float32)
        return BaseEnvTimestep(obs, reward, self.t == 3, info)

    def close(self) -> None: ...


def config(tmp_path: Path) -> list[dict[str, Any]]:
    env = dict(collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=4, stop_value=1e6)
    own = changed(MAIN, {"env": env, "exp_name": str(tmp_path / "battle")})
    return [own, {**CREATE["qmix"], "env": dict(type="tug_of_war"), "policy": dict(type="idqn")}]


def check_result(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    last = result["curve"][-1]
    assert result["win_rate"] == last["win_rate"] == 0.5
    assert result["eval_value"] == 33 and result["eval_value_agents"] == [3, 30]
    assert (last["reward_mean_agent_0"], last["reward_mean_agent_1"]) == (3, 30)
    assert "win_rate: 0.5" in (run / "log" / "evaluator" / "evaluator_logger.txt").read_text()
    events = b"".join(file.read_bytes() for file in (run / "log" / "evaluator").glob("events*"))
    assert b"evaluator_step/win_rate" in events and b"reward_mean_agent_1" in events


def test_a_run_its_evaluation_and_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    own, create = config(tmp_path)
    Path("cfg.py").write_text(f"main_config = {own!r}\ncreate_config = {create!r}\n")
    assert main(["train", "cfg.py", "--steps", "40", "--exp-name", "run"]) == 0
    assert f"return 33.0 (best 33.0), {TOLD} after" in capsys.readouterr().err
    check_result(Path("run"))
    assert main(["eval", "run", "--episodes", "2"]) == 0
    text = capsys.readouterr().out
    assert "2 episodes: return mean 33.00" in text
    assert text.endswith("win rate 0.50, by agent 3.00, 30.00\n")
    assert main(["eval", "run", "--video", "1"]) == 1
    assert "cannot save replays" in capsys.readouterr().err
    assert main(["plot", "run", "-o", "picture.png"]) == 0
    assert f"run: return 33.0 (best 33.0), {TOLD} after" in capsys.readouterr().out


def test_a_run_in_parallel_tells_the_same(tmp_path: Path, capsys: Any) -> None:
    result = parallel_pipeline(config(tmp_path), 0, max_env_step=40, backend=InlineBackend())
    assert result["win_rate"] == 0.5 and f", {TOLD} after" in capsys.readouterr().err
    check_result(tmp_path / "battle")
