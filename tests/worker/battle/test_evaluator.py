"""Battle evaluator: games at both seats, counted by opponent; checkpoints as opponents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ding.utils.errors import CheckpointError, ConfigError
from ding.worker import create_serial_evaluator
from ding.worker.battle import BattleEvaluator
from tests.worker.battle.fakes import Takes, first_legal, games


def evaluator_of(policy: Any, folder: Path, n: int = 3, **cfg: Any) -> BattleEvaluator:
    env = games(n)
    return BattleEvaluator(cfg, env=env, policy=policy, exp_name=str(folder))


def wins_nim(obs: Any, rng: Any) -> int:
    """Leaves a multiple of four where it can, and so wins from five sticks as the first."""
    return max(int(obs["obs"][0]) % 4 - 1, 0)


def test_seats_by_turns_and_shares_by_side(tmp_path: Path) -> None:
    """One stick at a time of five: whoever begins wins against its like."""
    cfg = dict(opponents=dict(like=first_legal, good=wins_nim), stop_value=0.0)
    with evaluator_of(Takes(), tmp_path, **cfg) as evaluator:
        saved: list[str] = []
        result = evaluator.eval(saved.append, train_iter=3, n_episode=4)
        entry = evaluator.history[-1]
    # 5: main takes one, the good one three of the four; second: 5 -> 4 -> 3 -> 0.
    assert list(result.reward) == [1, -1, 1, -1, -1, -1, -1, -1]
    assert entry["reward_mean"] == -0.5 and not result.stop
    assert entry["wins_like_first"] == 1 and entry["losses_like_second"] == 1
    assert entry["losses_good_first"] == 1 and entry["wins_good_second"] == 0
    assert saved == ["ckpt_best.pth.tar"]
    assert result.reward["win"] == [True, False, True, False, *[False] * 4]


def test_two_policies_against_each_other(tmp_path: Path) -> None:
    with create_serial_evaluator(
        dict(type="battle_interaction"),
        env=games(),
        policy=[Takes(), Takes(2)],
        exp_name=str(tmp_path),
    ) as evaluator:
        result = evaluator.eval(n_episode=2)
    # 5 4 1 0: the first wins; 5 2 1, and three of one stick are an illegal move.
    assert list(result.reward) == [1, 1]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        evaluator_of(Takes(), tmp_path, opponents=dict(old=str(tmp_path / "gone.pth.tar")))
    with pytest.raises(ConfigError, match="two seats"):
        evaluator_of([Takes()] * 3, tmp_path)
    with (
        evaluator_of(Takes(), tmp_path) as evaluator,
        pytest.raises(RuntimeError, match="how many"),
    ):
        evaluator.eval()
