"""Trainee: the policy of an active player, its learner and its batches."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from ding.pipeline.assemble import assemble
from ding.pipeline.learning import train_on
from ding.policy import create_policy
from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.worker import create_learner
from ding.worker.commander import collect_settings


class Trainee:
    def __init__(self, cfg: Any, player_id: str, directory: Path) -> None:
        own = deepcopy(cfg)
        own.exp_name = str(directory / "players" / player_id)
        self.player_id = player_id
        self.policy = create_policy(own.policy)
        learner_cfg = own.policy.learn.learner
        self.learner = create_learner(
            learner_cfg, policy=self.policy.learn_mode, exp_name=own.exp_name
        )
        self._on_policy = own.policy.on_policy
        self._parts = assemble(own)
        self.envstep = 0

    def settings(self) -> dict[str, Any]:
        """How to explore now."""
        return collect_settings(self.policy.command_mode, self.learner.train_iter, self.envstep)

    def learn(self, samples: Any, envstep: int, statistics: Any) -> None:
        self.envstep += envstep
        batches = self._parts.batches.after(samples, self.envstep, self.learner)
        gathered = [statistics] if statistics else []
        updates = train_on(self.learner, batches, self.envstep, gathered, on_policy=self._on_policy)
        for priority_info in updates:
            self._parts.batches.feed_back(priority_info)

    def save(self, path: str | Path) -> None:
        """Weights and optimizers."""
        save_checkpoint(path, self.policy.learn_mode.state_dict())

    def load(self, path: str | Path) -> None:
        self.policy.learn_mode.load_state_dict(load_checkpoint(path))

    def state_dict(self) -> dict[str, Any]:
        buffer = self._parts.buffer
        return {
            "learner": self.learner.state_dict(),
            "rng": self.policy.rng.bit_generator.state,
            "envstep": self.envstep,
            "parts": self._parts.state_dict(),
            "buffer": None if buffer is None else buffer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state["learner"])
        self.policy.rng.bit_generator.state = state["rng"]
        self.envstep = state["envstep"]
        self._parts.load_state_dict(state["parts"])
        if self._parts.buffer is not None:
            self._parts.buffer.load_state_dict(state["buffer"])

    def close(self) -> None:
        self.learner.close()
        self._parts.close()
