"""Games with known answers: what a monotonic mixer, a sum and agents by themselves come to.

All that is collected is uniformly random, so the answers follow from the tables: of a sum and of
independent agents from the means over the partner's actions.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import override
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.entry.predefined import predefined_config
from ding.utils.errors import ConfigError
from dizoo.matrix_games.config import two_step_coma_config as coma
from dizoo.matrix_games.config import two_step_happo_config as happo
from dizoo.matrix_games.config.two_step_mappo_config import create_config as mappo_create_config
from dizoo.matrix_games.config.two_step_mappo_config import main_config as mappo_config
from dizoo.matrix_games.config.two_step_masac_config import create_config as masac_create_config
from dizoo.matrix_games.config.two_step_masac_config import main_config as masac_config
from dizoo.matrix_games.config.two_step_qmix_config import create_config, main_config
from dizoo.matrix_games.envs import MatrixGameEnv
from dizoo.matrix_games.envs.matrix_game_env import TABLES

ANSWERS = [
    ("two_step", "qmix", 8),
    ("two_step", "vdn", 7),
    ("two_step", "idqn", 7),
    ("climbing", "vdn", 5),
    ("climbing", "idqn", 5),
    ("penalty", "qmix", 2),
    ("penalty", "vdn", 2),
    ("penalty", "idqn", 2),
    ("qtran", "qmix", 0),
    ("qtran", "vdn", 0),
    ("qtran", "idqn", 0),
]
UNRESTRICTED = [
    ("two_step", "collaq", 8),
    *[
        (game, policy, 8)
        for game in ("qtran_matrix", "two_step")
        for policy in ("qplex", "wqmix", "qtran")
    ],
]
SOFT = [("two_step", 8), ("climbing", 5), ("penalty", 2)]


@pytest.mark.parametrize(("game", "algorithm", "answer"), ANSWERS)
def test_the_known_answer(
    game: str, algorithm: str, answer: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    main, create = deepcopy(main_config), deepcopy(create_config)
    main["exp_name"] = "run"
    main["env"] |= dict(game=game, penalty=-100, stop_value=1000)
    create["policy"]["type"] = algorithm
    serial_pipeline([main, create], seed=0, max_train_iter=1200)
    curve = json.loads((tmp_path / "run" / "result.json").read_text())["curve"]
    assert [entry["reward_mean"] for entry in curve[-2:]] == [answer, answer]


@pytest.mark.parametrize(("game", "policy", "answer"), UNRESTRICTED)
def test_the_answer_of_what_is_not_monotonic(
    game: str, policy: str, answer: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    main, create = predefined_config(game, policy)
    main = override(main, {"exp_name": "run", "env.stop_value": 1000})
    serial_pipeline([main, create], seed=0, max_train_iter=500)
    curve = json.loads((tmp_path / "run" / "result.json").read_text())["curve"]
    assert [entry["reward_mean"] for entry in curve[-2:]] == [answer, answer]


@pytest.mark.parametrize(("game", "answer"), SOFT)
def test_the_answer_of_soft_critics(
    game: str, answer: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what was collected while all were nearly random: 5 and 2 are best for the mean partner."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    main = {**masac_config, "exp_name": "run"}
    main["env"] = {**main["env"], **dict(game=game, penalty=-100, stop_value=1000)}
    serial_pipeline([main, masac_create_config], seed=0, max_train_iter=1000)
    curve = json.loads((tmp_path / "run" / "result.json").read_text())["curve"]
    assert [entry["reward_mean"] for entry in curve[-2:]] == [answer, answer]


@pytest.mark.parametrize(
    ("game", "config", "answer"),
    [
        # In the two-step game COMA finds the 7 by other seeds.
        ("two_step", coma, 8),
        ("climbing", coma, 5),
        ("penalty", coma, 2),
        ("two_step", happo, 8),
        ("penalty", happo, 2),
    ],
)
def test_the_answer_of_coma_and_happo(
    game: str, config: Any, answer: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    main = {**config.main_config, "exp_name": "run"}
    main["env"] = {**main["env"], **dict(game=game, penalty=-100, stop_value=1000)}
    serial_pipeline_onpolicy([main, config.create_config], seed=0, max_train_iter=800)
    curve = json.loads((tmp_path / "run" / "result.json").read_text())["curve"]
    assert [entry["reward_mean"] for entry in curve[-2:]] == [answer, answer]


ON_POLICY = [
    (game, algorithm, answer)
    for game, answer in (("two_step", 8), ("climbing", 7), ("penalty", 2))
    for algorithm in ("mappo", "ippo")
]


@pytest.mark.parametrize(("game", "algorithm", "answer"), ON_POLICY)
def test_the_answer_of_those_who_learn_from_each_other(
    game: str, algorithm: str, answer: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partners become less random meanwhile; these are the published returns, times 25."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    main, create = deepcopy(mappo_config), deepcopy(mappo_create_config)
    main["exp_name"] = "run"
    main["env"] |= dict(game=game, penalty=-100, stop_value=1000)
    create["policy"]["type"] = algorithm
    serial_pipeline_onpolicy([main, create], seed=0, max_train_iter=600)
    curve = json.loads((tmp_path / "run" / "result.json").read_text())["curve"]
    assert [entry["reward_mean"] for entry in curve[-2:]] == [answer, answer]


@pytest.mark.parametrize("game", ["climbing", "qtran"])
def test_answers_of_the_mean_partner(game: str) -> None:
    table = np.array(TABLES[game])
    choice = table.mean(axis=1).argmax(), table.mean(axis=0).argmax()
    assert table[choice] == dict(climbing=5, qtran=0)[game]


def test_payoffs() -> None:
    env = MatrixGameEnv(dict(game="two_step"))
    assert env.reset()["global_state"].tolist() == [1, 0, 0] * 2
    first = env.step(np.array([1, 0]))
    assert (first.reward, first.done) == (0, False)
    assert first.obs["agent_state"].tolist() == [[0, 0, 1, 1, 0], [0, 0, 1, 0, 1]]
    last = env.step(np.array([1, 1]))
    returns = {"eval_episode_return": 8, "return_agent_0": 8, "return_agent_1": 8}
    assert (last.reward, last.done, last.info) == (8, True, returns)
    env = MatrixGameEnv(dict(game="penalty", repeats=2))
    env.reset()
    assert [env.step(np.array([0, 0])).reward, env.step(np.array([0, 2])).reward] == [-25, 10]
    with pytest.raises(ConfigError, match=r"env.game = 'climb'; did you mean 'climbing'"):
        MatrixGameEnv(dict(game="climb")).reset()
