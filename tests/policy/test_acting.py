import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController

from ding.model import DQN
from ding.policy import DQNPolicy, acting
from ding.policy.acting import (
    acting_model,
    epsilon_greedy,
    hybrid_epsilon_greedy,
    random_allowed,
    sample_categorical,
)
from ding.policy.sql import epsilon_softmax
from ding.utils.batch import Rows
from policy.fakes import batch_of


def blas_threads() -> list[int]:
    found = ThreadpoolController().select(internal_api="openblas")
    return [library["num_threads"] for library in found.info()]


@pytest.mark.parametrize("obs_shape", [4, [1, 36, 36]])
def test_numpy_keeps_to_one_thread_whoever_runs_the_model(obs_shape: int | list[int]) -> None:
    acting._use_one_blas_thread.cache_clear()
    with ThreadpoolController().select(internal_api="openblas").limit(limits=2):
        if blas_threads() != [2]:
            pytest.skip("NumPy's products know no threads here")
        acting_model(DQN(obs_shape, 2, encoder_hidden_size_list=[8, 8, 8]))
        assert blas_threads() == [1]


@pytest.mark.parametrize("obs_shape", [[4], [1, 36, 36]])
def test_the_same_values_as_the_model(obs_shape: list[int]) -> None:
    model = DQN(obs_shape, 2, encoder_hidden_size_list=[8, 8, 8])
    obs = np.random.default_rng(0).normal(size=(3, *obs_shape)).astype(np.float32)
    with torch.no_grad():
        wanted = model(torch.from_numpy(obs))["logit"].numpy()
    given = acting_model(model)(obs)["logit"]
    assert type(given) is np.ndarray
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


# --- a choice for each agent: the last axis is that of the actions --------------------------------

N_ENV, N_AGENT, N_ACTION = 3, 2, 4
Q = np.random.default_rng(0).normal(size=(N_ENV, N_AGENT, N_ACTION)).astype(np.float32)
ALLOWED = np.random.default_rng(1).random(Q.shape) < 0.5
ALLOWED[..., -1] |= ~ALLOWED.any(axis=-1)


def test_every_agent_has_its_own_greedy_action() -> None:
    action = epsilon_greedy(Q, 0.0, np.random.default_rng(0))
    assert action.shape == (N_ENV, N_AGENT)
    np.testing.assert_array_equal(action, Q.argmax(axis=-1))


def test_agents_explore_each_for_itself() -> None:
    rng, many = np.random.default_rng(0), np.broadcast_to(Q, (4000, *Q.shape))
    explored = np.stack([epsilon_greedy(q, 0.4, rng) for q in many])
    greedy = explored == Q.argmax(axis=-1)
    assert greedy.mean(axis=0) == pytest.approx(np.full((N_ENV, N_AGENT), 0.7), abs=0.04)
    together = greedy.all(axis=-1).mean(axis=0)
    assert together == pytest.approx(np.full(N_ENV, 0.49), abs=0.04)


def test_epsilon_of_an_env_is_that_of_its_agents() -> None:
    rng, eps = np.random.default_rng(0), np.array([0.0, 1.0, 0.0])
    found = np.stack([epsilon_greedy(Q, eps, rng) for _ in range(400)])
    assert (found[:, [0, 2]] == Q.argmax(axis=-1)[[0, 2]]).all()
    share = (found[:, 1] == 0).mean(axis=0)
    assert share == pytest.approx([0.25, 0.25], abs=0.08)


def test_exploring_agents_keep_to_their_masks() -> None:
    rng = np.random.default_rng(0)
    for action in (
        epsilon_greedy(Q, 1.0, rng, ALLOWED),
        random_allowed(ALLOWED, rng),
        hybrid_epsilon_greedy(
            Q, Q[..., :1], eps=1.0, sigma=0.0, rng=rng, allowed=ALLOWED
        )["action_type"],
    ):  # fmt: skip
        assert action.shape == (N_ENV, N_AGENT)
        assert np.take_along_axis(ALLOWED, action[..., None], axis=-1).all()


def test_hybrid_actions_of_agents() -> None:
    rng, args = np.random.default_rng(0), np.zeros((N_ENV, N_AGENT, 5), np.float32)
    greedy = hybrid_epsilon_greedy(Q, args, eps=0.0, sigma=0.0, rng=rng)
    np.testing.assert_array_equal(greedy["action_type"], Q.argmax(axis=-1))
    assert (greedy["action_args"] == 0).all()
    random = hybrid_epsilon_greedy(Q, args, eps=1.0, sigma=0.0, rng=rng)["action_args"]
    assert random.shape == args.shape and (random != 0).all()


@pytest.mark.parametrize("masked", [False, True])
def test_draws_of_agents_have_the_probabilities_of_the_last_axis(masked: bool) -> None:
    rng = np.random.default_rng(0)
    logit = np.where(ALLOWED, Q, np.float32(-1e8)) if masked else Q
    drawn = np.stack([sample_categorical(logit, rng) for _ in range(6000)])
    assert drawn.shape == (6000, N_ENV, N_AGENT)
    share = (drawn[..., None] == np.arange(N_ACTION)).mean(axis=0)
    prob = np.exp(logit) / np.exp(logit).sum(axis=-1, keepdims=True)
    assert share == pytest.approx(prob, abs=0.03)
    action = drawn[0]
    wanted = np.log(np.take_along_axis(prob, action[..., None], axis=-1)[..., 0])
    assert acting.categorical_log_prob(logit, action) == pytest.approx(wanted, rel=1e-4)


def test_soft_draws_of_agents_with_some_at_random() -> None:
    rng = np.random.default_rng(0)
    action = epsilon_softmax(100 * Q, 0.0, rng)
    np.testing.assert_array_equal(action, Q.argmax(axis=-1))
    assert epsilon_softmax(Q, 0.5, rng, ALLOWED).shape == (N_ENV, N_AGENT)


def test_log_probabilities_of_continuous_actions_add_up_over_the_last_axis() -> None:
    mu, sigma = np.zeros((N_ENV, N_AGENT, 4)), np.ones((N_ENV, N_AGENT, 4))
    found = acting.gaussian_log_prob(mu, sigma, mu)
    assert found == pytest.approx(np.full((N_ENV, N_AGENT), -2 * np.log(2 * np.pi)))


@pytest.mark.parametrize("fields", [["learn", "collect"], ["collect", "learn"]])
def test_acting_follows_learning_in_whatever_order_modes_are_made(fields: list[str]) -> None:
    model = DQN(3, 4, encoder_hidden_size_list=[16])
    cfg = dict(type="dqn", model=dict(obs_shape=3, action_shape=4), learn=dict(learning_rate=0.1))
    policy = DQNPolicy(cfg, model=model, enable_field=fields)
    batch = batch_of("dqn")
    before = policy._q(batch["obs"])["logit"]
    policy.learn_mode.forward(Rows(batch))
    with torch.no_grad():
        wanted = model(torch.from_numpy(batch["obs"]))["logit"].numpy()
    np.testing.assert_allclose(policy._q(batch["obs"])["logit"], wanted, atol=1e-5)
    assert not np.allclose(before, wanted, atol=1e-3)
