"""Battle collectors: samples, or whole games, of each player at the two seats of a game."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ding.envs.base_env import VecStep
from ding.policy.needs import attribute_of
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from ding.utils.seed import new_generator
from ding.worker.battle.games import Game, Remarks, Table, check_game
from ding.worker.battle.opponents import opponents_of
from ding.worker.battle.past import PastSelves
from ding.worker.battle.recorder import GameRecorder
from ding.worker.collector.base import ISerialCollector
from ding.worker.collector.recorder import Recorder
from ding.worker.collector.sample import Sampler

logger = logging.getLogger(__name__)

MAIN = "main"
_KEPT_GAMES = 1000


class BattleCollector(ISerialCollector):
    """Base: who sits where. `collect` gives the samples of the policy, or of each by player.

    One collect mode plays both seats (self-play), some games against past selves or opponents of
    the config, at either seat. A list of two plays seat by seat, `{name: mode}` with both sides in
    turn; then the samples come as (data, infos of games), lists by player. A player without
    `process_transition` (an eval mode, a bot), or with `collect_data` False, only acts.
    """

    config: ClassVar[dict[str, Any]] = dict(
        import_names=[],
        # Train iterations between two entries in the log.
        collect_print_freq=100,
        # Share of games against past selves; 0 is naive self-play, 1 fictitious self-play.
        past_share=0.0,
        # Train iterations between two snapshots of the policy.
        past_every=100,
        # Snapshots that are kept; once full, a fair draw of all that were taken.
        past_kept=100,
        # Snapshots that play at a time; others are drawn for every collect.
        past_at_once=4,
        # Other opponents by name: 'random', 'module:function', a checkpoint or a run.
        opponents={},
        # Share of games against these.
        opponents_share=0.0,
        # Env steps after which a game is cut off as a draw, whatever its own rules say.
        max_moves=10_000,
    )
    recorder_class: ClassVar[type[Recorder]] = GameRecorder
    _recorder: GameRecorder
    _some_stand_still = True

    def __init__(self, cfg: Mapping[str, Any] | None = None, *args: Any, **kwargs: Any) -> None:
        self._rng = new_generator()
        self.past: PastSelves | None = None
        """Snapshots of the policy, where the config has it play them."""
        self.games: list[Game] = []
        """The last thousand games."""
        self.last_games: list[Game] = []
        """Those of the last collect."""
        self.forfeits = 0
        """Games that a player lost by an illegal move."""
        self._dealt = 0
        self._opponents: list[str] = []
        self._samplers: dict[str, Sampler] = {}
        self._by_player = False
        self.remarks = Remarks(logger.warning)
        super().__init__(cfg, *args, **kwargs)

    # --- players -------------------------------------------------------------------------------

    def reset_policy(self, policy: Any = None) -> None:
        """Collect with other players from now on, or with the same ones after a reset."""
        table = None
        if policy is not None:
            if self._env is None:
                raise RuntimeError("set an env first: reset_env(env_manager)")
            table = Table(self._modes(policy), self._env, self._deal)
        super().reset_policy(table)

    def _modes(self, policy: Any) -> dict[str, Any]:
        check_game(self._env)
        self.past, self._opponents = None, []
        given = isinstance(policy, Mapping) or type(policy) in (list, tuple)
        self._by_player = given
        if given:
            named = dict(policy if isinstance(policy, Mapping) else zip("01", policy, strict=False))
            if len(policy) > 2 or not named:
                raise ConfigError(f"a game has two seats, {len(policy)} players were given")
            self._pair = (list(named) * 2)[:2]
            self._swaps = isinstance(policy, Mapping)
            return named
        self._pair, self._swaps = [MAIN, MAIN], False
        return {MAIN: policy, **self._others(policy)}

    def _check_shares(self) -> None:
        past, others = self._cfg.past_share, self._cfg.opponents_share
        if not (past >= 0 and others >= 0 and past + others <= 1):
            raise ConfigError(
                f"policy.collect.collector: past_share = {past} and opponents_share = {others} "
                "must not be negative, nor more than 1 together"
            )
        if bool(others) != bool(self._cfg.opponents):
            raise ConfigError(
                "policy.collect.collector: opponents and opponents_share go together, got "
                f"{dict(self._cfg.opponents)} and {others}"
            )

    def _others(self, mode: Any) -> dict[str, Any]:
        self._check_shares()
        cfg = self._cfg
        space = self._env.action_space.one
        like = attribute_of(mode, "cfg", None)
        others = opponents_of(cfg.opponents, "policy.collect.collector.opponents", space, like)
        self._opponents = list(others)
        if cfg.past_share > 0:
            settings = {"every": cfg.past_every, "kept": cfg.past_kept, "at_once": cfg.past_at_once}
            self.past = PastSelves(mode, **settings)
            others |= self.past.modes
        return others

    def _deal(self, env_id: int) -> Sequence[str]:
        self._dealt += 1
        if self._by_player:
            return self._pair[::-1] if self._swaps and self._dealt % 2 == 0 else self._pair
        chance, other = self._rng.random(), MAIN
        if self.past is not None and len(self.past) and chance < self._cfg.past_share:
            other = f"past_{self._rng.integers(self._cfg.past_at_once)}"
        elif chance > 1 - self._cfg.opponents_share:
            other = self._opponents[int(self._rng.integers(len(self._opponents)))]
        return (MAIN, other) if self._rng.random() < 0.5 else (other, MAIN)

    @property
    def action_space(self) -> Any:
        """Of one seat."""
        return self._env.action_space.one

    def _check_mode(self, policy: Any) -> None:
        """Any mode can play; those that lack `process_transition` only act."""

    def last_returns(self, n: int) -> list[float]:
        """Returns of the last `n` games of the players that learn."""
        players = self._recorder.by_player.values()
        return [r for player in players for r in player.episodes.last_returns(n)]

    def _forget(self) -> None:
        if self._policy is not None:
            modes = {player.name: player.mode for player in self._policy.players}
            recorders = self._recorder.by_player
            self._samplers = {name: Sampler(r, modes[name]) for name, r in recorders.items()}

    # --- collecting ----------------------------------------------------------------------------

    def _set_env(self, env: Any) -> None:
        super()._set_env(env)
        most = self._cfg.max_moves
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise ConfigError(
                f"policy.collect.collector.max_moves = {most!r}: must be a whole number from 1 on"
            )
        self._recorder.max_moves = most

    def _step(self, obs: Any, policy_kwargs: Mapping[str, Any], may_defer: bool) -> VecStep:
        step = super()._step(obs, policy_kwargs, may_defer)
        cut = self._recorder.take_cut()
        if not cut:
            return step
        self._env.reset(dict.fromkeys(cut))
        return step._replace(done=step.done | np.isin(step.env_id, cut))

    def _begin(self) -> None:
        self._check_complete()
        if self.past is not None:
            self.past.remember(self._train_iter)
            self.past.draw()

    def _kwargs(self, given: Any) -> dict[str, Any]:
        """Arguments of each player's forward; they are given by player, in order, or for one."""
        if not self._by_player:
            return {MAIN: dict(given or {})}
        if isinstance(given, Mapping):
            return dict(given)
        names = [player.name for player in self._policy.players]
        return dict(zip(names, given or (), strict=False))

    def _handed_out(self, train_iter: int, amounts: Mapping[str, int | None]) -> Any:
        games = self._recorder.take_games()
        self.games = [*self.games, *games][-_KEPT_GAMES:]
        self.last_games = games
        self._note(games)
        self._log_progress(train_iter)
        data = {n: s.hand_out(amounts.get(n)) if s.available else Rows({}) for n, s in self._all()}
        if not self._by_player:
            return data[MAIN]
        players = [player.name for player in self._policy.players]
        infos = [[_info(game, name) for game in games if name in game.seats] for name in players]
        return [data.get(name, []) for name in players], infos

    def _all(self) -> list[tuple[str, Sampler]]:
        return list(self._samplers.items())

    def _note(self, games: Sequence[Game]) -> None:
        for game in games:
            if game.forfeit is not None:
                self.forfeits += 1
            if game.reason:
                self._log.info(f"{' against '.join(game.seats)}: {game.reason}")

    def _close_open_moves(self) -> None:
        """On-policy, what is not over belongs to a policy that is gone."""
        for player in self._policy.players:
            if player.learns and self._samplers[player.name].needs.on_policy:
                self.dropped_moves += player.moves.drop()
                self._recorder.by_player[player.name].store.clear()

    def take_statistics(self) -> dict[str, Any]:
        """For the normalisers of the policy, or by player."""
        if self._policy is None:
            return {}
        recorders = self._recorder.by_player.items()
        observers = [name for name, recorder in recorders if recorder.observes]
        known = self._policy.get_attribute("statistics") if observers else {}
        if not self._by_player:
            return dict(known[MAIN]) if MAIN in observers else {}
        return {name: known[name] for name in observers}

    dropped_moves = 0
    """Moves whose outcome came after their policy was gone; in no sample."""
    _train_iter = 0

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "samplers": {name: sampler.state_dict() for name, sampler in self._all()},
            "past": None if self.past is None else self.past.state_dict(),
            "rng": self._rng.bit_generator.state,
            "counts": [self._dealt, self.forfeits],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        for name, sampler in self._all():
            sampler.load_state_dict(state["samplers"][name])
        if self.past is not None:
            self.past.load_state_dict(state["past"])
        self._rng.bit_generator.state = state["rng"]
        self._dealt, self.forfeits = state["counts"]


class BattleSampleCollector(BattleCollector):
    """`collect(n_sample)`: at least so many samples of every player that learns.

    On-policy, games that are under way go on, but what is open in them is dropped.
    """

    config: ClassVar[dict[str, Any]] = dict(type="sample_1v1")

    def collect(
        self,
        n_sample: int | None = None,
        train_iter: int = 0,
        drop_extra: bool = True,
        random_collect: bool = False,
        policy_kwargs: Any = None,
    ) -> Any:
        self._train_iter = train_iter
        self._begin()
        wanted = {name: self._wanted(n_sample, name, s) for name, s in self._all()}
        if not wanted:
            raise RuntimeError("no player is a collect mode: there is nothing to collect")
        kwargs = {} if random_collect else self._kwargs(policy_kwargs)
        while any(sampler.available < wanted[name] for name, sampler in self._all()):
            missing = max(wanted[name] - sampler.available for name, sampler in self._all())
            self._steps(missing, kwargs)
            for _, sampler in self._all():
                sampler.make(train_iter)
        self._close_open_moves()
        return self._handed_out(train_iter, wanted if drop_extra else {})

    def _wanted(self, n_sample: int | None, name: str, sampler: Sampler) -> int:
        n = sampler.needs.n_sample if n_sample is None else n_sample
        if n is None:
            raise RuntimeError(f"how many samples? pass n_sample; '{name}' has no n_sample")
        if n < 1:
            raise ConfigError(f"n_sample = {n}: must be at least 1")
        return n

    def _steps(self, count: int, kwargs: Mapping[str, Any]) -> None:
        taken = 0

        def enough(step: VecStep) -> bool:
            nonlocal taken
            taken += len(step.env_id)
            return taken >= count

        self._advance(enough, kwargs)


class BattleEpisodeCollector(BattleCollector):
    """`collect(n_episode)`: begins exactly that many games and plays them all to their end."""

    config: ClassVar[dict[str, Any]] = dict(
        type="episode_1v1",
        # Give training samples; False: the steps as the policy records them.
        get_train_sample=True,
    )

    def collect(
        self,
        n_episode: int | None = None,
        train_iter: int = 0,
        policy_kwargs: Any = None,
        random_collect: bool = False,
    ) -> Any:
        self._train_iter = train_iter
        self._begin()
        n_episode = self._wanted(n_episode)
        self._begin_anew()
        left = n_episode - self._env_num
        active = np.ones(self._env_num, dtype=bool)
        ended = 0

        def enough(step: VecStep) -> bool:
            nonlocal left, ended
            for i in step.env_id[step.done].tolist():
                ended += 1
                active[i] = left > 0
                left -= int(active[i])
            return ended >= n_episode

        kwargs = {} if random_collect else self._kwargs(policy_kwargs)
        self._advance(enough, kwargs, active)
        for _, sampler in self._all():
            sampler.make(train_iter)
        return self._handed_out(train_iter, {})

    def _wanted(self, n_episode: int | None) -> int:
        if n_episode is None:
            n_episode = next((s.needs.n_episode for _, s in self._all()), None)
        if n_episode is None:
            raise RuntimeError("how many games? pass n_episode, or set policy.collect.n_episode")
        if n_episode < self._env_num:
            raise ValueError(
                f"n_episode = {n_episode} is less than the {self._env_num} envs; use fewer envs"
            )
        return int(n_episode)

    def _begin_anew(self) -> None:
        """Every env starts at the first step of a game; new opponents may sit at it."""
        begun = np.flatnonzero(self._episodes.length > 0).tolist()
        if begun:
            self._env.reset(dict.fromkeys(begun))
            self._recorder.cut_episodes(begun)
        rest = sorted({*range(self._env_num)} - {*begun})
        self._policy.begin(rest)


def _info(game: Game, name: str) -> dict[str, Any]:
    """A game as one of its players sees it."""
    seat = game.seats.index(name)
    return {
        "result": game.result[seat],
        "eval_episode_return": game.returns[seat],
        "seat": seat,
        "length": game.steps,
    }
