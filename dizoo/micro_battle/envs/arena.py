"""Arena: battles with what is seen, paid and reported of them, and the settings of all this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs.agents import AgentsSpace
from ding.utils.errors import ConfigError, DingError, nearest
from dizoo.micro_battle.envs.battle import AIMS, STEP_MUL, Battles, Outcome
from dizoo.micro_battle.envs.observe import Observer
from dizoo.micro_battle.envs.render import picture
from dizoo.micro_battle.envs.rewards import Rewards
from dizoo.micro_battle.envs.units import GAME_STEPS_PER_SECOND, map_of

METADATA: dict[str, Any] = {"render_fps": GAME_STEPS_PER_SECOND / STEP_MUL}
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
        self.observe = Observer(
            self.battles,
            special_global_state=bool(cfg["special_global_state"]),
            obs_alone=bool(cfg["obs_alone"]),
            death_mask=bool(cfg["death_mask"]),
        )
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


class View:
    """One battle of an arena, as a recorder of videos wants it."""

    metadata = METADATA

    def __init__(self, arena: Arena, i: int) -> None:
        self._arena, self._i = arena, i

    def render(self) -> np.ndarray:
        return picture(self._arena.battles, self._i)
