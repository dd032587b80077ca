"""Reward models: learned rewards for the steps that a policy learns from.

A model is written with the established methods: `collect_data` sees new samples, `train` learns
from them, `estimate` gives samples other rewards, `clear_data` forgets. Samples are lists of dicts;
those that the engine hands over are `Rows`, whose `columns` are stacked arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from easydict import EasyDict

from ding.config.schema import build, deep_merge_dicts, default_config_of
from ding.policy.config import at_least
from ding.utils.checkpoint import save_checkpoint
from ding.utils.errors import ConfigError
from ding.utils.registry import REWARD_MODEL_REGISTRY, import_names
from ding.utils.seed import new_generator

Samples = Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class RewardModelConfig:
    exp_name: str = ""
    """Where `save` writes to; empty: the directory of the run."""
    target_new_data_count: int = 1
    """New samples before each training."""
    clear_buffer_per_iters: int = 1
    """Trainings after which the samples it learns from are forgotten."""

    def __post_init__(self) -> None:
        for name in ("target_new_data_count", "clear_buffer_per_iters"):
            at_least(f"reward_model.{name}", getattr(self, name), 1)


class BaseRewardModel(ABC):
    """Base of reward models; one of a user's own needs `estimate` alone."""

    config_class: ClassVar[type] = RewardModelConfig
    config: ClassVar[dict[str, Any]] = {}
    needs: ClassVar[tuple[str, ...]] = ()
    """Columns that samples must have."""

    def __init__(
        self, config: Mapping[str, Any], device: str | torch.device = "cpu", tb_logger: Any = None
    ) -> None:
        merged = deep_merge_dicts(self.default_config(), config)
        self._cfg = EasyDict(merged)
        self.cfg: Any = build(self.config_class, merged, "reward_model")
        self.device, self.tb_logger = torch.device(device), tb_logger
        self.rng = new_generator()

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    @abstractmethod
    def estimate(self, data: Samples) -> Samples:
        """The samples with other rewards, in a new list; what was given stays as it was."""

    def train(self) -> dict[str, float] | None:
        """Learn from the collected data; returns what is to be logged."""
        return None

    def collect_data(self, data: Samples) -> None:
        """Take in new samples; most models keep them until `clear_data`."""

    def clear_data(self) -> None:
        """Forget the collected samples."""

    def load_expert_data(self, data: Samples) -> None:
        raise ConfigError(f"{type(self).__name__} learns without demonstrations")

    def state_dict(self) -> dict[str, Any]:
        """All that another model needs to go on as this one, generators and data included."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on as the model that gave this state."""

    def save(self, path: str | Path | None = None, name: str = "best") -> Path:
        """Write the state to `<path>/reward_model/ckpt/ckpt_<name>.pth.tar`."""
        root = Path(path or self.cfg.exp_name or ".")
        file = root / "reward_model" / "ckpt" / f"ckpt_{name}.pth.tar"
        save_checkpoint(file, self.state_dict())
        return file

    @staticmethod
    def reward_deepcopy(data: Samples) -> list[dict[str, Any]]:
        """New dicts with rewards of their own; everything else is shared."""
        return [{**row, "reward": deepcopy(row["reward"])} for row in data]

    @contextmanager
    def own_torch_stream(self) -> Iterator[None]:
        """Torch draws from this model's generator inside, and nobody else notices."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self.rng.integers(2**31)))
            yield


def get_reward_model_cls(cfg: Mapping[str, Any]) -> type[BaseRewardModel]:
    import_names(cfg.get("import_names") or [], where="reward_model.import_names")
    return REWARD_MODEL_REGISTRY.get(cfg["type"])


def create_reward_model(
    cfg: Mapping[str, Any], device: str | torch.device = "cpu", tb_logger: Any = None
) -> BaseRewardModel:
    """The model that the section `reward_model` (of `cfg`, or `cfg` itself) describes."""
    section = dict(cfg.get("reward_model") or cfg)
    if "type" not in section:
        known = ", ".join(REWARD_MODEL_REGISTRY.query())
        raise ConfigError(f"config key 'reward_model.type' is missing; one of: {known}")
    model_class = get_reward_model_cls(section)
    settings = {k: v for k, v in section.items() if k not in ("type", "import_names")}
    return model_class(settings, device, tb_logger)
