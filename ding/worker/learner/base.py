"""Learner: updates a policy on batches, with hooks around every update."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from easydict import EasyDict

from ding.config.schema import deep_merge_dicts, default_config_of, to_easydict
from ding.policy.needs import attribute_of
from ding.torch_utils.lr_schedule import LrSchedule
from ding.utils.batch import Rows
from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.errors import DingError
from ding.utils.log import WorkerLog
from ding.utils.registry import LEARNER_REGISTRY, class_of
from ding.worker.learner.divergence import cause_in, columns_to_look_at
from ding.worker.learner.hooks import LearnerHook, add_learner_hook, build_learner_hook_by_cfg


class TrainingDivergedError(DingError):
    """The loss is not a number."""


class LogBuffer:
    """Metrics of the last iterations; tensors stay tensors until somebody reads them."""

    def __init__(self) -> None:
        self._values: dict[str, list[Any]] = {}

    def add(self, metrics: Mapping[str, Any]) -> None:
        for name, value in metrics.items():
            self._values.setdefault(name, []).append(value)

    def averages(self) -> dict[str, float]:
        return {name: _mean(values) for name, values in self._values.items()}

    def clear(self) -> None:
        self._values.clear()


def _mean(values: list[Any]) -> float:
    if isinstance(values[0], torch.Tensor):
        return float(torch.stack(values).detach().float().mean())
    return float(np.mean(values))


class BaseLearner:
    """`train(data, envstep)` is one call of the policy's learn mode, with hooks around it."""

    config: ClassVar[dict[str, Any]] = dict(
        type="base",
        import_names=[],
        # Iterations of `start()`.
        train_iterations=int(1e9),
        dataloader=dict(num_workers=0),
        # Write the structure of the policy into the log first.
        log_policy=True,
        hook=dict(
            # Checkpoint to start from.
            load_ckpt_before_run="",
            # Iterations between two entries in the log.
            log_show_after_iter=100,
            # Iterations between two checkpoints.
            save_ckpt_after_iter=10000,
            save_ckpt_after_run=True,
        ),
    )
    config_open: ClassVar[tuple[str, ...]] = ("hook",)

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        policy: Any = None,
        tb_logger: Any = None,
        dist_info: tuple[int, int] | None = None,
        exp_name: str | None = None,
        instance_name: str = "learner",
    ) -> None:
        self._cfg: EasyDict = to_easydict(deep_merge_dicts(self.default_config(), cfg or {}))
        self.exp_name, self.instance_name = exp_name or "default_experiment", instance_name
        self.rank, self.world_size = dist_info or (0, 1)
        self.log = WorkerLog(exp_name, instance_name, tb_logger)
        self.log_buffer = LogBuffer()
        self.train_iter = 0
        """Updates done so far."""
        self.collector_envstep = -1
        self.priority_info: dict[str, Any] = {}
        self.learn_info: dict[str, Any] = {}
        self._data: Iterable[Any] = ()
        hook_cfg = dict(self._cfg.hook)
        if self.world_size > 1:
            hook_cfg.setdefault("log_reduce_after_iter", True)
        self._hooks = build_learner_hook_by_cfg(hook_cfg)
        self.on_checkpoint: Callable[[Path], None] | None = None
        """Called with every checkpoint that was written."""
        self._policy: Any = None
        if policy is not None:
            self.policy = policy

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    @property
    def policy(self) -> Any:
        return self._policy

    @policy.setter
    def policy(self, policy: Any) -> None:
        if not hasattr(policy, "monitor_vars"):
            raise TypeError(
                f"a learner needs a learn mode (policy.learn_mode), got {type(policy).__name__}"
            )
        self._policy = policy
        self._monitored = policy.monitor_vars()
        schedule = attribute_of(policy, "lr_schedule", None)
        self._lr_schedule = schedule if isinstance(schedule, LrSchedule) else None

    # --- training ------------------------------------------------------------------------------

    def train(
        self,
        data: Sequence[Any],
        envstep: int = -1,
        policy_kwargs: Mapping[str, Any] | None = None,
    ) -> list[dict[str, Any]]:
        """Update the policy with a batch (or all of an on-policy collect); returns its outputs."""
        self.call_hook("before_iter")
        if self._lr_schedule is not None:
            self._lr_schedule.apply(self.train_iter, envstep)
        outputs = self._policy.forward(data, **(policy_kwargs or {}))
        self.collector_envstep = envstep
        if isinstance(outputs, dict):
            outputs = [outputs]
        for output in outputs:
            self._check_finite(output, data)
            priority = output.get("priority")
            self.priority_info = _priority_info(priority, data) if priority is not None else {}
            metrics = {name: output[name] for name in self._monitored if name in output}
            self.learn_info = metrics
            self.log_buffer.add(metrics)
            self.call_hook("after_iter")
            self.train_iter += 1
        return outputs

    def _check_finite(self, output: Mapping[str, Any], data: Sequence[Any]) -> None:
        loss = output.get("total_loss")
        # Reading a number off a GPU would stall it; there the check waits for the log.
        if loss is None or (isinstance(loss, torch.Tensor) and loss.is_cuda):
            return
        if not math.isfinite(loss):
            raise TrainingDivergedError(self._diagnosis(float(loss), data))

    def _diagnosis(self, loss: float, data: Any) -> str:
        columns = columns_to_look_at(data)
        path = Path(self.exp_name) / "diverged_batch.pth.tar"
        try:
            save_checkpoint(path, {"batch": columns, "train_iter": self.train_iter})
            where = f"The batch is in '{path}'"
        except (OSError, TypeError, AttributeError, pickle.PicklingError) as error:
            where = f"The batch could not be saved ({error})"  # what diverged matters more
        return (
            f"total_loss is {loss} at train iter {self.train_iter}: {cause_in(columns)}. {where}; "
            f"the checkpoints in '{Path(self.exp_name) / 'ckpt'}' are from before"
        )

    def merge_statistics(self, statistics: Mapping[str, Any]) -> None:
        """Take what collecting gathered into the policy's normalisers."""
        if statistics:
            self._policy.set_attribute("statistics", statistics)

    def setup_dataloader(self, source: Iterable[Any] | None = None) -> None:
        """Where `start` takes its batches from."""
        if source is None:
            raise ValueError("setup_dataloader needs an iterable of batches")
        self._data = source

    def start(self) -> None:
        """Train on the batches of the dataloader until they or the iterations run out."""
        self.call_hook("before_run")
        for data in self._data:
            if self.train_iter >= self._cfg.train_iterations:
                break
            self.train(data)
        self.call_hook("after_run")

    # --- hooks and checkpoints -----------------------------------------------------------------

    def register_hook(self, hook: LearnerHook) -> None:
        add_learner_hook(self._hooks, hook)

    def call_hook(self, position: str) -> None:
        if position == "before_run" and self._cfg.log_policy and self.rank == 0:
            describe = getattr(self._policy, "info", self._policy.__repr__)  # a stand-in has none
            self.log.info(f"training {describe()}")
        for hook in self._hooks[position]:
            hook(self)

    @property
    def ckpt_name(self) -> str:
        return f"iteration_{self.train_iter}.pth.tar"

    @property
    def ckpt_dir(self) -> Path:
        suffix = "" if self.instance_name == "learner" else f"_{self.instance_name}"
        return Path(self.exp_name) / f"ckpt{suffix}"

    def save_checkpoint(self, ckpt_name: str | None = None) -> Path:
        """Save the policy as `iteration_<n>.pth.tar` or under the given name; returns the path."""
        path = self.ckpt_dir / (ckpt_name or self.ckpt_name)
        state = self._policy.state_dict()
        state |= {"last_iter": self.train_iter, "last_step": self.collector_envstep}
        save_checkpoint(path, state)
        self.log.info(f"saved {path}")
        if self.on_checkpoint is not None:
            self.on_checkpoint(path)
        return path

    def load_checkpoint(self, path: str | Path) -> None:
        state = load_checkpoint(path)
        self._policy.load_state_dict(state)
        cfg = self._policy.get_attribute("cfg")
        if cfg["learn"].get("resume_training", False):
            self.train_iter = state.get("last_iter", 0)
            self.collector_envstep = state.get("last_step", -1)
        self.log.info(f"loaded {path}")

    def state_dict(self) -> dict[str, Any]:
        values = {
            name: [v.item() if isinstance(v, torch.Tensor) else v for v in values]
            for name, values in self.log_buffer._values.items()
        }
        return {
            "train_iter": self.train_iter,
            "collector_envstep": self.collector_envstep,
            "policy": self._policy.state_dict(),
            "log": values,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.train_iter = state["train_iter"]
        self.collector_envstep = state["collector_envstep"]
        self._policy.load_state_dict(state["policy"])
        self.log_buffer._values = {k: list(v) for k, v in state["log"].items()}

    def close(self) -> None:
        self.log.close()

    def __enter__(self) -> BaseLearner:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _priority_info(priority: Any, data: Sequence[Any]) -> dict[str, Any]:
    """What a prioritised buffer needs to find the samples again."""
    columns = data.columns if isinstance(data, Rows) else {}
    names = ["replay_buffer_idx", "replay_unique_id", "source"]
    found = {name: columns[name] for name in names if name in columns}
    return {"priority": priority, **found} if "replay_unique_id" in found else {}


def create_learner(cfg: Mapping[str, Any], **kwargs: Any) -> BaseLearner:
    return class_of(LEARNER_REGISTRY, cfg)(cfg, **kwargs)
