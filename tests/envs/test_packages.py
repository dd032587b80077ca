"""Simulators that are not installed, or do not keep their episode when pickled."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.utils import EzPickle

from ding.entry.predefined import predefined_config
from ding.envs import DingEnvWrapper, create_env_manager
from ding.utils.errors import DingError
from dizoo.atari.envs import AtariEnv


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No simulator beside Gymnasium's own is to be found."""
    for name in ("ale_py", "Box2D", "mujoco"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in list(sys.modules):
        if name.startswith(("gymnasium.envs.box2d", "gymnasium.envs.mujoco", "ale_py.")):
            monkeypatch.delitem(sys.modules, name)
    for name in [name for name in gym.registry if name.startswith("ALE/")]:
        monkeypatch.delitem(gym.registry, name)


CASES = [
    ("LunarLander-v3", "needs box2d", "box2d"),
    ("Hopper-v5", "needs mujoco", "mujoco"),
    ("ALE/Pong-v5", "needs ale-py", "atari"),
]


@pytest.mark.parametrize(("env_id", "needs", "extra"), CASES)
def test_the_extra_is_named(bare: None, env_id: str, needs: str, extra: str) -> None:
    message = rf"env '{env_id}' {needs}; install it with: pip install 'ding-engine\[{extra}\]'"
    with pytest.raises(DingError, match=message):
        DingEnvWrapper(cfg={"env_id": env_id}).reset()
    manager = create_env_manager(
        {"type": "gym_vector"}, [lambda: DingEnvWrapper(cfg={"env_id": env_id})]
    )
    with pytest.raises(DingError, match=message):
        manager.launch()
    with pytest.raises(DingError, match=message):
        predefined_config(env_id, "ppo")


def test_atari_env_names_its_extra(bare: None) -> None:
    with pytest.raises(DingError, match=r"ding-engine\[atari\]"):
        _ = AtariEnv({}).observation_space


class Rebuilt(CartPoleEnv, EzPickle):
    """Pickled by its arguments alone, as Box2D, MuJoCo and ALE envs are."""

    def __init__(self, **kwargs: Any) -> None:
        CartPoleEnv.__init__(self, **kwargs)
        EzPickle.__init__(self, **kwargs)


def test_an_episode_that_pickling_would_lose_is_not_saved() -> None:
    env = DingEnvWrapper(Rebuilt())
    pickle.dumps(env)
    assert env.action_space.n == 2
    pickle.dumps(env)  # no episode is under way
    env.reset()
    with pytest.raises(pickle.PicklingError, match="Rebuilt does not keep its episode"):
        pickle.dumps(env)


@pytest.mark.parametrize("kind", ["base", "subprocess", "gym_vector"])
def test_resuming_begins_new_episodes_then(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    gym.register("Rebuilt-v0", Rebuilt, max_episode_steps=500)
    try:
        makers = [lambda: DingEnvWrapper(cfg={"env_id": "Rebuilt-v0"})] * 2
        with create_env_manager({"type": kind}, makers) as manager:
            manager.seed(0)
            manager.launch()
            manager.step({0: 1, 1: 0})
            state = manager.state_dict()
            assert state["envs"] is None and "begins new episodes" in caplog.text
            manager.load_state_dict(state)
            assert np.abs(manager.ready_obs[0]).max() <= 0.05  # where episodes of CartPole begin
            manager.step({0: 1, 1: 0})
    finally:
        del gym.registry["Rebuilt-v0"]
