from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ding.envs import EnvState, ThreadEnvManager
from ding.utils.batch import ByEnv

from .breaking import BreakingEnv, SlowSteps

QUICK = {"retry_waiting_time": 0, "flight_dir": None, "max_retry": 2, "wait_num": 3}


def step_all(manager: Any) -> Any:
    ready = manager.ready_obs
    return manager.step(ByEnv(ready.ids, np.ones(len(ready.ids), dtype=np.int64))).stacked


def env_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("env-")]


def test_envs_run_in_threads_of_this_process() -> None:
    with ThreadEnvManager([partial(SlowSteps, 0.0)] * 3, QUICK) as manager:
        manager.launch()
        assert env_threads() == ["env-worker-0", "env-worker-1", "env-worker-2"]
        assert step_all(manager).obs[:, 1].tolist() == [1, 1, 1]
    assert env_threads() == []


def test_hung_thread_is_abandoned(tmp_path: Path) -> None:
    broken = partial(BreakingEnv, events={(0, 1): "pause"}, mark=str(tmp_path / "mark"))
    with ThreadEnvManager(
        [broken, BreakingEnv, BreakingEnv], {**QUICK, "step_timeout": 0.1}
    ) as manager:
        manager.launch()
        step = step_all(manager)
        assert step.abnormal.tolist() == [True, False, False]
        assert manager.faults == {"timeout": 1}
        manager._settle()
        time.sleep(0.25)  # What the old thread still does must not be seen.
        assert manager.ready_obs.stacked[:, 1].tolist() == [0, 1, 1]
        assert step_all(manager).obs[:, 1].tolist() == [1, 2, 2]
        assert manager.env_state[0] == EnvState.RUN
