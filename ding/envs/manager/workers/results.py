"""Results of workers in the shared block, as columns; and actions the other way.

N is the number of envs in a batch. Arguments `numbers` are those of env instances: their rows.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ding.envs.base_env import VecStep
from ding.envs.manager.columns import (
    ObsColumns,
    fitting_actions,
    obs_columns,
    put_rows,
    to_numpy,
)
from ding.envs.manager.workers.channel import ABNORMAL, DONE, HAS_INFO, TRUNCATED
from ding.envs.manager.workers.shared_block import SharedBlock
from ding.utils.batch import gather, take, tree_map
from ding.utils.errors import EnvError


class SpaceMisfitError(EnvError):
    """First observations do not fit the observation space."""


class Results:
    """Observations, rewards and flags of all env instances."""

    def __init__(self, block: SharedBlock, observation_space: Any, copy: bool) -> None:
        self._block = block
        self._all = np.arange(len(block["flags"]))
        self._copies = copy
        self.is_shared = "obs" in block.columns
        self._obs, self._first = block.columns.get("obs"), block.columns.get("first")
        self._reward, self._flags = block["reward"], block["flags"]
        self._columns: ObsColumns = obs_columns(observation_space)
        # By number, for data that came as pickles.
        self._infos: dict[int, dict[str, Any]] = {}
        self._rows: dict[int, Any] = {}
        self._first_rows: dict[int, Any] = {}

    def plain_step(self, ids: np.ndarray, numbers: np.ndarray) -> VecStep | None:
        """A step in which no episode ended and no env gave an info; None for any other."""
        count = len(numbers)
        if count == 1:
            return self._plain_single(ids, numbers.item())
        whole = count == len(self._all)
        flags = self._flags if whole else self._flags[numbers]
        if not self.is_shared or flags.tobytes().strip(b"\0"):  # Quicker than any().
            return None
        no, also_no, neither = np.zeros((3, count), dtype=bool)
        obs = self._read(self._obs, numbers, whole)
        reward = self._reward.copy() if whole else self._reward[numbers]
        return VecStep(obs, reward, no, [{} for _ in range(count)], also_no, neither, ids)

    def _plain_single(self, ids: np.ndarray, number: int) -> VecStep | None:
        if not self.is_shared or self._flags.item(number):
            return None
        row = slice(number, number + 1)
        no, also_no, neither = np.zeros((3, 1), dtype=bool)
        obs, reward = tree_map(lambda leaf: leaf[row].copy(), self._obs), self._reward[row].copy()
        return VecStep(obs, reward, no, [{}], also_no, neither, ids)

    def step(self, ids: np.ndarray, numbers: np.ndarray) -> VecStep:
        flags = self._flags[numbers]
        done, truncated, abnormal = (flags & bit != 0 for bit in (DONE, TRUNCATED, ABNORMAL))
        said = flags & HAS_INFO != 0
        info = [
            self._stored_info(number) if has else self._infos.pop(number, {})
            for number, has in zip(numbers.tolist(), said.tolist(), strict=True)
        ]
        obs = self.obs(numbers, np.zeros(len(numbers), dtype=bool))
        return VecStep(obs, self._reward[numbers], done, info, truncated, abnormal, ids)

    def obs(self, numbers: np.ndarray, fresh: np.ndarray) -> Any:
        """Newest observations; where `fresh`, first ones of episodes. Never views."""
        if not len(numbers):
            return np.zeros(0, dtype=np.float32)
        if not self.is_shared:
            pairs = zip(numbers.tolist(), fresh.tolist(), strict=True)
            return self._columns.stack(
                [self._first_rows[number] if new else self._rows[number] for number, new in pairs]
            )
        if fresh.all():
            return gather(self._first, numbers)
        obs = gather(self._obs, numbers)
        if fresh.any():
            put_rows(obs, np.flatnonzero(fresh), gather(self._first, numbers[fresh]))
        return obs

    def _read(self, tree: Any, numbers: np.ndarray, whole: bool) -> Any:
        if not whole:
            return gather(tree, numbers)
        if not self._copies:
            return tree
        return tree.copy() if type(tree) is np.ndarray else tree_map(np.copy, tree)

    def _stored_info(self, number: int) -> dict[str, Any]:
        size = int(self._block["info_size"][number])
        return pickle.loads(self._block["info"][number, :size].tobytes())

    def received_step(self, number: int, sent: tuple[Any, bytes]) -> None:
        """Take a step whose info, and maybe observation, came as a pickle."""
        row, info = sent
        self._infos[number] = pickle.loads(info)
        if not self.is_shared:
            self._rows[number] = row

    def received_first(self, number: int, row: Any) -> None:
        self._first_rows[number] = row

    def put_broken(self, number: int, error: str) -> None:
        """Put a stand-in for a step that failed."""
        self._flags[number] = ABNORMAL
        self._reward[number] = 0
        self._infos[number] = {"abnormal": True, "error": error}
        if self.is_shared:
            # The newest row may be half written.
            put_rows(self._obs, np.array([number]), gather(self._first, np.array([number])))
        else:
            self._rows[number] = self._first_rows[number]

    def saved(self) -> dict[str, Any]:
        """Plain data from which `restore` makes the same results."""
        rows = (self._infos, self._rows, self._first_rows)
        return {"block": self._copied(), "pickled": pickle.dumps(rows)}

    def _copied(self) -> dict[str, Any]:
        kept = ["obs", "first", "reward", "flags", "info", "info_size", "episode_seed"]
        kept += ["reset_seconds"]  # Decides which resets are waited for, and so who steps.
        columns = self._block.columns
        return {name: tree_map(np.copy, columns[name]) for name in kept if name in columns}

    def restore(self, saved: dict[str, Any]) -> None:
        self._infos, self._rows, self._first_rows = pickle.loads(saved["pickled"])
        for name, tree in saved["block"].items():
            put_rows(self._block[name], self._all, tree)


class Actions:
    """Checks a batch of actions and writes them into the shared block."""

    def __init__(self, space: Any, block: SharedBlock) -> None:
        self._space = space
        self.column: Any = block.columns.get("action")
        leaf = self.column if isinstance(self.column, np.ndarray) else None
        self._dtype = None if leaf is None else leaf.dtype
        self._shape = None if leaf is None else leaf.shape[1:]

    def checked(self, stacked: Any, count: int) -> Any:
        """The actions as columns that fit the space."""
        if (
            type(stacked) is np.ndarray
            and stacked.dtype == self._dtype
            and stacked.shape == (count, *(self._shape or ()))
        ):
            return stacked
        return fitting_actions(self._space, tree_map(to_numpy, stacked), count, "action")

    def put(self, index: Any, columns: Any) -> None:
        if self._dtype is not None:
            self.column[index] = columns
        else:
            put_rows(self.column, index, columns)

    def rows(self, columns: Any, count: int) -> list[Any]:
        """One action for each env, for a space without a column."""
        return [take(columns, (k, ...)) for k in range(count)]
