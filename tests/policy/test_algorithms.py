"""The formulas of each algorithm against plain computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from ding.policy.acting import (
    categorical_log_prob,
    epsilon_greedy,
    gaussian_log_prob,
    sample_categorical,
    sample_gaussian,
)
from ding.rl_utils import ppo_data, ppo_error, ppo_error_continuous
from ding.utils.batch import Rows
from policy.fakes import batch_of, losses_of, policy_of


def tensors(batch: dict[str, Any]) -> dict[str, Any]:
    return {k: torch.from_numpy(v) for k, v in batch.items()}


# --- DQN -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("double_q", [True, False])
def test_dqn_loss_by_hand(double_q: bool) -> None:
    policy: Any = policy_of("dqn", learn=dict(double_q=double_q))
    with torch.no_grad():
        for parameter in policy._target.module.parameters():
            parameter.add_(torch.randn_like(parameter))
    batch = batch_of("dqn")
    q = policy._model(torch.from_numpy(batch["obs"]))["logit"].detach().numpy()
    next_q = policy._model(torch.from_numpy(batch["next_obs"]))["logit"].detach().numpy()
    next_target = policy._target.module(torch.from_numpy(batch["next_obs"]))["logit"].numpy()
    total, errors = 0.0, []
    for i in range(16):
        best = int(np.argmax(next_q[i] if double_q else next_target[i]))
        target = batch["reward"][i] + batch["discount"][i] * next_target[i, best]
        errors.append(target - q[i, batch["action"][i]])
        total += errors[-1] ** 2
    output = policy.learn_mode.forward(Rows(batch))
    assert float(output["total_loss"]) == pytest.approx(total / 16, rel=1e-5)
    assert output["priority"].numpy() == pytest.approx(np.abs(errors), rel=1e-4)


def test_dqn_importance_weights() -> None:
    batch = batch_of("dqn")
    plain: Any = policy_of("dqn")
    errors = plain.learn_mode.forward(Rows(batch))["priority"].numpy()
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    output = policy_of("dqn").learn_mode.forward(Rows({**batch, "weight": weight}))
    assert float(output["total_loss"]) == pytest.approx((weight * errors**2).mean(), rel=1e-5)


def test_dqn_target_assign_and_momentum() -> None:
    batch = batch_of("dqn")

    def distance(policy: Any) -> float:
        pairs = zip(policy._model.parameters(), policy._target.module.parameters(), strict=True)
        return sum(float((a - b).detach().abs().sum()) for a, b in pairs)

    assign: Any = policy_of("dqn", learn=dict(target_update_freq=3))
    for k in range(1, 7):
        losses_of(assign, batch, 1)
        assert (distance(assign) == 0) == (k % 3 == 0)
    momentum: Any = policy_of("dqn", learn=dict(target_theta=0.25))
    before = [p.detach().clone() for p in momentum._target.module.parameters()]
    losses_of(momentum, batch, 1)
    for old, new, source in zip(
        before, momentum._target.module.parameters(), momentum._model.parameters(), strict=True
    ):
        assert torch.allclose(new, old + 0.25 * (source - old), atol=1e-6)
    default: Any = policy_of("dqn")
    losses_of(default, batch, 99)
    assert distance(default) > 0
    losses_of(default, batch, 1)
    assert distance(default) == 0


def test_dqn_epsilon_falls_with_env_steps() -> None:
    eps = dict(type="linear", start=1.0, end=0.2, decay=100)
    command = policy_of("dqn", other=dict(eps=eps)).command_mode
    assert command.get_setting_collect({"envstep": 0})["eps"] == pytest.approx(1.0)
    assert command.get_setting_collect({"envstep": 50})["eps"] == pytest.approx(0.6)
    assert command.get_setting_collect({"envstep": 1000})["eps"] == pytest.approx(0.2)


def test_epsilon_greedy_draws_for_every_env() -> None:
    rng = np.random.default_rng(0)
    q = np.tile(np.array([0.0, 1.0, 0.0], dtype=np.float32), (3000, 1))
    assert (epsilon_greedy(q, 0.0, rng) == 1).all()
    action = epsilon_greedy(q, 0.6, rng)
    assert np.bincount(action) / 3000 == pytest.approx([0.2, 0.6, 0.2], abs=0.04)


def test_sampled_actions_have_their_probabilities() -> None:
    rng = np.random.default_rng(0)
    logit = np.tile(np.log(np.array([0.1, 0.6, 0.3], dtype=np.float32)), (6000, 1))
    action = sample_categorical(logit + 3, rng)
    log_prob = categorical_log_prob(logit + 3, action)
    assert np.bincount(action) / 6000 == pytest.approx([0.1, 0.6, 0.3], abs=0.03)
    assert np.exp(log_prob) == pytest.approx(np.array([0.1, 0.6, 0.3])[action], abs=1e-5)
    mu, sigma = np.full((4, 2), 0.5, np.float32), np.full((4, 2), 0.3, np.float32)
    drawn = sample_gaussian(mu, sigma, rng)
    log_prob = gaussian_log_prob(mu, sigma, drawn)
    reference = Normal(torch.from_numpy(mu), torch.from_numpy(sigma))
    assert log_prob == pytest.approx(
        reference.log_prob(torch.from_numpy(drawn)).sum(1).numpy(), abs=1e-5
    )


# --- PPO -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ppo", "ppo_continuous"])
@pytest.mark.parametrize("dual_clip", [None, 2.0])
@pytest.mark.parametrize("value_clip", [False, True])
@torch.no_grad()
def test_ppo_loss_is_that_of_rl_utils(kind: str, dual_clip: Any, value_clip: bool) -> None:
    learn = dict(dual_clip=dual_clip, value_clip=value_clip, adv_norm=False, entropy_weight=0.01)
    policy: Any = policy_of(kind, learn=learn)
    batch = tensors(batch_of(kind, seed=3))
    output = policy._model(batch["obs"], mode="compute_actor_critic")
    logit, value = output["logit"], output["value"]
    if kind == "ppo":
        old_logit = (logit + torch.randn_like(logit) * 0.5).detach()
        old_log_prob = torch.log_softmax(old_logit, -1).gather(1, batch["action"][:, None])[:, 0]
        error: Any = ppo_error
    else:
        old_logit = {"mu": (logit["mu"] + 0.3).detach(), "sigma": logit["sigma"].detach()}
        old = Independent(Normal(old_logit["mu"], old_logit["sigma"]), 1)
        old_log_prob = old.log_prob(batch["action"])
        error = ppo_error_continuous
    data = ppo_data(
        logit,
        old_logit,
        batch["action"],
        value,
        batch["value"],
        batch["advantage"],
        batch["return"],
        None,
    )
    loss, _ = error(data, clip_ratio=0.2, use_value_clip=value_clip, dual_clip=dual_clip)
    mine, metrics = policy._loss({**batch, "log_prob": old_log_prob})
    assert float(metrics["policy_loss"]) == pytest.approx(float(loss.policy_loss), abs=1e-5)
    assert float(metrics["value_loss"]) == pytest.approx(float(loss.value_loss), abs=1e-5)
    assert float(metrics["entropy"]) == pytest.approx(float(loss.entropy_loss), abs=1e-5)
    total = metrics["policy_loss"] + 0.5 * metrics["value_loss"] - 0.01 * metrics["entropy"]
    assert float(mine.detach()) == pytest.approx(float(total), abs=1e-5)


@torch.no_grad()
def test_ppo_advantages_by_a_plain_loop() -> None:
    gamma, lam = 0.9, 0.8
    policy: Any = policy_of("ppo", discount_factor=gamma, collect=dict(gae_lambda=lam))
    n = 12
    batch = batch_of("ppo", n)
    batch["done"] = np.zeros(n, dtype=bool)
    batch["done"][[3, 7]] = True
    batch["truncated"] = np.zeros(n, dtype=bool)
    batch["truncated"][7] = True
    batch["end"] = batch["done"].copy()
    batch["end"][[9, 11]] = True
    batch["next_obs"][:-1] = batch["obs"][1:]
    batch["next_obs"][[3, 7, 9, 11]] += 5.0  # true last observations, not the next row
    value_of = lambda obs: float(  # noqa: E731
        policy._model(torch.from_numpy(obs)[None], mode="compute_critic")["value"]
    )
    value = np.array([value_of(obs) for obs in batch["obs"]], dtype=np.float32)
    logit = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    samples = policy.collect_mode.get_train_sample(Rows({**batch, "logit": logit}))
    later, wanted = 0.0, np.zeros(n)
    for t in reversed(range(n)):
        bootstrap = 0.0 if t == 3 else value_of(batch["next_obs"][t])
        delta = batch["reward"][t] + gamma * bootstrap - value[t]
        later = delta + (0.0 if batch["end"][t] else gamma * lam * later)
        wanted[t] = later
    columns = samples.columns
    assert columns["advantage"] == pytest.approx(wanted, abs=1e-4)
    assert columns["return"] == pytest.approx(wanted + value, abs=1e-4)
    log_softmax = torch.log_softmax(torch.from_numpy(logit), dim=1).numpy()
    taken = log_softmax[np.arange(n), batch["action"]]
    assert columns["log_prob"] == pytest.approx(taken, abs=1e-5)


def test_ppo_counts_minibatches_and_drops_no_collect() -> None:
    policy: Any = policy_of("ppo", learn=dict(epoch_per_collect=3))
    outputs = policy.learn_mode.forward(Rows(batch_of("ppo", 40)))
    assert len(outputs) == 3 * 2


def test_ppo_value_norm_learns_scaled_values() -> None:
    learn = dict(value_norm=True, epoch_per_collect=2)
    policy: Any = policy_of("ppo", recompute_adv=False, learn=learn)
    batch = batch_of("ppo", 32)
    batch["return"] *= 100
    policy.learn_mode.forward(Rows(batch))
    assert policy._return_scale.std == pytest.approx(batch["return"].std(), rel=1e-4)
    columns = {"obs": 0, "action": 0, "log_prob": 0, "advantage": 0}
    scaled = policy._for_loss({**columns, "return": np.ones(2), "value": np.ones(2)})
    assert scaled["return"] == pytest.approx(1 / policy._return_scale.std, rel=1e-5)


def test_ppo_learns_returns_that_are_all_the_same() -> None:
    policy: Any = policy_of("ppo", recompute_adv=False, learn=dict(epoch_per_collect=2))
    batch = batch_of("ppo", 32)
    batch["return"] = np.full(32, 100.0, dtype=np.float32)
    outputs = [o for _ in range(3) for o in policy.learn_mode.forward(Rows(batch))]
    assert policy._return_scale.std == pytest.approx(1.0)
    assert max(float(o["value_loss"]) for o in outputs) < 100.0**2


# --- SAC -----------------------------------------------------------------------------------------


@torch.no_grad()
def test_sac_log_prob_is_that_of_a_squashed_normal() -> None:
    policy: Any = policy_of("sac")
    obs, noise = torch.randn(32, 3), torch.randn(32, 2)
    action, log_prob = policy._act(obs, noise)
    logit = policy._model(obs, mode="compute_actor")["logit"]
    base = Independent(Normal(logit["mu"], logit["sigma"]), 1)
    squashed = TransformedDistribution(base, [TanhTransform(cache_size=1)])
    before = logit["mu"] + logit["sigma"] * noise
    reference = base.log_prob(before) - TanhTransform().log_abs_det_jacobian(before, action).sum(-1)
    assert torch.allclose(log_prob, reference, atol=1e-3)
    inside = action.abs().amax(dim=1) < 0.99
    assert torch.allclose(log_prob[inside], squashed.log_prob(action)[inside], atol=1e-2)


@torch.no_grad()
def test_sac_critic_loss_by_hand() -> None:
    policy: Any = policy_of("sac")
    batch = policy._batch(Rows(batch_of("sac")))
    policy._add_noise(batch)
    batch["alpha"] = torch.tensor(0.3)
    action, log_prob = policy._act(batch["next_obs"], batch["next_noise"])
    x = {"obs": batch["next_obs"], "action": action}
    q1, q2 = policy._target.module(x, mode="compute_critic")["q_value"]
    target = batch["reward"] + batch["discount"] * (torch.min(q1, q2) - 0.3 * log_prob)
    x = {"obs": batch["obs"], "action": batch["action"]}
    q1, q2 = policy._model(x, mode="compute_critic")["q_value"]
    wanted = ((q1 - target) ** 2).mean() + ((q2 - target) ** 2).mean()
    loss, _ = policy._critic_loss(batch)
    assert float(loss) == pytest.approx(float(wanted), rel=1e-4)


@torch.no_grad()
def test_discrete_sac_losses_by_hand() -> None:
    policy: Any = policy_of("discrete_sac")
    batch = policy._batch(Rows(batch_of("discrete_sac")))
    batch["alpha"] = torch.tensor(0.3)
    model, target_model = policy._model, policy._target.module
    log_p = torch.log_softmax(model(batch["next_obs"], mode="compute_actor")["logit"], -1)
    q1, q2 = target_model(batch["next_obs"], mode="compute_critic")["q_value"]
    value = (log_p.exp() * (torch.min(q1, q2) - 0.3 * log_p)).sum(-1)
    target = (batch["reward"] + batch["discount"] * value).detach()
    wanted = 0.0
    for q in model(batch["obs"], mode="compute_critic")["q_value"]:
        taken = q[torch.arange(16), batch["action"]]
        wanted += float(((taken - target) ** 2).mean().detach())
    assert float(policy._critic_loss(batch)[0]) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("kind", ["sac", "discrete_sac"])
def test_alpha_moves_towards_the_target_entropy(kind: str) -> None:
    batch = batch_of(kind)
    for target_entropy, grows in ((50.0, True), (-50.0, False)):
        policy = policy_of(kind, learn=dict(target_entropy=target_entropy))
        alphas = losses_of(policy, batch, 10, "alpha")
        assert (alphas[-1] > alphas[0]) is grows
    fixed = policy_of(kind, learn=dict(auto_alpha=False, alpha=0.3))
    assert losses_of(fixed, batch, 5, "alpha") == pytest.approx([0.3] * 5)


def test_default_target_entropy() -> None:
    sac: Any = policy_of("sac")
    assert sac._target_entropy == -2.0
    discrete: Any = policy_of("discrete_sac")
    assert discrete._target_entropy == pytest.approx(0.6 * np.log(4))


@pytest.mark.parametrize("kind", ["sac", "discrete_sac"])
def test_actor_step_leaves_the_critic_alone(kind: str) -> None:
    policy: Any = policy_of(kind, learn=dict(learning_rate_q=1e-9))
    critic = [
        p.detach().clone() for n, p in policy._model.named_parameters() if n.startswith("critic")
    ]
    losses_of(policy, batch_of(kind), 3)
    after = [p for n, p in policy._model.named_parameters() if n.startswith("critic")]
    assert critic
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(critic, after, strict=True))
