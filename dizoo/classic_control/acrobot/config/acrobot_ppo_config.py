"""PPO on Acrobot."""

from easydict import EasyDict

main_config = acrobot_ppo_config = EasyDict(
    exp_name="acrobot_ppo_seed0",
    env=dict(
        env_id="Acrobot-v1",
        collector_env_num=16,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=-95,  # a margin over the usual -100, so that other starts reach that too
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=6,
            action_shape=3,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.99,
        learn=dict(
            epoch_per_collect=4,
            batch_size=256,
            learning_rate=0.001,
            entropy_weight=0.01,
        ),
        collect=dict(n_sample=4096, gae_lambda=0.94),
        eval=dict(evaluator=dict(eval_freq=320)),
    ),
)

create_config = acrobot_ppo_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="ppo")
)
