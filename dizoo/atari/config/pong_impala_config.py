"""IMPALA on Pong."""

main_config = dict(
    exp_name="pong_impala_seed0",
    env=dict(
        env_id="ALE/Pong-v5",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=20,
    ),
    policy=dict(
        model=dict(
            obs_shape=[4, 84, 84],
            action_shape=6,
            encoder_hidden_size_list=[32, 64, 64, 512],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
        ),
        discount_factor=0.99,
        learn=dict(
            update_per_collect=2,
            batch_size=8,
            learning_rate=0.0003,
            entropy_weight=0.01,
        ),
        collect=dict(n_sample=8, unroll_len=32),
        eval=dict(evaluator=dict(eval_freq=2000)),
        other=dict(replay_buffer=dict(replay_buffer_size=16)),
    ),
)

create_config = dict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="impala"),
)
