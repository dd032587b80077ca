"""A2C on CartPole-v1 (episodes of 500 steps)."""

from easydict import EasyDict

main_config = cartpole_a2c_config = EasyDict(
    exp_name="cartpole_a2c_seed0",
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
        learn=dict(batch_size=64, learning_rate=0.002, entropy_weight=0.0, adv_norm=True),
        collect=dict(n_sample=64, gae_lambda=0.9),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = cartpole_a2c_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="a2c")
)
