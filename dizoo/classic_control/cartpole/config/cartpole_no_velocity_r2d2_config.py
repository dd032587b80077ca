"""R2D2 on CartPole-v1 without velocities: what is seen of one step does not do."""

from easydict import EasyDict

main_config = cartpole_no_velocity_r2d2_config = EasyDict(
    exp_name="cartpole_no_velocity_r2d2_seed0",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=490,  # a margin over the usual 475, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=2,
            action_shape=2,
            encoder_hidden_size_list=[64],
            head_hidden_size=64,
            lstm_type="gru",
        ),
        discount_factor=0.99,
        nstep=3,
        burnin_step=4,
        learn_unroll_len=16,
        learn=dict(
            update_per_collect=8,
            batch_size=32,
            learning_rate=0.001,
            target_update_freq=50,
            grad_clip_type="clip_norm",
            grad_clip_value=10.0,
        ),
        collect=dict(n_sample=32),
        eval=dict(evaluator=dict(eval_freq=1000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.04, decay=10000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = cartpole_no_velocity_r2d2_create_config = EasyDict(
    env=dict(
        type="cartpole_no_velocity",
        import_names=["dizoo.classic_control.cartpole.envs.no_velocity_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="r2d2"),
)
