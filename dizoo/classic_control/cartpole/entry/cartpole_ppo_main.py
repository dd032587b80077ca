"""PPO on CartPole-v1 with the workers used by hand. On-policy: there is no buffer.

python3 -u cartpole_ppo_main.py --seed 0
"""

from __future__ import annotations

import argparse
import logging
from functools import partial

from ding.config import compile_config
from ding.envs import BaseEnvManager
from ding.policy import PPOPolicy
from ding.utils.seed import set_pkg_seed
from ding.worker import BaseLearner, BaseSerialEvaluator, SampleCollector
from dizoo.classic_control.cartpole.config.cartpole_ppo_config import main_config
from dizoo.classic_control.cartpole.envs import CartPoleEnv

logger = logging.getLogger(__name__)


def main(seed: int = 0, max_env_step: int = 200_000) -> float:
    """Train until the stop value or `max_env_step`; returns the best mean return."""
    cfg = compile_config(
        main_config,
        BaseEnvManager,
        PPOPolicy,
        BaseLearner,
        SampleCollector,
        BaseSerialEvaluator,
        env=CartPoleEnv,
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
    evaluator_env.seed(seed, dynamic_seed=False)

    policy = PPOPolicy(cfg.policy)
    name = cfg.exp_name
    with (
        BaseLearner(cfg.policy.learn.learner, policy.learn_mode, exp_name=name) as learner,
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
            samples = collector.collect(train_iter=learner.train_iter)
            # One call runs all epochs over these samples; then they are out of date.
            learner.train(samples, collector.envstep)
        learner.save_checkpoint()
    logger.info("best mean return %.1f; results in %s", evaluator.best, name)
    return evaluator.best


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = argparse.ArgumentParser(description="PPO on CartPole-v1")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--max-env-step", type=int, default=200_000)
    main(**vars(options.parse_args()))
