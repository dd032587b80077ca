"""Graphs from observations to actions, run without `ding`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ding.agent import Agent, load
from ding.agent import export as exporting
from ding.agent.card import Card
from ding.config import compile_config
from ding.utils.errors import DingError

BOX = spaces.Box(-2.0, 2.0, (3,), dtype=np.float32)
TORQUE = spaces.Box(np.array([-4.0, 0.0], np.float32), np.array([4.0, 1.0], np.float32))
OBS = np.array([[0.5, -1.0, 2.0], [0.1, 0.2, 0.3], [-2.0, 0.0, 1.0]], np.float32)


def agent_of(policy: str, action: Any, obs_space: Any = BOX, **settings: Any) -> Agent:
    shape = int(action.n) if isinstance(action, spaces.Discrete) else action.shape[0]
    model = dict(obs_shape=3, action_shape=shape)
    main = dict(env=dict(stop_value=1, n_evaluator_episode=1), policy=dict(model=model, **settings))
    create = dict(policy=dict(type=policy))
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    torch.manual_seed(0)
    return Agent(Card(policy=cfg.policy, observation_space=obs_space, action_space=action))


def normalised(agent: Agent) -> Agent:
    moments = {"count": 4.0, "mean": np.array([0.5, 2.0, 0.0]), "square": np.full(3, 36.0)}
    agent.policy._normalisers.merge({"obs_norm": {"": moments}})
    return agent


def test_a_torch_file_normalises_scales_and_takes_any_number_of_rows(tmp_path: Path) -> None:
    agent = normalised(agent_of("sac", TORQUE, obs_norm=True))
    agent.export(tmp_path / "policy.pt2")
    extra = {"agent.json": ""}
    module = torch.export.load(tmp_path / "policy.pt2", extra_files=extra).module()
    for rows in (1, 3):
        found = module(torch.from_numpy(OBS[:rows])).detach().numpy()
        np.testing.assert_allclose(found, agent.act(OBS[:rows]), atol=1e-5)
    assert json.loads(extra["agent.json"])["takes"] == "observations of the env"
    assert [path.name for path in tmp_path.iterdir()] == ["policy.pt2"]


def test_an_onnx_file_does_the_same(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    agent = normalised(agent_of("sac", TORQUE, obs_norm=True))
    agent.export(tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    assert [one.name for one in session.get_inputs()] == ["obs"]
    (found,) = session.run(["action"], {"obs": OBS})
    np.testing.assert_allclose(found, agent.act(OBS), atol=1e-5)
    described = json.loads(session.get_modelmeta().custom_metadata_map["ding"])
    assert described["policy"] == "sac"


def test_choices_count_from_where_the_env_does(tmp_path: Path) -> None:
    agent = agent_of("dqn", spaces.Discrete(2, start=7))
    agent.export(tmp_path / "policy.pt2")
    module = torch.export.load(tmp_path / "policy.pt2").module()
    actions = module(torch.from_numpy(OBS * 5)).tolist()
    assert actions == agent.act(OBS * 5).tolist() and set(actions) <= {7, 8}


def test_masks_are_inputs_of_their_own(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    mask = spaces.Box(0, 1, (3,), dtype=np.int8)
    space = spaces.Dict({"obs": BOX, "action_mask": mask})
    agent = agent_of("dqn", spaces.Discrete(3), space)
    agent.export(tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    masks = np.eye(3, dtype=np.int8)
    (found,) = session.run(None, {"obs.obs": OBS, "obs.action_mask": masks})
    assert found.tolist() == [0, 1, 2]  # the only one that each mask allows


def test_a_file_that_acts_otherwise_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "to_env", lambda mapping, action: action)
    with pytest.raises(DingError, match="acted otherwise than the agent and was removed"):
        agent_of("sac", TORQUE).export(tmp_path / "policy.pt2")
    assert not list(tmp_path.iterdir())


def test_drawn_actions_are_no_graph(tmp_path: Path) -> None:
    agent = agent_of("pg", spaces.Discrete(3), deterministic_eval=False)
    with pytest.raises(DingError, match="policy 'pg' cannot be exported"):
        agent.export(tmp_path / "policy.pt2")
    assert not list(tmp_path.iterdir())


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DingError, match=r"as .pt2 \(torch.export\) or .onnx"):
        agent_of("sac", TORQUE).export(tmp_path / "policy.pb")


def test_an_exported_file_is_no_agent(tmp_path: Path) -> None:
    agent_of("sac", TORQUE).export(tmp_path / "policy.pt2")
    with pytest.raises(DingError, match="neither a whole checkpoint"):
        load(tmp_path / "policy.pt2")
