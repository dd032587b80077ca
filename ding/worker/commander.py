"""Commander: from the progress of training to the settings of collecting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from easydict import EasyDict

from ding.config.schema import deep_merge_dicts, default_config_of, to_easydict
from ding.utils.log import WorkerLog, table


def collect_settings(
    command: Any, train_iter: int, envstep: int, priority_info: Any = None
) -> dict[str, Any]:
    """What a policy's command mode sets for collecting when training has come so far."""
    progress = {
        "learner_step": train_iter,
        "envstep": envstep,
        "priority_info": priority_info,
        "learner_done": False,
    }
    return dict(command.get_setting_collect(progress))


class Commander:
    """Asks the policy's command mode how to explore, given how far training has come."""

    config: ClassVar[dict[str, Any]] = dict(
        type="base",
        import_names=[],
        # Train iterations between two entries in the log.
        log_freq=1000,
    )

    def __init__(  # noqa: PLR0913 (all that it may look at)
        self,
        cfg: Mapping[str, Any] | None,
        learner: Any,
        collector: Any,
        evaluator: Any = None,
        replay_buffer: Any = None,
        policy: Any = None,
        exp_name: str | None = None,
        instance_name: str = "commander",
    ) -> None:
        self._cfg: EasyDict = to_easydict(deep_merge_dicts(self.default_config(), cfg or {}))
        self._learner, self._collector, self._policy = learner, collector, policy
        self._log = WorkerLog(exp_name, instance_name)
        self._logged_iter: int | None = None

    @classmethod
    def default_config(cls) -> EasyDict:
        return default_config_of(cls)

    def step(self) -> dict[str, Any]:
        """Keyword arguments for the policy's collecting from here on."""
        iteration, learner = self._learner.train_iter, self._learner
        envstep = self._collector.envstep
        settings = collect_settings(self._policy, iteration, envstep, learner.priority_info)
        if self._logged_iter is None or iteration - self._logged_iter >= self._cfg.log_freq:
            self._logged_iter = iteration
            self._log_settings(settings)
        return settings

    def _log_settings(self, settings: Mapping[str, Any]) -> None:
        iteration, envstep = self._learner.train_iter, self._collector.envstep
        told = table(settings) if settings else "nothing to set"
        self._log.info(f"collecting from train iter {iteration}, env step {envstep}: {told}")
        numbers = {k: v for k, v in settings.items() if isinstance(v, (int, float))}
        self._log.scalars({f"commander_iter/{k}": v for k, v in numbers.items()}, iteration)
        self._log.scalars({f"commander_step/{k}": v for k, v in numbers.items()}, envstep)

    def close(self) -> None:
        self._log.close()
