"""Demonstrations: whole episodes of somebody who can do a task, checked before they are used.

Letters in shapes: N steps, E episodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from ding.data.space_fit import misfit, scale_hint
from ding.data.step_columns import established_columns, problem_of, same_rows, shifted
from ding.utils.batch import Batch, Rows, concat, take
from ding.utils.errors import DemonstrationError


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where demonstrations come from; None is what their source does not say."""

    env_id: str | None = None
    obs_space: Space[Any] | None = None
    action_space: Space[Any] | None = None
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    random_returns: tuple[float, ...] = ()
    """Returns of random actions in this env, to tell an expert from chance."""
    name: str = "the demonstrations"
    """File or other source, for messages."""


@dataclass(frozen=True)
class Demonstrations:
    """Columns obs, action, reward, terminated, truncated (N, ...): one episode after the other."""

    columns: Batch
    lengths: np.ndarray
    """(E,) steps of each episode."""
    final_obs: Any
    """(E, ...): the observation after the last step of each episode."""
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        problem = problem_of(self.columns, self.lengths, self.final_obs)
        if problem:
            raise DemonstrationError(f"'{self.origin.name}' {problem}; nothing was done with it")

    @classmethod
    def of_steps(cls, steps: Sequence[Any], origin: Origin | None = None) -> Demonstrations:
        """Steps in order, of one env after the other (list of dicts, or `Rows`).

        An episode ends where a step is done or where the next step does not follow from it.
        """
        origin = origin or Origin()
        columns = established_columns(steps, origin.name)
        obs, next_obs, done = columns["obs"], columns["next_obs"], columns["done"]
        end = done.copy()
        end[:-1] |= ~same_rows(take(next_obs, slice(None, -1)), take(obs, slice(1, None)))
        end[-1] = True
        over = done & ~columns.get("truncated", np.zeros_like(done))
        kept = {name: columns[name] for name in ("obs", "action", "reward")}
        flags = {"terminated": over, "truncated": end & ~over}
        lengths = np.diff(np.flatnonzero(end), prepend=-1)
        return cls({**kept, **flags}, lengths, take(next_obs, end), origin)

    @classmethod
    def of_episodes(
        cls, episodes: Sequence[Sequence[Any]], origin: Origin | None = None
    ) -> Demonstrations:
        """Episodes of steps; the last step of one that does not say `done` counts as truncated."""
        parts = [cls.of_steps(steps, origin) for steps in episodes if len(steps)]
        if not parts:
            raise DemonstrationError(f"'{(origin or Origin()).name}' has no steps")
        return joined(parts)

    @property
    def n_step(self) -> int:
        return len(self.columns["reward"])

    @property
    def n_episode(self) -> int:
        return len(self.lengths)

    @cached_property
    def episode_id(self) -> np.ndarray:
        """(N,) number of the episode that each step is of."""
        return np.repeat(np.arange(self.n_episode), self.lengths)

    @property
    def _starts(self) -> np.ndarray:
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def returns(self) -> np.ndarray:
        """(E,) sums of rewards."""
        reward = self.columns["reward"].reshape(self.n_step, -1).sum(axis=1, dtype=np.float64)
        return np.add.reduceat(reward, self._starts)

    def episodes(self, index: Any) -> Demonstrations:
        """Only these episodes, by their numbers, a slice or a mask."""
        chosen = np.arange(self.n_episode)[index]
        starts, lengths = self._starts[chosen], self.lengths[chosen]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = take(self.columns, np.repeat(starts, lengths) + within)
        return replace(
            self, columns=columns, lengths=lengths, final_obs=take(self.final_obs, chosen)
        )

    def steps(self) -> Rows:
        """Columns obs, action, reward, next_obs, done, truncated, episode_id, episode_step."""
        columns, id_ = self.columns, self.episode_id
        done = columns["terminated"] | columns["truncated"]
        return Rows(
            {
                "obs": columns["obs"],
                "action": columns["action"],
                "reward": columns["reward"],
                "next_obs": shifted(columns["obs"], self.final_obs, self.lengths),
                "done": done,
                "truncated": columns["truncated"],
                "episode_id": id_,
                "episode_step": np.arange(self.n_step) - self._starts[id_],
            }
        )

    def check(self, obs_space: Space[Any], action_space: Space[Any], env_id: str | None) -> None:
        """Refuse to be used in another env, with other spaces or another scale of actions."""
        origin = self.origin
        if None not in (env_id, origin.env_id) and env_id != origin.env_id:
            raise self._refused(f"come from env '{origin.env_id}', but the run's env is '{env_id}'")
        for what, key, ours, theirs in (
            ("observations", "obs", origin.obs_space, obs_space),
            ("actions", "action", origin.action_space, action_space),
        ):
            if ours is not None and ours != theirs:
                hint = scale_hint(ours, theirs) if key == "action" else ""
                raise self._refused(f"have {what} of {ours}, but the run's are of {theirs}{hint}")
            differs = misfit(self.columns[key], theirs)
            if differs:
                raise self._refused(f"have {what} {differs}, but the run's are of {theirs}")

    def scaled_to(self, action_space: spaces.Box) -> Demonstrations:
        """The same with actions mapped from their own box onto this one."""
        own = self.origin.action_space
        if not isinstance(own, spaces.Box) or own.shape != action_space.shape:
            raise self._refused(f"have actions of {own}, which do not scale to {action_space}")
        share = (self.columns["action"] - own.low) / (own.high - own.low)
        action = action_space.low + share * (action_space.high - action_space.low)
        columns = {**self.columns, "action": action.astype(action_space.dtype)}
        return replace(
            self, columns=columns, origin=replace(self.origin, action_space=action_space)
        )

    def _refused(self, reason: str) -> DemonstrationError:
        return DemonstrationError(f"demonstrations '{self.origin.name}' {reason}")

    def save(self, path: str | Path) -> Path:
        """Write them in our format; never over a file that is there."""
        from ding.data.demo_file import save

        return save(path, self)


def joined(parts: Sequence[Demonstrations]) -> Demonstrations:
    """The episodes of all of them, with the origin of the first."""
    final_obs = concat([part.final_obs for part in parts])
    columns = concat([part.columns for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    return Demonstrations(columns, lengths, final_obs, parts[0].origin)
