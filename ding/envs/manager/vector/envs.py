"""The envs of one vector env as a manager shows them: spaces, seeds, and what none of them can."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.envs.gym_env import DingEnvWrapper
from ding.envs.manager.old_interface import EnvManager, EnvState, ResetParam
from ding.envs.manager.vector.seeds import EnvSeeds
from ding.envs.manager.vector.simulators import Simulators
from ding.utils.errors import DingError


class VectorEnvs(EnvManager):
    """All of a manager but `reset`, `step` and state."""

    def __init__(
        self, env_fn: Sequence[Callable[[], Any]], cfg: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(env_fn, cfg)
        self._wrappers: list[DingEnvWrapper] = [fn() for fn in env_fn]
        self._check_wrappers(self._wrappers)
        self._rew_clip = bool(self._wrappers[0]._cfg["rew_clip"])
        self._made: tuple[Simulators, EnvSeeds] | None = None

    @abstractmethod
    def _make_simulators(self) -> Simulators: ...

    @abstractmethod
    def _check_wrappers(self, wrappers: Sequence[Any]) -> None:
        """Raise for what the envs' configs ask for and a vector env cannot do."""

    def _clear(self) -> None:
        super()._clear()
        self._return = np.zeros(self.env_num)
        # An env is in the middle of an episode if it began before the last tick.
        self._ticks, self._begun = 0, np.zeros(self.env_num, dtype=np.int64)
        self._runs = np.zeros(self.env_num, dtype=bool)
        self._waiting: set[int] = set()
        self._recent: deque[Any] = deque(maxlen=8)
        self._launched = False

    def _set_state(self, i: int, state: EnvState) -> None:
        """Note who runs and who waits for a reset, so that nobody has to look at all envs."""
        self._states[i], self._runs[i] = state, state == EnvState.RUN
        if state == EnvState.RESET:
            self._waiting.add(i)
        else:
            self._waiting.discard(i)

    def _set_states(self, states: Sequence[EnvState]) -> None:
        for i, state in enumerate(states):
            self._set_state(i, state)
        self._note_states()

    def _note_states(self) -> None:
        self._run_ids = self._all_ids if self._runs.all() else np.flatnonzero(self._runs)

    @property
    def _parts(self) -> tuple[Simulators, EnvSeeds]:
        if self._made is None:
            simulators = self._make_simulators()
            self._made = simulators, EnvSeeds(self._wrappers, simulators.action_space)
        return self._made

    @property
    def _simulators(self) -> Simulators:
        made = self._made
        return made[0] if made is not None else self._parts[0]

    @property
    def env_ref(self) -> Any:
        return self._wrappers[0]

    @property
    def observation_space(self) -> Any:
        return self._simulators.observation_space

    @property
    def action_space(self) -> Any:
        return self._simulators.action_space

    @property
    def reward_space(self) -> Any:
        return spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)

    @property
    def closed(self) -> bool:
        return not self._launched

    @property
    def ready_imgs(self) -> dict[int, Any]:
        self._check_open()
        frames = self._simulators.vector.render()
        if frames is None:
            raise DingError("cannot render: set env.env_kwargs=dict(render_mode='rgb_array')")
        return {i: frames[i] for i in self.ready_obs_id}

    def random_action(self) -> dict[int, Any]:
        self._check_open()
        return {i: self._parts[1].random_action(i) for i in self.ready_obs_id}

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        raise self._unable("save replays")

    def enable_save_figure(self, env_id: int, figure_path: str) -> None:
        raise self._unable("save figures")

    def reward_shaping(
        self, env_id: int, transitions: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        raise self._unable("shape rewards")

    def _unable(self, what: str) -> DingError:
        return DingError(
            f"{type(self).__name__} cannot {what}: its envs are parts of one vector env; "
            "use env.manager.type='base' or 'subprocess'"
        )

    def __getattr__(self, name: str) -> list[Any]:
        """What only the single envs have, if the vector env gives access to them."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        assert not self.closed, f"the env manager is closed, its envs have no '{name}' now"
        vector = self._simulators.vector
        if not hasattr(vector, "get_attr"):
            raise AttributeError(f"{type(self).__name__} has no '{name}', nor envs to ask for it")
        return list(vector.get_attr(name))

    def _check_param(self, reset_param: ResetParam) -> None:
        self._check_known(reset_param)
        for i, param in reset_param.items():
            if param:
                raise self._unable(f"pass reset arguments to single envs ({i}: {dict(param)})")

    def _next_seeds(self, ids: list[int]) -> tuple[list[int | None], bool]:
        """Seeds of the coming episodes, and whether one of the envs was seeded anew."""
        anew = self._unsent.intersection(ids)
        for i in anew:
            seed, dynamic = self._seeds[i], self._dynamic[i]
            assert seed is not None
            self._parts[1].set(i, seed, dynamic=dynamic, renewals=self._renewals[i])
        self._unsent -= anew
        return self._parts[1].next(ids), bool(anew)
