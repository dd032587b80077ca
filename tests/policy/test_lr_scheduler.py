"""`policy.learn.lr_scheduler` in every algorithm."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
import torch

from ding.config import compile_config
from ding.policy import DQNPolicy, Policy
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from ding.worker import BaseLearner
from policy.fakes import KINDS, batch_of, policy_of

HALVED = dict(type="step", decay=2, gamma=0.5)


def rates_of(policy: Policy) -> list[float]:
    parts = policy.learn_state.values()
    optimizers = [part for part in parts if isinstance(part, torch.optim.Optimizer)]
    return [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]


def weights_of(policy: Policy) -> list[Any]:
    return [parameter.tolist() for parameter in policy._model.parameters()]


def learner_of(policy: Policy, tmp_path: Any) -> BaseLearner:
    return BaseLearner({}, policy=policy.learn_mode, exp_name=str(tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_all_rates_follow_the_train_iterations(kind: str, tmp_path: Any) -> None:
    policy = policy_of(kind, learn=dict(lr_scheduler=HALVED))
    first, batch = rates_of(policy), Rows(batch_of(kind))
    with closing(learner_of(policy, tmp_path)) as learner:
        for factor in (1, 1, 0.5, 0.5, 0.25):
            output = learner.train(batch)[0]
            assert rates_of(policy) == [rate * factor for rate in first]
            assert output.get("cur_lr", output.get("cur_lr_q")) == first[0] * factor


def test_env_steps(tmp_path: Any) -> None:
    schedule = dict(type="linear", decay=100, end=0.5, unit="env_step")
    policy = policy_of("dqn", learn=dict(lr_scheduler=schedule))
    with closing(learner_of(policy, tmp_path)) as learner:
        for env_step, rate in ((0, 1e-3), (50, 0.75e-3), (1000, 0.5e-3)):
            learner.train(Rows(batch_of("dqn")), env_step)
            assert rates_of(policy) == pytest.approx([rate])
        with pytest.raises(ConfigError, match="was not told"):
            learner.train(Rows(batch_of("dqn")))


def test_the_rate_counts_in_the_update(tmp_path: Any) -> None:
    """With a rate of zero nothing moves, with all of it the update is the one without schedule."""
    batch = Rows(batch_of("dqn"))
    plain, scheduled = policy_of("dqn"), policy_of("dqn", learn=dict(lr_scheduler=_to_zero()))
    with (
        closing(learner_of(plain, tmp_path)) as one,
        closing(learner_of(scheduled, tmp_path)) as two,
    ):
        one.train(batch, 0)
        two.train(batch, 0)
        for mine, other in zip(
            scheduled._model.parameters(), plain._model.parameters(), strict=True
        ):
            assert torch.equal(mine, other)
        two.train(batch, 10)
        for mine, other in zip(
            scheduled._model.parameters(), plain._model.parameters(), strict=True
        ):
            assert torch.equal(mine, other)


def _to_zero() -> dict[str, Any]:
    return dict(type="cosine", decay=10, unit="env_step")


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_is_eager(tmp_path: Any) -> None:
    losses = []
    for compiled in (False, True):
        learn = dict(lr_scheduler=HALVED, compile=compiled, learning_rate=0.05)
        policy, batch = policy_of("dqn", learn=learn), Rows(batch_of("dqn"))
        with closing(learner_of(policy, tmp_path)) as learner:
            losses.append([float(learner.train(batch)[0]["total_loss"]) for _ in range(8)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-3, abs=1e-4)
    assert losses[0][-1] != losses[0][0]


def test_goes_on_from_a_saved_state(tmp_path: Any) -> None:
    learn = dict(lr_scheduler=dict(type="linear", decay=10), learning_rate=0.01)
    batch = Rows(batch_of("dqn"))
    first, second = policy_of("dqn", learn=learn), policy_of("dqn", seed=1, learn=learn)
    one, two = learner_of(first, tmp_path), learner_of(second, tmp_path)
    with closing(one), closing(two):
        for _ in range(4):
            one.train(batch)
        two.load_state_dict(one.state_dict())
        losses = [[float(it.train(batch)[0]["total_loss"]) for _ in range(4)] for it in (one, two)]
    assert losses[0] == losses[1] and rates_of(first) == rates_of(second) == pytest.approx([0.003])


def test_only_for_learning() -> None:
    cfg = policy_of("dqn", learn=dict(lr_scheduler=HALVED))._cfg
    policy = DQNPolicy(cfg, enable_field=["collect", "eval"])
    assert policy.collect_mode.get_attribute("lr_schedule") is None
    assert policy_of("dqn").learn_mode.get_attribute("lr_schedule") is None


class NoOptimizer(DQNPolicy):
    def _init_learn(self) -> None:
        pass


def test_a_schedule_of_nothing_is_refused() -> None:
    cfg = policy_of("dqn", learn=dict(lr_scheduler=HALVED))._cfg
    with pytest.raises(ConfigError, match=r"no optimizer in the `learn_state` of NoOptimizer"):
        NoOptimizer(cfg)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (dict(type="linaer", decay=10), r"lr_scheduler.type = 'linaer'; did you mean 'linear'"),
        (dict(type="linear"), r"lr_scheduler.decay' is required"),
        (dict(decay=3), r"lr_scheduler.type' is required"),
        (dict(type="linear", decay=0), r"lr_scheduler.decay = 0: must be at least 1"),
        (dict(type="linear", decay=5, end=2.0), r"lr_scheduler.end = 2.0: must be between 0 and 1"),
        (dict(type="linear", decay=5, warmup=-1), r"warmup = -1: must be at least 0"),
        (dict(type="linear", decay=5, unit="env_steps"), r"did you mean 'env_step'"),
        (dict(type="linear", decay=5, gamma=0.5), r"gamma = 0.5 with type = 'linear'"),
        (dict(type="step", decay=5), r"gamma = None with type = 'step'"),
        (dict(type="step", decay=5, gamma=1.5), r"gamma = 1.5: must be between 0 and 1"),
        (dict(type="linear", decay=5, ends=0.1), r"unknown config key .*ends.* did you mean 'end'"),
        ("linear", r"lr_scheduler' must be dict \| None"),
    ],
)
def test_bad_settings(schedule: Any, message: str) -> None:
    main = dict(
        exp_name="never",
        env=dict(env_id="CartPole-v1", stop_value=1, n_evaluator_episode=1),
        policy=dict(learn=dict(lr_scheduler=schedule)),
    )
    main["env"] |= dict(collector_env_num=1, evaluator_env_num=1)
    with pytest.raises(ConfigError, match=message):
        compile_config(main, auto=True, create_cfg=dict(policy=dict(type="dqn")), save_cfg=False)
