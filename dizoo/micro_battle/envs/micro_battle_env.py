"""One battle as an env, and the same battles side by side for the env manager 'gym_vector'.

It has SMAC's interface and, as far as they are public, its rules; results on it are not comparable
with those of SMAC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from ding.envs.agents import AgentsSpace
from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.video import EpisodeRecorder
from ding.utils.errors import ConfigError, DingError, nearest
from dizoo.micro_battle.envs.battle import AIMS, STEP_MUL, Battles, Outcome
from dizoo.micro_battle.envs.observe import Observer
from dizoo.micro_battle.envs.render import picture
from dizoo.micro_battle.envs.rewards import Rewards
from dizoo.micro_battle.envs.units import GAME_STEPS_PER_SECOND, map_of

CONFIG: dict[str, Any] = {
    # '3m', '8m', '5m_vs_6m', '2s3z' or '3s5z'.
    "map_name": "3m",
    # Global state of each agent's own, (A, S), as MAPPO likes it.
    "special_global_state": False,
    # Special states of the dead are zeros but for which agent it is.
    "death_mask": False,
    # Add `agent_alone_state` (without the other allies) and `agent_alone_padding_state` (zeros in
    # their place), which CollaQ learns from.
    "obs_alone": False,
    # Enemies choose the 'nearest' ally, or the 'weakest' one in their range.
    "enemy_aim": "nearest",
    # Actions after which an episode is cut off; None: as the map says.
    "episode_limit": None,
    **asdict(Rewards()),
    # Save every evaluated episode as a video in this directory.
    "replay_path": None,
}


class Arena:
    """Battles with what is seen, paid and reported of them."""

    def __init__(self, cfg: Mapping[str, Any], count: int) -> None:
        if cfg["enemy_aim"] not in AIMS:
            aim = cfg["enemy_aim"]
            raise ConfigError(f"env.enemy_aim = {aim!r}{nearest(str(aim), AIMS)}")
        battle_map, limit = map_of(cfg["map_name"]), cfg["episode_limit"]
        if limit is not None and limit < 1:
            raise ConfigError(f"env.episode_limit = {limit}: must be at least 1, or None")
        self.limit = battle_map.limit if limit is None else int(limit)
        self.battles = Battles(battle_map, count, cfg["enemy_aim"])
        keys = ("special_global_state", "obs_alone", "death_mask")
        self.observe = Observer(self.battles, **{key: bool(cfg[key]) for key in keys})
        self._rewards = Rewards.of(cfg)
        self.returns = np.zeros(count)

    def spaces(self) -> tuple[gym.spaces.Dict, AgentsSpace]:
        parts: dict[str, gym.Space[Any]] = {
            key: gym.spaces.Box(*_BOUNDS.get(key, (-np.inf, np.inf)), column.shape[1:], np.float32)
            for key, column in self.observe().items()
        }
        one = gym.spaces.Discrete(self.battles.n_action)
        return gym.spaces.Dict(parts), AgentsSpace(one, self.battles.n_ally)

    def reset(self, index: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        self.battles.reset(index, rngs)
        self.returns[list(index)] = 0.0

    def step(
        self, actions: np.ndarray, index: np.ndarray
    ) -> tuple[np.ndarray, Outcome, np.ndarray]:
        """Rewards, outcomes and who is cut off, of the battles `index`."""
        self._check(actions, index)
        everyone = len(index) == self.battles.count
        outcome = self.battles.step(actions, None if everyone else index)
        reward = self._rewards(self.battles, outcome)
        self.returns[index] += reward
        return reward, outcome, (self.battles.state["steps"][index] >= self.limit) & ~outcome.over

    def _check(self, actions: np.ndarray, index: np.ndarray) -> None:
        allowed = self.battles.available()[index]
        possible = (actions >= 0) & (actions < allowed.shape[2])
        chosen = np.clip(actions, 0, allowed.shape[2] - 1)[..., None]
        fine = possible & np.take_along_axis(allowed, chosen, axis=2)[..., 0]
        if not fine.all():
            k, agent = np.argwhere(~fine)[0].tolist()
            raise DingError(
                f"action {int(actions[k, agent])} of agent {agent} is not available: its "
                f"action_mask allows {np.flatnonzero(allowed[k, agent]).tolist()}"
            )

    def last_info(self, won: bool, i: int) -> dict[str, Any]:
        """Info of the last step of battle i; keys are SMAC's where it has them."""
        alive, n = self.battles.state["health"][i] > 0, self.battles.n_ally
        return {
            "eval_episode_return": float(won),
            "win": float(won),
            "battle_won": bool(won),
            "dead_allies": int((~alive[:n]).sum()),
            "dead_enemies": int((~alive[n:]).sum()),
            "shaped_return": float(self.returns[i]),
        }


_BOUNDS: dict[str, tuple[float, float]] = {"action_mask": (0, 1), "alive": (0, 1)}


class MicroBattleEnv(BaseEnv):
    """One battle; `eval_episode_return` is 1 for a win, else 0."""

    config: ClassVar[dict[str, Any]] = CONFIG
    metadata: ClassVar[dict[str, Any]] = {"render_fps": GAME_STEPS_PER_SECOND / STEP_MUL}

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        self._arena = Arena(self._cfg, 1)
        self._observation_space, self._action_space = self._arena.spaces()
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)
        self._running = False
        self._recorder: EpisodeRecorder | None = None
        if self._cfg["replay_path"]:
            self.enable_save_replay(self._cfg["replay_path"])

    @property
    def battles(self) -> Battles:
        """Its only battle, as scripted players want it."""
        return self._arena.battles

    def reset(self, **kwargs: Any) -> dict[str, np.ndarray]:
        if self._recorder is not None:
            self._recorder.end_episode()
        self._arena.reset([0], [np.random.default_rng(self._next_seed())])
        self._running = True
        self._record()
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if not self._running:
            raise DingError(f"{self!r} has no running battle: call reset() before step()")
        actions = np.asarray(action).reshape(1, -1)
        reward, outcome, cut = self._arena.step(actions, np.zeros(1, dtype=np.intp))
        self._record()
        over, info = bool(outcome.over[0]), {}
        if over or cut[0]:
            self._running = False
            info = self._arena.last_info(bool(outcome.won[0]), 0)
            if not over:
                info["truncated"] = True
            if self._recorder is not None:
                self._recorder.end_episode()
        return BaseEnvTimestep(self._observed(), float(reward[0]), bool(info), info)

    def _observed(self) -> dict[str, np.ndarray]:
        return {key: column[0] for key, column in self._arena.observe().items()}

    def _record(self) -> None:
        if self._recorder is not None:
            self._recorder.add(self)

    def render(self) -> np.ndarray:
        """The field as an RGB image, (height, width, 3)."""
        return picture(self._arena.battles, 0)

    def enable_save_replay(self, replay_path: str) -> None:
        """Save the episodes from the next reset on as mp4 files in this directory."""
        self._recorder = EpisodeRecorder(replay_path, f"micro_battle_{self._cfg['map_name']}")

    def random_action(self) -> np.ndarray:
        """Available actions, each as likely."""
        masks = self._arena.battles.available()[0].astype(np.int8)
        return self._action_space.sample(masks)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        super().seed(seed, dynamic_seed)
        self._action_space.seed(seed)

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.end_episode()
        self._running = False

    @staticmethod
    def create_collector_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        cfgs = BaseEnv.create_collector_env_cfg(cfg)
        for one in cfgs:
            one["replay_path"] = None
        return cfgs

    @staticmethod
    def make_vector(cfg: Mapping[str, Any], count: int) -> MicroBattleVector:
        return MicroBattleVector(cfg, count)

    def __repr__(self) -> str:
        return f"MicroBattleEnv({self._cfg['map_name']})"


class MicroBattleVector(VectorEnv[Any, Any, Any]):
    """`count` battles as a vector env that resets battles when it is told to."""

    def __init__(self, cfg: Mapping[str, Any], count: int) -> None:
        self.metadata = {**MicroBattleEnv.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self._arena = Arena({**CONFIG, **cfg}, count)
        self.num_envs = count
        self.single_observation_space, self.single_action_space = self._arena.spaces()

    def reset(
        self, *, seed: Any = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin the battles of `options['reset_mask']`, or all; `seed`: None or one for each."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        seeds = [None] * self.num_envs if seed is None else list(seed)
        index = np.flatnonzero(mask).tolist()
        self._arena.reset(index, [np.random.default_rng(seeds[i]) for i in index])
        return self._arena.observe(), {}

    def step(
        self, actions: np.ndarray, index: np.ndarray | None = None
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act in the battles `index`, None: in all; the others stand still. Actions are (N, A)."""
        index = np.arange(self.num_envs) if index is None else index
        found, outcome, cut = self._arena.step(np.asarray(actions)[index], index)
        reward, terminated, truncated = np.zeros(self.num_envs), *np.zeros((2, self.num_envs), bool)
        reward[index], terminated[index], truncated[index] = found, outcome.over, cut
        ended = index[outcome.over | cut].tolist()
        won = dict(zip(index.tolist(), outcome.won.tolist(), strict=True))
        infos: dict[str, Any] = {}
        for i in ended:
            infos = self._add_info(infos, self._arena.last_info(won[i], i), i)
        return self._arena.observe(), reward, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Nothing is held."""

    def render(self) -> tuple[np.ndarray, ...]:
        return tuple(picture(self._arena.battles, i) for i in range(self.num_envs))
