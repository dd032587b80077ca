"""DQN on CartPole with the workers used by hand: what `ding -m serial` does, on one page.

python3 -u cartpole_dqn_main.py --seed 0
"""

from __future__ import annotations

import argparse
import logging
from functools import partial

from ding.config import compile_config
from ding.envs import BaseEnvManager, evaluation_seeds
from ding.policy import DQNPolicy
from ding.rl_utils import get_epsilon_greedy_fn
from ding.utils.seed import set_pkg_seed
from ding.worker import BaseLearner, BaseSerialEvaluator, NaiveReplayBuffer, SampleCollector
from dizoo.classic_control.cartpole.config.cartpole_dqn_config import main_config
from dizoo.classic_control.cartpole.envs import CartPoleEnv

logger = logging.getLogger(__name__)


def main(seed: int = 0, max_env_step: int = 20_000) -> float:
    """Train until the stop value or `max_env_step`; returns the best mean return."""
    cfg = compile_config(
        main_config,
        BaseEnvManager,
        DQNPolicy,
        BaseLearner,
        SampleCollector,
        BaseSerialEvaluator,
        NaiveReplayBuffer,
        CartPoleEnv,
        seed=seed,
    )
    set_pkg_seed(seed, use_cuda=cfg.policy.cuda)
    collector_cfgs = CartPoleEnv.create_collector_env_cfg(cfg.env)
    evaluator_cfgs = CartPoleEnv.create_evaluator_env_cfg(cfg.env)
    collector_env = BaseEnvManager(
        [partial(CartPoleEnv, c) for c in collector_cfgs], cfg.env.manager
    )
    evaluator_env = BaseEnvManager(
        [partial(CartPoleEnv, c) for c in evaluator_cfgs], cfg.env.manager
    )
    collector_env.seed(seed)
    evaluator_env.seed(evaluation_seeds(seed, len(evaluator_cfgs)), dynamic_seed=False)

    policy = DQNPolicy(cfg.policy)
    learn, other, name = cfg.policy.learn, cfg.policy.other, cfg.exp_name
    eps = other.eps
    epsilon = get_epsilon_greedy_fn(eps.start, eps.end, eps.decay, eps.type)
    buffer = NaiveReplayBuffer(other.replay_buffer, exp_name=name)
    with (
        BaseLearner(learn.learner, policy.learn_mode, exp_name=name) as learner,
        SampleCollector(
            cfg.policy.collect.collector, collector_env, policy.collect_mode, exp_name=name
        ) as collector,
        BaseSerialEvaluator(
            cfg.policy.eval.evaluator, evaluator_env, policy.eval_mode, exp_name=name
        ) as evaluator,
    ):
        while collector.envstep < max_env_step:
            if evaluator.should_eval(learner.train_iter):
                stop, returns = evaluator.eval(
                    learner.save_checkpoint, learner.train_iter, collector.envstep
                )
                logger.info("%d env steps: returns %s", collector.envstep, returns)
                if stop:
                    break
            samples = collector.collect(
                train_iter=learner.train_iter,
                policy_kwargs={"eps": epsilon(collector.envstep)},
            )
            buffer.push(samples, collector.envstep)
            for _ in range(learn.update_per_collect):
                batch = buffer.sample(learn.batch_size, learner.train_iter)
                if batch is None:  # fewer samples than a batch so far
                    break
                learner.train(batch, collector.envstep)
        learner.save_checkpoint()
    logger.info("best mean return %.1f; results in %s", evaluator.best, name)
    return evaluator.best


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = argparse.ArgumentParser(description="DQN on CartPole")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--max-env-step", type=int, default=20_000)
    main(**vars(options.parse_args()))
