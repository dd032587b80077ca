"""Battles: the rules, for many battles at once.

Letters in shapes: N battles, A allies, E enemies, U = A + E units, allies first, M = 6 + E actions.
An action lasts `STEP_MUL` game steps. Nothing is random after the start, and no number of a battle
depends on the others: N battles are N times one battle, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dizoo.micro_battle.envs.units import (
    ALLIES_START,
    ENEMIES_START,
    FIELD,
    GAME_STEPS_PER_SECOND,
    BattleMap,
)

STEP_MUL = 8
"""Game steps of one action."""
NO_OP, STOP, NORTH, SOUTH, EAST, WEST, ATTACK = range(7)
"""Actions; ATTACK + i attacks enemy i."""
HEADING = np.array([[0, 0], [0, 0], [0, 1], [0, -1], [1, 0], [-1, 0]], dtype=float)
MOVE = 2.0
"""Length of the way that a move orders; a unit goes as far of it as it can in one action."""
SHOOT_RANGE, SIGHT = 6.0, 9.0
"""Between centres: how far away an enemy may be attacked, and is seen."""
REGENERATION = 2.0 * STEP_MUL / GAME_STEPS_PER_SECOND
"""Shield that comes back in one action ..."""
QUIET = 10 * GAME_STEPS_PER_SECOND
"""... to a unit that was not hit for so many game steps."""
LEAST_DAMAGE = 0.5
"""Of a blow, whatever the armour."""
_SPACING, _JITTER, _PER_COLUMN = 1.5, 0.25, 5
_TOUCH = 1e-6
AIMS = ("nearest", "weakest")

State = dict[str, np.ndarray]
"""Columns with a first axis of battles: all that there is to know of them."""


class Outcome(NamedTuple):
    """Outcome of an action in n battles."""

    damage: np.ndarray
    """(n, U): what each unit lost of health and shield; less than 0 where its shield came back."""
    died: np.ndarray
    """(n, U) bool."""
    over: np.ndarray
    """(n,) bool: a side is dead, or both are."""
    won: np.ndarray
    """(n,) bool: the enemies are dead, the allies not."""
    lost: np.ndarray
    """(n,) bool: the allies are dead, the enemies not."""


class Battles:
    """`count` battles on one map; `state` holds them."""

    def __init__(self, battle_map: BattleMap, count: int = 1, enemy_aim: str = "nearest") -> None:
        units = (*battle_map.allies, *battle_map.enemies)
        self.map, self.count, self.enemy_aim = battle_map, count, enemy_aim
        self.n_ally, self.n_enemy = len(battle_map.allies), len(battle_map.enemies)
        self.n_unit = len(units)
        self.n_action = ATTACK + self.n_enemy
        self.health, self.shield, self.armour, self.radius = (
            np.array([getattr(unit, key) for unit in units], dtype=float)
            for key in ("health", "shield", "armour", "radius")
        )
        self.cooldown = np.array([unit.cooldown for unit in units]) * GAME_STEPS_PER_SECOND
        self._has_shields = bool(self.shield.any())
        # A move order ends after MOVE, however fast the unit is.
        speed = np.array([unit.speed for unit in units]) / GAME_STEPS_PER_SECOND
        self._speed, self._stride = speed, np.minimum(speed, MOVE / STEP_MUL)
        self._blows = np.array([unit.blows for unit in units])
        self._damage = np.array(
            [[one.damage + one.bonus * other.armoured for other in units] for one in units]
        ).ravel()
        between = self.radius[:, None] + self.radius
        self._reach = (np.array([unit.range for unit in units])[:, None] + between).ravel()
        self._apart = between - 2 * np.diag(self.radius)  # a unit does not push itself
        self.full = (self.health + self.shield)[self.n_ally :].sum()
        """What there is to take from the enemies."""
        self._formation = _formation(self.n_ally, self.n_enemy)
        self.state = self._dead(count)

    def _dead(self, count: int) -> State:
        """Battles before their first reset."""
        shape, none = (count, self.n_unit), np.zeros((count, self.n_unit))
        state = {key: none.copy() for key in ("x", "y", "health", "shield", "cooldown", "quiet")}
        return {
            **state,
            "aim": np.full((count, self.n_enemy), -1),
            "shot": np.full(shape, -1),
            "last_action": np.zeros((count, self.n_ally), dtype=np.int64),
            "steps": np.zeros(count, dtype=np.int64),
        }

    def reset(self, index: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        """Begin these battles; where the units stand is drawn from the generator of each."""
        state, index = self.state, list(index)
        drawn = np.stack([rng.uniform(-_JITTER, _JITTER, (2, self.n_unit)) for rng in rngs])
        state["x"][index] = self._formation[0] + drawn[:, 0]
        state["y"][index] = self._formation[1] + drawn[:, 1]
        state["health"][index], state["shield"][index] = self.health, self.shield
        for key, value in (("cooldown", 0), ("quiet", QUIET), ("aim", -1), ("shot", -1)):
            state[key][index] = value
        state["last_action"][index], state["steps"][index] = NO_OP, 0

    def step(self, actions: np.ndarray, index: np.ndarray | None = None) -> Outcome:
        """Act, (n, A), in the battles `index`, None: in all; the others stand still."""
        if index is None:
            return self._advance(self.state, actions)
        part = {key: column[index] for key, column in self.state.items()}
        outcome = self._advance(part, actions)
        for key, column in part.items():
            self.state[key][index] = column
        return outcome

    def available(self) -> np.ndarray:
        """(N, A, M) bool: who may do what."""
        state, n_ally = self.state, self.n_ally
        alive = state["health"] > 0
        allowed = np.empty((self.count, n_ally, self.n_action), dtype=bool)
        x, y, living = state["x"][:, :n_ally], state["y"][:, :n_ally], alive[:, :n_ally]
        allowed[..., NO_OP], allowed[..., STOP] = ~living, living
        half = MOVE / 2
        allowed[..., NORTH], allowed[..., SOUTH] = living & (y + half < FIELD), living & (y > half)
        allowed[..., EAST], allowed[..., WEST] = living & (x + half < FIELD), living & (x > half)
        near = self.distances()[:, :, n_ally:] <= SHOOT_RANGE
        allowed[..., ATTACK:] = near & living[:, :, None] & alive[:, None, n_ally:]
        return allowed

    def distances(self) -> np.ndarray:
        """(N, A, U) between the centres of allies and of all units."""
        x, y = self.state["x"], self.state["y"]
        dx = x[:, None] - x[:, : self.n_ally, None]
        dy = y[:, None] - y[:, : self.n_ally, None]
        return np.sqrt(dx * dx + dy * dy)

    # --- one action ----------------------------------------------------------------------------

    def _advance(self, state: State, actions: np.ndarray) -> Outcome:
        health, before = state["health"], state["health"] + state["shield"]
        was_alive = health > 0
        orders = self._orders(state, actions)
        state["shot"][:] = -1
        for _ in range(STEP_MUL):
            self._game_step(state, *orders)
        if self._has_shields:
            self._regenerate(state)
        self._push_apart(state)
        state["last_action"][:], state["steps"] = actions, state["steps"] + 1
        alive = health > 0
        sides = alive[:, : self.n_ally], alive[:, self.n_ally :]
        allies, enemies = (side.sum(axis=1) > 0 for side in sides)
        lost = before - health - state["shield"]
        won, defeated = allies & ~enemies, enemies & ~allies
        return Outcome(lost, was_alive & ~alive, ~(allies & enemies), won, defeated)

    def _orders(self, state: State, actions: np.ndarray) -> tuple[np.ndarray, ...]:
        """Targets (n, U), -1 for none, and strides (n, U) in x and y of a game step."""
        attacks, moves = actions >= ATTACK, np.where(actions < ATTACK, actions, STOP)
        aims, dx, dy = self._enemy_orders(state)
        target = np.concatenate(
            [np.where(attacks, actions - ATTACK + self.n_ally, -1), aims], axis=1
        )
        x = np.concatenate([HEADING[moves, 0], dx], axis=1) * self._stride
        y = np.concatenate([HEADING[moves, 1], dy], axis=1) * self._stride
        return target, x, y

    def _enemy_orders(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Enemies shoot at whom they shot at while they can, else at whom they aim; or march."""
        n, x, y = self.n_ally, state["x"], state["y"]
        dx, dy = x[:, None, :n] - x[:, n:, None], y[:, None, :n] - y[:, n:, None]
        distance = np.sqrt(dx * dx + dy * dy)  # (n, E, A)
        distance = np.where(state["health"][:, None, :n] > 0, distance, np.inf)
        in_range = distance <= self._reach.reshape(self.n_unit, -1)[n:, :n]
        aim, kept = self._aim(state, distance, in_range), np.maximum(state["aim"], 0)[..., None]
        keeps = (state["aim"] >= 0) & np.take_along_axis(in_range, kept, axis=2)[..., 0]
        target = np.where(distance.min(axis=2) <= SIGHT, aim, -1)
        state["aim"][:] = target = np.where(keeps, state["aim"], target)
        to_x, to_y = ALLIES_START[0] - x[:, n:], ALLIES_START[1] - y[:, n:]
        length = np.sqrt(to_x * to_x + to_y * to_y)
        # At the start of the allies enemies wait for those who are somewhere else.
        share = np.where((target < 0) & (length > 1.0), 1.0 / np.maximum(length, 1.0), 0.0)
        return target, to_x * share, to_y * share

    def _aim(self, state: State, distance: np.ndarray, in_range: np.ndarray) -> np.ndarray:
        """(n, E): the nearest ally, or the one in range with the least health and shield."""
        nearest = distance.argmin(axis=2)
        if self.enemy_aim == "nearest":
            return nearest
        strength = (state["health"] + state["shield"])[:, None, : self.n_ally]
        strength = np.where(in_range, strength, np.inf)
        return np.where(in_range.any(axis=2), strength.argmin(axis=2), nearest)

    def _game_step(
        self, state: State, target: np.ndarray, stride_x: np.ndarray, stride_y: np.ndarray
    ) -> None:
        x, y, cooldown = state["x"], state["y"], state["cooldown"]
        own = np.arange(x.size).reshape(x.shape)
        unit = np.arange(self.n_unit)
        aim = np.where(target < 0, unit, target)
        at = own - unit + aim  # where each target stands in flattened columns
        alive = state["health"] > 0
        attacking = (target >= 0) & alive & alive.take(at)
        dx, dy = x.take(at) - x, y.take(at) - y
        distance = np.sqrt(dx * dx + dy * dy)
        gap = distance - self._reach.take(unit * self.n_unit + aim)
        close = gap <= _TOUCH
        chase = np.minimum(self._speed, gap) / np.maximum(distance, _TOUCH)
        chase = np.where(attacking & ~close, chase, 0.0)
        x += (dx * chase + stride_x) * alive
        y += (dy * chase + stride_y) * alive
        np.clip(x, 0.0, FIELD, out=x)
        np.clip(y, 0.0, FIELD, out=y)
        np.maximum(cooldown - 1.0, 0.0, out=cooldown)
        state["quiet"] += 1.0
        firing = np.flatnonzero(attacking & close & (cooldown <= 0))
        if firing.size:
            self._fire(state, firing, at.take(firing))

    def _fire(self, state: State, firing: np.ndarray, hit: np.ndarray) -> None:
        """Blows in flattened columns: of the units `firing` to the units `hit`, at the same time.

        Shields are used up first; what is left of a blow is reduced by the armour.
        """
        attacker, victim = firing % self.n_unit, hit % self.n_unit
        state["cooldown"].reshape(-1)[firing] = self.cooldown[attacker]
        state["shot"].reshape(-1)[firing] = victim
        state["quiet"].reshape(-1)[hit] = 0.0
        blows = np.repeat(np.arange(firing.size), self._blows[attacker])
        blows = blows[np.argsort(hit[blows], kind="stable")]
        hit, victim = hit[blows], victim[blows]
        damage = self._damage[attacker[blows] * self.n_unit + victim]
        # Damage of the blows before each one, to the same unit.
        taken = damage.cumsum() - damage
        first = np.searchsorted(hit, hit)
        taken -= taken[first]
        shield = np.maximum(state["shield"].reshape(-1)[hit] - taken, 0.0)
        through = damage - np.minimum(damage, shield)
        hurt = np.maximum(through - self.armour[victim], np.minimum(through, LEAST_DAMAGE))
        size = state["health"].size
        shape = state["health"].shape
        lost = np.bincount(hit, hurt, size).reshape(shape)
        np.maximum(state["health"] - lost, 0.0, out=state["health"])
        if self._has_shields:
            total = np.bincount(hit, damage, size).reshape(shape)
            np.maximum(state["shield"] - total, 0.0, out=state["shield"])

    def _regenerate(self, state: State) -> None:
        rests = (state["quiet"] >= QUIET) & (state["health"] > 0)
        more = np.minimum(state["shield"] + REGENERATION, self.shield)
        state["shield"] = np.where(rests, more, state["shield"])

    def _push_apart(self, state: State) -> None:
        """Units that overlap give way to each other, each half of it."""
        x, y = state["x"], state["y"]
        dx, dy = x[:, :, None] - x[:, None], y[:, :, None] - y[:, None]  # (n, U, U)
        distance = np.sqrt(dx * dx + dy * dy)
        alive = state["health"] > 0
        overlap = (self._apart - distance) * (alive[:, :, None] & alive[:, None])
        share = np.maximum(overlap, 0.0) / np.maximum(distance, _TOUCH) / 2
        x += (dx * share).sum(axis=2)
        y += (dy * share).sum(axis=2)
        np.clip(x, 0.0, FIELD, out=x)
        np.clip(y, 0.0, FIELD, out=y)


def _formation(n_ally: int, n_enemy: int) -> np.ndarray:
    """(2, U): columns of five that face each other, the last units in front."""
    sides = []
    for count, (x, y), toward in ((n_ally, ALLIES_START, 1), (n_enemy, ENEMIES_START, -1)):
        column, row = np.divmod(np.arange(count), _PER_COLUMN)
        size = np.bincount(column)[column]
        depth = column - column.max() / 2
        along = row - (size - 1) / 2
        sides.append(np.stack([x + toward * depth * _SPACING, y + along * _SPACING]))
    return np.concatenate(sides, axis=1)
