"""ACER on CartPole-v1 (episodes of 500 steps)."""

from easydict import EasyDict

main_config = cartpole_acer_config = EasyDict(
    exp_name="cartpole_acer_seed0",
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
            encoder_hidden_size_list=[64, 64],
            activation="tanh",
        ),
        discount_factor=0.98,
        learn=dict(
            update_per_collect=4,
            batch_size=16,
            learning_rate_actor=0.001,
            learning_rate_critic=0.001,
        ),
        collect=dict(n_sample=8, unroll_len=32),
        eval=dict(evaluator=dict(eval_freq=200)),
        other=dict(replay_buffer=dict(replay_buffer_size=500)),
    ),
)

create_config = cartpole_acer_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="acer")
)
