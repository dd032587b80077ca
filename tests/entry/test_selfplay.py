"""Self-play from configs: learning, equilibria, resuming, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import override
from ding.entry.cli import main as command
from ding.entry.predefined import predefined_config
from ding.entry.selfplay import serial_pipeline_selfplay
from ding.entry.serial import train
from ding.league.exploitability import GameTree
from ding.pipeline.run import Run
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.limits import Limits
from ding.worker.battle import opponent_of
from dizoo.league_demo.envs.game_env import EQUILIBRIA
from dizoo.poker.envs.kuhn_poker_env import KuhnPokerEnv

SEATS = np.eye(2, dtype=np.float32)
"""What both players see in games of one move."""


def config(env: str, policy: str, folder: Path, **over: Any) -> list[Any]:
    main, create = predefined_config(env, policy)
    return [override(main, {"exp_name": str(folder / "run"), **over}), create]


def test_both_learn_to_defect(tmp_path: Path) -> None:
    cfg = config("league_demo", "ppo", tmp_path)
    policy = serial_pipeline_selfplay(cfg, max_env_step=4000)
    output = policy.collect_mode.forward(dict(enumerate(SEATS)))
    logit = np.stack([output[seat]["logit"] for seat in (0, 1)])
    assert (logit[:, 1] - logit[:, 0] > 3).all()


def test_the_average_of_past_policies_nears_the_mixed_equilibrium(tmp_path: Path) -> None:
    cfg = config("zero_sum", "ppo", tmp_path)
    with Run(cfg, limits=Limits(env_step=80_000)) as run:
        train(run)
        found = run.collector.past.average(SEATS)
    assert found == pytest.approx(np.stack([EQUILIBRIA["zero_sum"]] * 2), abs=0.05)


def rock_paper_scissors(past_share: float, folder: Path) -> tuple[np.ndarray, Any]:
    """Policies of both seats after each of 150 rounds, (150, 2, 3), and the past of the last."""
    share = {"policy.collect.collector.past_share": past_share}
    policies = []
    with Run(config("rock_paper_scissors", "ppo", folder, **share)) as run:
        run.begin()
        for _ in range(150):
            run.learn(run.source.next(run.learner.train_iter))
            output = run.policy.collect_mode.forward(dict(enumerate(SEATS)))
            chances = np.exp([output[seat]["logit"] for seat in (0, 1)])
            policies.append(chances / chances.sum(axis=1, keepdims=True))
        return np.array(policies), run.collector.past


def turns(policies: np.ndarray) -> np.ndarray:
    """How often each seat went round: rock, paper, scissors, rock; (2,)."""
    corners = np.exp(2j * np.pi * np.arange(3) / 3)
    angles = np.unwrap(np.angle(policies @ corners), axis=0)
    return (angles[-1] - angles[0]) / (2 * np.pi)


def test_plain_self_play_goes_round_where_fictitious_play_settles(tmp_path: Path) -> None:
    plain, _ = rock_paper_scissors(0.0, tmp_path / "plain")
    fictitious, past = rock_paper_scissors(1.0, tmp_path / "fictitious")
    assert past.average(SEATS) == pytest.approx(1 / 3, abs=0.05)
    assert (turns(plain) > 5).all() and (np.abs(turns(fictitious)) < 4).all()
    far, near = (np.abs(p[-50:] - 1 / 3).max(axis=2).mean() for p in (plain, fictitious))
    assert far > 2 * near and far > 0.1


def test_the_average_of_past_policies_plays_kuhn_poker_well(tmp_path: Path) -> None:
    cfg = config("kuhn_poker", "ppo", tmp_path)
    tree = GameTree(KuhnPokerEnv())
    with Run(cfg, limits=Limits(env_step=60_000)) as run:
        train(run)
        past = [
            tree.strategy_of(lambda _, p=p: p) for p in run.collector.past.probabilities(tree.obs)
        ]
    assert tree.exploitability(tree.uniform()) == pytest.approx(0.4583, abs=1e-4)
    assert tree.exploitability(tree.average(past)) < 0.1


SHORT = {
    "env.collector_env_num": 16,
    "env.n_evaluator_episode": 40,
    "policy.collect.n_episode": 64,
    "policy.learn.batch_size": 128,
    "policy.eval.evaluator.eval_freq": 10_000,
}


def test_tic_tac_toe_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["-m", "selfplay", "-e", "tictactoe", "-p", "ppo"]
    assert command([*options, "--env-step", "25e3", "--exp-name", "ttt"]) == 0
    first, last = (json.loads(Path("ttt/result.json").read_text())["curve"][k] for k in (0, -1))
    # Random players win .585 as the first and lose as much as the second.
    assert last["wins_random_first"] > 0.7 and last["wins_random_second"] > 0.4
    assert last["reward_mean"] > first["reward_mean"]
    assert command(["-m", "selfplay", "-e", "cartpole", "-p", "dqn"]) == 1
    assert "collector.type = 'sample': self-play needs" in capsys.readouterr().err
    main, create = predefined_config("tictactoe", "dqn")
    Path("own_config.py").write_text(f"main_config = {main!r}\ncreate_config = {create!r}\n")
    assert command(["-m", "parallel", "-c", "own_config.py"]) == 1
    assert "games of two are played in one process" in capsys.readouterr().err


@pytest.mark.parametrize("policy", ["ppo", "dqn"])
def test_resumed_runs_are_the_same(policy: str, tmp_path: Path) -> None:
    over = {**SHORT, "policy.collect.collector.past_share": 0.5}
    over |= {"policy.collect.collector.past_every": 4}
    if policy == "dqn":
        over |= {"policy.collect.n_episode": None, "policy.collect.n_sample": 100}
        over |= {"policy.other.replay_buffer.replay_buffer_size": 2000}

    def run(name: str, steps: int, resume: Any = False) -> Any:
        cfg = config("tictactoe", policy, tmp_path, **over, exp_name=str(tmp_path / name))
        with Run(cfg, limits=Limits(env_step=steps), resume=resume) as made:
            train(made)
            past = len(made.collector.past)
            weights = made.policy.acting_state().parts["model"]
            return weights, made.collector.envstep, past, made.evaluator.history[-1]

    whole = run("whole", 2000)
    run("cut", 1000)
    rest = run("cut", 2000, tmp_path / "cut")
    assert rest[1:3] == whole[1:3]
    for name, value in whole[0].items():
        np.testing.assert_array_equal(value, rest[0][name])


def test_a_checkpoint_is_an_opponent_of_its_own_game_only(tmp_path: Path) -> None:
    cfg = config("league_demo", "ppo", tmp_path)
    serial_pipeline_selfplay(cfg, max_env_step=100)
    run = tmp_path / "run"
    names = {"policy.eval.evaluator.opponents": {"old": str(run)}}
    again = config("league_demo", "ppo", tmp_path, **names, exp_name=str(tmp_path / "again"))
    with Run(again) as made:
        assert made.evaluator.play(2)[1].seats == ("old", "main")
    other = config("tictactoe", "ppo", tmp_path, **names, exp_name=str(tmp_path / "other"))
    with pytest.raises(CheckpointError, match="is of another game: its obs_shape is 2, here it is"):
        Run(other)
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        opponent_of(str(run / "ckpt" / "gone.pth.tar"), None)
    with pytest.raises(ConfigError, match="module:function"):
        opponent_of("no.such:function", None)


def test_observations_of_both_seats_are_normalised(tmp_path: Path) -> None:
    cfg = config("league_demo", "ppo", tmp_path, **{"policy.obs_norm": True})
    with Run(cfg) as run:
        run.begin()
        run.learn(run.source.next())
        moments = run.policy.acting_parts["obs_norm"].state_dict()[""]
    # 64 games; each seat sees which one it is.
    assert moments["count"] == 128 and moments["mean"].tolist() == [0.5, 0.5]


def test_dqn_learns_by_self_play(tmp_path: Path) -> None:
    over = {"env.n_evaluator_episode": 100, "policy.other.eps.decay": 8000}
    cfg = config("tictactoe", "dqn", tmp_path, **over)
    serial_pipeline_selfplay(cfg, max_env_step=12_000)
    curve = json.loads((tmp_path / "run/result.json").read_text())["curve"]
    assert curve[-1]["wins_random_first"] > 0.7 > curve[0]["wins_random_first"]
