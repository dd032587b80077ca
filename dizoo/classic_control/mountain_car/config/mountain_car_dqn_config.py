"""DQN on MountainCar.

With a learning rate of 0.001, a discount of 0.99, double Q-learning and scaled observations of 8
envs it stood at -200 after 261,000 env steps; which of these matters most was not tried.
"""

from easydict import EasyDict

main_config = mountain_car_dqn_config = EasyDict(
    exp_name="mountain_car_dqn_seed0",
    env=dict(
        env_id="MountainCar-v0",
        collector_env_num=1,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=-107,  # a margin over the usual -110, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=2,
            action_shape=3,
            encoder_hidden_size_list=[256, 256],
            dueling=False,
        ),
        random_collect_size=1000,
        discount_factor=0.98,
        learn=dict(
            update_per_collect=8,
            batch_size=128,
            learning_rate=0.004,
            # At a constant rate the last evaluations in 120,000 env steps had -124 to -179.
            lr_scheduler=dict(type="linear", unit="env_step", decay=150000),
            target_update_freq=300,
            double_q=False,
            grad_clip_type="clip_norm",
            grad_clip_value=10.0,
        ),
        collect=dict(n_sample=16),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.07, decay=24000),
            replay_buffer=dict(replay_buffer_size=10000),
        ),
    ),
)

create_config = mountain_car_dqn_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="dqn")
)
