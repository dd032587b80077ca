"""DQN on Acrobot."""

from easydict import EasyDict

main_config = acrobot_dqn_config = EasyDict(
    exp_name="acrobot_dqn_seed0",
    env=dict(
        env_id="Acrobot-v1",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=-95,  # a margin over the usual -100, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=6,
            action_shape=3,
            encoder_hidden_size_list=[128, 128],
            dueling=False,
        ),
        discount_factor=0.99,
        nstep=3,
        learn=dict(
            update_per_collect=4,
            batch_size=64,
            learning_rate=0.001,
            target_update_freq=50,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=2000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=10000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = acrobot_dqn_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="dqn")
)
