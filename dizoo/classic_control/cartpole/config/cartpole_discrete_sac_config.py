"""Discrete SAC on CartPole with episodes of 200 steps."""

from easydict import EasyDict

main_config = cartpole_discrete_sac_config = EasyDict(
    exp_name="cartpole_discrete_sac_seed0",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=20,
        stop_value=198,  # a margin over the usual 195, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=4,
            action_shape=2,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        random_collect_size=500,
        discount_factor=0.99,
        learn=dict(
            update_per_collect=4,
            batch_size=128,
            learning_rate_q=0.001,
            learning_rate_policy=0.0005,
            learning_rate_alpha=0.001,
            target_theta=0.02,
            target_entropy=0.2,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=200)),
        other=dict(replay_buffer=dict(replay_buffer_size=20000)),
    ),
)

create_config = cartpole_discrete_sac_create_config = EasyDict(
    env=dict(
        type="cartpole",
        import_names=["dizoo.classic_control.cartpole.envs.cartpole_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="discrete_sac"),
)
