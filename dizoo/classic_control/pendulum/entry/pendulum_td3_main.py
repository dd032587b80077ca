"""TD3 on Pendulum with the workers used by hand, after a warm-up by random actions.

python3 -u pendulum_td3_main.py --seed 0
"""

from __future__ import annotations

import argparse
import logging
from functools import partial

from ding.config import compile_config
from ding.envs import BaseEnvManager
from ding.policy import RandomPolicy, TD3Policy
from ding.utils.seed import set_pkg_seed
from ding.worker import BaseLearner, BaseSerialEvaluator, NaiveReplayBuffer, SampleCollector
from dizoo.classic_control.pendulum.config.pendulum_td3_config import main_config
from dizoo.classic_control.pendulum.envs import PendulumEnv

logger = logging.getLogger(__name__)


def main(seed: int = 0, max_env_step: int = 30_000) -> float:
    """Train until the stop value or `max_env_step`; returns the best mean return."""
    cfg = compile_config(
        main_config,
        BaseEnvManager,
        TD3Policy,
        BaseLearner,
        SampleCollector,
        BaseSerialEvaluator,
        NaiveReplayBuffer,
        PendulumEnv,
        seed=seed,
    )
    set_pkg_seed(seed, use_cuda=cfg.policy.cuda)
    collector_cfgs = PendulumEnv.create_collector_env_cfg(cfg.env)
    evaluator_cfgs = PendulumEnv.create_evaluator_env_cfg(cfg.env)
    collector_env = BaseEnvManager(
        [partial(PendulumEnv, c) for c in collector_cfgs], cfg.env.manager
    )
    evaluator_env = BaseEnvManager(
        [partial(PendulumEnv, c) for c in evaluator_cfgs], cfg.env.manager
    )
    collector_env.seed(seed)
    evaluator_env.seed(seed, dynamic_seed=False)

    policy = TD3Policy(cfg.policy)
    learn, name = cfg.policy.learn, cfg.exp_name
    random_policy = RandomPolicy(collector_env.action_space, like=policy)
    buffer = NaiveReplayBuffer(cfg.policy.other.replay_buffer, exp_name=name)
    with (
        BaseLearner(learn.learner, policy.learn_mode, exp_name=name) as learner,
        SampleCollector(
            cfg.policy.collect.collector,
            collector_env,
            random_policy.collect_mode,
            exp_name=name,
        ) as collector,
        BaseSerialEvaluator(
            cfg.policy.eval.evaluator, evaluator_env, policy.eval_mode, exp_name=name
        ) as evaluator,
    ):
        buffer.push(collector.collect(n_sample=cfg.policy.random_collect_size))
        collector.reset_policy(policy.collect_mode)
        while collector.envstep < max_env_step:
            if evaluator.should_eval(learner.train_iter):
                stop, returns = evaluator.eval(
                    learner.save_checkpoint, learner.train_iter, collector.envstep
                )
                logger.info("%d env steps: returns %s", collector.envstep, returns)
                if stop:
                    break
            buffer.push(collector.collect(train_iter=learner.train_iter), collector.envstep)
            for _ in range(learn.update_per_collect):
                batch = buffer.sample(learn.batch_size, learner.train_iter)
                if batch is not None:
                    learner.train(batch, collector.envstep)
        learner.save_checkpoint()
    logger.info("best mean return %.1f; results in %s", evaluator.best, name)
    return evaluator.best


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = argparse.ArgumentParser(description="TD3 on Pendulum")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--max-env-step", type=int, default=30_000)
    main(**vars(options.parse_args()))
