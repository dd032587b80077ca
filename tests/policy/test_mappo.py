"""MAPPO and IPPO: advantages of agents that die, losses without the dead, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ding.config import compile_config
from ding.model import create_model
from ding.policy import IPPOPolicy, MAPPOPolicy, PPOPolicy, create_policy
from ding.utils.batch import Rows, columns_of
from ding.utils.errors import ConfigError, DingError

GAMMA = LAMBDA = 0.5
OWN = np.array([[1, 2], [1, 0], [1, 0]], np.float32)


class Seen(nn.Module):
    """The value of an agent is what it sees; two actions are as likely."""

    modes = ("compute_actor", "compute_critic", "compute_actor_critic")

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, obs: Any, mode: str) -> dict[str, Any]:
        state = obs["agent_state"] * self.weight
        return {"logit": torch.cat([state - state, state - state], -1), "value": state.squeeze(-1)}


def policy_of(cls: type[MAPPOPolicy] = MAPPOPolicy, **learn: Any) -> MAPPOPolicy:
    learn = dict(batch_size=3, epoch_per_collect=1, adv_norm=False, value_norm=False) | learn
    cfg = dict(discount_factor=GAMMA, learn=learn, collect=dict(n_sample=3, gae_lambda=LAMBDA))
    return cls(cfg, model=Seen())


def steps(reward: Any = (1, 1, 1), truncated: bool = False) -> Rows:
    """An episode of three steps; the second agent dies after the first one."""
    state = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)[..., None]
    alive = np.array([[1, 1], [1, 0], [1, 0], [1, 0]], np.float32)
    return Rows(
        dict(
            obs={"agent_state": state[:3], "alive": alive[:3]},
            next_obs={"agent_state": state[1:], "alive": alive[1:]},
            action=np.zeros((3, 2), np.int64),
            logit=np.zeros((3, 2, 2), np.float32),
            reward=np.asarray(reward, np.float32),
            done=np.array([False, False, True]),
            truncated=np.array([False, False, truncated]),
            end=np.array([False, False, True]),
        )
    )


def advantages(rows: Rows) -> Any:
    return columns_of(policy_of().collect_mode.get_train_sample(rows))["advantage"].tolist()


def test_the_team_goes_on_after_a_death() -> None:
    """Of agents that see 1, 3, 5: errors 1.5, 0.5, -4. The dead are worth what the living say."""
    assert advantages(steps()) == [[1.375, 0.375], [-0.5, -0.5], [-4, -4]]


def test_a_reward_of_its_own_ends_with_a_death() -> None:
    assert advantages(steps(OWN)) == [[1.375, 0], [-0.5, 0], [-4, 0]]


def test_a_limit_bootstraps() -> None:
    """The 7 of the last observation adds 3.5 to the last error."""
    assert advantages(steps(OWN, truncated=True)) == [[1.59375, 0], [0.375, 0], [-0.5, 0]]


@pytest.mark.parametrize("reward", [(1, 1, 1), OWN], ids=["team", "each"])
def test_losses_are_means_over_the_living(reward: Any) -> None:
    policy = policy_of()
    living = np.array([1.375, 0.375 if np.ndim(reward) == 1 else 0, -0.5, -4])
    (output,) = policy.learn_mode.forward(policy.collect_mode.get_train_sample(steps(reward)))
    assert float(output["policy_loss"]) == pytest.approx(-living.mean())
    assert float(output["value_loss"]) == pytest.approx(0.5 * np.square(living).mean())
    assert float(output["entropy"]) == pytest.approx(math.log(2))


def test_the_scale_of_returns_is_of_the_living() -> None:
    policy = policy_of(value_norm=True)
    policy.learn_mode.forward(policy.collect_mode.get_train_sample(steps(OWN)))
    returns = [1 + 1.375, 2, 3 - 0.5, 5 - 4]
    assert policy._return_scale.std == pytest.approx(np.std(returns))


def test_agents_act_within_their_masks_and_the_dead_do_nothing() -> None:
    policy = policy_of()
    mask = np.array([[0, 1], [1, 1]], np.float32)
    obs = dict(agent_state=np.ones((2, 1), np.float32), action_mask=mask)
    model = create_model(
        dict(type="mavac", agent_obs_shape=1, global_obs_shape=1, action_shape=2, agent_num=2)
    )
    policy = MAPPOPolicy(dict(model=dict(agent_num=2, action_shape=2)), model=model)
    seen = {i: {**obs, "global_state": np.ones(1, np.float32)} for i in range(40)}
    actions = np.stack([row["action"] for row in policy.collect_mode.forward(seen).values()])
    assert set(actions[:, 0]) == {1} and set(actions[:, 1]) == {0, 1}
    dead = {i: {**one, "alive": np.array([1, 0], np.float32)} for i, one in seen.items()}
    actions = np.stack([row["action"] for row in policy.collect_mode.forward(dead).values()])
    assert set(actions[:, 1]) == {0}
    stuck = {0: {**seen[0], "action_mask": 0 * mask}}
    with pytest.raises(DingError, match=r"the action_mask of agent 0 in env 0 allows no action"):
        policy.eval_mode.forward(stuck)


# --- the centralised critic ----------------------------------------------------------------------


def mavac(**changes: Any) -> Any:
    torch.manual_seed(0)
    settings = dict(agent_obs_shape=2, global_obs_shape=3, action_shape=2, agent_num=2)
    return create_model({"type": "mavac", **settings, **changes})


def values(model: Any, seen: Any, state: Any) -> Any:
    obs = {"agent_state": torch.as_tensor(seen), "global_state": torch.as_tensor(state)}
    return model(obs, "compute_critic")["value"].detach().numpy()


def test_what_critics_see() -> None:
    seen, other = np.ones((4, 2, 2), "f4"), np.zeros((4, 2, 2), "f4")
    state, more = np.ones((4, 3), "f4"), np.zeros((4, 3), "f4")
    central, own = mavac(), mavac(central_critic=False)
    assert values(central, seen, state).shape == (4, 2)
    assert np.array_equal(values(central, seen, state), values(central, other, state))
    assert not np.array_equal(values(central, seen, state), values(central, seen, more))
    assert np.array_equal(values(own, seen, state), values(own, seen, more))
    assert not np.array_equal(values(own, seen, state), values(own, other, state))


def test_agents_have_values_of_their_own() -> None:
    """Told apart by the last layer where all see the same state, and else by what they see."""
    seen, same = np.ones((4, 2, 2), "f4"), np.ones((4, 2, 3), "f4")
    one = values(mavac(), seen, same[:, 0])
    assert (one[:, 0] != one[:, 1]).all()
    # The same state for each agent, to a critic that was made for one of all.
    assert values(mavac(), seen, same) == pytest.approx(one)
    apart = mavac(global_obs_shape=[2, 3])
    assert np.ptp(values(apart, seen, same)) == 0
    same[:, 1] = 2
    assert (np.ptp(values(apart, seen, same), axis=1) > 0).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(global_obs_shape=None), r"MAVAC needs a global state .* policy 'ippo'"),
        (dict(global_obs_shape=[3, 3]), r"critics of 2 agents see \(S,\) or \(2, S\)"),
        (dict(agent_obs_shape=[1, 8, 8]), r"agent_obs_shape = \[1, 8, 8\]: agents see vectors"),
        (dict(action_space="hybrid"), r"action_space = 'hybrid'; valid: continuous, discrete"),
    ],
)
def test_models_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        mavac(**changes)


# --- names ---------------------------------------------------------------------------------------


def test_ppo_with_several_agents_is_mappo() -> None:
    main = dict(
        env=dict(collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1, stop_value=1),
        policy=dict(
            multi_agent=True,
            model=dict(agent_obs_shape=2, global_obs_shape=3, action_shape=2, agent_num=2),
            collect=dict(n_sample=64),
        ),
    )
    create = dict(env=dict(type="matrix_game"), policy=dict(type="ppo"))
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    assert cfg.policy.type == "mappo"
    assert type(create_policy(cfg.policy)) is MAPPOPolicy
    assert type(create_policy({**cfg.policy, "type": "ppo"})) is MAPPOPolicy


@pytest.mark.parametrize(
    ("cls", "several"), [(PPOPolicy, True), (MAPPOPolicy, False), (IPPOPolicy, False)]
)
def test_a_class_for_the_other_number_of_agents(cls: type[PPOPolicy], several: bool) -> None:
    with pytest.raises(ConfigError, match=rf"policy.multi_agent = {several}: this policy is for"):
        cls(dict(multi_agent=several), model=Seen())


@pytest.mark.parametrize("cfg", [dict(action_space="hybrid"), dict(intrinsic=dict(weight=0.5))])
def test_settings_that_agents_do_not_have(cfg: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"policy.{next(iter(cfg))} = "):
        MAPPOPolicy(cfg, model=Seen())
