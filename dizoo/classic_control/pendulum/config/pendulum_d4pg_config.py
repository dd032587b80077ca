"""D4PG on Pendulum."""

from easydict import EasyDict

main_config = pendulum_d4pg_config = EasyDict(
    exp_name="pendulum_d4pg_seed0",
    env=dict(
        collector_env_num=1,
        evaluator_env_num=100,
        n_evaluator_episode=100,
        act_scale=True,
        # The best policies reach -130 to -165 on a hundred starts, by the starts.
        stop_value=-170,
    ),
    policy=dict(
        model=dict(
            obs_shape=3,
            action_shape=1,
            actor_head_hidden_size=128,
            critic_head_hidden_size=128,
            v_min=-320.0,  # of the worst reward, -16, at this discount
            v_max=0.0,
        ),
        discount_factor=0.95,
        random_collect_size=1000,
        learn=dict(
            batch_size=128,
            learning_rate_actor=0.001,
            learning_rate_critic=0.001,
        ),
        collect=dict(n_sample=1, noise_sigma=0.1),
        eval=dict(evaluator=dict(eval_freq=1000)),
        other=dict(replay_buffer=dict(replay_buffer_size=100000)),
    ),
)

create_config = pendulum_d4pg_create_config = EasyDict(
    env=dict(
        type="pendulum",
        import_names=["dizoo.classic_control.pendulum.envs.pendulum_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="d4pg"),
)
