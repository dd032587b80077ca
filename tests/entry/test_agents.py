"""Agents in a run: shapes of one of them for the model, and which policies fit them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.envs import AgentsSpace
from ding.envs.agents import obs_space
from ding.pipeline.spaces import fit_model_to_env
from ding.utils.errors import ConfigError
from dizoo.matrix_games.config.two_step_mappo_config import main_config as MAPPO
from dizoo.matrix_games.config.two_step_qmix_config import create_config, main_config

from .configs import changed

ACTIONS = AgentsSpace(gym.spaces.Discrete(5), 3)


NUMBERS = AgentsSpace(gym.spaces.Box(-1, 1, (2,), np.float32), 3)


def fitted(
    policy: str, obs: gym.Space[Any], actions: gym.Space[Any] = ACTIONS, **model: Any
) -> Any:
    cfg: dict[str, Any] = dict(type=policy, model=dict(model))
    env = SimpleNamespace(observation_space=obs, action_space=actions)
    fit_model_to_env(cfg, env)
    return cfg["model"]


def test_the_model_is_told_of_the_agents() -> None:
    model = fitted("qmix", obs_space(3, 18, global_shape=(54,), n_action=5))
    assert model == dict(agent_num=3, obs_shape=18, global_obs_shape=54, action_shape=5)
    plain = gym.spaces.Box(-1, 1, (3, 18), np.float32)
    assert fitted("idqn", plain) == dict(agent_num=3, obs_shape=18, action_shape=5)


def test_the_models_of_actor_critics_have_another_name_for_what_agents_see() -> None:
    seen = obs_space(3, 18, global_shape=(3, 72), n_action=5)
    model = dict(agent_num=3, agent_obs_shape=18, global_obs_shape=[3, 72], action_shape=5)
    assert fitted("mappo", seen) == model
    assert fitted("mappo", seen, global_obs_shape=72) == model, "as older configs have it"


def test_shapes_by_their_names() -> None:
    by_name = dict(agent_state=18, global_state=54)
    model = fitted("coma", obs_space(3, 18, global_shape=(54,), n_action=5), obs_shape=by_name)
    assert model == dict(agent_num=3, obs_shape=18, global_obs_shape=54, action_shape=5)


DOCUMENTED = obs_space(3, 18, global_shape=(54,), n_action=5)
VECTOR = gym.spaces.Box(-1, 1, (4,), np.float32)


@pytest.mark.parametrize(
    ("policy", "obs", "actions", "message"),
    [
        ("dqn", DOCUMENTED, ACTIONS, r"'dqn' is for discrete .* discrete_agents .*; use .* 'qmix'"),
        ("qmix", VECTOR, gym.spaces.Discrete(5), r"'qmix' is for discrete_agents .* 'ppo'"),
        ("qmix", gym.spaces.Dict(a=VECTOR), ACTIONS, r"has agents .* lacks 'agent_state'"),
        ("dqn", VECTOR, NUMBERS, r"'dqn' is for .* continuous_agents .*; use for example 'mappo'"),
        (
            "collaq",
            DOCUMENTED,
            ACTIONS,
            r"'collaq' needs .* lacks 'agent_alone_state' and 'agent_al",
        ),
        ("idqn", VECTOR, ACTIONS, r"has 3 agents, but what they see is of the shape \(4,\)"),
    ],
)
def test_what_does_not_fit(policy: str, obs: Any, actions: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fitted(policy, obs, actions)


def test_a_number_of_agents_that_is_not_the_envs() -> None:
    with pytest.raises(ConfigError, match=r"policy.model.agent_num = 2, but the env has 3"):
        fitted("qmix", DOCUMENTED, agent_num=2)


def test_actions_of_another_kind_than_the_config_says() -> None:
    env = SimpleNamespace(observation_space=DOCUMENTED, action_space=NUMBERS)
    cfg = dict(type="mappo", action_space="discrete", model={})
    with pytest.raises(ConfigError, match=r"actions are continuous_agents .* = 'continuous'"):
        fit_model_to_env(cfg, env)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("qmix", {"env.agent_obs_only": True}, r"MonotonicMixer needs a global state"),
        ("qmix", {"env.agent_specific_global_state": True}, r"a mixer takes one global state"),
        (
            "vdn",
            {"policy.model.mixer": True},
            r"mixer = True is not of policy 'vdn'; use .* 'qmix'",
        ),
        ("idqn", {"policy.model.mixer": False}, r"mixer = False is not of policy 'idqn'; .* 'vdn'"),
        ("qmix", {"policy.other.replay_buffer.type": "naive"}, r"learns from sequences, which"),
        ("qmix", {"policy.random_collect_size": 99}, r"random_collect_size = 99: random steps"),
    ],
)
def test_a_run_that_cannot_be(
    kind: str, changes: dict[str, Any], message: str, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    create = {**create_config, "policy": dict(type=kind)}
    with pytest.raises(ConfigError, match=message):
        serial_pipeline([changed(main_config, changes), create], seed=0, max_env_step=10)
    assert not list(tmp_path.iterdir()), "nothing is left behind"


@pytest.mark.parametrize("kind", ["mappo", "ippo"])
def test_critics_that_need_a_global_state(kind: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    create = {**create_config, "policy": dict(type=kind)}
    config = changed(MAPPO, {"env.agent_obs_only": True})
    if kind == "ippo":
        policy = serial_pipeline_onpolicy([config, create], seed=0, max_train_iter=2)
        assert policy.cfg.model["agent_obs_shape"] == 5
        return
    with pytest.raises(ConfigError, match=r"MAVAC needs a global state .* \(agent_obs_only = Fal"):
        serial_pipeline_onpolicy([config, create], seed=0, max_train_iter=2)


@pytest.mark.parametrize("kind", ["vdn", "idqn"])
def test_what_needs_no_global_state(kind: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    create = {**create_config, "policy": dict(type=kind)}
    config = changed(main_config, {"env.agent_obs_only": True, "policy.model.lstm_type": "gru"})
    policy = serial_pipeline([config, create], seed=0, max_train_iter=2)
    assert policy.cfg.model["obs_shape"] == 5
