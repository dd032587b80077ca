"""An env whose values are known: reward 1 at every step, over after 5.

Cut off by a limit (truncated), its states are worth 1 / (1 - 0.9) = 10 each; really over
(terminated), step k is worth what is left: 1 + 0.9 + ... (5 - k terms).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep
from ding.policy import DiscreteSACPolicy, DQNPolicy, PPOPolicy, SACPolicy
from ding.utils.seed import set_pkg_seed
from ding.worker import BaseLearner, NaiveReplayBuffer, SampleCollector

GAMMA, LENGTH = 0.9, 5
TERMINATED = [sum(GAMMA**i for i in range(LENGTH - k)) for k in range(LENGTH)]


class FiveSteps(BaseEnv):
    """The observation is the step, one-hot when it matters how much is left, else constant."""

    _observation_space = gym.spaces.Box(0, 1, (LENGTH + 1,), dtype=np.float32)
    _reward_space = gym.spaces.Box(0, 1, (1,), dtype=np.float32)

    def __init__(self, terminates: bool, continuous: bool) -> None:
        super().__init__({})
        self.terminates = terminates
        box = gym.spaces.Box(-1, 1, (1,), dtype=np.float32)
        self._action_space = box if continuous else gym.spaces.Discrete(2)

    def _obs(self) -> np.ndarray:
        obs = np.zeros(LENGTH + 1, dtype=np.float32)
        obs[self.steps if self.terminates else 0] = 1
        return obs

    def reset(self) -> np.ndarray:
        self.steps = 0
        return self._obs()

    def step(self, action: Any) -> BaseEnvTimestep:
        self.steps += 1
        done = self.steps == LENGTH
        info = {"truncated": True} if done and not self.terminates else {}
        return BaseEnvTimestep(self._obs(), 1.0, done, info)

    def close(self) -> None:
        pass


def envs(terminates: bool, continuous: bool = False) -> BaseEnvManager:
    return BaseEnvManager([partial(FiveSteps, terminates, continuous)] * 4, {})


def states() -> torch.Tensor:
    return torch.eye(LENGTH + 1)


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize("nstep", [1, 3])
def test_discount_of_samples(terminates: bool, nstep: int) -> None:
    model = dict(obs_shape=LENGTH + 1, action_shape=2, encoder_hidden_size_list=[8])
    cfg = dict(type="dqn", model=model, discount_factor=GAMMA, nstep=nstep)
    policy = DQNPolicy(cfg)
    buffer = NaiveReplayBuffer(dict(nstep=nstep, discount_factor=GAMMA))
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        for _ in range(10):
            buffer.push(collector.collect(n_sample=8))
    batch = policy._batch(buffer.sample(80))  # type: ignore[arg-type]
    columns = {name: column.numpy() for name, column in batch.items()}
    if not terminates:
        assert (columns["discount"] > 0).all()
        assert (columns["next_obs"][:, 0] == 1).all()
        return
    step = columns["obs"].argmax(axis=1)
    over = step + nstep >= LENGTH
    assert (columns["discount"][over] == 0).all()
    assert columns["discount"][~over] == pytest.approx(GAMMA**nstep)
    # The last observation is the true one (step 5), not the first of the next episode.
    assert (columns["next_obs"].argmax(axis=1)[over] == LENGTH).all()


def train_off_policy(cls: Any, terminates: bool, n: int, **cfg: Any) -> Any:
    set_pkg_seed(0)
    continuous = cls is SACPolicy
    size = dict(obs_shape=LENGTH + 1, action_shape=1 if continuous else 2)
    model = {**size, **cfg.pop("model")}
    policy = cls(dict(type="x", model=model, discount_factor=GAMMA, **cfg))
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=2000))
    learner = BaseLearner(dict(hook=dict(save_ckpt_after_iter=10**9)), policy=policy.learn_mode)
    learner._hooks["after_iter"].clear()
    with SampleCollector(env=envs(terminates, continuous), policy=policy.collect_mode) as collector:
        kwargs = {"eps": 0.5} if issubclass(cls, DQNPolicy) else {}
        buffer.push(collector.collect(n_sample=400, policy_kwargs=kwargs))
    for _ in range(n):
        learner.train(buffer.sample(64) or [])
    return policy


@pytest.mark.parametrize("terminates", [True, False])
def test_dqn_learns_the_known_value(terminates: bool) -> None:
    learn = dict(learning_rate=0.01, target_update_freq=10, batch_size=64)
    model = dict(encoder_hidden_size_list=[32])
    policy = train_off_policy(DQNPolicy, terminates, 700, model=model, learn=learn)
    with torch.no_grad():
        value = policy._model(states())["logit"].amax(dim=1).numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.5)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.7)


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize("cls", [SACPolicy, DiscreteSACPolicy])
def test_sac_learns_the_known_value(cls: Any, terminates: bool) -> None:
    learn = dict(
        learning_rate_q=0.01,
        learning_rate_policy=0.001,
        target_theta=0.1,
        auto_alpha=False,
        alpha=1e-6,
        batch_size=64,
    )
    sizes = dict(actor_head_hidden_size=32, critic_head_hidden_size=32)
    model = sizes if cls is SACPolicy else dict(encoder_hidden_size_list=[32])
    policy = train_off_policy(cls, terminates, 600, model=model, learn=learn)
    x: Any = states()
    if cls is SACPolicy:
        x = {"obs": x, "action": torch.zeros(LENGTH + 1, 1)}
    with torch.no_grad():
        q = torch.stack(policy._model(x, mode="compute_critic")["q_value"]).amin(dim=0)
    value = q.numpy() if cls is SACPolicy else q.amax(dim=1).numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.6)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.8)


def ppo(gae_lambda: float = 0.95, **cfg: Any) -> PPOPolicy:
    set_pkg_seed(0)
    return PPOPolicy(
        dict(
            type="ppo",
            discount_factor=GAMMA,
            model=dict(obs_shape=LENGTH + 1, action_shape=2, encoder_hidden_size_list=[32]),
            learn=dict(batch_size=50, epoch_per_collect=5, learning_rate=0.01, **cfg),
            collect=dict(n_sample=100, gae_lambda=gae_lambda),
        )
    )


@pytest.mark.parametrize("terminates", [True, False])
def test_ppo_returns_of_samples(terminates: bool) -> None:
    """With a critic that always says 10 the truncated returns are 10, the others what is left."""
    policy: Any = ppo(gae_lambda=1.0, value_norm=False)
    critic = [p for name, p in policy._model.named_parameters() if name.startswith("critic")]
    with torch.no_grad():
        for parameter in critic:
            parameter.zero_()
        critic[-1].fill_(10.0)
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        columns = collector.collect(n_sample=100).columns  # type: ignore[attr-defined]
    if terminates:
        step = columns["obs"].argmax(axis=1)
        assert columns["return"] == pytest.approx(np.array(TERMINATED)[step], abs=1e-4)
    else:
        assert columns["return"] == pytest.approx(10.0, abs=1e-4)
        assert columns["advantage"] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize("value_norm", [True, False])
def test_ppo_learns_the_known_value(terminates: bool, value_norm: bool) -> None:
    policy: Any = ppo(value_norm=value_norm)
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        for _ in range(60):
            policy.learn_mode.forward(collector.collect())
    scale = policy._return_scale.std if value_norm else 1.0
    with torch.no_grad():
        value = policy._model(states(), mode="compute_critic")["value"].numpy() * scale
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.6)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.8)
