"""Averaged DQN on CartPole-v1 (episodes of 500 steps)."""

from easydict import EasyDict

main_config = cartpole_averaged_dqn_config = EasyDict(
    exp_name="cartpole_averaged_dqn_seed0",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=490,  # a margin over the usual 475, so that other starts reach that too
    ),
    policy=dict(
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[256, 256], dueling=False),
        discount_factor=0.99,
        learn=dict(
            update_per_collect=4,
            batch_size=64,
            learning_rate=0.002,
            target_update_freq=10,
            n_average=5,
            grad_clip_type="clip_norm",
            grad_clip_value=10.0,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.04, decay=4000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = cartpole_averaged_dqn_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="averaged_dqn")
)
