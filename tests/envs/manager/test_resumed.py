"""Managers that go on from a saved state do what the uninterrupted ones do."""

from __future__ import annotations

import pickle
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

from ding.envs import BaseEnvManager, SyncSubprocessEnvManager, ThreadEnvManager
from ding.utils.batch import ByEnv

from ..counting import CountingEnv

QUICK = {"flight_dir": None, "envs_per_worker": 1}


class SlowSecondReset(CountingEnv):
    """Longer than a reset in doubt is waited for."""

    def reset(self, **kwargs: Any) -> np.ndarray:
        if self.episode == 0:
            time.sleep(0.3)
        return super().reset(**kwargs)


def trace(manager: Any, n: int) -> list[int]:
    """How many envs take part in each of `n` steps."""
    counts = []
    for _ in range(n):
        ids = manager.ready_obs.ids
        counts.append(len(manager.step(ByEnv(ids, np.ones(len(ids), dtype=np.int64)))))
    return counts


@pytest.mark.parametrize("shared", [True, False])
def test_a_reset_is_waited_for_as_without_the_interruption(shared: bool) -> None:
    cfg = {**QUICK, "shared_memory": shared}
    fns = [CountingEnv, SlowSecondReset]
    with SyncSubprocessEnvManager(fns, cfg) as manager:
        manager.launch()
        # On any machine the resets so far count as quick.
        manager._supervisor.pool.block["reset_seconds"][:] = 0.001
        state = pickle.loads(pickle.dumps(manager.state_dict()))
        expected = trace(manager, 5)
    with SyncSubprocessEnvManager(fns, cfg) as resumed:
        resumed.load_state_dict(state)
        assert trace(resumed, 5) == expected == [2] * 5


class Unsaveable(CountingEnv):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def __reduce__(self) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [OSError("handle"), KeyError("handle"), Exception("handle")])
@pytest.mark.parametrize("cls", [BaseEnvManager, SyncSubprocessEnvManager, ThreadEnvManager])
def test_an_env_that_cannot_be_saved_begins_new_episodes(
    cls: Any, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    fns = [CountingEnv, partial(Unsaveable, error)]
    with cls(fns, {**QUICK, "wait_num": 2}) as manager:
        manager.launch()
        assert trace(manager, 2) == [2, 2]
        state = manager.state_dict()
        assert state["envs"] is None
        assert "envs cannot be saved" in caplog.text
        assert "handle" in caplog.text
        assert manager.ready_obs.stacked[:, 1].tolist() == [2, 2]
        manager.load_state_dict(pickle.loads(pickle.dumps(state)))
        assert manager.ready_obs.stacked[:, 1].tolist() == [0, 0]
