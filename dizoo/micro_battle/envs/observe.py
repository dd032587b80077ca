"""Observations of battles in SMAC's layout: what each ally sees, and what a critic may know.

    agent_state    4 flags of directions that are open
                   enemies: attackable, distance, dx, dy, health [, shield] [, type]
                   other allies: visible, distance, dx, dy, health [, shield] [, type]
                   own: health [, shield] [, type], last action; then which agent it is
    global_state   allies: health, cooldown, x, y [, shield] [, type]
                   enemies: health, x, y [, shield] [, type]; then the last actions of all

`[, shield]` is there on maps with shields, `[, type]` (one-hot) on maps with several types. Who is
out of sight or dead is a row of zeros, the dead see zeros. Distances are parts of the range of
sight, health and shield parts of the full ones; places go from -1 to 1, the centre is 0.
With `special_global_state` each agent has a state of its own: as `agent_state`, without the limits
of sight, each other unit followed by its place and whether the agent sees it, own features by the
place and the cooldown.

Letters in shapes: N battles, A allies, E enemies, U units, M actions, F features of a unit.
"""

from __future__ import annotations

import numpy as np

from ding.envs.agents import ACTION_MASK, AGENT_STATE, ALIVE, GLOBAL_STATE
from dizoo.micro_battle.envs.battle import ATTACK, NORTH, SIGHT, Battles
from dizoo.micro_battle.envs.units import FIELD

ALONE, ALONE_PADDED = "agent_alone_state", "agent_alone_padding_state"
_F4 = np.float32


class Observer:
    """Makes the documented observation of all battles."""

    def __init__(
        self,
        battles: Battles,
        *,
        special_global_state: bool = False,
        obs_alone: bool = False,
        death_mask: bool = False,
    ) -> None:
        self.battles = battles
        self._special, self._alone, self._death_mask = special_global_state, obs_alone, death_mask
        a, battle_map = battles.n_ally, battles.map
        kinds = battle_map.types
        units = [*battle_map.allies, *battle_map.enemies]
        self._types = np.eye(len(kinds), dtype=_F4)[[kinds.index(unit) for unit in units]]
        self._types = self._types[:, : len(kinds) * (len(kinds) > 1)]  # (U, kinds) or (U, 0)
        self._has_shields = bool(battles.shield.any())
        self._actions = np.eye(battles.n_action, dtype=_F4)
        self._ids = np.eye(a, dtype=_F4)
        self._others = np.array([[k for k in range(a) if k != i] for i in range(a)], dtype=np.intp)
        features = 5 + self._has_shields + self._types.shape[1]
        self._allies_at = 4 + battles.n_enemy * features
        self._own_at = self._allies_at + (a - 1) * features

    def __call__(self) -> dict[str, np.ndarray]:
        """(N, ...) by part."""
        battles, state = self.battles, self.battles.state
        allowed = battles.available()
        alive = state["health"] > 0
        living = alive[:, : battles.n_ally].astype(_F4)
        own = self._own(state)
        distance = battles.distances()
        seen = (distance < SIGHT) & alive[:, None]
        relative = self._relative(distance, allowed)  # (N, A, U, F)
        agent_state = self._rows(allowed, relative * seen[..., None], own)
        agent_state *= living[..., None]
        if self._special:
            whole = self._special_state(allowed, relative, seen, own)
        else:
            whole = self._global_state()
        obs = {AGENT_STATE: agent_state, GLOBAL_STATE: whole}
        obs |= {ACTION_MASK: allowed.astype(_F4), ALIVE: living}
        if self._alone:
            padded = agent_state.copy()
            padded[..., self._allies_at : self._own_at] = 0.0
            obs[ALONE] = np.delete(agent_state, np.s_[self._allies_at : self._own_at], axis=-1)
            obs[ALONE_PADDED] = padded
        return obs

    def _body(self) -> list[np.ndarray]:
        """Columns (N, U) of health, and of shields where there are any."""
        battles, state = self.battles, self.battles.state
        columns = [state["health"] / battles.health]
        if self._has_shields:
            columns.append(state["shield"] / np.maximum(battles.shield, 1.0))
        return columns

    def _relative(self, distance: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """(N, A, U, F): each unit from where each ally stands; the first number is its flag."""
        battles, state = self.battles, self.battles.state
        a, x, y = battles.n_ally, state["x"], state["y"]
        body = self._body()
        rows = np.empty((*distance.shape, 4 + len(body) + self._types.shape[1]), dtype=_F4)
        rows[:, :, :a, 0] = 1.0
        rows[:, :, a:, 0] = allowed[..., ATTACK:]
        rows[..., 1] = distance / SIGHT
        rows[..., 2] = (x[:, None] - x[:, :a, None]) / SIGHT
        rows[..., 3] = (y[:, None] - y[:, :a, None]) / SIGHT
        for k, column in enumerate(body):
            rows[..., 4 + k] = column[:, None]
        rows[..., 4 + len(body) :] = self._types
        return rows

    def _own(self, state: dict[str, np.ndarray]) -> np.ndarray:
        """(N, A, F): health, shield, type, last action."""
        a = self.battles.n_ally
        body = [column[:, :a, None] for column in self._body()]
        types = np.broadcast_to(self._types[:a], (len(state["x"]), *self._types[:a].shape))
        last = self._actions[state["last_action"]]
        return np.concatenate([*body, types, last], axis=2, dtype=_F4)

    def _rows(self, allowed: np.ndarray, relative: np.ndarray, own: np.ndarray) -> np.ndarray:
        """(N, A, K): directions, enemies, other allies, own features, who it is."""
        n, a = allowed.shape[:2]
        parts = (
            allowed[..., NORTH : NORTH + 4],
            relative[:, :, a:].reshape(n, a, -1),
            relative[:, self._ids.argmax(axis=1)[:, None], self._others].reshape(n, a, -1),
            own,
            np.broadcast_to(self._ids, (n, a, a)),
        )
        return np.concatenate(parts, axis=2, dtype=_F4)

    def _places(self) -> list[np.ndarray]:
        """Columns (N, U) of x and y."""
        state, half = self.battles.state, FIELD / 2
        return [(state[key] - half) / half for key in ("x", "y")]

    def _global_state(self) -> np.ndarray:
        """(N, S)."""
        battles, state = self.battles, self.battles.state
        n, a = battles.count, battles.n_ally
        health, *shield = self._body()
        columns = [health, state["cooldown"] / battles.cooldown, *self._places(), *shield]
        units = np.stack(columns, axis=2, dtype=_F4)
        types = np.broadcast_to(self._types, (n, *self._types.shape))
        units = np.concatenate([units, types], axis=2) * (state["health"] > 0)[..., None]
        enemies = np.delete(units[:, a:], 1, axis=2)
        last = self._actions[state["last_action"]]
        return np.concatenate(
            [part.reshape(n, -1) for part in (units[:, :a], enemies, last)], axis=1, dtype=_F4
        )

    def _special_state(
        self, allowed: np.ndarray, relative: np.ndarray, seen: np.ndarray, own: np.ndarray
    ) -> np.ndarray:
        """(N, A, S): a state of each agent's own."""
        battles, state = self.battles, self.battles.state
        a, alive = battles.n_ally, state["health"] > 0
        x, y = (np.broadcast_to(place[:, None], seen.shape)[..., None] for place in self._places())
        units = np.concatenate([relative, x, y, seen[..., None]], axis=3, dtype=_F4)
        more = [*self._places(), state["cooldown"] / battles.cooldown]
        own = np.concatenate([own, *(column[:, :a, None] for column in more)], axis=2, dtype=_F4)
        own *= alive[:, :a, None]
        whole = self._rows(allowed, units * alive[:, None, :, None], own)
        if self._death_mask:
            whole[..., : -len(self._ids)] *= alive[:, :a, None]
        return whole
