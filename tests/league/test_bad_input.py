"""Bad input of games of two: refused in one line, or the game is decided, counted and said."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import override
from ding.entry.predefined import predefined_config
from ding.entry.selfplay import serial_pipeline_selfplay
from ding.envs.two_player import ACTION_MASK
from ding.league.run import LeagueRun, league_pipeline
from ding.utils import ENV_REGISTRY
from ding.utils.errors import CheckpointError, DingError
from ding.worker.battle import BattleEpisodeCollector
from tests.worker.battle.fakes import Endless, Nim, games, learning

from .test_run import config, lines, ratings, recomputed

LEAGUE: dict[str, Any] = dict(
    active_players=dict(main_player=1), main_player=dict(one_phase_step=20)
)
BATTLE = dict(collector=dict(type="episode_1v1"), evaluator=dict(type="battle_interaction"))
OPPONENTS = "policy.eval.evaluator.opponents"


@ENV_REGISTRY.register("careless_nim")
class Careless(Nim):
    """Lets players try what is not legal."""

    def _observed(self) -> dict[str, np.ndarray]:
        return {**super()._observed(), ACTION_MASK: np.ones((2, 3), np.float32)}


ENV_REGISTRY.register("endless_nim")(Endless)


def run_config(folder: Path, env: str = "league_demo", **over: Any) -> list[Any]:
    main, create = predefined_config(env if env == "cartpole" else "league_demo", "ppo")
    over = {"exp_name": str(folder / "run"), "policy.collect.n_sample": None, **over}
    over = {"policy.collect.n_episode": 64, "env.n_evaluator_episode": 20, **over}
    if env.endswith("_nim"):
        over |= {"policy.model.obs_shape": 2, "policy.model.action_shape": 3}
        create = {**create, "env": dict(type=env)}
        main = {**main, "env": {k: v for k, v in main["env"].items() if k != "game_type"}}
    return [override(main, over), {**create, **BATTLE}]


def selfplay(folder: Path, env: str = "league_demo", **over: Any) -> None:
    serial_pipeline_selfplay(run_config(folder, env, **over), max_env_step=100)


def league(folder: Path, env: str = "league_demo", **over: Any) -> None:
    main, create = run_config(folder, env)
    league_pipeline([{**main, "league": {**LEAGUE, **over}}, create], max_env_step=100)


@pytest.fixture(scope="module")
def other_game(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of another game."""
    folder = tmp_path_factory.mktemp("other")
    selfplay(folder, "careless_nim")
    return str(folder / "run")


def pretrained(path: str, **more: Any) -> dict[str, Any]:
    return dict(use_pretrain=True, pretrain_checkpoint_path=dict(default=path), **more)


Refused = Callable[[Path, str], None]
REFUSED: dict[str, tuple[Refused, str]] = {
    "self-play of one player": (lambda d, o: selfplay(d, "cartpole"), "of two players, this one"),
    "a league of one player": (
        lambda d, o: league(d, "cartpole"),
        "of two players, this one has 1",
    ),
    "a seat of nobody": (
        lambda d, o: selfplay(d, **{OPPONENTS: dict(x=None)}),
        "opponents.x: None is no opponent: give 'random'",
    ),
    "a number": (lambda d, o: selfplay(d, **{OPPONENTS: dict(x=3)}), "opponents.x: 3 is no opp"),
    "no function": (
        lambda d, o: selfplay(d, **{OPPONENTS: dict(x="os.path:sep")}),
        "opponent 'os.path:sep': it is '/', no function",
    ),
    "a function that is not there": (
        lambda d, o: selfplay(d, **{OPPONENTS: dict(x="os.path:gone")}),
        "has no attribute 'gone'; give module:function",
    ),
    "a checkpoint that is gone": (
        lambda d, o: selfplay(d, **{OPPONENTS: dict(x=str(d / "gone.pth.tar"))}),
        "opponents.x: no checkpoint at '",
    ),
    "a run of another game": (
        lambda d, o: selfplay(d, **{OPPONENTS: dict(x=o)}),
        "is of another game: its action_shape is 3, here it is 2",
    ),
    "nobody learns": (lambda d, o: league(d, active_players={}), "names no player"),
    "no number of players": (
        lambda d, o: league(d, active_players=dict(main_player="two")),
        "league.active_players.main_player = 'two': must be a number",
    ),
    "pretrained weights that are gone": (
        lambda d, o: league(d, **pretrained(str(d / "gone"))),
        "no checkpoint of a player at",
    ),
    "pretrained weights of another game": (
        lambda d, o: league(d, **pretrained(f"{o}/ckpt/ckpt_best.pth.tar")),
        "can't play by '.*ckpt_best.pth.tar': the checkpoint does not fit",
    ),
    "a former player that is gone": (
        lambda d, o: league(
            d,
            pretrain_checkpoint_path=dict(default=str(d / "gone")),
            use_pretrain_init_historical=True,
        ),
        "can't play by '.*gone': no checkpoint",
    ),
    "a limit of no moves": (
        lambda d, o: selfplay(d, **{"policy.collect.collector.max_moves": 0}),
        "max_moves = 0: must be a whole number from 1 on",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(case: str, other_game: str, tmp_path: Path) -> None:
    begin, said = REFUSED[case]
    with pytest.raises(DingError, match=said) as caught:
        begin(tmp_path, other_game)
    assert "\n" not in str(caught.value)


def raising(obs: Any, rng: Any) -> int:
    raise ValueError("no idea")


def illegal(obs: Any, rng: Any) -> int:
    return 7


DECIDED = {
    "raises": ("league_demo", f"{__name__}:raising", "wins", "'x' forfeits"),
    "moves illegally": ("careless_nim", f"{__name__}:illegal", "wins", "move 7 of player"),
    "never ends": ("endless_nim", "random", "draws", "have no end: cut off after 30 moves"),
}


@pytest.mark.parametrize("case", DECIDED)
def test_decided_counted_and_said_once(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env, opponent, result, said = DECIDED[case]
    limits = {
        f"policy.{part}.max_moves": 30 for part in ("collect.collector", "eval.evaluator")
    } | {"env.max_moves": 10**9}
    over = {OPPONENTS: dict(x=opponent), **(limits if env == "endless_nim" else {})}
    selfplay(tmp_path, env, **over)
    curve = json.loads((tmp_path / "run" / "result.json").read_text())["curve"]
    shares = [entry[f"{result}_x_{side}"] for entry in curve for side in ("first", "second")]
    assert set(shares) == {1.0} or (case == "moves illegally" and min(shares) > 0)
    of_games = [r.message for r in caplog.records if "said once" in r.message and "x" in r.message]
    assert said in of_games[0] and not any("\n" in line for line in of_games)
    assert (
        sum("'x' forfeits" in line or "main against x have no end" in line for line in of_games)
        == 1
    )


def test_the_collector_cuts_games_off_and_goes_on(tmp_path: Path) -> None:
    """Whatever the env's own limit is; a draw, bootstrapped through, and each begins anew."""
    env = games(2, Endless, max_moves=10**9)
    policies = [learning(), learning()]
    cfg = dict(max_moves=6)
    with BattleEpisodeCollector(cfg, env=env, policy=policies, exp_name=str(tmp_path)) as collector:
        (first, second), infos = collector.collect(n_episode=4)
        assert [game.steps for game in collector.games] == [6] * 4 and collector.envstep == 24
        assert [info["result"] for info in infos[0]] == ["draws"] * 4
    for samples in (first, second):
        ends = np.array(samples.columns["done"], dtype=bool)
        assert len(ends) == 12 and ends.sum() == 4
        assert (np.array(samples.columns["truncated"], dtype=bool) == ends).all()


def test_a_league_counts_forfeits_and_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    league(tmp_path, "careless_nim")
    played = lines(tmp_path)
    forfeits = Counter(line["seats"][line["forfeit"]] for line in played if "forfeit" in line)
    said = capsys.readouterr().err
    assert forfeits
    for name in forfeits:
        assert said.count(f"'{name}' forfeits") == 1


def test_no_game_is_lost_when_a_former_player_is_gone(tmp_path: Path) -> None:
    cfg = config(tmp_path, main_player=dict(one_phase_step=10**6, branch_probs=dict(pfsp=1.0)))
    with LeagueRun(cfg) as run:
        for _ in range(3):
            run.play()
        for copy in run.league.historical_players:
            Path(copy.checkpoint_path).rename(f"{copy.checkpoint_path}.away")
        run._former_states.clear()
        with pytest.raises(CheckpointError, match="can't play by"):
            while True:
                run.play()
        played, before = lines(tmp_path), ratings(run.league)
    for file in (tmp_path / "run" / "ckpt").glob("*.away"):
        file.rename(file.with_suffix(""))
    with LeagueRun(cfg, resume=True) as run:
        assert lines(tmp_path) == played and ratings(run.league) == before == recomputed(tmp_path)
        run.play()
