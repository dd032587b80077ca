"""Episodes of an evaluation: their returns, who won, and what each agent got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.agents import AGENT_RETURN

WIN_RATE = "win_rate"
AGENT_MEAN = "reward_mean_agent_"
"""Beginning of the names that mean returns of single agents have in a curve."""
_NUMBERS = (bool, int, float, np.number, np.bool_)


class EpisodeReturns(list[float]):
    """Returns of the episodes; by name, lists of what else was recorded of each."""

    def __init__(self, returns: Sequence[float], infos: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(returns)
        names = ("length", *_shared(infos))
        self._columns = {name: [info[name] for info in infos] for name in names}
        self._columns["eval_episode_return"] = list(returns)

    def __getitem__(self, index: Any) -> Any:
        return self._columns[index] if isinstance(index, str) else super().__getitem__(index)

    def joined(self, other: EpisodeReturns) -> EpisodeReturns:
        """These episodes and then those of another evaluation."""
        infos = [
            {name: column[i] for name, column in one._columns.items()}
            for one in (self, other)
            for i in range(len(one))
        ]
        return EpisodeReturns([*self, *other], infos)

    @property
    def mean_return(self) -> float:
        return float(np.mean(self))

    @property
    def win_rate(self) -> float | None:
        """Share of the episodes that were won; None if the env does not say who won."""
        won = self._columns.get("win")
        return None if won is None else float(np.mean(np.array(won, dtype=bool)))

    @property
    def agents(self) -> list[float]:
        """Mean return of each agent; empty if rewards are those of the team."""
        count = sum(name.startswith(AGENT_RETURN) for name in self._columns)
        return [float(np.mean(self[f"{AGENT_RETURN}{k}"])) for k in range(count)]

    def summary(self) -> dict[str, float]:
        """Entry of a learning curve."""
        values = {
            "reward_mean": self.mean_return,
            "reward_std": float(np.std(self)),
            "reward_max": max(self),
            "reward_min": min(self),
            "avg_episode_length": float(np.mean(self["length"])),
        }
        if self.win_rate is not None:
            values[WIN_RATE] = self.win_rate
        return values | {f"{AGENT_MEAN}{k}": mean for k, mean in enumerate(self.agents)}


def agent_means(entry: Mapping[str, float]) -> list[float]:
    """Mean return of each agent in an entry of a learning curve."""
    count = sum(name.startswith(AGENT_MEAN) for name in entry)
    return [entry[f"{AGENT_MEAN}{k}"] for k in range(count)]


def besides_return(entry: Mapping[str, float], digits: int = 1) -> str:
    """Win rate and returns of the agents in words, each after a comma; empty without them."""
    won = f", win rate {entry[WIN_RATE]:.2f}" if WIN_RATE in entry else ""
    agents = ", ".join(f"{mean:.{digits}f}" for mean in agent_means(entry))
    return f"{won}, by agent {agents}" if agents else won


def _shared(infos: Sequence[Mapping[str, Any]]) -> list[str]:
    """Numbers that the env reported with the end of every episode."""
    keys = set.intersection(*(set(info) for info in infos)) - {"length", "eval_episode_return"}
    return sorted(key for key in keys if isinstance(infos[0][key], _NUMBERS))
