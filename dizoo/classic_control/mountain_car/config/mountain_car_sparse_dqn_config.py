"""DQN without a bonus where only the goal is rewarded, beside `..._sparse_rnd_dqn_config`."""

from easydict import EasyDict

main_config = mountain_car_sparse_dqn_config = EasyDict(
    exp_name="mountain_car_sparse_dqn_seed0",
    env=dict(
        env_wrapper=[dict(type="rescale_obs", kwargs=dict(low=-1.0, high=1.0))],
        collector_env_num=4,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=0.99,
    ),
    policy=dict(
        model=dict(obs_shape=2, action_shape=3, encoder_hidden_size_list=[128, 128], dueling=False),
        random_collect_size=1000,
        discount_factor=0.99,
        nstep=3,
        learn=dict(
            update_per_collect=16, batch_size=128, learning_rate=0.001, target_update_freq=300
        ),
        collect=dict(n_sample=64),
        eval=dict(evaluator=dict(eval_freq=1000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=10_000),
            replay_buffer=dict(replay_buffer_size=100_000),
        ),
    ),
)

create_config = mountain_car_sparse_dqn_create_config = EasyDict(
    env=dict(
        type="mountain_car_sparse",
        import_names=["dizoo.classic_control.mountain_car.envs.sparse_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
)
