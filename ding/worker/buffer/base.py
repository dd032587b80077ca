"""Interface of replay buffers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from easydict import EasyDict

from ding.config.schema import deep_merge_dicts, default_config_of, to_easydict
from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.registry import BUFFER_REGISTRY, class_of


class IBuffer(ABC):
    """Stores samples and hands them out again."""

    config: ClassVar[dict[str, Any]] = {}
    supports_priority: ClassVar[bool] = True
    """Whether `update` can change how often a sample is drawn."""

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    @classmethod
    def _with_defaults(cls, cfg: Mapping[str, Any] | None) -> EasyDict:
        return to_easydict(deep_merge_dicts(cls.default_config(), cfg or {}))

    @abstractmethod
    def push(self, data: Any, cur_collector_envstep: int = 0) -> None: ...

    @abstractmethod
    def sample(self, batch_size: int, cur_learner_iter: int = 0) -> Sequence[Any] | None: ...

    @abstractmethod
    def update(self, info: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def clear(self) -> None: ...

    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def state_dict(self) -> dict[str, Any]: ...

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None: ...

    def save_data(self, file_name: str | Path) -> None:
        """Everything that is stored, to one file."""
        save_checkpoint(file_name, self.state_dict())

    def load_data(self, file_name: str | Path) -> None:
        """What `save_data` wrote, exactly; only for files of your own, they may hold objects."""
        self.load_state_dict(load_checkpoint(file_name, trusted=True))

    def start(self) -> None:
        """Nothing runs in the background here."""

    def close(self) -> None:
        """Nothing is held open here."""


def create_buffer(cfg: Mapping[str, Any], *args: Any, **kwargs: Any) -> IBuffer:
    return class_of(BUFFER_REGISTRY, cfg)(cfg, *args, **kwargs)


def get_buffer_cls(cfg: Mapping[str, Any]) -> type[IBuffer]:
    return class_of(BUFFER_REGISTRY, cfg)
