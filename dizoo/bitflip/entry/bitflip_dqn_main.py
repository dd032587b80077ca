"""HER-DQN on bit flipping with the workers used by hand: whole episodes, relabelled when drawn.

python3 -u bitflip_dqn_main.py --seed 0
"""

from __future__ import annotations

import argparse
import logging
from functools import partial
from typing import Any

import numpy as np

from ding.config import compile_config
from ding.envs import BaseEnvManager
from ding.policy import DQNPolicy
from ding.reward_model import HerRewardModel
from ding.rl_utils import get_epsilon_greedy_fn
from ding.utils.seed import set_pkg_seed
from ding.worker import BaseLearner, BaseSerialEvaluator, EpisodeCollector, EpisodeReplayBuffer
from dizoo.bitflip.envs import BitFlipEnv

logger = logging.getLogger(__name__)

bitflip_her_dqn_config = dict(
    exp_name="bitflip_her_dqn_main_seed0",
    env=dict(
        n_bits=5,
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=40,
        stop_value=0.9,
    ),
    policy=dict(
        model=dict(obs_shape=10, action_shape=5, encoder_hidden_size_list=[128, 128]),
        discount_factor=0.9,
        learn=dict(update_per_collect=10, learning_rate=0.0005, target_update_freq=100),
        collect=dict(n_episode=8),
        eval=dict(evaluator=dict(eval_freq=200)),
        other=dict(
            eps=dict(type="linear", start=0.5, end=0.05, decay=4000),
            replay_buffer=dict(replay_buffer_size=2000),
        ),
    ),
)
her_config: dict[str, Any] = dict(
    her_strategy="future", her_replay_k=2, episode_size=32, sample_per_episode=4
)


def main(seed: int = 0, max_env_step: int = 20_000) -> float:
    """Train until the stop value or `max_env_step`; returns the best share of goals reached."""
    cfg = compile_config(
        bitflip_her_dqn_config,
        BaseEnvManager,
        DQNPolicy,
        BaseLearner,
        EpisodeCollector,
        BaseSerialEvaluator,
        EpisodeReplayBuffer,
        BitFlipEnv,
        seed=seed,
    )
    set_pkg_seed(seed, use_cuda=cfg.policy.cuda)
    collector_env, evaluator_env = (
        BaseEnvManager([partial(BitFlipEnv, c) for c in cfgs], cfg.env.manager)
        for cfgs in (
            BitFlipEnv.create_collector_env_cfg(cfg.env),
            BitFlipEnv.create_evaluator_env_cfg(cfg.env),
        )
    )
    collector_env.seed(seed)
    evaluator_env.seed(seed, dynamic_seed=False)
    policy = DQNPolicy(cfg.policy)
    learn, eps, name = cfg.policy.learn, cfg.policy.other.eps, cfg.exp_name
    epsilon = get_epsilon_greedy_fn(eps.start, eps.end, eps.decay, eps.type)
    buffer = EpisodeReplayBuffer(cfg.policy.other.replay_buffer, exp_name=name)
    her = HerRewardModel(her_config)
    with (
        BaseLearner(learn.learner, policy.learn_mode, exp_name=name) as learner,
        EpisodeCollector(
            cfg.policy.collect.collector, collector_env, policy.collect_mode, exp_name=name
        ) as collector,
        BaseSerialEvaluator(
            cfg.policy.eval.evaluator, evaluator_env, policy.eval_mode, exp_name=name
        ) as evaluator,
    ):
        while collector.envstep < max_env_step:
            if evaluator.should_eval(learner.train_iter):
                stop, _ = evaluator.eval(
                    learner.save_checkpoint, learner.train_iter, collector.envstep
                )
                if stop:
                    break
            episodes = collector.collect(
                train_iter=learner.train_iter, policy_kwargs={"eps": epsilon(collector.envstep)}
            )
            buffer.push(episodes, collector.envstep)
            for _ in range(learn.update_per_collect):
                drawn = buffer.sample(her_config["episode_size"], learner.train_iter)
                if drawn is None:
                    break
                rows = []
                for episode in drawn:
                    original = np.random.randint(
                        len(episode), size=her_config["sample_per_episode"]
                    )
                    rows += [episode[i] for i in original]
                    for relabelled in her.estimate(episode):
                        rows += relabelled
                learner.train(policy.collect_mode.get_train_sample(rows), collector.envstep)
    logger.info("best share of goals reached %.2f; results in %s", evaluator.best, name)
    return evaluator.best


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = argparse.ArgumentParser(description="HER-DQN on bit flipping")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--max-env-step", type=int, default=20_000)
    main(**vars(options.parse_args()))
