"""PPO on LunarLander."""

from easydict import EasyDict

main_config = lunarlander_ppo_config = EasyDict(
    exp_name="lunarlander_ppo_seed0",
    env=dict(
        env_id="LunarLander-v3",
        collector_env_num=16,
        evaluator_env_num=20,
        n_evaluator_episode=40,
        stop_value=220,  # a margin over the usual 200, so that other starts reach that too
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=8,
            action_shape=4,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.999,
        learn=dict(
            epoch_per_collect=4,
            batch_size=64,
            learning_rate=0.0003,
            entropy_weight=0.01,
        ),
        collect=dict(n_sample=4096, gae_lambda=0.98),
        eval=dict(evaluator=dict(eval_freq=5000)),
    ),
)

create_config = lunarlander_ppo_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="ppo")
)
