"""Simulators: vector envs of every autoreset mode behind `reset`, `reset_some` and `step`.

N is the number of envs, n the number of those that a step is asked of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from ding.envs.manager.columns import obs_columns
from ding.envs.manager.env_access import close_quietly
from ding.envs.manager.slot import seed_after
from ding.envs.manager.vector.columns import (
    InfoRows,
    QuickMultiDiscrete,
    first_obs,
    fitted,
    five_columns,
    flags,
    map_actions,
    put,
)
from ding.envs.obs_map import obs_map
from ding.envs.packages import refuse_rebuilt
from ding.envs.spaces import action_map, check_supported
from ding.utils.batch import stack, take
from ding.utils.errors import DingError

Seeds = Sequence[int | None]
MakeVector = Callable[[Seeds | None], Any]


class Outcome(NamedTuple):
    """Outcome of a step of n envs."""

    obs: Any
    """(n, ...), the true last observation where an episode is over."""
    reward: np.ndarray
    """(n,), or (n, ...) if rewards are vectors, as the simulators count it."""
    done: np.ndarray
    """(n,) bool."""
    truncated: np.ndarray
    """(n,) bool: over, but not terminated."""
    info: InfoRows
    table: Any
    """(N, ...), what there is to act on now."""
    fresh: Sequence[int]
    """Envs, of all N, whose observation in `table` begins an episode."""
    over: Sequence[int]
    """Envs, of all N, that must be reset before their next step."""


class Simulators:
    """A vector env; subclasses know when it resets its envs."""

    resets_alone = False
    """Single envs can be reset, and must be when their episode is over."""
    holds = False
    """Single envs can be stepped while the others stand still."""

    def __init__(self, make: MakeVector, vector: Any, act_scale: bool) -> None:
        self._make = make
        self.vector = vector
        self.failed = False
        """The last call raised."""
        self.count = int(vector.num_envs)
        observation, action = spaces_of(vector)
        check_supported(action, f"action space of {vector!r}")
        self._obs_map = obs_map(observation, f"observation space of {vector!r}")
        self.observation_space, self.notes = self._obs_map.presented, self._obs_map.notes
        self._action_map = action_map(action, act_scale)
        self.action_space = self._action_map.presented
        self._ids = list(range(self.count))
        self._columns = obs_columns(self.observation_space)
        action.seed(0)
        self._idle = stack([action.sample()] * self.count)
        self._quicken()

    def reset(self, seeds: Seeds, reseed: bool) -> Any:
        """First observations of all envs; `reseed`: the seeds are those of new generators."""
        seed = joint_seed(seeds) if reseed else None
        return self._fitted(first_obs(self.vector.reset(seed=seed)))

    def reset_some(self, ids: Sequence[int], seeds: Seeds) -> Any:
        """The table after a reset of these envs."""
        raise NotImplementedError

    @property
    def has_processes(self) -> bool:
        """After a failure no call to a vector env of processes works any more, not even close."""
        return isinstance(self.vector, AsyncVectorEnv)

    def renew(self) -> None:
        close_quietly(self)
        self.vector = self._make(None)
        self.failed = False
        self._quicken()

    def __getstate__(self) -> dict[str, Any]:
        for env in getattr(self.vector, "envs", ()):  # a vectorised version is no list of envs
            refuse_rebuilt(env)
        return self.__dict__

    def _quicken(self) -> None:
        # Many ask at every step whether the actions are valid: a fifth of CartPole's time.
        if type(getattr(self.vector, "action_space", None)) is MultiDiscrete:
            self.vector.action_space = QuickMultiDiscrete(self.vector.action_space)

    def close(self) -> None:
        self.vector.close(**({"terminate": True} if self.failed and self.has_processes else {}))

    def step(self, ids: np.ndarray | None, actions: Any) -> Outcome:
        """Act in these envs (None: in all); the others idle along."""
        actions = map_actions(self._action_map, actions)
        if ids is not None:
            actions = put(self._idle, ids, actions)
        obs, reward, terminated, truncated, infos = five_columns(self._step(actions))
        table, reward = self._fitted(obs), np.asarray(reward)
        terminated = flags(terminated, "terminated", self.count)
        truncated = flags(truncated, "truncated", self.count)
        done = terminated | truncated
        over: Sequence[int] = np.flatnonzero(done).tolist() if True in done.tolist() else ()
        obs = self._last(table, infos, over) if over else table
        info = self._infos(infos, ids, over)
        fresh, over = self._turn(over)
        truncated = truncated > terminated
        if ids is None:
            return Outcome(obs, reward, done, truncated, info, table, fresh, over)
        obs = take(obs, ids)
        return Outcome(obs, reward[ids], done[ids], truncated[ids], info, table, fresh, over)

    def _step(self, actions: Any) -> Any:
        return self.vector.step(actions)

    def _turn(self, over: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Split envs whose episode is over: those that begin another one, those to be reset."""
        return (), over

    def _last(self, table: Any, infos: dict[str, Any], over: Sequence[int]) -> Any:
        """The observations that the step led to."""
        return table

    def _fitted(self, obs: Any) -> Any:
        """A copy in the declared dtype: some vector envs write into the same block again."""
        return fitted(self.observation_space, self._obs_map(obs), self.count)

    def _infos(
        self, infos: dict[str, Any], ids: np.ndarray | None, over: Sequence[int]
    ) -> InfoRows:
        index = self._ids if ids is None else ids.tolist()
        return InfoRows(infos, index, over if "final_info" in infos else ())


class NextStep(Simulators):
    """The step after the end of an episode is the reset, whatever the action."""

    _over: Sequence[int] = ()

    def reset(self, seeds: Seeds, reseed: bool) -> Any:
        self._over = ()
        return super().reset(seeds, reseed)

    def _turn(self, over: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        fresh, self._over = self._over, over
        return fresh, ()


class SameStep(Simulators):
    """The step that ends an episode gives the next one's first observation already."""

    def _turn(self, over: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        return over, ()

    def _last(self, table: Any, infos: dict[str, Any], over: Sequence[int]) -> Any:
        last = self._columns.stack([self._obs_map(infos["final_obs"][i]) for i in over])
        return self._columns.replaced(table, over, last)


class OnDemand(Simulators):
    """Resets envs only when told to, each with its own seed."""

    resets_alone = True

    def reset(self, seeds: Seeds, reseed: bool) -> Any:
        return self._fitted(first_obs(self.vector.reset(seed=list(seeds))))

    def reset_some(self, ids: Sequence[int], seeds: Seeds) -> Any:
        mask = np.zeros(self.count, dtype=bool)
        mask[list(ids)] = True
        by_env = dict(zip(ids, seeds, strict=True))
        seed = [by_env.get(i) for i in self._ids]
        given = self.vector.reset(seed=seed, options={"reset_mask": mask})
        return self._fitted(first_obs(given))


class OwnVector(OnDemand):
    """The vector env of an env class: its `step(actions, index)` steps the envs `index` alone."""

    holds = True
    _index: np.ndarray | None = None

    def step(self, ids: np.ndarray | None, actions: Any) -> Outcome:
        self._index = ids
        return super().step(ids, actions)

    def _step(self, actions: Any) -> Any:
        return self.vector.step(actions, self._index)


_MODES: dict[AutoresetMode, type[Simulators]] = {
    AutoresetMode.NEXT_STEP: NextStep,
    AutoresetMode.SAME_STEP: SameStep,
    AutoresetMode.DISABLED: OnDemand,
}


def simulators(make: MakeVector, act_scale: bool) -> Simulators:
    """The vector env that `make` makes, by the autoreset mode that it declares."""
    vector = make(None)
    mode = vector.metadata.get("autoreset_mode")
    if mode not in _MODES:
        vector.close()
        raise DingError(
            f"{vector!r} does not say when it resets its envs: its metadata['autoreset_mode'] must "
            f"be a gymnasium.vector.AutoresetMode, not {mode!r}"
        )
    return _MODES[mode](make, vector, act_scale)


def own_vector(make: MakeVector) -> Simulators:
    return OwnVector(make, make(None), act_scale=False)


def spaces_of(vector: Any) -> tuple[Space[Any], Space[Any]]:
    """Spaces of one env; what has none for a single env declares them as its only ones."""
    single = getattr(vector, "single_observation_space", None) is not None
    if single:
        return vector.single_observation_space, vector.single_action_space
    return vector.observation_space, vector.action_space


def joint_seed(seeds: Seeds) -> int | None:
    """One seed of all, for simulators that share a generator."""
    known = [seed for seed in seeds if seed is not None]
    return seed_after(*known) if known else None
