"""Games of a league where they are played: in this process, on other cores, on other machines.

Who plays is sent along as acting states, so a service that is lost takes its games with it and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ding.envs.manager.slot import seed_after
from ding.parallel.services import Answer, writable
from ding.parallel.worker_pool import Worker, WorkerPool
from ding.pipeline.blueprint import Blueprint
from ding.policy import ActingState, create_policy
from ding.utils.batch import Batch, Rows, columns_of
from ding.utils.seed import rng_state, set_pkg_seed, set_rng_state
from ding.worker import create_serial_collector
from ding.worker.battle import Game
from ding.worker.battle.past import Actor


@dataclass(frozen=True)
class Match:
    """A job: games of a player that learns against another one, or against itself."""

    number: int
    players: tuple[str, str]
    """The one that learns, and its opponent."""
    states: Mapping[str, ActingState]
    """How each of them acts."""
    train_iter: int
    settings: Mapping[str, Any]
    """How the first one explores."""


@dataclass(frozen=True)
class Played:
    """Games of a match, and the samples of the player that learns."""

    games: Sequence[Game]
    samples: Batch
    env_steps: int
    statistics: Any

    @property
    def rows(self) -> Rows:
        return Rows(writable(self.samples))


class GamesService:
    """Envs of two players, and a policy for each seat."""

    def __init__(self, blueprint: Blueprint, index: int = 0, incarnation: int = 0) -> None:
        cfg, seed = blueprint.cfg, blueprint.seed_of(index, incarnation)
        self._seed = blueprint.seed
        env = blueprint.envs(seed, to_evaluate=False)
        env.flights_under(Path(cfg.exp_name))
        with _chance_of(seed):
            self._seats = [create_policy(cfg.policy, enable_field=["collect"]) for _ in range(2)]
            self._collector: Any = create_serial_collector(
                cfg.policy.collect.collector,
                env=env,
                exp_name=cfg.exp_name,
                instance_name=f"collector{index}",
            )

    def play(self, match: Match) -> Answer:
        """The games, counted and learned from by who asked.

        What policies leave to chance follows from the number of the match, wherever it is played.
        """
        collector, modes = self._collector, {}
        own = match.players[0]
        for k, (name, policy) in enumerate(zip(match.states, self._seats, strict=False)):
            policy.load_acting_state(match.states[name])
            policy.rng.bit_generator.state = _generator(self._seed, match.number, k)
            modes[name] = policy.collect_mode if name == own else Actor(policy.collect_mode)
        collector.reset_policy(modes)
        steps = collector.envstep
        with _chance_of(seed_after(self._seed, match.number)):
            data, _ = collector.collect(
                train_iter=match.train_iter, policy_kwargs={own: match.settings}
            )
        return None, Played(
            collector.last_games,
            columns_of(data[0]),
            collector.envstep - steps,
            collector.take_statistics().get(own),
        )

    def close(self) -> None:
        self._collector.close()


class GamesPool(WorkerPool):
    """Workers that play matches, each one at a time."""

    def _factories(self, worker: Worker) -> Iterator[tuple[str, Callable[[], Any]]]:
        place = (worker.index, worker.incarnation)
        yield worker.name, partial(GamesService, self._blueprint, *place)


@contextmanager
def _chance_of(seed: int) -> Iterator[None]:
    """Draw by this seed, and leave the generators of this process as they were."""
    state = rng_state()
    set_pkg_seed(seed)
    try:
        yield
    finally:
        set_rng_state(state)


def _generator(*words: int) -> Any:
    return np.random.default_rng(words).bit_generator.state
