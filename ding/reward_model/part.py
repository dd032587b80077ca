"""A reward model as part of a run: it learns from new samples and relabels what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ding.reward_model.base import BaseRewardModel
from ding.utils.batch import Batch, Rows, columns_of, length
from ding.utils.errors import ConfigError, DingError
from ding.utils.log import WorkerLog
from ding.worker.buffer.relabelling import Drawn

REWARD_COLUMNS = ("reward", "intrinsic_reward")


class RewardModelError(DingError):
    """A reward model gave what nothing can learn from."""


class LearnedReward:
    """Feeds a reward model, trains it on every so many new samples, and checks what it gives."""

    def __init__(self, model: BaseRewardModel, name: str, exp_name: str) -> None:
        self.model, self._name, self._exp_name = model, name, exp_name
        self._log = WorkerLog(exp_name, "reward_model")
        self._waiting = self._trainings = self._seen = 0

    def observe(self, samples: Batch) -> None:
        """Take in new samples of the agent, and learn when there are enough."""
        missing = [name for name in self.model.needs if name not in samples]
        if missing:
            raise ConfigError(
                f"reward model '{self._name}' needs the columns {', '.join(missing)}, which "
                f"samples of this policy do not have ({', '.join(sorted(samples))})"
            )
        self.model.collect_data(Rows(samples))
        count = length(samples)
        self._waiting, self._seen = self._waiting + count, self._seen + count
        if self._waiting < self.model.cfg.target_new_data_count:
            return
        self._waiting = 0
        learned = self.model.train() or {}
        self._trainings += 1
        if self._trainings % self.model.cfg.clear_buffer_per_iters == 0:
            self.model.clear_data()
        self._write(learned, samples)

    def _write(self, learned: dict[str, float], samples: Batch) -> None:
        """Losses, and the rewards per step from the env and from the model, apart."""
        rewards = columns_of(self.estimated(samples))
        values = {f"reward_model/{key}": float(value) for key, value in learned.items()}
        values["reward_model/extrinsic_mean"] = float(np.mean(samples["reward"]))
        for name in REWARD_COLUMNS:
            if name in rewards:
                values[f"reward_model/{name}_mean"] = float(np.mean(rewards[name]))
        self._log.scalars(values, self._seen)

    def relabel(self, drawn: Drawn) -> Batch:
        return columns_of(self.estimated(drawn.steps))

    def estimated(self, steps: Batch) -> Any:
        """Samples with the model's rewards, of which there is one for each and all are finite."""
        count = length(steps)
        found = self.model.estimate(Rows(steps))
        if len(found) != count:
            raise RewardModelError(self._fault(f"gave {len(found)} rewards for {count} samples"))
        columns = columns_of(found)
        for name in REWARD_COLUMNS:
            if name in columns and not np.isfinite(columns[name]).all():
                raise RewardModelError(self._fault(f"gave a '{name}' that is NaN or infinite"))
        return found

    def _fault(self, what: str) -> str:
        return (
            f"reward model '{self._name}' {what} after {self._trainings} of its trainings "
            f"({self._seen} samples seen); the run is saved in '{self._exp_name}' as it was at its "
            "last checkpoint"
        )

    def save(self, name: str) -> None:
        self.model.save(self._exp_name, name)

    def state_dict(self) -> dict[str, Any]:
        counts = [self._waiting, self._trainings, self._seen]
        return {"type": self._name, "counts": counts, "model": self.model.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["type"] != self._name:
            raise ValueError(f"the saved reward model is a '{state['type']}', not '{self._name}'")
        self._waiting, self._trainings, self._seen = state["counts"]
        self.model.load_state_dict(state["model"])

    def close(self) -> None:
        self._log.close()
