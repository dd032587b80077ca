"""Games with known answers: tic-tac-toe by minimax, Connect Four, matrix games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.entry.predefined import predefined_config
from ding.envs.two_player import TwoPlayerEnv
from ding.model.action_mask import NEVER
from ding.policy.acting import sample_categorical
from ding.utils.errors import ConfigError, DingError
from dizoo.board_games.envs.connect_four_env import ConnectFourEnv
from dizoo.board_games.envs.tictactoe_env import TicTacToeEnv, best_moves, perfect, value
from dizoo.league_demo.envs import GameEnv
from dizoo.league_demo.envs.game_env import EQUILIBRIA, TABLES


def played(env: TwoPlayerEnv, moves: list[int]) -> Any:
    """The last timestep of these moves, players in turn."""
    env.seed(0)
    env.reset()
    step: Any = None
    for move in moves:
        step = env.step(np.array([move, move]))
    return step


def test_the_value_of_tic_tac_toe() -> None:
    assert value((0,) * 9) == 0
    # Own stones 1: complete the line at 2; block the other one's at 2; a fork is lost.
    assert best_moves((1, 1, 0, -1, -1, 0, 0, 0, 0)) == [2]
    assert best_moves((-1, -1, 0, 0, 1, 0, 0, 0, 0)) == [2]
    assert value((-1, 0, -1, 0, 1, 0, -1, 0, 1)) == -1


@pytest.mark.parametrize(
    ("moves", "reward", "result"),
    [
        ([0, 3, 1, 4, 2], [1, -1], ["wins", "losses"]),
        ([0, 2, 1, 4, 8, 6], [-1, 1], ["losses", "wins"]),
        ([0, 1, 2, 4, 3, 5, 7, 6, 8], [0, 0], ["draws", "draws"]),
        ([4, 4], [1, -1], ["wins", "losses"]),
    ],
)
def test_results(moves: list[int], reward: list[int], result: list[str]) -> None:
    step = played(TicTacToeEnv(), moves)
    assert step.done and step.reward.tolist() == reward and step.info["result"] == result
    assert step.info["eval_episode_return"].tolist() == reward


def test_each_player_sees_its_own_stones_first() -> None:
    step = played(TicTacToeEnv(), [4, 0])
    first, second = step.obs["obs"]
    assert np.flatnonzero(first).tolist() == [4, 9 + 0]
    assert np.flatnonzero(second).tolist() == [0, 9 + 4]
    assert np.flatnonzero(step.obs["action_mask"][0] == 0).tolist() == [0, 4]


def test_hands_tremble_only_while_games_are_collected() -> None:
    cfg = {"tremble": 0.5, "collector_env_num": 1, "evaluator_env_num": 1}
    collecting = TicTacToeEnv(TicTacToeEnv.create_collector_env_cfg(cfg)[0])
    evaluating = TicTacToeEnv(TicTacToeEnv.create_evaluator_env_cfg(cfg)[0])
    for env, low, high in ((collecting, 0.4, 0.7), (evaluating, 1, 1)):
        env.seed(0)
        fields = []
        for _ in range(200):
            env.reset()
            seen = env.step(np.full(2, 4)).obs["obs"][0]
            fields.append(int(seen.argmax()))
        # A random move is the one that was meant in one of nine cases.
        assert low <= np.mean(np.array(fields) == 4) <= high
    step = played(TicTacToeEnv({"tremble": 1.0}), [9])
    assert step.info["forfeit"] == 0  # illegal moves stay so
    with pytest.raises(ConfigError, match=r"env\.tremble = 2: must be a chance"):
        TicTacToeEnv({"tremble": 2})


def test_perfect_play_draws_with_itself_and_random_play_is_as_published() -> None:
    """Two random players: the first wins .585, draws .127."""
    env, rng = TicTacToeEnv(), np.random.default_rng(0)

    def game(*bots: Any) -> float:
        obs, done = env.reset(), False
        while not done:
            k = int(obs["to_play"])
            own = {"obs": obs["obs"][k], "action_mask": obs["action_mask"][k]}
            obs, reward, done, _ = env.step(np.full(2, bots[k](own, rng)))
        return float(reward[0])

    def chance(obs: Any, rng: np.random.Generator) -> int:
        return int(rng.choice(np.flatnonzero(obs["action_mask"])))

    assert {game(perfect, perfect) for _ in range(20)} == {0.0}
    assert min(game(perfect, chance) for _ in range(50)) >= 0
    found = np.array([game(chance, chance) for _ in range(1500)])
    assert abs((found == 1).mean() - 0.585) < 0.04
    assert abs((found == 0).mean() - 0.127) < 0.03


@pytest.mark.parametrize(
    ("moves", "winner"),
    [
        ([0, 1, 0, 1, 0, 1, 0], 0),  # upwards
        ([0, 0, 1, 1, 2, 2, 3], 0),  # to the right
        ([6, 0, 6, 1, 5, 2, 5, 3], 1),
        ([0, 1, 1, 2, 3, 2, 2, 3, 4, 3, 3], 0),  # diagonally up
        ([6, 5, 5, 4, 3, 4, 4, 3, 2, 3, 3], 0),  # and down
    ],
)
def test_four_in_a_line(moves: list[int], winner: int) -> None:
    step = played(ConnectFourEnv(), moves)
    assert step.done and step.reward[winner] == 1 and "forfeit" not in step.info
    assert not played(ConnectFourEnv(), moves[:-1]).done


def test_a_full_column_is_illegal() -> None:
    step = played(ConnectFourEnv(), [2] * 6)
    assert step.obs["action_mask"][0].tolist() == [1, 1, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("game", ["zero_sum", "rock_paper_scissors"])
def test_nobody_gains_by_leaving_the_equilibrium(game: str) -> None:
    table, mixed = np.array(TABLES[game]), np.array(EQUILIBRIA[game])
    assert np.ptp(table @ mixed) < 1e-9 and np.ptp(mixed @ table) < 1e-9


def test_payoffs() -> None:
    def reward(game: str, first: int, second: int) -> list[float]:
        env = GameEnv({"game_type": game})
        env.reset()
        return env.step([first, second]).reward.tolist()

    assert reward("prisoner_dilemma", 0, 1) == [-20, 0]
    assert reward("prisoner_dilemma", 1, 0) == [0, -20]
    assert reward("zero_sum", 0, 0) == [3, -3] and reward("zero_sum", 1, 0) == [-2, 2]
    assert reward("rock_paper_scissors", 1, 0) == [1, -1]


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="game_type = 'chess'"):
        GameEnv({"game_type": "chess"})
    with pytest.raises(DingError, match="no running game"):
        TicTacToeEnv().step([0, 0])
    assert predefined_config("connect_four", "ppo")[1]["env"]["type"] == "connect_four"


def test_a_draw_of_zero_does_not_win_over_a_mask() -> None:
    class Zeros:
        def standard_exponential(self, shape: Any, dtype: Any) -> np.ndarray:
            return np.array([[1.0, 0.0]], dtype=dtype)

    rng: Any = Zeros()
    assert sample_categorical(np.array([[0.0, NEVER]], np.float32), rng).tolist() == [0]
