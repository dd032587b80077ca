"""Units and maps: the published numbers of three StarCraft II units, and who fights whom.

Lengths are in cells of a field of 32 x 32, times in seconds of a game that makes 22.4 steps in one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ding.utils.errors import ConfigError, nearest

GAME_STEPS_PER_SECOND = 22.4
FIELD = 32.0
"""Length of the sides of the field; its corner is (0, 0)."""
ALLIES_START, ENEMIES_START = (9.0, 16.0), (23.0, 16.0)


@dataclass(frozen=True, kw_only=True)
class UnitType:
    name: str
    health: float
    shield: float = 0.0
    armour: float = 0.0
    """Taken off every blow that reaches the health."""
    armoured: bool = False
    """Whether weapons with a bonus against armoured units do more to it."""
    damage: float
    """Of one blow."""
    blows: int = 1
    """Blows of one attack."""
    bonus: float = 0.0
    """More damage of a blow to an armoured unit."""
    cooldown: float
    """Seconds between two attacks."""
    range: float
    """Between the edges of two units."""
    speed: float
    """Cells in a second."""
    radius: float


MARINE = UnitType(
    name="marine", health=45, damage=6, cooldown=0.61, range=5, speed=3.15, radius=0.375
)
STALKER = UnitType(
    name="stalker",
    health=80,
    shield=80,
    armour=1,
    armoured=True,
    damage=13,
    bonus=5,
    cooldown=1.34,
    range=6,
    speed=4.13,
    radius=0.625,
)
ZEALOT = UnitType(
    name="zealot",
    health=100,
    shield=50,
    armour=1,
    damage=8,
    blows=2,
    cooldown=0.86,
    range=0.1,
    speed=3.15,
    radius=0.5,
)


@dataclass(frozen=True)
class BattleMap:
    name: str
    allies: tuple[UnitType, ...]
    enemies: tuple[UnitType, ...]
    limit: int
    """Actions after which an episode is cut off."""

    @property
    def types(self) -> tuple[UnitType, ...]:
        """Kinds of units in it."""
        return tuple(dict.fromkeys((*self.allies, *self.enemies)))


def _map(name: str, limit: int, allies: tuple[UnitType, ...], *enemies: UnitType) -> BattleMap:
    return BattleMap(name, allies, enemies or allies, limit)


MAPS: dict[str, BattleMap] = {
    one.name: one
    for one in (
        _map("3m", 60, (MARINE,) * 3),
        _map("8m", 120, (MARINE,) * 8),
        _map("5m_vs_6m", 70, (MARINE,) * 5, *(MARINE,) * 6),
        _map("2s3z", 120, (STALKER,) * 2 + (ZEALOT,) * 3),
        _map("3s5z", 150, (STALKER,) * 3 + (ZEALOT,) * 5),
    )
}


def map_of(name: str) -> BattleMap:
    if name not in MAPS:
        raise ConfigError(f"env.map_name = {name!r}{nearest(str(name), MAPS)}")
    return MAPS[name]
