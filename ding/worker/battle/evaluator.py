"""Battle evaluator: games against each opponent, half of them at either seat."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ding.policy.needs import attribute_of
from ding.utils.errors import ConfigError
from ding.worker.battle.games import Game, Remarks, Table, check_game
from ding.worker.battle.match import Match
from ding.worker.battle.opponents import RANDOM, opponents_of
from ding.worker.episode_returns import EpisodeReturns
from ding.worker.evaluator import BaseSerialEvaluator, EvalResult

logger = logging.getLogger(__name__)

_SELF = "main"
RESULTS = ("wins", "draws", "losses")
SIDES = ("first", "second")


class BattleEvaluator(BaseSerialEvaluator):
    """`eval` plays `n_episode` games against each opponent; returns are those of player 0.

    `policy` is a mode, whose opponents the config names, or a list of two, which play each other.
    """

    config: ClassVar[dict[str, Any]] = dict(
        type="battle_interaction",
        # Train iterations between two evaluations.
        eval_freq=50,
        # Opponents by name: 'random', 'module:function', a checkpoint or a run; none: 'random'.
        opponents={},
        # Env steps after which a game is cut off as a draw, whatever its own rules say.
        max_moves=10_000,
    )

    _remarks: Remarks

    def reset_policy(self, policy: Any = None) -> None:
        if policy is not None:
            self._remarks = Remarks(logger.warning)
            check_game(self._env)
            modes, self._against = self._players(policy)
            self._policy = Table(modes, self._env, lambda env_id: (_SELF, _SELF))
        self._policy.reset()

    def _players(self, policy: Any) -> tuple[dict[str, Any], list[str]]:
        if type(policy) in (list, tuple):
            if len(policy) != 2:
                raise ConfigError(f"a game has two seats, {len(policy)} players were given")
            return {_SELF: policy[0], "other": policy[1]}, ["other"]
        space, like = self._env.action_space.one, attribute_of(policy, "cfg", None)
        given = self._cfg.opponents or {RANDOM: RANDOM}
        others = opponents_of(given, "policy.eval.evaluator.opponents", space, like)
        return {_SELF: policy, **others}, list(others)

    def eval(
        self,
        save_ckpt_fn: Callable[[str], Any] | None = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
    ) -> EvalResult:
        n_episode = self._cfg.n_episode if n_episode is None else n_episode
        if n_episode is None:
            raise RuntimeError("how many games? pass n_episode, or set env.n_evaluator_episode")
        games = self.play(n_episode)
        won = [game.returns[game.seats.index(_SELF)] for game in games]
        returns = EpisodeReturns(won, [self._info(game) for game in games])
        self._record(returns, train_iter, envstep)
        self.history[-1].update(tally(games, self._against))
        self._note_best(returns.mean_return, save_ckpt_fn)
        return EvalResult(self._reached(returns) and train_iter != 0, returns)

    def _info(self, game: Game) -> dict[str, Any]:
        own = game.seats.index(_SELF)
        return {"length": game.steps, "win": game.result[own] == "wins"}

    def play(self, n_game: int) -> list[Game]:
        """So many games against each opponent, in their order, the seats by turns."""
        pairs = [(_SELF, name) for name in self._against for _ in range(n_game)]
        queue = [pair[:: 1 - 2 * (k % 2)] for k, pair in enumerate(pairs)]
        self.reset_env()
        most = self._cfg.max_moves
        games = Match(self._env, self._policy, queue, ended=self._note, max_steps=most).play()
        self._remarks.note(games)
        return games

    def _note(self, game: Game, seen: Any) -> None:
        if game.reason:
            self._log.info(f"{' against '.join(game.seats)}: {game.reason}")


def tally(games: Sequence[Game], opponents: Sequence[str]) -> dict[str, float]:
    """Shares of wins, draws and losses of 'main' against each opponent, by the side it had."""
    counts: Counter[tuple[str, int, str]] = Counter()
    for game in games:
        own = game.seats.index(_SELF)
        counts[game.seats[1 - own], own, game.result[own]] += 1
    shares = {}
    for name in opponents:
        for side, said in enumerate(SIDES):
            total = sum(counts[name, side, result] for result in RESULTS)
            for result in RESULTS:
                if total:
                    shares[f"{result}_{name}_{said}"] = counts[name, side, result] / total
    return shares
