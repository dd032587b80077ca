"""TD3 on LunarLander with continuous engines."""

from easydict import EasyDict

main_config = lunarlander_td3_config = EasyDict(
    exp_name="lunarlander_td3_seed0",
    env=dict(
        env_id="LunarLander-v3",
        env_kwargs=dict(continuous=True),
        collector_env_num=4,
        evaluator_env_num=20,
        n_evaluator_episode=40,
        stop_value=240,  # a margin over the usual 200, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=8,
            action_shape=2,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        random_collect_size=5000,
        discount_factor=0.99,
        learn=dict(
            update_per_collect=4,
            batch_size=128,
            learning_rate_actor=0.0005,
            learning_rate_critic=0.001,
            target_theta=0.01,
        ),
        collect=dict(n_sample=4, noise_sigma=0.15),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(replay_buffer=dict(replay_buffer_size=300000)),
    ),
)

create_config = lunarlander_td3_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="td3")
)
