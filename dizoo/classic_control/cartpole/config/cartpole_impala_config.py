"""IMPALA on CartPole-v1 (episodes of 500 steps)."""

from easydict import EasyDict

main_config = cartpole_impala_config = EasyDict(
    exp_name="cartpole_impala_seed0",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=485,  # a margin over the usual 475, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=4,
            action_shape=2,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.98,
        learn=dict(update_per_collect=4, batch_size=8, learning_rate=0.001, entropy_weight=0.0),
        collect=dict(n_sample=8, unroll_len=32),
        eval=dict(evaluator=dict(eval_freq=200)),
        other=dict(replay_buffer=dict(replay_buffer_size=16)),
    ),
)

create_config = cartpole_impala_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="impala")
)
