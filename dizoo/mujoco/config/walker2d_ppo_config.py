"""PPO on Walker2d."""

from easydict import EasyDict

main_config = walker2d_ppo_config = EasyDict(
    exp_name="walker2d_ppo_seed0",
    env=dict(
        env_id="Walker2d-v5",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=2000,
    ),
    policy=dict(
        action_space="continuous",
        model=dict(
            obs_shape=17,
            action_shape=6,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.99,
        learn=dict(
            epoch_per_collect=10,
            batch_size=64,
            learning_rate=0.0003,
            lr_scheduler=dict(type="linear", unit="env_step", decay=1000000),
            entropy_weight=0.0,
        ),
        collect=dict(n_sample=2048, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=6400)),
    ),
)

create_config = walker2d_ppo_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="ppo")
)
