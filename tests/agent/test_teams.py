"""Agents of runs in envs of several agents: they act for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mpe2 import simple_spread_v3

import ding
from ding.agent import Agent
from ding.agent.card import card_of
from ding.config import compile_config, override
from ding.entry.cli import main as command
from ding.entry.predefined import predefined_config
from ding.utils.errors import DingError

SMALL = {
    **dict.fromkeys(
        ("env.collector_env_num", "env.evaluator_env_num", "env.n_evaluator_episode"), 2
    ),
    "policy.learn.batch_size": 20,
}
BATTLE, SPREAD = ("micro_battle_3m", "qmix"), ("simple_spread", "mappo")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder, found = tmp_path_factory.mktemp("runs"), {}
    for env, policy in (BATTLE, SPREAD):
        more = {"policy.collect.n_sample": 40, "policy.learn.epoch_per_collect": 1}
        main, create = predefined_config(env, policy)
        name = {"exp_name": str(folder / env)}
        main = override(main, {**SMALL, **name, **(more if policy == "mappo" else {})})
        found[env, policy] = ding.train([main, create], steps=20).directory
    return found


@pytest.fixture
def spread(runs: Any) -> Agent:
    return ding.load(runs[SPREAD])


def played(agent: Agent) -> tuple[list[Any], float]:
    """The joint actions of an episode in the run's env, and its return."""
    env, actions, over, total = agent.card.make_env(), [], False, 0.0
    env.seed(3, dynamic_seed=False)
    agent.reset()
    obs = env.reset()
    while not over:
        actions.append(agent.act(obs))
        obs, reward, over, _ = env.step(actions[-1])
        total += reward
    env.close()
    return actions, total


def test_it_acts_on_what_the_env_gives_and_keeps_to_its_masks(runs: Any) -> None:
    agent = ding.load(runs[BATTLE])
    env = agent.card.make_env()
    env.seed(0, dynamic_seed=False)
    obs, over = env.reset(), False
    while not over:
        action = agent.act(obs, deterministic=False)
        assert action.shape == (3,)
        assert obs["action_mask"][np.arange(3), action].all()
        obs, _, over, _ = env.step(action)
    both = {key: np.stack([part, part]) for key, part in obs.items()}
    agent.reset()
    assert agent.act(both).shape == (2, 3)


def test_it_is_evaluated_in_its_own_env(runs: Any, tmp_path: Path) -> None:
    agent = ding.load(runs[BATTLE])
    returns = agent.evaluate(episodes=2, seed=5)
    agent.save(tmp_path / "team.ding")
    again = ding.load(tmp_path / "team.ding")
    assert again.evaluate(episodes=2, seed=5) == pytest.approx(returns)
    assert returns[1] == agent.evaluate(episodes=1, seed=6)[0]


def test_dicts_by_agent_are_answered_in_the_same_way(spread: Agent) -> None:
    actions, total = played(spread)
    env = simple_spread_v3.parallel_env(N=3, max_cycles=25)
    spread.reset()
    obs, infos = env.reset(seed=3)
    theirs, returned = [], 0.0
    while env.agents:
        theirs.append(spread.act(obs, infos=infos))
        obs, rewards, _, _, infos = env.step(theirs[-1])
        returned += 2.0 * sum(rewards.values())  # env.reward_scale of the zoo's config
    assert [list(by_agent.values()) for by_agent in theirs] == [list(one) for one in actions]
    assert list(theirs[0]) == ["agent_0", "agent_1", "agent_2"]
    assert returned == pytest.approx(total, rel=1e-5)
    wrapped = spread.wrap(simple_spread_v3.parallel_env(N=3, max_cycles=25))
    assert spread.evaluate(wrapped, episodes=1, seed=3)[0] == pytest.approx(total, rel=1e-5)


def test_agents_that_have_left_are_not_asked(spread: Agent) -> None:
    env = simple_spread_v3.parallel_env(N=3, max_cycles=25)
    obs, _ = env.reset(seed=3)
    spread.reset()
    assert set(spread.act(obs)) == {"agent_0", "agent_1", "agent_2"}
    rest = {"agent_0": obs["agent_0"], "agent_2": obs["agent_2"]}
    assert set(spread.act(rest)) == set(rest)
    assert set(spread.act(obs)) == set(rest), "who has left is gone until the episode is over"
    spread.reset()
    assert set(spread.act(obs)) == {"agent_0", "agent_1", "agent_2"}


def test_play_writes_videos_of_it(
    runs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pair, name in ((BATTLE, "MicroBattleEnv"), (SPREAD, "PettingZooEnv")):
        videos = tmp_path / name
        assert command(["play", str(runs[pair]), "--video-dir", str(videos)]) == 0
        assert [file.name for file in videos.iterdir()] == [f"{name}_episode_0.mp4"]
    assert "1 video in" in capsys.readouterr().out


def test_exported_it_keeps_to_masks(runs: Any, tmp_path: Path) -> None:
    file = tmp_path / "team.pt2"
    assert command(["export", str(runs[SPREAD]), str(file)]) == 0
    env = ding.load(runs[SPREAD]).card.make_env()
    obs = env.reset()
    obs["action_mask"][:] = 0
    obs["action_mask"][:, 3] = 1
    given = {key: torch.from_numpy(part)[None] for key, part in obs.items()}
    assert torch.export.load(file).module()(given).tolist() == [[3, 3, 3]]


def test_what_cannot_be_done_is_said(
    runs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "team.onnx")
    assert command(["export", str(runs[BATTLE]), file]) == 1
    assert "it remembers the episode" in capsys.readouterr().err
    agent = ding.load(runs[BATTLE])
    with pytest.raises(DingError, match="opens no window"):
        agent.play()
    with pytest.raises(DingError, match=r"pass agent.wrap\(env\)"):
        ding.load(runs[SPREAD]).evaluate(simple_spread_v3.parallel_env(), episodes=1)
    with pytest.raises(DingError, match="must have the parts"):
        agent.act({"agent_state": np.zeros((3, 4))})


def test_players_of_games_are_sent_to_versus() -> None:
    main, create = predefined_config("tictactoe", "ppo")
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False, seed=0)
    with pytest.raises(DingError, match="ding versus"):
        card_of(cfg)
