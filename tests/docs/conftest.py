"""What the snippets of guides take for granted: an empty directory and a compiled config."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ding.config import compile_config
from ding.envs import BaseEnvManager
from ding.policy import DQNPolicy
from ding.worker import BaseLearner, BaseSerialEvaluator, NaiveReplayBuffer, SampleCollector
from dizoo.classic_control.cartpole.config.cartpole_dqn_config import main_config
from dizoo.classic_control.cartpole.envs import CartPoleEnv


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs write into the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def own_configs() -> Iterator[None]:
    """A snippet may change the config it imports, as users do; other tests must not see that."""

    def taken() -> dict[str, Any]:
        names = [n for n in sys.modules if n.startswith("dizoo.") and n.endswith("_config")]
        return {name: sys.modules.pop(name) for name in names}

    before = taken()
    yield
    taken()
    sys.modules.update(before)


@pytest.fixture
def cfg() -> Any:
    """The CartPole config after `compile_config`."""
    return compile_config(
        main_config,
        BaseEnvManager,
        DQNPolicy,
        BaseLearner,
        SampleCollector,
        BaseSerialEvaluator,
        NaiveReplayBuffer,
        CartPoleEnv,
        save_cfg=False,
    )


def cartpoles(n: int = 4, **manager: Any) -> BaseEnvManager:
    """A vectorized CartPole."""
    env = BaseEnvManager([lambda: CartPoleEnv({}) for _ in range(n)], manager)
    env.seed(0)
    return env
