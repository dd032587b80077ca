"""Leagues: players, jobs, and what comes of the games that were played for them."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ding.league.payoff import create_payoff
from ding.league.player import PLAYERS, ActivePlayer, HistoricalPlayer, Player, create_player
from ding.league.rating import LeagueMetricEnv
from ding.utils.errors import CheckpointError, ConfigError, nearest


class BaseLeague(ABC):
    """Players by category, `<type>_<category>_<i>`, their shared payoff and their ratings."""

    config: ClassVar[dict[str, Any]] = {
        "league_type": "base",
        # Kinds of player that have players of their own, e.g. the sides of a game that differ.
        "player_category": ["default"],
        # Number of learning players of each type, for each category.
        "active_players": {"naive_sp_player": 1},
        # Processes that play games beside the one that learns; 0: that one plays them as well.
        "collector_num": 0,
        # Where the checkpoints of players lie.
        "path_policy": "./league",
        # Begin from the checkpoints below, by category.
        "use_pretrain": False,
        "pretrain_checkpoint_path": {},
        # Let them be in the league as players, too.
        "use_pretrain_init_historical": False,
        "payoff": {"type": "battle", "decay": 0.99, "min_win_rate_games": 8},
        "metric": {
            "mu": 0,
            "sigma": 25 / 3,
            "beta": 25 / 6,
            "tau": 0.0,
            "draw_probability": 0.02,
            "elo_init": 1200,
        },
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        self.cfg = _merged(self.config, cfg or {})
        self.path_policy = Path(self.cfg["path_policy"])
        self.path_policy.mkdir(parents=True, exist_ok=True)
        self.payoff = create_payoff(self.cfg["payoff"])
        self.metric_env = LeagueMetricEnv(**self.cfg["metric"])
        self.active_players: list[ActivePlayer] = []
        self.historical_players: list[HistoricalPlayer] = []
        self._by_id: dict[str, Player] = {}
        self._next = 0
        for category in self.cfg["player_category"]:
            self._add_players(category)
        if not self.active_players:
            raise ConfigError("league.active_players names no player: nobody would learn")

    def _add_players(self, category: str) -> None:
        pretrained = self.cfg["pretrain_checkpoint_path"].get(category)
        if self.cfg["use_pretrain"] and pretrained is None:
            raise ConfigError(f"league.pretrain_checkpoint_path lacks category '{category}'")
        for kind, count in self.cfg["active_players"].items():
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise ConfigError(
                    f"league.active_players.{kind} = {count!r}: must be a number of players"
                )
            for i in range(count):
                name = f"{kind}_{category}_{i}"
                path = self.path_policy / f"{name}_ckpt.pth"
                args = (category, self.payoff, str(path), name, 0, self.metric_env.create_rating())
                player = create_player(self.cfg, kind, *args)
                if self.cfg["use_pretrain"]:
                    self.save_checkpoint(pretrained, path)
                self.active_players.append(player)
                self._by_id[name] = player
                self.payoff.add_player(player)
        if self.cfg["use_pretrain_init_historical"] and pretrained is not None:
            name, rating = f"pretrain_{category}_0_historical", self.metric_env.create_rating()
            self.add_historical(
                HistoricalPlayer(
                    *({}, category, self.payoff, str(pretrained), name, 0, rating),
                    parent_id="pretrain",
                )
            )

    def add_historical(self, player: HistoricalPlayer) -> None:
        self.historical_players.append(player)
        self._by_id[player.player_id] = player
        self.payoff.add_player(player)

    def seed(self, seed: int) -> None:
        for k, player in enumerate(self.active_players):
            player.rng = np.random.default_rng([seed, k])

    @property
    def active_players_ids(self) -> list[str]:
        return [player.player_id for player in self.active_players]

    @property
    def active_players_ckpts(self) -> list[str]:
        return [player.checkpoint_path for player in self.active_players]

    def get_player_by_id(self, player_id: str) -> Player:
        if player_id not in self._by_id:
            raise ConfigError(
                f"no player '{player_id}' in the league{nearest(player_id, self._by_id)}"
            )
        return self._by_id[player_id]

    # --- jobs ----------------------------------------------------------------------------------

    def get_job_info(self, player_id: str | None = None, eval_flag: bool = False) -> dict[str, Any]:
        """What to play next; by default the active players take turns."""
        if player_id is None:
            player: Any = self.active_players[self._next % len(self.active_players)]
            self._next += 1
        else:
            player = self.get_player_by_id(player_id)
        return self._get_job_info(player, eval_flag)

    def turn_to(self, number: int) -> None:
        """Let the next job be the one of this number."""
        self._next = number

    def finish_job(self, job_info: Mapping[str, Any]) -> None:
        """Count the games of a job: payoff always, ratings of an evaluation's games."""
        self.payoff.update(job_info)
        if job_info.get("eval_flag"):
            home, away = job_info["player_id"]
            self.rate(home, away, job_info["result"])

    def rate(self, home: str, away: str, results: Any) -> None:
        """Let these games of `home` change both ratings."""
        if home == away:
            return
        a, b = self.get_player_by_id(home), self.get_player_by_id(away)
        flat = [r for one in results for r in ([one] if isinstance(one, str) else one)]
        a.rating, b.rating = self.metric_env.rate_1vs1(a.rating, b.rating, flat)

    def update_active_player(self, player_info: Mapping[str, Any]) -> None:
        player = self.get_player_by_id(player_info["player_id"])
        if isinstance(player, ActivePlayer):
            self._update_player(player, player_info)

    def judge_snapshot(self, player_id: str, force: bool = False) -> bool:
        """Copy the player if it is trained enough, and maybe begin it anew."""
        player = self.get_player_by_id(player_id)
        if not isinstance(player, ActivePlayer) or not (force or player.is_trained_enough()):
            return False
        copy = player.snapshot(self.metric_env)
        self.save_checkpoint(player.checkpoint_path, copy.checkpoint_path)
        self.add_historical(copy)
        if not force:
            self._mutate_player(player)
        return True

    @staticmethod
    def save_checkpoint(src: str | Path, dst: str | Path) -> None:
        if not Path(src).is_file():
            raise CheckpointError(f"no checkpoint of a player at '{src}'")
        shutil.copyfile(src, dst)

    def player_rank(self, string: bool = False) -> Any:
        """Mean skill of all players by id, the best first; or as lines."""
        players = sorted(
            (*self.active_players, *self.historical_players), key=lambda p: -p.rating.mu
        )
        if not string:
            return {player.player_id: player.rating.mu for player in players}
        return "\n".join(f"{p.player_id}: {p.rating.mu:.2f}" for p in players)

    # --- to implement --------------------------------------------------------------------------

    @abstractmethod
    def _get_job_info(self, player: ActivePlayer, eval_flag: bool) -> dict[str, Any]: ...

    @abstractmethod
    def _update_player(self, player: ActivePlayer, info: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def _mutate_player(self, player: ActivePlayer) -> None: ...


class OneVsOneLeague(BaseLeague):
    """Games of two; a job is one player's games against one other."""

    config: ClassVar[dict[str, Any]] = {**BaseLeague.config, "league_type": "one_vs_one"}

    def _get_job_info(self, player: ActivePlayer, eval_flag: bool) -> dict[str, Any]:
        job = player.get_job(eval_flag)
        if eval_flag:
            return {
                "agent_num": 1,
                "launch_player": player.player_id,
                "player_id": [player.player_id],
                "checkpoint_path": [player.checkpoint_path],
                "player_active_flag": [True],
                "eval_opponent": job["opponent"],
            }
        seats = [player, job["opponent"]]
        return {
            "agent_num": 2,
            "launch_player": player.player_id,
            "player_id": [p.player_id for p in seats],
            "checkpoint_path": [p.checkpoint_path for p in seats],
            "player_active_flag": [isinstance(p, ActivePlayer) for p in seats],
        }

    def _update_player(self, player: ActivePlayer, info: Mapping[str, Any]) -> None:
        if "train_iteration" in info:
            player.total_agent_step = info["train_iteration"]

    def _mutate_player(self, player: ActivePlayer) -> None:
        path = player.mutate({"reset_checkpoint_path": self.initial_path(player)})
        if path is not None:
            self.save_checkpoint(path, player.checkpoint_path)

    def initial_path(self, player: Player) -> str:
        """Weights that it began with."""
        return str(self.path_policy / f"{player.player_id}_initial.pth")


LEAGUES: dict[str, type[BaseLeague]] = {"one_vs_one": OneVsOneLeague}


def create_league(cfg: Mapping[str, Any]) -> BaseLeague:
    kind = cfg.get("league_type", "one_vs_one")
    if kind not in LEAGUES:
        raise ConfigError(f"league.league_type = '{kind}'{nearest(kind, LEAGUES)}")
    return LEAGUES[kind](cfg)


def _merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings on top of the defaults; sections of players are checked by those."""
    known = {*defaults, *PLAYERS}
    for key in given:
        if key not in known:
            raise ConfigError(f"unknown config key 'league.{key}'{nearest(key, known)}")
    sections = {key: {**defaults[key], **given.get(key, {})} for key in ("payoff", "metric")}
    for key, section in sections.items():
        for name in section:
            if name not in defaults[key]:
                raise ConfigError(
                    f"unknown config key 'league.{key}.{name}'{nearest(name, defaults[key])}"
                )
    return {**defaults, **given, **sections}
