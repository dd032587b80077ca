"""Behaviour cloning on Pendulum, torques in [-1, 1]."""

from easydict import EasyDict

main_config = pendulum_bc_config = EasyDict(
    exp_name="pendulum_bc_seed0",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=50,
        act_scale=True,
        stop_value=-200,
    ),
    policy=dict(
        continuous=True,
        loss_type="mse_loss",
        model=dict(
            obs_shape=3,
            action_shape=1,
            action_space="regression",
            actor_head_hidden_size=128,
        ),
        learn=dict(
            batch_size=64,
            learning_rate=0.001,
            optimizer="Adam",
            train_epoch=100,
            early_stop_epoch=20,
        ),
        # Make it with: ding demo make RUN -o pendulum_expert.hdf5
        collect=dict(data_path="./pendulum_expert.hdf5"),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = pendulum_bc_create_config = EasyDict(
    env=dict(
        type="pendulum",
        import_names=["dizoo.classic_control.pendulum.envs.pendulum_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="bc"),
)
