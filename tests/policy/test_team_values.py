"""WQMIX, QTRAN and CollaQ: weights and errors worked out by hand, and their models.

The sequence and the values of its agents are those of `test_qmix`: of the actions taken 11 and 44,
then 28 and 25; of the best ones 22 and 44, 28 and 50, in the end 34 and 56.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ding.model import create_model
from ding.model.collaq import AllyAttention
from ding.policy import CollaQPolicy, QTRANPolicy, WQMIXPolicy
from ding.utils.errors import ConfigError, DingError
from policy.test_qmix import GAMMA, Counter, batch


class Starred(Counter):
    """Q* is twice the sum."""

    def both(self, obs: Any, memory: Any) -> tuple[Tensor, Tensor, Tensor]:
        q, memory = self.values(obs, memory)
        return q, 2 * q, memory

    star = Counter.team


class Joint(Counter):
    """The joint value is three times the sum; that of the state is given."""

    def __init__(self, of_state: float) -> None:
        super().__init__(summed=True)
        self.state_value = of_state

    def unrolled(self, obs: Any, memory: Any) -> tuple[Tensor, Tensor, Tensor]:
        q, memory = self.values(obs, memory)
        return q, 3 * q, memory

    joint = Counter.team

    def of_state(self, obs: Any) -> Tensor:
        return torch.tensor(self.state_value)


def loss_of(policy: Any, **changes: Any) -> float:
    return float(policy.learn_mode.forward(batch(**changes))["total_loss"])


def wqmix(**learn: Any) -> WQMIXPolicy:
    return WQMIXPolicy(dict(discount_factor=GAMMA, learn=learn), model=Starred(summed=True))


def rewards(first: float, second: float) -> np.ndarray:
    return np.array([[first, second, second]], np.float32)


def wqmix_loss(weights: list[float], targets: list[float], taken: list[float]) -> float:
    errors = [
        w * (y - q) ** 2 + (y - 2 * q) ** 2 for w, y, q in zip(weights, targets, taken, strict=True)
    ]
    return float(np.mean(errors))


@pytest.mark.parametrize("name", ["alpha", "w"])
def test_optimistic_weights(name: str) -> None:
    """Full weight only where the target is above the value: 79 > 55, but -110 < 53."""
    targets = [1 + GAMMA * 2 * 78, -200 + GAMMA * 2 * 90]
    loss = loss_of(wqmix(**{name: 0.25}), reward=rewards(1, -200))
    assert loss == pytest.approx(wqmix_loss([1, 0.25], targets, [55, 53]))


@pytest.mark.parametrize(("first", "weight"), [(0, 0.25), (1, 1)])
def test_central_weights(first: int, weight: float) -> None:
    """Full weight where all did what is best, or where the target, 190, exceeds 156 (Q*)."""
    action = np.array([[[first, 1], [1, 0], [1, 0]]])
    policy = wqmix(wqmix_ow=False, alpha=0.25)
    loss = loss_of(policy, reward=rewards(1, 100), action=action)
    taken = [11 * (1 + first) + 44, 53]
    targets = [1 + GAMMA * 2 * 78, 100 + GAMMA * 2 * 90]
    assert loss == pytest.approx(wqmix_loss([weight, 1], targets, taken))


def test_the_dead_do_what_is_best() -> None:
    """The first agent alone: 11 of the 22 that are best is weighted, 28 is the best."""
    rows = batch()
    alive = np.array([[[1, 0]] * 3], np.float32)
    obs, after = ({**rows.columns[key], "alive": alive} for key in ("obs", "next_obs"))
    policy = wqmix(wqmix_ow=False, alpha=0.25)
    targets = [1 + GAMMA * 2 * 28, -50 + GAMMA * 2 * 34]
    loss = loss_of(policy, reward=rewards(1, -50), obs=obs, next_obs=after)
    assert loss == pytest.approx(wqmix_loss([0.25, 1], targets, [11, 28]))


@pytest.mark.parametrize(("of_state", "counts"), [(5.0, 1), (500.0, 0)])
@pytest.mark.parametrize("weights", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
def test_the_errors_of_qtran(of_state: float, counts: int, weights: Any) -> None:
    names = ("td_weight", "opt_weight", "nopt_min_weight")
    cfg = dict(discount_factor=GAMMA, learn=dict(zip(names, weights, strict=True)))
    td = [(1 + GAMMA * 3 * 78 - 165) ** 2, (2 + GAMMA * 3 * 90 - 159) ** 2]
    opt = [(66 - 198 + of_state) ** 2, (78 - 234 + of_state) ** 2]
    nopt = [counts * (55 - 165 + of_state) ** 2, counts * (53 - 159 + of_state) ** 2]
    loss = loss_of(QTRANPolicy(cfg, model=Joint(of_state)))
    wanted = weights[0] * np.mean(td) + weights[1] * np.mean(opt) + weights[2] * np.mean(nopt)
    assert loss == pytest.approx(wanted, rel=1e-5)


class Alone(Counter):
    """With nobody agents are worth half of what they are worth."""

    def parts(self, obs: Any, memory: Any) -> tuple[Tensor, Tensor, Tensor]:
        q, memory = self.values(obs, memory)
        return q, q / 2, memory


@pytest.mark.parametrize("dies", [False, True])
def test_collaboration_with_nobody_is_worth_nothing(dies: bool) -> None:
    """Taken are 11 and 44, 28 and 25; of the dead nothing counts."""
    rows, changes = batch(), {}
    if dies:
        alive = np.array([[[1, 0]] * 3], np.float32)
        changes = {key: {**rows.columns[key], "alive": alive} for key in ("obs", "next_obs")}
    losses = []
    for weight in (0.0, 2.0):
        cfg = dict(discount_factor=GAMMA, learn=dict(collaq_loss_weight=weight))
        losses.append(loss_of(CollaQPolicy(cfg, model=Alone(summed=True)), **changes))
    nobody = np.square([[5.5, 22], [14, 12.5]])
    added = 2 * (nobody[:, 0] if dies else nobody.mean(axis=1)).mean()
    assert losses[1] - losses[0] == pytest.approx(added, rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "learn", "message"),
    [
        (WQMIXPolicy, dict(alpha=1.5), r"policy.learn.alpha = 1.5"),
        (WQMIXPolicy, dict(w=-1), r"policy.learn.w = -1"),
        (WQMIXPolicy, dict(w=0.2, alpha=0.1), r"w = 0.2 and alpha = 0.1 are two names of one"),
        (QTRANPolicy, dict(opt_weight=-1.0), r"policy.learn.opt_weight = -1.0"),
        (CollaQPolicy, dict(collaq_loss_weight=-1.0), r"policy.learn.collaq_loss_weight = -1.0"),
    ],
)
def test_bad_settings(kind: Any, learn: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(dict(learn=learn), model=Counter(summed=True))


# --- models --------------------------------------------------------------------------------------

SIZES = dict(agent_num=2, obs_shape=3, global_obs_shape=4, action_shape=3, hidden_size_list=[8])


def obs_of(batch: int = 5, steps: int = 3) -> dict[str, Tensor]:
    state = torch.randn(steps, batch, 2, 3)
    return {"agent_state": state, "global_state": torch.randn(steps, batch, 4)}


@pytest.mark.parametrize("lstm_type", ["gru", "normal", None])
def test_both_networks_of_wqmix_remember_what_they_saw(lstm_type: str | None) -> None:
    net, obs = create_model({"type": "wqmix", **SIZES, "lstm_type": lstm_type}), obs_of()
    q, star, _ = net.both(obs, None)
    _, memory = net.values({k: x[:1] for k, x in obs.items()}, None)
    assert net.memory_size == {"gru": 16, "normal": 32, None: 0}[lstm_type]
    assert (memory is None) is (lstm_type is None)
    later = net.both({k: x[1:] for k, x in obs.items()}, memory)
    torch.testing.assert_close(later[0], q[1:])
    torch.testing.assert_close(later[1], star[1:])
    assert not torch.allclose(q, star)


def test_the_established_forward_of_wqmix() -> None:
    net, obs = create_model({"type": "wqmix", **SIZES}), obs_of(steps=1)
    one = {key: x[0] for key, x in obs.items()}
    q, star, _ = net.both(obs, None)
    best = star.argmax(dim=-1)
    output = net({"obs": one}, q_star=True)
    torch.testing.assert_close(output["logit"], star[0])
    torch.testing.assert_close(output["total_q"], net.star(star, best, obs)[0])
    torch.testing.assert_close(net({"obs": one})["logit"], q[0])
    assert output["next_state"].shape == (5, 2, 16)


def test_the_joint_value_of_qtran_sees_all_that_live() -> None:
    net, obs = create_model({"type": "qtran", **SIZES, "embedding_size": 16}), obs_of()
    _, features, _ = net.unrolled(obs, None)
    action = torch.zeros(3, 5, 2, dtype=torch.long)
    other = torch.stack([action[..., 0], action[..., 1] + 2], dim=-1)
    assert not torch.allclose(net.joint(features, action, obs), net.joint(features, other, obs))
    dead = {**obs, "alive": torch.tensor([1.0, 0.0]).expand(3, 5, 2)}
    torch.testing.assert_close(net.joint(features, action, dead), net.joint(features, other, dead))
    output = net({"obs": obs, "action": action}, single_step=False)
    torch.testing.assert_close(output["total_q"], net.joint(features, action, obs))
    torch.testing.assert_close(output["vs"], net.of_state(obs))
    torch.testing.assert_close(output["agent_q_act"], output["logit"][..., 0])
    single = net({"obs": {key: x[0] for key, x in obs.items()}, "prev_state": [[None, None]] * 5})
    assert single["vs"].shape == (5,) and single["agent_q_act"].shape == (5, 2)


@pytest.mark.parametrize("name", ["wqmix", "qtran"])
def test_a_global_state_that_is_missing(name: str) -> None:
    with pytest.raises(ConfigError, match=r"needs a global state: .* 'global_state' \(agent_obs_o"):
        create_model({"type": name, **SIZES, "global_obs_shape": None})
    with pytest.raises(ConfigError, match=r"global_obs_shape = \[2, 7\]: a mixer takes one"):
        create_model({"type": name, **SIZES, "global_obs_shape": [2, 7]})


ALONE = dict(alone_obs_shape=2, self_feature_range=[0, 2], ally_feature_range=[2, 3])


def alone_obs(obs: dict[str, Tensor]) -> dict[str, Tensor]:
    state = obs["agent_state"]
    padded = state * torch.tensor([1.0, 1.0, 0.0])
    return {**obs, "agent_alone_state": state[..., :2], "agent_alone_padding_state": padded}


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("lstm_type", ["gru", "normal", None])
def test_collaq_is_the_sum_of_its_parts(lstm_type: str | None, attention: bool) -> None:
    settings = dict(lstm_type=lstm_type, attention=attention)
    net, obs = create_model({"type": "collaq", **SIZES, **ALONE, **settings}), alone_obs(obs_of())
    q, nobody, _ = net.parts(obs, None)
    alone, _ = net.alone_agents(obs["agent_alone_state"], None)
    collab, _ = net.agents(net.attend(obs["agent_state"]), None)
    torch.testing.assert_close(q, alone + collab - nobody)
    _, memory = net.values({k: x[:1] for k, x in obs.items()}, None)
    assert net.memory_size == {"gru": 24, "normal": 48, None: 0}[lstm_type]
    later = net.parts({k: x[1:] for k, x in obs.items()}, memory)
    torch.testing.assert_close(later[0], q[1:])
    torch.testing.assert_close(later[1], nobody[1:])
    without_allies = {**obs, "agent_state": obs["agent_alone_padding_state"]}
    torch.testing.assert_close(net.parts(without_allies, None)[0], alone)


def test_attention_weighs_allies() -> None:
    net = AllyAttention(n_ally=2, own=(0, 1), allies=(1, 3), size=1)
    for part in (net.query, net.key, net.value):
        part.weight.data.fill_(1.0)
        part.bias.data.zero_()
    seen = net(torch.tensor([[2.0, 1.0, 3.0, 9.0]]))
    weight = np.exp(2 * np.array([1, 3])) / np.exp(2 * np.array([1, 3])).sum()
    assert seen[0].tolist() == pytest.approx([2, weight @ [1, 3], 9])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(self_feature_range=None), r"self_feature_range = None: with attention it is \[begin"),
        (dict(ally_feature_range=[2, 9]), r"ally_feature_range = \[2, 9\]: .* within the 3"),
        (dict(agent_num=3), r"ally_feature_range = \[2, 3\] does not hold .* of 2 allies"),
    ],
)
def test_ranges_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_model({"type": "collaq", **SIZES, **ALONE, "attention": True, **changes})


def test_what_agents_see_alone_is_missing() -> None:
    net = create_model({"type": "collaq", **SIZES, **ALONE})
    with pytest.raises(DingError, match=r"lacks 'agent_alone_state' and 'agent_alone_p.*obs_alone"):
        net.values(obs_of(), None)
