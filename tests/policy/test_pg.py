"""REINFORCE against plain computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ding.policy import PGPolicy
from ding.policy.pg import mean_return
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from ding.worker import EpisodeCollector
from policy.gradient_fakes import log_softmax, losses_of, policy_of, samples_of, steps_of, taken
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, envs


def test_returns_by_a_plain_loop() -> None:
    policy = policy_of("pg", discount_factor=0.9, learn=dict(bootstrap_truncated=True))
    steps = steps_of()
    samples = samples_of(policy).columns
    return_, rest = np.zeros(32), np.zeros(32)
    for t in reversed(range(32)):
        over = steps["end"][t]
        return_[t] = steps["reward"][t] + (0.0 if over else 0.9 * return_[t + 1])
        cut = over and not (steps["done"][t] and not steps["truncated"][t])
        rest[t] = 0.9 * (float(cut) if over else rest[t + 1])
    assert samples["return"] == pytest.approx(return_, abs=1e-5)
    assert samples["rest"] == pytest.approx(rest, abs=1e-6)
    plain = samples_of(policy_of("pg", discount_factor=0.9)).columns
    assert (plain["return"] == samples["return"]).all()
    assert "rest" not in plain


def test_what_a_limit_cut_off_is_worth_the_mean() -> None:
    return_, rest = np.array([1.0, 3.0, 2.0]), np.array([0.0, 0.5, 0.4])
    mean = mean_return(return_, rest)
    assert (return_ + rest * mean).mean() == pytest.approx(mean)
    assert mean_return(np.ones(3), np.ones(3)) == 0  # nothing is known


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("setting", [{}, {"bootstrap_truncated": True}])
def test_loss_by_hand(baseline: bool, setting: dict[str, bool]) -> None:
    learn = dict(entropy_weight=0.1, baseline=baseline, batch_size=32, **setting)
    policy = policy_of("pg", learn=learn)
    batch = samples_of(policy).columns
    with torch.no_grad():
        logit = policy._model(torch.from_numpy(batch["obs"]))["logit"].numpy()
    log_pi = log_softmax(logit)
    mean, rest = batch["return"].mean(), 0.0
    if setting:
        mean, rest = mean_return(batch["return"], batch["rest"]), batch["rest"]
    target = batch["return"] + rest * mean - (mean if baseline else 0.0)
    entropy = -(np.exp(log_pi) * log_pi).sum(axis=1).mean()
    wanted = -(taken(log_pi, batch["action"]) * target).mean() - 0.1 * entropy
    assert losses_of(policy, Rows(batch), 1)[0] == pytest.approx(wanted, rel=1e-4)


def test_one_batch_is_overfitted() -> None:
    policy = policy_of("pg", learn=dict(batch_size=32, learning_rate=0.01, baseline=True))
    samples = samples_of(policy)
    losses = losses_of(policy, samples, 100)
    assert losses[-1] < losses[0] - 0.2


def test_a_short_collect_is_one_batch() -> None:
    policy = policy_of("pg", learn=dict(batch_size=100))
    assert len(policy.learn_mode.forward(samples_of(policy))) == 1


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize("setting", [{}, {"bootstrap_truncated": True}])
def test_episodes_of_a_known_value(terminates: bool, setting: dict[str, bool]) -> None:
    """Returns of REINFORCE end with the episode; asked to, a limit's rest is worth the mean."""
    model = dict(obs_shape=LENGTH + 1, action_shape=2, encoder_hidden_size_list=[8])
    policy = PGPolicy(dict(type="pg", model=model, discount_factor=GAMMA, learn=setting))
    cfg = dict(get_train_sample=True)
    with EpisodeCollector(cfg, env=envs(terminates), policy=policy.collect_mode) as collector:
        columns = _columns(collector.collect(n_episode=8))
    target = columns["return"]
    if setting:
        target = target + columns["rest"] * mean_return(target, columns["rest"])
    if terminates or not setting:
        episodes = target.reshape(-1, LENGTH)
        assert episodes == pytest.approx(np.tile(TERMINATED, (len(episodes), 1)), abs=1e-4)
    else:
        assert target == pytest.approx(10.0, abs=1e-3)


def _columns(samples: list[dict[str, torch.Tensor]]) -> dict[str, np.ndarray]:
    return {k: np.stack([np.asarray(sample[k]) for sample in samples]) for k in samples[0]}


def test_drawing_actions_when_evaluating() -> None:
    obs = ByEnv(np.arange(500), np.zeros((500, 3), dtype=np.float32))
    for deterministic in (True, False):
        policy = policy_of("pg", deterministic_eval=deterministic)
        action = stacked_of(policy.eval_mode.forward(obs))[1]["action"]
        assert (len(np.unique(action)) == 1) is deterministic


def test_ignore_done_needs_a_value_to_go_on_with() -> None:
    with pytest.raises(ConfigError, match="bootstrap_truncated"):
        policy_of("pg", learn=dict(ignore_done=True))
    policy_of("pg", learn=dict(ignore_done=True, bootstrap_truncated=True))
