"""Run of a league: jobs, games, learning, copies, in a directory that a killed run goes on from."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

from ding.config import compile_config
from ding.config.compile import save_compiled
from ding.config.tree import plain_dict
from ding.envs import get_vec_env_setting, manager_of
from ding.league.games import GameFile, copy_line, count, lines_of, replay, summary, table
from ding.league.league import BaseLeague, create_league
from ding.league.player import HistoricalPlayer
from ding.league.trainee import Trainee
from ding.pipeline.interrupt import Interrupt
from ding.pipeline.ownership import Ownership
from ding.pipeline.progress import Progress
from ding.pipeline.run import ConfigLike, read_input
from ding.pipeline.spaces import fit_model_to_env
from ding.pipeline.state import check_same_config, find_run
from ding.policy import create_policy
from ding.utils.checkpoint import load_checkpoint, save_checkpoint, whole_file
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.limits import Limits
from ding.utils.seed import rng_state, set_pkg_seed, set_rng_state
from ding.worker import create_serial_collector, create_serial_evaluator
from ding.worker.battle.past import Actor

STATE_NAME = "league_state.pth.tar"
_TABLE_SECONDS = 20.0
# All is saved after every job, unless that would take more than a twentieth of the time.
_SAVE_SHARE = 20
_COLLECTOR = "episode_1v1"


class LeagueRun:
    """Active players take turns: each plays a job, learns from its seats, and maybe is copied."""

    def __init__(
        self,
        input_cfg: ConfigLike,
        seed: int = 0,
        limits: Limits | None = None,
        resume: str | Path | bool = False,
    ) -> None:
        main, create, _ = read_input(input_cfg)
        self.cfg, self.league_cfg = _compiled(main, create, seed)
        self.seed, self.limits = seed, limits or Limits()
        self._closing = ExitStack()
        set_pkg_seed(seed, use_cuda=self.cfg.policy.cuda)
        try:
            self._make(resume)
        except BaseException:
            self._closing.close()
            raise

    def _make(self, resume: str | Path | bool) -> None:
        collector_env, evaluator_env = self._make_envs()
        fit_model_to_env(self.cfg.policy, collector_env)
        state = self._open_directory(resume)
        self.progress = Progress(str(self.directory), self.limits)
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
        name = str(self.directory)
        settings = self.cfg.policy
        self.collector: Any = create_serial_collector(
            settings.collect.collector, env=collector_env, exp_name=name
        )
        self.evaluator: Any = create_serial_evaluator(
            settings.eval.evaluator, env=evaluator_env, exp_name=name
        )
        for worker in (self.collector, self.evaluator):
            self._closing.callback(worker.close)
        self.jobs, self.envstep = 0, 0
        self._shown = self._saved = time.monotonic()
        self._save_cost = 0.0
        if state is None:
            self._begin()
        else:
            self._restore(state)

    def _make_envs(self) -> list[Any]:
        env_fn, *cfgs = get_vec_env_setting(self.cfg.env)
        managers = []
        for own in cfgs:
            manager = manager_of(self.cfg.env.manager, env_fn, own)
            self._closing.callback(manager.close)
            manager.seed(self.seed)
            managers.append(manager)
        return managers

    def _open_directory(self, resume: str | Path | bool) -> dict[str, Any] | None:
        if resume is False:
            save_compiled(self.cfg)
            self.directory = Path(self.cfg.exp_name)
            self._closing.callback(Ownership(self.directory).release)
            return None
        name = self.cfg.exp_name if resume is True else str(resume)
        self.directory = find_run(name, (STATE_NAME,))
        self._closing.callback(Ownership(self.directory).release)
        state = load_checkpoint(self.directory / "ckpt" / STATE_NAME, trusted=True)
        check_same_config(state["config"], self._settings())
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
                trainee.policy.eval_mode.load_state_dict(load_checkpoint(path))
            trainee.save(path)
            trainee.save(self.league.path_policy / f"{player.player_id}_initial.pth")
            # Whoever plays the past has somebody to play from the first job on.
            self.league.judge_snapshot(player.player_id, force=True)
            self.games.add([copy_line(0, self.league.historical_players[-1])])
        self.save()

    # --- the loop ------------------------------------------------------------------------------

    @property
    def train_iter(self) -> int:
        """Updates of all players."""
        return sum(trainee.learner.train_iter for trainee in self.trainees.values())

    @property
    def finished(self) -> bool:
        return self._interrupt.asked or self.limits.reached(self.train_iter, self.envstep)

    def train(self) -> dict[str, Any]:
        while not self.finished:
            self.play()
            self.progress.update(self.envstep, self.train_iter)
            now = time.monotonic()
            if now - self._shown >= _TABLE_SECONDS:
                self._shown = now
                self.progress.message(table(self.league))
            if now - self._saved >= min(self.cfg.checkpoint_seconds, self._save_cost * _SAVE_SHARE):
                self.save()
        return self._finish()

    def play(self) -> None:
        """One job: games, what they count for, and what is learned from them."""
        job = self.league.get_job_info()
        own, other = job["player_id"]
        trainee, steps = self.trainees[own], self.collector.envstep
        modes: dict[str, Any] = {own: trainee.policy.collect_mode}
        if other != own:
            modes[other] = Actor(self._acting(other))
        self.collector.reset_policy(modes)
        settings = {name: trainee.settings() for name in (own,)}
        data, _ = self.collector.collect(
            train_iter=trainee.learner.train_iter, policy_kwargs=settings
        )
        taken = self.collector.envstep - steps
        self.envstep += taken
        lines = lines_of(self.jobs, self.collector.last_games)
        self.games.add(lines)
        for line in lines:
            count(self.league, line)
        statistics = self.collector.take_statistics().get(own)
        trainee.learn(data[0], taken, statistics)
        self.jobs += 1
        self._judge(own)

    def _acting(self, player_id: str) -> Any:
        """Collect mode that plays for another player."""
        if player_id in self.trainees:
            return self.trainees[player_id].policy.collect_mode
        player = self.league.get_player_by_id(player_id)
        self._shadow.collect_mode.load_state_dict(_weights(player.checkpoint_path))
        return self._shadow.collect_mode

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
            returns = list(self.evaluator.eval(None, self.train_iter, self.envstep).reward)
        self.progress.message(table(self.league))
        self.progress.message(f"{self.jobs:,} jobs; results in {self.directory}: league.json")
        curve = self.evaluator.history
        return {
            "interrupted": self._interrupt.asked,
            "env_step": self.envstep,
            "train_iter": self.train_iter,
            "eval_value": curve[-1]["reward_mean"] if curve else None,
            "eval_value_raw": returns,
            "curve": curve,
        }

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
            "envstep": self.envstep,
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
        self.jobs, self.envstep = state["jobs"], state["envstep"]
        self.league.turn_to(self.jobs)
        set_rng_state(state["rng"])
        self.progress.message(f"resumed {self.directory} after {self.jobs:,} jobs")

    def __enter__(self) -> LeagueRun:
        self._interrupt.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._interrupt.__exit__()
        self._closing.close()


def _compiled(main: Any, create: Any, seed: int) -> tuple[Any, dict[str, Any]]:
    main = deepcopy(dict(main))
    league_cfg = main.pop("league", None)
    if league_cfg is None:
        raise ConfigError(
            "the config has no league; add main_config.league = "
            "dict(active_players=dict(main_player=1), main_player=dict(one_phase_step=2000))"
        )
    cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
    kind = cfg.policy.collect.collector.type
    if kind != _COLLECTOR:
        raise ConfigError(
            f"policy.collect.collector.type = '{kind}': a league plays whole games, set "
            f"'{_COLLECTOR}' (and policy.collect.n_episode)"
        )
    return cfg, dict(league_cfg)


def _weights(path: str) -> dict[str, Any]:
    try:
        return load_checkpoint(path)
    except CheckpointError as error:
        raise CheckpointError(f"a player of the league can't play: {error}") from error


def league_pipeline(
    input_cfg: ConfigLike,
    seed: int = 0,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
) -> BaseLeague:
    """Train the players of a league until a limit is reached, and return it."""
    limits = Limits(int(max_train_iter), int(max_env_step))
    with LeagueRun(input_cfg, seed, limits, resume) as run:
        run.train()
    return run.league


def players_of(directory: str | Path) -> Sequence[dict[str, Any]]:
    """Entries of `league.json`, the best player first."""
    text = (Path(directory) / "league.json").read_text(encoding="utf-8")
    players: list[dict[str, Any]] = json.loads(text)["players"]
    return players
