"""Limits: when a run is over at the latest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from ding.utils.errors import ConfigError

_NEVER = 10**10


@dataclass(frozen=True)
class Limits:
    train_iter: int = _NEVER
    env_step: int = _NEVER

    def reached(self, train_iter: int, env_step: int) -> bool:
        return train_iter >= self.train_iter or env_step >= self.env_step

    def fraction(self, train_iter: int, env_step: int) -> float:
        """How much of the run is done, by the limit that is nearer."""
        return max(train_iter / max(self.train_iter, 1), env_step / max(self.env_step, 1))


def limits_of(max_train_iter: float = _NEVER, max_env_step: float = _NEVER) -> Limits:
    """Limits from the arguments of an entry function; no update at all is a limit, too."""
    return Limits(
        checked_limit("max_train_iter", max_train_iter, lowest=0),
        checked_limit("max_env_step", max_env_step),
    )


def checked_limit(name: str, given: object, lowest: int = 1) -> int:
    """A whole number, which may be written as the float 1e5; infinity is no limit."""
    if given == math.inf:
        return _NEVER
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not (is_number and given >= lowest and given % 1 == 0):  # type: ignore[operator]
        raise ConfigError(
            f"{name} = {given!r}: must be a whole number, {lowest} at least, like 100000 or 1e5"
        )
    return int(given)  # type: ignore[call-overload]
