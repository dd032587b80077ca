"""Past selves: snapshots of a learning policy, as opponents and as their average.

Brown 1951, fictitious play; Heinrich et al. 2015, http://proceedings.mlr.press/v37/heinrich15.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ding.policy.acting_state import ActingState
from ding.utils.batch import ByEnv, length, stacked_of


class PastSelves:
    """Snapshots that are alike in weight; some of them play at a time."""

    def __init__(self, mode: Any, *, every: int, kept: int, at_once: int) -> None:
        self._mode, self._every, self._kept = mode, every, kept
        self._twins = [mode.get_attribute("twin") for _ in range(at_once)]
        self._rng = np.random.default_rng(int(self._twins[0].rng.integers(2**31)))
        self._states: list[ActingState] = []
        self._seen = 0
        self._next = 0

    @property
    def modes(self) -> dict[str, Any]:
        """Acting modes of those that play, by name."""
        # The collect mode draws actions: a greedy past self would be another policy.
        return {f"past_{k}": Actor(twin.collect_mode) for k, twin in enumerate(self._twins)}

    def __len__(self) -> int:
        return len(self._states)

    def remember(self, train_iter: int) -> None:
        """Take a snapshot if it is time; once full, all that ever were are kept alike likely."""
        if train_iter < self._next:
            return
        self._next = train_iter + self._every
        state: ActingState = self._mode.get_attribute("acting_state")
        self._seen += 1
        if len(self._states) < self._kept:
            self._states.append(state)
            return
        place = int(self._rng.integers(self._seen))
        if place < self._kept:
            self._states[place] = state

    def draw(self) -> None:
        """Let others of the snapshots play."""
        for twin in self._twins:
            twin.load_acting_state(self._states[int(self._rng.integers(len(self._states)))])

    def average(self, obs: Any) -> np.ndarray:
        """Mean of the snapshots' action probabilities, (B, A), for observations (B, ...).

        Where a player moves more than once, whoever draws a snapshot and keeps to it plays
        otherwise: `GameTree.average` of `probabilities`.
        """
        return np.asarray(np.mean(self.probabilities(obs), axis=0))

    def probabilities(self, obs: Any) -> np.ndarray:
        """Action probabilities of each snapshot, (S, B, A)."""
        twin, mode = self._twins[0], self._twins[0].collect_mode
        found = []
        for state in self._states:
            twin.load_acting_state(state)
            seats = np.arange(length(obs))
            _, output = stacked_of(mode.forward(ByEnv(seats, obs)))
            found.append(_softmax(output["logit"]))
        return np.stack(found)

    def state_dict(self) -> dict[str, Any]:
        return {
            "states": [{"version": s.version, "parts": s.parts} for s in self._states],
            "seen": self._seen,
            "next": self._next,
            "rng": self._rng.bit_generator.state,
            "twins": [
                {"state": twin.acting_state().parts, "rng": twin.rng.bit_generator.state}
                for twin in self._twins
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._states = [ActingState(s["version"], s["parts"]) for s in state["states"]]
        self._seen, self._next = state["seen"], state["next"]
        self._rng.bit_generator.state = state["rng"]
        for twin, saved in zip(self._twins, state["twins"], strict=True):
            twin.load_acting_state(ActingState(0, saved["state"]))
            twin.rng.bit_generator.state = saved["rng"]


class Actor:
    """A collect mode that only acts."""

    def __init__(self, mode: Any) -> None:
        self.forward, self.reset = mode.forward, mode.reset
        self.get_attribute, self.set_attribute = mode.get_attribute, mode.set_attribute


def _softmax(logit: np.ndarray) -> np.ndarray:
    exp = np.exp(logit - logit.max(axis=-1, keepdims=True))
    return np.asarray(exp / exp.sum(axis=-1, keepdims=True))
