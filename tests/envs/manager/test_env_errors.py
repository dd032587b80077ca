"""Errors in the code of an env are seen as what they are, wherever the manager meets them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from ding.envs import BaseEnvManager, DingEnvWrapper, SyncSubprocessEnvManager, ThreadEnvManager
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.utils.errors import EnvError

from ..counting import CountingEnv

MANAGERS: list[Any] = [BaseEnvManager, SyncSubprocessEnvManager, ThreadEnvManager]
SPACES = ["observation_space", "action_space", "reward_space"]


class Unmakeable(CountingEnv):
    def __init__(self) -> None:
        super().__init__()
        self.length = self.no_such_thing  # type: ignore[attr-defined]


class Spaceless(CountingEnv):
    @property
    def action_space(self) -> Any:
        return self.no_such_thing  # type: ignore[attr-defined]


class Unrenderable(CountingEnv):
    def render(self) -> Any:
        return self.no_such_thing  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", MANAGERS)
@pytest.mark.parametrize("name", ["env_ref", *SPACES])
def test_attribute_error_while_an_env_is_made(cls: Any, name: str) -> None:
    manager = cls([Unmakeable] * 2, {"flight_dir": None})
    with pytest.raises(EnvError, match=r"'no_such_thing'.*test_env_errors\.py") as told:
        getattr(manager, name)
    assert isinstance(told.value.__cause__, AttributeError)
    with pytest.raises((EnvError, AttributeError), match="no attribute 'no_such_thing'"):
        manager.launch()
    assert manager.closed


@pytest.mark.parametrize("cls", MANAGERS)
def test_attribute_error_in_a_property_of_an_env(cls: Any) -> None:
    manager = cls([Spaceless] * 2, {"flight_dir": None})
    assert manager.observation_space.shape == (2,)
    with pytest.raises(EnvError, match="no attribute 'no_such_thing'"):
        _ = manager.action_space


@pytest.mark.parametrize("cls", MANAGERS)
def test_attribute_error_while_rendering(cls: Any) -> None:
    with cls([Unrenderable], {"flight_dir": None}) as manager:
        manager.launch()
        with pytest.raises(EnvError, match="no attribute 'no_such_thing'"):
            _ = manager.ready_imgs


def broken_simulator(*_: Any, **__: Any) -> Any:
    return object().no_such_thing  # type: ignore[attr-defined]


def test_attribute_error_while_a_vector_env_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ding.envs.manager.gym_vector.gym.make_vec", broken_simulator)
    fns = [partial(DingEnvWrapper, cfg={"env_id": "CartPole-v1"})] * 2
    for name in SPACES[:2]:
        with pytest.raises(EnvError, match="no attribute 'no_such_thing'"):
            getattr(GymVectorEnvManager(fns), name)
    with pytest.raises(EnvError, match="no attribute 'no_such_thing'"):
        GymVectorEnvManager(fns).launch()


@pytest.mark.parametrize("cls", MANAGERS)
def test_what_nobody_has_is_still_an_attribute_error(cls: Any) -> None:
    with cls([CountingEnv], {"flight_dir": None}) as manager:
        manager.launch()
        assert not hasattr(manager, "no_such_thing")
