"""IMPALA on Pong, with the small network of the PPO config."""

from easydict import EasyDict

main_config = pong_impala_config = EasyDict(
    exp_name="pong_impala_seed0",
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
            actor_head_layer_num=0,
            critic_head_layer_num=0,
        ),
        discount_factor=0.99,
        learn=dict(
            update_per_collect=8,
            batch_size=4,
            learning_rate=0.0005,
            entropy_weight=0.002,  # of advantages that are not normalised
        ),
        collect=dict(n_sample=8, unroll_len=32),
        eval=dict(evaluator=dict(eval_freq=4000)),
        other=dict(replay_buffer=dict(replay_buffer_size=16)),
    ),
)

create_config = pong_impala_create_config = EasyDict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="impala"),
)
