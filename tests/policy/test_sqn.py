"""SQN against a plain computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ding.policy.sqn import SQNPolicy
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from policy.fakes import batch_of, losses_of
from policy.q_fakes import (
    check_compiled,
    check_known_values,
    check_overfits,
    shake_target,
    small,
    values,
)


def test_loss_by_hand() -> None:
    alpha = 0.3
    policy = small("sqn", learn=dict(alpha=alpha))
    shake_target(policy)
    batch = batch_of("dqn")
    q = np.stack(values(policy._model, batch["obs"], "q_value"))
    after = np.stack(values(policy._target.module, batch["next_obs"], "q_value")).min(axis=0)
    loss, errors, entropy = 0.0, [], []
    for i in range(16):
        pi = np.exp(after[i] / alpha - after[i].max() / alpha)
        pi /= pi.sum()
        soft = (pi * (after[i] - alpha * np.log(pi))).sum()
        target = batch["reward"][i] + batch["discount"][i] * soft
        error = q[:, i, batch["action"][i]] - target
        loss += (error**2).sum() / 16
        errors.append(np.abs(error).mean())
        own = q[:, i].min(axis=0)
        pi = np.exp(own / alpha - own.max() / alpha)
        pi /= pi.sum()
        entropy.append(-(pi * np.log(pi)).sum())
    output = policy.learn_mode.forward(Rows(batch))
    assert float(output["total_loss"]) == pytest.approx(loss, rel=1e-4)
    assert output["priority"].numpy() == pytest.approx(np.array(errors), rel=1e-3)
    assert float(output["entropy"]) == pytest.approx(np.mean(entropy), rel=1e-4)
    assert float(output["alpha"]) == pytest.approx(alpha)
    assert set(policy.learn_mode.monitor_vars()) <= set(output)


def test_temperature_follows_the_target_entropy() -> None:
    batch = batch_of("dqn")
    for target_entropy, grows in ((50.0, True), (-50.0, False)):
        policy = small("sqn", learn=dict(target_entropy=target_entropy))
        alphas = losses_of(policy, batch, 10, "alpha")
        assert (alphas[-1] > alphas[0]) is grows
    fixed = small("sqn", learn=dict(auto_alpha=False, alpha=0.4))
    assert losses_of(fixed, batch, 5, "alpha") == pytest.approx([0.4] * 5)


def test_weights_learn_from_errors_and_alpha_from_entropy_alone() -> None:
    policy = small("sqn")
    model = [p.detach().clone() for p in policy._model.parameters()]
    policy._alpha_optimizer.step_with(torch.tensor(3.0))
    assert all(torch.equal(a, b) for a, b in zip(model, policy._model.parameters(), strict=True))
    alpha = policy._temperature.alpha.item()
    policy._step({**policy._batch(Rows(batch_of("dqn"))), "alpha": torch.tensor(alpha)})
    assert policy._temperature.alpha.item() == alpha
    assert not any(
        torch.equal(a, b) for a, b in zip(model, policy._model.parameters(), strict=True)
    )


def test_collects_at_the_temperature_of_the_learner() -> None:
    learner, actor = small("sqn"), small("sqn", seed=1)
    with torch.no_grad():
        learner._temperature.log_alpha.fill_(np.log(2.0))
    actor.collect_mode.load_state_dict(learner.collect_mode.state_dict())
    assert actor._alpha == pytest.approx(2.0)
    actor._q = lambda obs: {"logit": np.tile(np.float32([0.0, 2.0, 0.0, 0.0]), (len(obs), 1))}
    obs = ByEnv(np.arange(8000), np.zeros((8000, 3), np.float32))
    action = stacked_of(actor.collect_mode.forward(obs))[1]["action"]
    wanted = np.exp([0.0, 1.0, 0.0, 0.0]) / (3 + np.e)
    assert np.bincount(action, minlength=4) / 8000 == pytest.approx(wanted, abs=0.02)


def test_learns_one_batch() -> None:
    check_overfits(small("sqn", learn=dict(learning_rate_q=0.01)))


@pytest.mark.parametrize("terminates", [True, False])
def test_time_limits(terminates: bool) -> None:
    learn = dict(learning_rate_q=0.01, target_theta=0.1, alpha=1e-3, auto_alpha=False)
    check_known_values(SQNPolicy, terminates, learn)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    check_compiled("sqn")


def test_bad_settings() -> None:
    with pytest.raises(ConfigError, match="alpha"):
        small("sqn", learn=dict(alpha=-1.0))
