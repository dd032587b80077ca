"""DQN on Pong, with the small network of the PPO config."""

from easydict import EasyDict

main_config = pong_dqn_config = EasyDict(
    exp_name="pong_dqn_seed0",
    env=dict(
        env_id="ALE/Pong-v5",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=18,
    ),
    policy=dict(
        model=dict(
            obs_shape=[4, 84, 84],
            action_shape=6,
            encoder_hidden_size_list=[16, 32, 32, 256],
        ),
        random_collect_size=5000,
        discount_factor=0.99,
        nstep=3,
        learn=dict(
            update_per_collect=8,
            batch_size=32,
            learning_rate=0.0002,
            target_update_freq=500,
            grad_clip_type="clip_norm",
            grad_clip_value=10.0,
        ),
        collect=dict(n_sample=32),
        eval=dict(evaluator=dict(eval_freq=12500)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.02, decay=100000),
            replay_buffer=dict(replay_buffer_size=100000, frame_stack=4),
        ),
    ),
)

create_config = pong_dqn_create_config = EasyDict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="dqn"),
)
