"""Kinds of actions: each against torch.distributions, and PPO learning with them."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, Normal

from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep
from ding.pipeline.spaces import fit_model_to_env
from ding.policy import PPOPolicy
from ding.policy.actions import ACTION_KINDS, action_kind, masked_logits
from ding.utils.batch import ByEnv, stacked_of, tree_map
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed
from ding.worker import SampleCollector

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def gaussian(n: int, size: int) -> dict[str, np.ndarray]:
    return {"mu": normal(n, size), "sigma": np.exp(normal(n, size))}


LOGITS: dict[str, Any] = {
    "discrete": normal(50, 4),
    "multi_discrete": (normal(50, 3), normal(50, 2)),
    "continuous": gaussian(50, 2),
    "hybrid": {"action_type": normal(50, 3), "action_args": gaussian(50, 2)},
}


def distributions(kind: str, logit: Any) -> list[tuple[Any, Any]]:
    """Independent parts, each with the function that picks its part of the action."""
    if kind == "discrete":
        return [(Categorical(logits=logit), lambda a: a)]
    if kind == "multi_discrete":
        return [(Categorical(logits=x), lambda a, i=i: a[:, i]) for i, x in enumerate(logit)]
    if kind == "continuous":
        return [(Independent(Normal(logit["mu"], logit["sigma"]), 1), lambda a: a)]
    args = logit["action_args"]
    return [
        (Categorical(logits=logit["action_type"]), lambda a: a["action_type"]),
        (Independent(Normal(args["mu"], args["sigma"]), 1), lambda a: a["action_args"]),
    ]


@pytest.mark.parametrize("kind", list(ACTION_KINDS))
def test_log_probabilities_and_entropies(kind: str) -> None:
    actions, logit = ACTION_KINDS[kind], LOGITS[kind]
    action = actions.sample(logit, np.random.default_rng(1))
    logit_t, action_t = (tree_map(torch.from_numpy, x) for x in (logit, action))
    parts = distributions(kind, logit_t)
    wanted = sum(d.log_prob(pick(action_t)) for d, pick in parts).numpy()
    entropy = sum(d.entropy() for d, _ in parts).numpy()
    assert actions.log_prob(logit, action) == pytest.approx(wanted, abs=1e-4)
    found = actions.log_prob_entropy(logit_t, action_t)
    assert found[0].numpy() == pytest.approx(wanted, abs=1e-4)
    assert found[1].numpy() == pytest.approx(entropy, abs=1e-4)


@pytest.mark.parametrize("kind", list(ACTION_KINDS))
def test_the_best_action_is_the_likeliest(kind: str) -> None:
    actions, logit = ACTION_KINDS[kind], LOGITS[kind]
    best = actions.log_prob(logit, actions.best(logit))
    rng = np.random.default_rng(2)
    for _ in range(20):
        assert (best >= actions.log_prob(logit, actions.sample(logit, rng)) - 1e-5).all()


def test_kind_by_shape() -> None:
    assert action_kind("discrete", 4) is ACTION_KINDS["discrete"]
    assert action_kind("discrete", [4]) is ACTION_KINDS["discrete"]
    assert action_kind("discrete", [4, 2]) is ACTION_KINDS["multi_discrete"]
    assert action_kind("continuous", [4, 2]) is ACTION_KINDS["continuous"]


@pytest.mark.parametrize("as_tensor", [False, True])
def test_masked_actions_are_never_taken(as_tensor: bool) -> None:
    logit, mask = normal(6, 4), np.tile(np.array([1, 0, 1, 0], dtype=np.int8), (6, 1))
    output = {"logit": logit, "action_mask": mask}
    if as_tensor:
        found = masked_logits(tree_map(torch.from_numpy, output))
        assert float(Categorical(logits=found).probs[:, [1, 3]].sum()) == 0
        _, entropy = ACTION_KINDS["discrete"].log_prob_entropy(found, torch.zeros(6).long())
        assert torch.isfinite(entropy).all()
        return
    found = masked_logits(output)
    assert found.dtype == np.float32
    assert np.array_equal(found[:, [0, 2]], logit[:, [0, 2]])
    for _ in range(20):
        assert np.isin(ACTION_KINDS["discrete"].sample(found, RNG), (0, 2)).all()


def test_mask_of_other_kinds() -> None:
    mask = np.ones((50, 3), dtype=np.int8)
    mask[:, 1] = 0
    found = masked_logits({"logit": LOGITS["hybrid"], "action_mask": mask})
    assert (found["action_type"][:, 1] < -1e7).all()
    with pytest.raises(ConfigError, match="action_mask"):
        masked_logits({"logit": LOGITS["continuous"], "action_mask": mask})


# --- PPO on an env whose best action is known ----------------------------------------------------


class Guess(BaseEnv):
    """One step: the reward is for the action that the observation names."""

    _reward_space = gym.spaces.Box(-10, 1, (1,), dtype=np.float32)

    def __init__(self, kind: str) -> None:
        super().__init__({})
        self.kind = kind
        box = gym.spaces.Box(-1, 1, (3,), dtype=np.float32)
        mask = gym.spaces.Box(0, 1, (3,), dtype=np.int8)
        masked = gym.spaces.Dict({"obs": box, "action_mask": mask})
        self._observation_space = masked if kind == "masked" else box
        spaces: dict[str, gym.Space] = {
            "masked": gym.spaces.Discrete(3),
            "multi_discrete": gym.spaces.MultiDiscrete([3, 3]),
            "hybrid": gym.spaces.Dict(
                {
                    "action_type": gym.spaces.Discrete(3),
                    "action_args": gym.spaces.Box(-1, 1, (1,), dtype=np.float32),
                }
            ),
        }
        self._action_space = spaces[kind]
        self._rng = np.random.default_rng(0)

    def _obs(self) -> Any:
        obs = np.zeros(3, dtype=np.float32)
        obs[self.right] = 1.0
        if self.kind != "masked":
            return obs
        mask = np.ones(3, dtype=np.int8)
        mask[(self.right + 1) % 3] = 0
        return {"obs": obs, "action_mask": mask}

    def reset(self) -> Any:
        self.right = int(self._rng.integers(3))
        return self._obs()

    def step(self, action: Any) -> BaseEnvTimestep:
        if self.kind == "masked":
            assert int(action) != (self.right + 1) % 3, "a forbidden action"
            reward = float(int(action) == self.right)
        elif self.kind == "multi_discrete":
            assert np.shape(action) == (2,)
            reward = float(action[0] == self.right) + float(action[1] == 2 - self.right)
        else:
            right = int(action["action_type"]) == self.right
            reward = float(right) - abs(float(action["action_args"][0]) - 0.5)
        return BaseEnvTimestep(self._obs(), reward, True, {})

    def close(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["masked", "multi_discrete", "hybrid"])
def test_ppo_learns_with_every_kind(kind: str) -> None:
    set_pkg_seed(0)
    env = BaseEnvManager([partial(Guess, kind)] * 8, {})
    cfg: dict[str, Any] = dict(
        type="ppo",
        action_space="hybrid" if kind == "hybrid" else "discrete",
        model=dict(encoder_hidden_size_list=[32]),
        learn=dict(batch_size=64, epoch_per_collect=4, learning_rate=0.01),
        collect=dict(n_sample=128),
    )
    fit_model_to_env(cfg, env)
    assert cfg["model"]["obs_shape"] == 3
    policy = PPOPolicy(cfg)
    with SampleCollector(env=env, policy=policy.collect_mode) as collector:
        for _ in range(25):
            policy.learn_mode.forward(collector.collect())
    obs: Any = np.eye(3, dtype=np.float32)
    if kind == "masked":
        obs = {"obs": obs, "action_mask": 1 - np.roll(np.eye(3, dtype=np.int8), 1, axis=1)}
    _, output = stacked_of(policy.eval_mode.forward(ByEnv(np.arange(3), obs)))
    action = output["action"]
    if kind == "masked":
        assert action.tolist() == [0, 1, 2]
    elif kind == "multi_discrete":
        assert action.tolist() == [[0, 2], [1, 1], [2, 0]]
    else:
        assert action["action_type"].tolist() == [0, 1, 2]
        assert action["action_args"][:, 0] == pytest.approx(0.5, abs=0.15)


def test_every_kind_keeps_an_agent_axis() -> None:
    """(N, agents, A) logits: each agent has its own choice, over the last axis."""
    rng = np.random.default_rng(0)
    logit = rng.normal(size=(3, 2, 4)).astype(np.float32)
    several = (logit, rng.normal(size=(3, 2, 5)).astype(np.float32))
    discrete, multi = ACTION_KINDS["discrete"], ACTION_KINDS["multi_discrete"]
    assert np.array_equal(discrete.best(logit), logit.argmax(axis=-1))
    best = multi.best(several)
    assert best.shape == multi.sample(several, rng).shape == (3, 2, 2)
    assert np.array_equal(best[..., 1], several[1].argmax(axis=-1))
    log_prob = multi.log_prob(several, best)
    parts = [discrete.log_prob(head, best[..., i]) for i, head in enumerate(several)]
    assert log_prob.shape == (3, 2)
    assert log_prob == pytest.approx(sum(parts), rel=1e-5)
