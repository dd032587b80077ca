"""Progress in, settings for collecting out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from easydict import EasyDict

from ding.config.schema import default_config_of


class Commander:
    """Asks the policy's command mode how to explore, given how far training has come."""

    config: ClassVar[dict[str, Any]] = dict(type="base", import_names=[])

    def __init__(
        self,
        cfg: Mapping[str, Any] | None,
        learner: Any,
        collector: Any,
        evaluator: Any = None,
        replay_buffer: Any = None,
        policy: Any = None,
    ) -> None:
        self._learner, self._collector, self._policy = learner, collector, policy

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    def step(self) -> dict[str, Any]:
        """Keyword arguments for the policy's collecting from here on."""
        progress = {
            "learner_step": self._learner.train_iter,
            "envstep": self._collector.envstep,
            "priority_info": self._learner.priority_info,
            "learner_done": False,
        }
        return self._policy.get_setting_collect(progress)
