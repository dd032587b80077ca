from __future__ import annotations

from pathlib import Path

import pytest

from ding.utils import registry

from . import fakes


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fakes in place of all registered parts, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    for table, name, cls in (
        (registry.ENV_REGISTRY, "fake", fakes.Env),
        (registry.ENV_REGISTRY, "fake_open", fakes.OpenEnv),
        (registry.ENV_REGISTRY, "ding_env_wrapper_generated", fakes.Env),
        (registry.ENV_MANAGER_REGISTRY, "base", fakes.Manager),
        (registry.ENV_MANAGER_REGISTRY, "fake_many", fakes.ManyProcesses),
        (registry.ENV_MANAGER_REGISTRY, "fake_not_installed", "ding.no_such_module:Manager"),
        (registry.POLICY_REGISTRY, "fake_typed", fakes.TypedPolicy),
        (registry.POLICY_REGISTRY, "fake_user", fakes.UserPolicy),
        (registry.POLICY_REGISTRY, "fake_dict", fakes.DictPolicy),
        (registry.LEARNER_REGISTRY, "base", fakes.Learner),
        (registry.SERIAL_COLLECTOR_REGISTRY, "sample", fakes.Collector),
        (registry.SERIAL_COLLECTOR_REGISTRY, "episode", fakes.EpisodeCollector),
        (registry.SERIAL_EVALUATOR_REGISTRY, "interaction", fakes.Evaluator),
        (registry.BUFFER_REGISTRY, "naive", fakes.Buffer),
        (registry.COMMANDER_REGISTRY, "base", fakes.Commander),
    ):
        monkeypatch.setitem(table._table, name, cls)
