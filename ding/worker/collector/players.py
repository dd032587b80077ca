"""Several policies in one env: each plays its seats and gets samples of its own.

A *seat* is (env, position), where an env has P positions. To the policy that plays it a seat is
what an env is to a policy that plays alone: trajectories, memory and ids are kept by seat. N is the
number of envs that step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.base_env import VecStep
from ding.policy.needs import attribute_of
from ding.utils.batch import ByEnv, Rows, concat, stacked_of, take, tree_map
from ding.utils.errors import ConfigError
from ding.utils.log import WorkerLog
from ding.worker.collector.base import ISerialCollector
from ding.worker.collector.recorder import Recorder, steps_at
from ding.worker.collector.sample import Sampler
from ding.worker.collector.waiting_envs import in_order


class Player:
    """A policy and the positions that it plays in each env."""

    def __init__(self, name: str, mode: Any, positions: Sequence[int]) -> None:
        self.name, self.mode, self.positions = name, mode, positions
        self.learns = hasattr(mode, "process_transition")
        """False: it only acts, as an eval mode does."""

    def seats(self, env_id: np.ndarray, place: int) -> np.ndarray:
        """Numbers of the seats in these envs at the `place`-th of its positions."""
        n = len(self.positions)
        return env_id if n == 1 else env_id * n + place

    def all_seats(self, env_id: Sequence[int]) -> list[int]:
        places = range(len(self.positions))
        return [int(seat) for place in places for seat in self.seats(np.array(env_id), place)]

    def act(self, env_id: np.ndarray, obs: Any, kwargs: Mapping[str, Any]) -> list[Any]:
        """Ask the policy for all its seats in these envs; outputs (N, ...) of each position."""
        places, n = range(len(self.positions)), len(env_id)
        seats = concat([self.seats(env_id, place) for place in places])
        own = concat([part_of(obs, position) for position in self.positions])
        answered, output = stacked_of(self.mode.forward(ByEnv(seats, own), **kwargs))
        if answered is not seats:
            _, output = in_order(seats, answered, output)
        return [take(output, slice(place * n, (place + 1) * n)) for place in places]


class JointPolicy:
    """Policies of all players as the one policy of an env manager."""

    def __init__(self, players: Sequence[Player], action_space: Any) -> None:
        self.players = players
        self._n_position = sum(len(player.positions) for player in players)
        self._acts_in_tuples = isinstance(action_space, gym.spaces.Tuple)

    def forward(self, obs: ByEnv, **kwargs: Mapping[str, Any]) -> ByEnv:
        """`kwargs` are those of each player's own forward, by name."""
        outputs: list[Any] = [None] * self._n_position
        for player in self.players:
            own = player.act(obs.ids, obs.stacked, kwargs.get(player.name, {}))
            for position, output in zip(player.positions, own, strict=True):
                outputs[position] = output
        actions = tuple(output["action"] for output in outputs)
        action = actions if self._acts_in_tuples else np.stack(actions, axis=1)
        return ByEnv(obs.ids, {"action": action, "outputs": tuple(outputs)})

    def reset(self, env_id: Sequence[int] | None = None) -> None:
        for player in self.players:
            player.mode.reset(None if env_id is None else player.all_seats(env_id))

    def get_attribute(self, name: str) -> dict[str, Any]:
        """Attribute of each player's policy, by player; of those that have it."""
        values = {player.name: attribute_of(player.mode, name, None) for player in self.players}
        return {player: value for player, value in values.items() if value is not None}

    def set_attribute(self, name: str, values: Mapping[str, Any]) -> None:
        for player in self.players:
            if player.name in values:
                player.mode.set_attribute(name, values[player.name])


class PlayersRecorder(Recorder):
    """One recorder per player that learns; the counts here are those of the envs."""

    def __init__(self, log: WorkerLog) -> None:
        super().__init__(log)
        self.by_player: dict[str, Recorder] = {}
        self._learners: list[Player] = []
        self._first_id = 0

    def begin(self, env: Any, n_seat: int | None = None) -> None:
        super().begin(env, n_seat)
        for player in self._learners:
            self.by_player[player.name].begin(env, len(player.positions) * env.env_num)

    def set_policy(self, policy: JointPolicy) -> None:
        self._policy = policy
        self._learners = [player for player in policy.players if player.learns]
        before, self.by_player = self.by_player, {}
        for player in self._learners:
            recorder = before.get(player.name)
            if recorder is None:
                recorder = Recorder(self._log)
                recorder.number_episodes_from(self._first_id)
                recorder.begin(self._env, len(player.positions) * self._env.env_num)
            recorder.set_policy(player.mode)
            self.by_player[player.name] = recorder

    def number_episodes_from(self, first: int) -> None:
        self._first_id = first
        super().number_episodes_from(first)
        for recorder in self.by_player.values():
            recorder.number_episodes_from(first)

    def clear(self) -> None:
        super().clear()
        for recorder in self.by_player.values():
            recorder.clear()

    def _places(self) -> Iterator[tuple[Recorder, Player, int, int]]:
        """Recorder and player of every position that learns, with its place and the position."""
        for player in self._learners:
            for place, position in enumerate(player.positions):
                yield self.by_player[player.name], player, place, position

    def remember(self, obs: Any, output: Any, step: VecStep) -> None:
        for recorder, player, place, position in self._places():
            own_obs, own_output = part_of(obs, position), output["outputs"][position]
            own_step = _step_of(step, position, player.seats(step.env_id, place))
            if isinstance(own_obs, dict) and "alive" in own_obs:
                alive = np.flatnonzero(own_obs["alive"])
                own_step = steps_at(own_step, alive)
                own_obs, own_output = take(own_obs, alive), take(own_output, alive)
            if len(own_step.env_id):
                recorder.remember(own_obs, own_output, own_step)
        self._count(step, step.env_id)

    def cut_episodes(self, seats: list[int]) -> int:
        """Forget all players' episodes in these envs; counts those of the player with the most."""
        super().cut_episodes(seats)
        dropped = 0
        for env_id in seats:
            counts = [
                recorder.cut_episodes(player.seats(np.array([env_id]), place).tolist())
                for recorder, player, place, _ in self._places()
            ]
            dropped += max(counts, default=0)
        return dropped

    def _drop_stale(self, step: VecStep) -> VecStep:
        kept = super()._drop_stale(step)
        stale = np.setdiff1d(step.env_id, kept.env_id).tolist()
        for recorder, player, place, _ in self._places():
            # A trajectory without these steps would have a gap.
            recorder.cut_episodes(player.seats(np.array(stale, dtype=np.int64), place).tolist())
        return kept

    def state_dict(self) -> dict[str, Any]:
        players = {name: recorder.state_dict() for name, recorder in self.by_player.items()}
        return {**super().state_dict(), "players": players}

    def load_state_dict(self, state: dict[str, Any], *, running: bool) -> None:
        super().load_state_dict(state, running=running)
        for name, recorder in self.by_player.items():
            recorder.load_state_dict(state["players"][name], running=running)


class PlayersCollector(ISerialCollector):
    """`collect(n_sample)` gives samples of several players in one env, `{player: samples}`.

    `policy` names the players: `policy=dict(first=mode_a, second=mode_b)`. A player is a collect
    mode, or any object with its functions; without `process_transition` (an eval mode, a script) it
    only acts. Players sit at the env's positions in this order, unless the setting `seats` names
    one for each position: `seats=["main", "main"]` is self-play, where a policy is asked once for
    all its seats and gets the samples of all of them.

    Observations have a row per position (every array of a dict is (P, ...)) or are a tuple with a
    part per position; rewards are (P, ...), or one number for all. The joint action is stacked
    likewise, or a tuple where the action space is one. `alive` (P,) in an observation says who is
    still in the game: a position that is not has no samples, and its episode ended when it left.

    Every player gets all the samples there are, at least `n_sample` (by default that of its
    policy). `policy_kwargs` are by player. An abnormal step drops the episode of all its players.
    """

    config: ClassVar[dict[str, Any]] = dict(
        # Train iterations between two entries in the log.
        collect_print_freq=100,
        # Name of the player at each position; by default each player has one, in order.
        seats=None,
    )
    recorder_class: ClassVar[type[Recorder]] = PlayersRecorder
    _recorder: PlayersRecorder
    _samplers: dict[str, Sampler]

    def reset_policy(self, policy: Mapping[str, Any] | None = None) -> None:
        """Collect with other players from now on, or with the same ones after a reset."""
        joint = None
        if policy is not None:
            if not isinstance(policy, Mapping):
                raise TypeError(f"players are given as {{name: collect mode}}, got {type(policy)}")
            joint = self._joint(policy)
        super().reset_policy(joint)

    def _joint(self, modes: Mapping[str, Any]) -> JointPolicy:
        seats = list(self._cfg.seats or modes)
        if set(seats) != set(modes):
            raise ConfigError(
                f"collector.seats = {seats}, but the players are {list(modes)}: every player needs "
                "a seat, and every seat a player"
            )
        positions = {name: [k for k, seat in enumerate(seats) if seat == name] for name in modes}
        players = [Player(name, mode, positions[name]) for name, mode in modes.items()]
        return JointPolicy(players, None if self._env is None else self._env.action_space)

    def _check_mode(self, policy: Any) -> None:
        """Any mode can play; those that lack `process_transition` only act."""

    def _forget(self) -> None:
        if self._policy is not None:
            recorders = self._recorder.by_player
            modes = {player.name: player.mode for player in self._policy.players}
            self._samplers = {name: Sampler(r, modes[name]) for name, r in recorders.items()}

    def collect(
        self,
        n_sample: int | None = None,
        train_iter: int = 0,
        policy_kwargs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Rows]:
        """At least `n_sample` samples of each player that learns."""
        self._check_complete()
        wanted = self._wanted(n_sample)
        samplers = self._samplers
        while (missing := max(n - samplers[name].available for name, n in wanted.items())) > 0:
            self._run(missing, policy_kwargs or {})
            for sampler in samplers.values():
                sampler.make(train_iter)
        if any(sampler.needs.on_policy for sampler in samplers.values()):
            # These players learn now; for the others no step that is under way is lost.
            self._drain()
            self._recorder.partial.mark_stale()
            for name, sampler in samplers.items():
                if sampler.needs.on_policy:
                    self._recorder.by_player[name].store.clear()
        self._log_progress(train_iter)
        return {name: sampler.hand_out(None) for name, sampler in samplers.items()}

    def _wanted(self, n_sample: int | None) -> dict[str, int]:
        """Number of samples for each player that learns."""
        wanted = {}
        for name, sampler in self._samplers.items():
            n = sampler.needs.n_sample if n_sample is None else n_sample
            if n is None:
                raise RuntimeError(f"how many samples? pass n_sample; '{name}' has no n_sample")
            if n < 1:
                raise ConfigError(f"n_sample = {n}: must be at least 1")
            wanted[name] = n
        if not wanted:
            raise RuntimeError("no player is a collect mode: there is nothing to collect")
        return wanted

    def _run(self, missing: int, kwargs: Mapping[str, Any]) -> None:
        unroll_len = max(sampler.needs.unroll_len for sampler in self._samplers.values())
        n_step = missing if unroll_len == 1 else max(missing, unroll_len * self._env_num)
        taken = 0

        def enough(step: VecStep) -> bool:
            nonlocal taken
            taken += len(step.env_id)
            return taken >= n_step

        self._advance(enough, kwargs)

    @property
    def recent_returns(self) -> dict[str, float | None]:
        """Mean return of the last 100 episodes of each player that learns."""
        recorders = self._recorder.by_player
        return {name: recorder.episodes.mean_return for name, recorder in recorders.items()}

    def take_statistics(self) -> dict[str, Any]:
        """Statistics for the normalisers of each player's policy, by player."""
        recorders = self._recorder.by_player.items()
        observers = [name for name, recorder in recorders if recorder.observes]
        statistics = self._policy.get_attribute("statistics") if observers else {}
        return {name: statistics[name] for name in observers}


def part_of(columns: Any, position: int) -> Any:
    """Columns (N, ...) of one position, of those with a row (N, P, ...) or a part for each."""
    if isinstance(columns, tuple):
        return columns[position]
    return tree_map(lambda column: column[:, position], columns)


def _step_of(step: VecStep, position: int, seats: np.ndarray) -> VecStep:
    """Step of one position as its player sees it: over as soon as it is out of the game."""
    obs = part_of(step.obs, position)
    reward = step.reward if step.reward.ndim == 1 else step.reward[:, position]
    done, truncated = step.done, step.truncated
    if isinstance(obs, dict) and "alive" in obs:
        alive = obs["alive"].astype(bool)
        done, truncated = done | ~alive, truncated & alive
    return step._replace(obs=obs, reward=reward, done=done, truncated=truncated, env_id=seats)
