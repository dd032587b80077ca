"""DQN on Qbert."""

from easydict import EasyDict

main_config = qbert_dqn_config = EasyDict(
    exp_name="qbert_dqn_seed0",
    env=dict(
        env_id="ALE/Qbert-v5",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=15000,
    ),
    policy=dict(
        model=dict(
            obs_shape=[4, 84, 84],
            action_shape=6,
            encoder_hidden_size_list=[32, 64, 64, 512],
        ),
        random_collect_size=5000,
        discount_factor=0.99,
        nstep=3,
        learn=dict(
            update_per_collect=8,
            batch_size=32,
            learning_rate=0.0001,
            target_update_freq=500,
            grad_clip_type="clip_norm",
            grad_clip_value=10.0,
        ),
        collect=dict(n_sample=32),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=250000),
            replay_buffer=dict(replay_buffer_size=100000, frame_stack=4),
        ),
    ),
)

create_config = qbert_dqn_create_config = EasyDict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="dqn"),
)
