"""Run of a league: jobs, games, learning, copies, in a directory that a killed run goes on from.

Players learn in this process. Games are played here as well, or by services elsewhere, each with a
match at a time (`league.collector_num`); a player has one match under way at most, so that it
learns from games of its newest weights.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

from ding.config import compile_config
from ding.config.compile import save_compiled
from ding.config.tree import plain_dict
from ding.envs import get_vec_env_setting, manager_of
from ding.league.arena import Arena, Start
from ding.league.games import GameFile, copy_line, count, lines_of, replay, summary, table
from ding.league.games_service import Match, Played
from ding.league.league import BaseLeague, create_league
from ding.league.pictures import draw
from ding.league.player import HistoricalPlayer
from ding.league.trainee import Trainee
from ding.pipeline.blueprint import Blueprint
from ding.pipeline.interrupt import Interrupt
from ding.pipeline.naming import name_with_seed
from ding.pipeline.ownership import Ownership
from ding.pipeline.progress import TRAINING_EPISODES, Progress
from ding.pipeline.report import write_result
from ding.pipeline.run import ConfigLike, read_input
from ding.pipeline.spaces import fit_model_to_env
from ding.pipeline.state import check_same_config, find_run
from ding.policy import ActingState, create_policy
from ding.utils.checkpoint import load_checkpoint, save_checkpoint, whole_file
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.limits import Limits, limits_of
from ding.utils.seed import rng_state, set_pkg_seed, set_rng_state
from ding.worker import create_serial_evaluator
from ding.worker.battle.games import Remarks

STATE_NAME = "league_state.pth.tar"
_TABLE_SECONDS = 20.0
# All is saved after every job, unless that would take more than a twentieth of the time.
_SAVE_SHARE = 20
_COLLECTOR = "episode_1v1"
# Former players whose weights are kept at hand.
_KEPT_STATES = 64


class LeagueRun:
    """Active players take turns: each plays a match, learns from it, and maybe is copied."""

    def __init__(
        self,
        input_cfg: ConfigLike,
        seed: int | None = None,
        limits: Limits | None = None,
        resume: str | Path | bool = False,
        *,
        start: Start | None = None,
        or_begin: bool = False,
    ) -> None:
        """`start` makes the place where games are played, once the config is known to be right.

        `or_begin`: if there is nothing to resume, begin. Jobs that are queued again need that.
        """
        main, create, _ = read_input(input_cfg)
        self.cfg, self.league_cfg = compiled_league(main, create, seed)
        self.seed, self.limits = self.cfg.seed, limits or Limits()
        self._closing = ExitStack()
        set_pkg_seed(self.seed, use_cuda=self.cfg.policy.cuda)
        try:
            self._make(self._find(resume, or_begin), start)
        except BaseException:
            self._closing.close()
            raise

    def _find(self, resume: str | Path | bool, or_begin: bool) -> Path | None:
        """The league to go on with."""
        if resume is False:
            return None
        try:
            return find_run(self.cfg.exp_name if resume is True else str(resume), (STATE_NAME,))
        except CheckpointError:
            if or_begin:
                return None
            raise

    def _make(self, found: Path | None, start: Start | None) -> None:
        evaluator_env = self._evaluator_env()
        fit_model_to_env(self.cfg.policy, evaluator_env)
        state = self._open_directory(found)
        self._training_returns: deque[float] = deque(maxlen=TRAINING_EPISODES)
        self.progress = Progress(
            str(self.directory), self.limits, training_returns=lambda: self._training_returns
        )
        self._interrupt = Interrupt(self.progress.message)
        path = str(self.directory / "ckpt")
        self.league: BaseLeague = create_league({**self.league_cfg, "path_policy": path})
        self.league.seed(self.seed)
        self.games = GameFile(self.directory)
        self.trainees = {
            name: Trainee(self.cfg, name, self.directory) for name in self.league.active_players_ids
        }
        for trainee in self.trainees.values():
            self._closing.callback(trainee.close)
        self._shadow = create_policy(self.cfg.policy, enable_field=["collect"])
        self._former_states: dict[str, ActingState] = {}
        self.evaluator: Any = create_serial_evaluator(
            self.cfg.policy.eval.evaluator, env=evaluator_env, exp_name=str(self.directory)
        )
        self._closing.callback(self.evaluator.close)
        blueprint = Blueprint(self.cfg, self.seed)
        self._arena = Arena(
            blueprint, self.league.cfg["collector_num"], self.progress.message, start
        )
        self._closing.callback(self._arena.close)
        n, n_player = self.league.cfg["collector_num"], len(self.trainees)
        if n > n_player:
            self.progress.message(
                f"league.collector_num = {n}, but {n_player} player(s) learn, each from one match "
                "at a time: the other collectors will have nothing to play"
            )
        self._remarks = Remarks(self.progress.message)
        self.jobs, self.envstep, self._turn = 0, 0, 0
        self._shown = self._saved = self._began = time.monotonic()
        self._earlier_seconds = 0.0
        self._save_cost = 0.0
        if state is None:
            self._begin()
        else:
            self._restore(state)

    def _evaluator_env(self) -> Any:
        env_fn, _, own = get_vec_env_setting(self.cfg.env)
        manager = manager_of(self.cfg.env.manager, env_fn, own)
        self._closing.callback(manager.close)
        manager.seed(self.seed)
        return manager

    def _open_directory(self, found: Path | None) -> dict[str, Any] | None:
        if found is None:
            save_compiled(self.cfg)
        self.directory = found or Path(self.cfg.exp_name)
        self._closing.callback(Ownership(self.directory).release)
        if found is None:
            return None
        state = load_checkpoint(self.directory / "ckpt" / STATE_NAME, trusted=True)
        check_same_config(state["config"], self._settings())
        self.cfg.exp_name = str(self.directory)
        if self.limits == Limits():
            self.limits = Limits(*state["limits"])
        return state

    def _settings(self) -> dict[str, Any]:
        return {**plain_dict(self.cfg), "league": self.league_cfg}

    def _begin(self) -> None:
        """First weights of all players, as they are or as they were trained before."""
        for player in self.league.active_players:
            trainee, path = self.trainees[player.player_id], Path(player.checkpoint_path)
            if path.is_file():
                given = self.league.cfg["pretrain_checkpoint_path"].get(player.category, path)
                _load(trainee.policy.eval_mode, given)
            trainee.save(path)
            trainee.save(self.league.path_policy / f"{player.player_id}_initial.pth")
            # Whoever plays the past has somebody to play from the first job on.
            self.league.judge_snapshot(player.player_id, force=True)
            self.games.add([copy_line(0, self.league.historical_players[-1])])
        for copy in self.league.historical_players:
            self._acting(copy.player_id)  # what can't play is said before the first game
        self.save()

    # --- the loop ------------------------------------------------------------------------------

    @property
    def train_iter(self) -> int:
        """Updates of all players."""
        return sum(trainee.learner.train_iter for trainee in self.trainees.values())

    @property
    def seconds(self) -> float:
        """Time of this league, with what it took before it was resumed."""
        return self._earlier_seconds + time.monotonic() - self._began

    @property
    def finished(self) -> bool:
        return self._interrupt.asked or self.limits.reached(self.train_iter, self.envstep)

    def train(self) -> dict[str, Any]:
        while not self.finished:
            self.play()
            self.progress.update(self.envstep, self.train_iter, self._arena.note)
            now = time.monotonic()
            if now - self._shown >= _TABLE_SECONDS:
                self._shown = now
                self.progress.message(table(self.league))
            if now - self._saved >= min(self.cfg.checkpoint_seconds, self._save_cost * _SAVE_SHARE):
                self.save()
        return self._finish()

    def play(self) -> None:
        """Deal matches until one is over, and learn from it."""
        arena = self._arena
        with self.progress.during("playing"):
            while not arena.has_played:
                self._deal()
                arena.wait()
                if self._interrupt.asked and not arena.has_played:
                    return
        if not arena.in_step:
            self._deal()  # Others play while this process learns.
        with self.progress.during("learning"):
            for match, played in arena.take():
                self._learn(match, played)

    def _deal(self) -> None:
        try:
            self._arena.deal(self._next_match)
        except CheckpointError:
            self.save()  # somebody's file is gone: what was played until now is kept
            raise

    def _next_match(self) -> Match | None:
        """That of the active player whose turn it is, of those that play none now."""
        names = self.league.active_players_ids
        for k in range(self._turn, self._turn + len(names)):
            name = names[k % len(names)]
            if name not in self._arena.playing:
                self._turn = k + 1
                return self._match(name)
        return None

    def _match(self, own: str) -> Match:
        job = self.league.get_job_info(own)
        trainee, other = self.trainees[own], job["player_id"][1]
        states = {name: self._acting(name) for name in (own, other)}
        number, self.jobs = self.jobs, self.jobs + 1
        return Match(number, (own, other), states, trainee.learner.train_iter, trainee.settings())

    def _acting(self, player_id: str) -> ActingState:
        """How a player acts now."""
        if player_id in self.trainees:
            return self.trainees[player_id].policy.acting_state()
        path = self.league.get_player_by_id(player_id).checkpoint_path
        if path not in self._former_states:
            _load(self._shadow.collect_mode, path)
            while len(self._former_states) >= _KEPT_STATES:
                self._former_states.pop(next(iter(self._former_states)))
            self._former_states[path] = self._shadow.acting_state()
        return self._former_states[path]

    def _learn(self, match: Match, played: Played) -> None:
        """Count the games of a match, and let its player learn from them."""
        own = match.players[0]
        self.envstep += played.env_steps
        lines = lines_of(match.number, played.games)
        self.games.add(lines)
        self._remarks.note(played.games)
        for game in played.games:
            if game.seats.count(own) == 1:  # Its returns against itself say nothing.
                self._training_returns.append(game.returns[game.seats.index(own)])
        for line in lines:
            count(self.league, line)
        self.trainees[own].learn(played.rows, played.env_steps, played.statistics)
        self._judge(own)

    def _judge(self, player_id: str) -> None:
        trainee, league = self.trainees[player_id], self.league
        iteration = trainee.learner.train_iter
        league.update_active_player({"player_id": player_id, "train_iteration": iteration})
        player = league.get_player_by_id(player_id)
        if not player.is_trained_enough():  # type: ignore[attr-defined]
            return
        trainee.save(player.checkpoint_path)
        before = Path(player.checkpoint_path).read_bytes()
        league.judge_snapshot(player_id)
        copy = league.historical_players[-1]
        assert isinstance(copy, HistoricalPlayer)
        self.games.add([copy_line(self.jobs, copy)])
        self.progress.message(f"{player_id} was copied after {iteration:,} updates")
        if Path(player.checkpoint_path).read_bytes() != before:
            trainee.load(player.checkpoint_path)
            self.progress.message(f"{player_id} begins anew")

    def _finish(self) -> dict[str, Any]:
        self.save()
        best = self.league.active_players[0].player_id
        returns: list[float] = []
        if not self._interrupt.asked:
            self.evaluator.reset_policy(self.trainees[best].policy.eval_mode)
            with self.progress.during("evaluating"):
                returns = list(self.evaluator.eval(None, self.train_iter, self.envstep).reward)
        self.progress.message(table(self.league))
        self.progress.message(
            f"{self.jobs:,} jobs; results in {self.directory}: league.json, ratings.png, payoff.png"
        )
        draw(self.league, self.directory)
        curve = self.evaluator.history
        result = {
            "exp_name": str(self.directory),
            "seed": self.seed,
            "stop": False,
            "interrupted": self._interrupt.asked,
            "env_step": self.envstep,
            "train_iter": self.train_iter,
            "eval_value": curve[-1]["reward_mean"] if curve else None,
            "eval_value_raw": returns,
            "seconds": round(self.seconds, 3),
            "curve": curve,
        }
        write_result(self.directory, result)
        return result

    # --- state ---------------------------------------------------------------------------------

    def save(self) -> None:
        began = time.monotonic()
        for player in self.league.active_players:
            self.trainees[player.player_id].save(player.checkpoint_path)
        state = {
            "config": self._settings(),
            "limits": [self.limits.train_iter, self.limits.env_step],
            "lines": self.games.count,
            "jobs": self.jobs,
            "turn": self._turn,
            "envstep": self.envstep,
            "seconds": self.seconds,
            "rng": rng_state(),
            "trainees": {name: t.state_dict() for name, t in self.trainees.items()},
            "players": {
                p.player_id: {"step": p.total_agent_step, **p.state_dict()}
                for p in self.league.active_players
            },
        }
        save_checkpoint(self.directory / "ckpt" / STATE_NAME, state)
        text = json.dumps({"jobs": self.jobs, "players": list(summary(self.league))}, indent=2)
        with whole_file(self.directory / "league.json") as file:
            file.write(f"{text}\n".encode())
        self._saved = time.monotonic()
        self._save_cost = self._saved - began

    def _restore(self, state: Mapping[str, Any]) -> None:
        replay(self.league, self.games.cut(state["lines"]))
        for player in self.league.active_players:
            saved = dict(state["players"][player.player_id])
            player.total_agent_step = saved.pop("step")
            player.load_state_dict(saved)
        for name, trainee in self.trainees.items():
            trainee.load_state_dict(state["trainees"][name])
        self.jobs, self.envstep, self._turn = state["jobs"], state["envstep"], state["turn"]
        self.league.turn_to(self._turn)
        self._earlier_seconds = state["seconds"]
        set_rng_state(state["rng"])
        self.progress.message(f"resumed {self.directory} after {self.jobs:,} jobs")

    def __enter__(self) -> LeagueRun:
        self._interrupt.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._interrupt.__exit__()
        self.progress.close()
        self._closing.close()


def compiled_league(main: Any, create: Any, seed: int | None) -> tuple[Any, dict[str, Any]]:
    main = deepcopy(dict(main))
    league_cfg = main.pop("league", None)
    if league_cfg is None:
        raise ConfigError(
            "the config has no league; add main_config.league = "
            "dict(active_players=dict(main_player=1), main_player=dict(one_phase_step=2000))"
        )
    cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
    cfg.exp_name = name_with_seed(cfg.exp_name, cfg.seed)
    kind = cfg.policy.collect.collector.type
    if kind != _COLLECTOR:
        raise ConfigError(
            f"policy.collect.collector.type = '{kind}': a league plays whole games, set "
            f"'{_COLLECTOR}' (and policy.collect.n_episode)"
        )
    n = league_cfg.get("collector_num", 0)
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ConfigError(
            f"league.collector_num = {n!r}: must be a whole number of processes, 0 to play in the "
            "one that learns"
        )
    return cfg, dict(league_cfg)


def _load(mode: Any, path: str | Path) -> None:
    try:
        mode.load_state_dict(load_checkpoint(path))
    except CheckpointError as error:
        raise CheckpointError(f"a player of the league can't play by '{path}': {error}") from error


def league_pipeline(
    input_cfg: ConfigLike,
    seed: int | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
    start: Start | None = None,
) -> BaseLeague:
    """Train the players of a league until a limit is reached, and return it.

    `start` makes the place where games are played; by default that is this process, or so many
    processes of this machine as `league.collector_num` says.
    """
    limits = limits_of(max_train_iter, max_env_step)
    with LeagueRun(input_cfg, seed, limits, resume, start=start) as run:
        run.train()
    return run.league


def players_of(directory: str | Path) -> Sequence[dict[str, Any]]:
    """Entries of `league.json`, the best player first."""
    text = (Path(directory) / "league.json").read_text(encoding="utf-8")
    players: list[dict[str, Any]] = json.loads(text)["players"]
    return players
