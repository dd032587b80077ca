"""DQN on MountainCar."""

main_config = dict(
    exp_name="mountain_car_dqn_seed0",
    env=dict(
        env_id="MountainCar-v0",
        # Positions and velocities differ in size by a factor of twenty.
        env_wrapper=["scaled_float_frame"],
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=-107,  # a margin over the usual -110, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=2,
            action_shape=3,
            encoder_hidden_size_list=[256, 256],
            dueling=False,
        ),
        discount_factor=0.99,
        learn=dict(
            update_per_collect=4,
            batch_size=128,
            learning_rate=0.001,
            target_update_freq=300,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=2000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=20000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = dict(env_manager=dict(type="base"), policy=dict(type="dqn"))
