"""MASAC, MADDPG and MATD3: losses by hand, what critics see, and a game of numbers they solve."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.model import create_model
from ding.policy import (
    ContinuousMASACPolicy,
    DDPGPolicy,
    DiscreteSACPolicy,
    MADDPGPolicy,
    MASACPolicy,
    MATD3Policy,
    SACPolicy,
    TD3Policy,
    create_policy,
)
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from policy import aiming_game

GAMMA = 0.5


class Acting(nn.Module):
    """Agents do a tenth of what they see; agent i is worth i + 1 times what all do."""

    modes = ("compute_actor", "compute_critics")

    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Parameter(torch.full((1,), 0.1))
        self.critic = nn.Parameter(torch.ones(1))

    def forward(self, x: Any, mode: str) -> dict[str, Any]:
        if mode == "compute_actor":
            return {"action": x["agent_state"] * self.actor}
        action = x["action"] * x["obs"]["alive"].unsqueeze(-1)
        total = action.sum(dim=1)  # (B, 1)
        if "own_action" in x:
            total = total - action.squeeze(-1) + x["own_action"].squeeze(-1)
        return {"q_value": (self.critic * total * torch.tensor([1.0, 2.0])).unsqueeze(0)}


class Choosing(nn.Module):
    """Two actions are as likely; action a is worth (a + 1) times what the agent sees."""

    modes = ("compute_actor", "compute_critics")

    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Parameter(torch.zeros(2))
        self.critic = nn.Parameter(torch.ones(1))

    def forward(self, obs: Any, mode: str) -> dict[str, Any]:
        state = obs["agent_state"]
        if mode == "compute_actor":
            mask = {k: obs[k] for k in ("action_mask",) if k in obs}
            return {"logit": 0 * state + self.actor, **mask}
        q: Tensor = self.critic * state * torch.tensor([1.0, 2.0])
        return {"q_value": q.unsqueeze(0)}


def rows(action: Any, reward: Any = 1.0, alive: Any = (1, 1), next_alive: Any = (1, 1)) -> Rows:
    def seen(state: list[int], alive: Any) -> dict[str, Any]:
        return {
            "agent_state": np.array([state], np.float32)[..., None],
            "alive": np.array([alive], np.float32),
        }

    return Rows(
        dict(
            obs=seen([1, 2], alive),
            next_obs=seen([3, 4], next_alive),
            action=np.array([action]),
            reward=np.array([reward], np.float32),
            done=np.array([False]),
        )
    )


def maddpg(**learn: Any) -> MADDPGPolicy:
    learn = dict(learning_rate_critic=1e-9, learning_rate_actor=1e-9, **learn)
    return MADDPGPolicy(dict(discount_factor=GAMMA, learn=learn), model=Acting())


STORED = np.array([[0.5], [-0.25]], np.float32)
TAKEN = np.array([0.25, 0.5])


@pytest.mark.parametrize(
    ("reward", "next_alive", "target"),
    [
        (1, (1, 1), [1 + GAMMA * 0.7, 1 + GAMMA * 1.4]),
        ((1, 2), (1, 1), [1 + GAMMA * 0.7, 2 + GAMMA * 1.4]),
        # The second dies: the team goes on, worth what the first one is; a reward of its own not.
        (1, (1, 0), [1 + GAMMA * 0.3, 1 + GAMMA * 0.3]),
        ((1, 2), (1, 0), [1 + GAMMA * 0.3, 2]),
    ],
)
def test_targets_of_maddpg(reward: Any, next_alive: Any, target: Any) -> None:
    output = maddpg().learn_mode.forward(rows(STORED, reward, next_alive=next_alive))
    error = np.array(target) - TAKEN
    assert float(output["critic_loss"]) == pytest.approx(np.square(error).mean(), rel=1e-5)
    assert float(output["target_q_value"]) == pytest.approx(np.mean(target))
    assert output["priority"].tolist() == pytest.approx([np.abs(error).mean()])


def test_each_actor_answers_what_the_others_did() -> None:
    """Values (0.1 - 0.25) and 2 (0.5 + 0.2); the gradient is that of the agents' own actions."""
    policy = maddpg()
    output = policy.learn_mode.forward(rows(STORED))
    assert float(output["actor_loss"]) == pytest.approx(-(-0.15 + 1.4) / 2)
    loss, _ = policy._actor_loss(policy._batch(rows(STORED)))
    (gradient,) = torch.autograd.grad(loss, policy._model.actor)
    assert float(gradient) == pytest.approx(-(1 + 2 * 2) / 2)


def test_the_dead_are_left_out_of_maddpg() -> None:
    output = maddpg().learn_mode.forward(rows(STORED, (1, 2), alive=(1, 0), next_alive=(1, 0)))
    assert float(output["critic_loss"]) == pytest.approx((1 + GAMMA * 0.3 - 0.5) ** 2)
    assert output["priority"].tolist() == pytest.approx([0.65])
    assert float(output["actor_loss"]) == pytest.approx(-0.1)


ALPHA, LOG2 = 0.5, math.log(2)


def masac() -> MASACPolicy:
    rates = {f"learning_rate_{name}": 1e-9 for name in ("q", "policy", "alpha")}
    learn = dict(alpha=ALPHA, auto_alpha=False, **rates)
    cfg = dict(discount_factor=GAMMA, model=dict(action_shape=2), learn=learn)
    return MASACPolicy(cfg, model=Choosing())


@pytest.mark.parametrize(
    ("reward", "next_alive", "target"),
    [
        (1, (1, 1), [1 + GAMMA * (4.5 + ALPHA * LOG2), 1 + GAMMA * (6 + ALPHA * LOG2)]),
        ((1, 2), (1, 0), [1 + GAMMA * (4.5 + ALPHA * LOG2), 2]),
        (1, (1, 0), [1 + GAMMA * (4.5 + ALPHA * LOG2)] * 2),
    ],
)
def test_losses_of_masac(reward: Any, next_alive: Any, target: Any) -> None:
    output = masac().learn_mode.forward(rows([0, 1], reward, next_alive=next_alive))
    assert float(output["critic_loss"]) == pytest.approx(
        np.square(np.array(target) - [1, 4]).mean(), rel=1e-5
    )
    assert float(output["policy_loss"]) == pytest.approx(-ALPHA * LOG2 - (1.5 + 3) / 2)
    assert float(output["entropy"]) == pytest.approx(LOG2)


def test_masks_hold_in_the_losses_of_masac() -> None:
    """The second agent may only take action 0, which is worth what it sees."""
    mask = {"action_mask": np.array([[[1, 1], [1, 0]]], np.float32)}
    plain = rows([0, 0]).columns
    masked = {**plain, **{k: {**plain[k], **mask} for k in ("obs", "next_obs")}}
    output = masac().learn_mode.forward(Rows(masked))
    target = np.array([1 + GAMMA * (4.5 + ALPHA * LOG2), 1 + GAMMA * 4])
    assert float(output["critic_loss"]) == pytest.approx(np.square(target - [1, 2]).mean())
    assert float(output["policy_loss"]) == pytest.approx((-ALPHA * LOG2 - 1.5 - 2) / 2)


# --- models --------------------------------------------------------------------------------------


def continuous(**changes: Any) -> Any:
    torch.manual_seed(0)
    sizes = dict(agent_obs_shape=2, global_obs_shape=3, action_shape=1, agent_num=2)
    return create_model({"type": "continuous_maqac", **sizes, **changes})


@pytest.mark.parametrize("shape", [3, [2, 3]], ids=["of all", "of each"])
def test_critics_see_what_all_do_and_not_what_the_dead_do(shape: Any) -> None:
    model = continuous(global_obs_shape=shape)
    state = torch.ones(1, *(shape if isinstance(shape, list) else [shape]))

    def q(*action: float, alive: tuple[int, int] = (1, 1), **own: Any) -> list[float]:
        obs = {"agent_state": torch.ones(1, 2, 2), "global_state": state}
        obs["alive"] = torch.tensor([alive])
        x = {"obs": obs, "action": torch.tensor([action]).unsqueeze(-1), **own}
        return model(x, "compute_critic")["q_value"][0].tolist()

    base = q(0.1, 0.2)
    assert all(a != b for a, b in zip(base, q(0.1, 0.9), strict=True))
    assert q(0.1, 0.2, alive=(1, 0)) == q(0.1, 0.9, alive=(1, 0))
    own = torch.tensor([[0.5, 0.6]]).unsqueeze(-1)
    beside = q(0.1, 0.2, own_action=own)
    assert beside == pytest.approx([q(0.5, 0.2)[0], q(0.1, 0.6)[1]], abs=1e-6)


def test_a_global_state_for_each_without_the_number_of_agents() -> None:
    """As older code builds the models: critics see one agent's state, and its own action."""
    obs = {"agent_state": torch.ones(4, 3, 2), "global_state": torch.rand(4, 3, 5)}
    x = {"obs": obs, "action": torch.rand(4, 3, 1)}
    model = continuous(global_obs_shape=5, agent_num=None, twin_critic=True)
    first, second = model(x, "compute_critic")["q_value"]
    assert first.shape == second.shape == (4, 3)
    names = dict(type="discrete_maqac", agent_obs_shape=2, global_obs_shape=5, action_shape=6)
    assert create_model(names)({"obs": obs}, "compute_critic")["q_value"].shape == (4, 3, 6)


@pytest.mark.parametrize("kind", ["discrete_maqac", "continuous_maqac"])
def test_a_central_critic_without_a_global_state(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"MAQAC needs a global state for its critic"):
        continuous(type=kind, global_obs_shape=None)


# --- names and games -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "one", "several"),
    [
        ("sac", SACPolicy, ContinuousMASACPolicy),
        ("discrete_sac", DiscreteSACPolicy, MASACPolicy),
        ("ddpg", DDPGPolicy, MADDPGPolicy),
        ("td3", TD3Policy, MATD3Policy),
    ],
)
def test_names_with_several_agents(name: str, one: Any, several: Any) -> None:
    model = dict(agent_obs_shape=2, global_obs_shape=3, action_shape=2, agent_num=2)
    cfg = dict(type=name, multi_agent=True, model=model)
    assert type(create_policy(cfg)) is several
    with pytest.raises(ConfigError, match=r"policy.multi_agent = True: this policy is for"):
        one(cfg)


AIMING: dict[str, Any] = dict(
    exp_name="run",
    env=dict(collector_env_num=8, evaluator_env_num=1, n_evaluator_episode=1, stop_value=0.98),
    policy=dict(
        model=dict(actor_head_hidden_size=32, critic_head_hidden_size=32),
        random_collect_size=200,
        learn=dict(update_per_collect=8, batch_size=64),
        collect=dict(n_sample=16),
        eval=dict(evaluator=dict(eval_freq=80)),
        other=dict(replay_buffer=dict(replay_buffer_size=2000)),
    ),
)
_RATES = dict(learning_rate_actor=0.003, learning_rate_critic=0.003, target_theta=0.05)
_SOFT = dict(learning_rate_q=0.003, learning_rate_policy=0.003, target_theta=0.05, alpha=0.01)


@pytest.mark.parametrize(
    ("kind", "learn"),
    [
        ("maddpg", _RATES),
        ("matd3", _RATES),
        ("continuous_masac", dict(**_SOFT, auto_alpha=False)),
        ("mappo", dict(learning_rate=0.01, entropy_weight=0.0, batch_size=64)),
    ],
)
def test_a_game_of_numbers(
    kind: str, learn: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    policy = {**AIMING["policy"], "learn": {**AIMING["policy"]["learn"], **learn}}
    pipeline = serial_pipeline
    if kind == "mappo":
        pipeline = serial_pipeline_onpolicy
        policy |= dict(action_space="continuous", collect=dict(n_sample=128), learn=learn)
        del policy["random_collect_size"], policy["other"]
    create = dict(
        env=dict(type="aiming_game", import_names=[aiming_game.__name__]), policy=dict(type=kind)
    )
    pipeline([{**AIMING, "policy": policy}, create], seed=0, max_train_iter=1600)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["stop"]
