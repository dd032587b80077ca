"""One file that holds the whole agent, and files that do not."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from ding.agent import Agent, load
from ding.agent.card import Card, card_of
from ding.agent.spaces import plain_space, space_of
from ding.config import compile_config
from ding.utils.checkpoint import save_checkpoint
from ding.utils.errors import CheckpointError

BOX = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, np.inf], np.float32))


def agent_of(wrappers: list[Any] | None = None) -> Agent:
    main = dict(env=dict(stop_value=1, n_evaluator_episode=1), policy=dict(obs_norm=True))
    main["policy"]["model"] = dict(obs_shape=2, action_shape=2)
    create = dict(policy=dict(type="sac"))
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    action = spaces.Box(-3.0, 5.0, (2,), dtype=np.float32)
    card = Card(
        policy=cfg.policy, observation_space=BOX, action_space=action, wrappers=wrappers or []
    )
    torch.manual_seed(0)
    agent = Agent(card)
    agent.policy._normalisers.merge(
        {"obs_norm": {"": {"count": 4.0, "mean": np.array([0.5, 2.0]), "square": np.ones(2)}}}
    )
    return agent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    agent_of().save(tmp_path / "policy.ding")
    return tmp_path / "policy.ding"


def test_it_acts_as_before(path: Path) -> None:
    obs = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    wanted = agent_of().act(obs)
    assert np.array_equal(load(path).act(obs), wanted)
    assert not np.allclose(wanted, agent_of().act(obs + 0.3))


def test_it_is_plain_json_and_arrays(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("agent.json"))
        names = [name for name in archive.namelist() if name != "agent.json"]
        arrays = [np.load(io.BytesIO(archive.read(n)), allow_pickle=False) for n in names]
    assert header["format"] == "ding-agent" and header["policy"]["type"] == "sac"
    member = header["parts"]["obs_norm"][""]["mean"]["__member__"]
    assert arrays[member].tolist() == [0.5, 2.0]


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(files["agent.json"])
    change(header)
    files["agent.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def test_every_changed_byte_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for position in np.linspace(0, len(whole) - 1, 40).astype(int).tolist():
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"damaged|neither|no bundle"):
            load(path)
    path.write_bytes(whole[:-100])
    with pytest.raises(CheckpointError, match="neither a whole checkpoint"):
        load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h.update(format_version=2), "has format version 2.*reads version 1"),
        (lambda h: h.update(format="other"), "format is 'other', not 'ding-agent'"),
        (lambda h: h.pop("policy"), "damaged: KeyError.'policy'"),
        (lambda h: h["parts"].pop("obs_norm"), "lacks obs_norm"),
        (lambda h: h["policy"]["model"].update(obs_shape=7), "does not fit the model"),
        (lambda h: h["observation_space"].update(kind="Ball"), "description of a space"),
        (lambda h: h["policy"].update(import_names=["antigravity"]), "module 'antigravity'"),
        (lambda h: h.update(env={"env_id": "antigravity:Up-v0"}), "module 'antigravity'"),
        (lambda h: h.update(wrappers=[{"__name__": "os:system"}]), "'os:system' is no wrapper"),
        (lambda h: h.update(wrappers=[{"__name__": "antigravity:x"}]), "module 'antigravity'"),
    ],
)
def test_what_does_not_fit_is_refused(path: Path, change: Any, words: str) -> None:
    rewritten(path, change)
    with pytest.raises(CheckpointError, match=words):
        load(path)
    assert "antigravity" not in sys.modules


def test_foreign_files_say_what_was_expected(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(
        CheckpointError, match=r"neither a whole checkpoint \(.pth.tar\) nor a bundle"
    ):
        load(text)
    other = tmp_path / "other.pth.tar"
    save_checkpoint(other, {"samples": [1]})
    with pytest.raises(CheckpointError, match=r"holds \['samples'\] and no 'model'"):
        load(other)
    lonely = tmp_path / "lonely.pth.tar"
    save_checkpoint(lonely, {"model": {}})
    with pytest.raises(CheckpointError, match=r"no total_config.py lies beside it"):
        load(lonely)


class Doubled(gym.ObservationWrapper[Any, Any, Any]):
    def observation(self, observation: Any) -> Any:
        return observation * 2


def test_wrapper_classes_travel_by_name(tmp_path: Path) -> None:
    agent = agent_of([Doubled])
    agent.save(tmp_path / "one.ding")
    obs = np.array([0.3, 1.0], np.float32)
    assert np.array_equal(load(tmp_path / "one.ding").act(obs), agent.act(obs))
    with pytest.raises(CheckpointError, match=r"wrappers is no plain data.*top of a module"):
        agent_of([lambda env: env]).save(tmp_path / "two.ding")
    assert not (tmp_path / "two.ding").exists()


@pytest.mark.parametrize(
    "space",
    [
        BOX,
        spaces.Box(0, 255, (2, 2), dtype=np.uint8),
        spaces.Discrete(3, start=-1),
        spaces.MultiDiscrete([2, 3], start=[1, 0]),
        spaces.MultiBinary([2, 2]),
        spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Tuple([BOX, spaces.MultiBinary(3)])}),
    ],
    ids=str,
)
def test_spaces_come_back_from_json(space: Any) -> None:
    assert space_of(json.loads(json.dumps(plain_space(space)))) == space


def test_a_card_without_its_env_has_no_spaces() -> None:
    cfg = compile_config(
        dict(env=dict(stop_value=1, n_evaluator_episode=1), policy={}),
        auto=True,
        create_cfg=dict(policy=dict(type="dqn")),
        save_cfg=False,
    )
    with pytest.raises(CheckpointError, match="names no env"):
        card_of(cfg, Path("nowhere"))
