"""Behaviour cloning on CartPole with episodes of 500 steps."""

from easydict import EasyDict

main_config = cartpole_bc_config = EasyDict(
    exp_name="cartpole_bc_seed0",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=5,
        n_evaluator_episode=50,
        stop_value=475,
    ),
    policy=dict(
        continuous=False,
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[64, 64],
        ),
        learn=dict(
            batch_size=64,
            learning_rate=0.001,
            optimizer="Adam",
            train_epoch=20,
        ),
        # Make it with: ding demo make RUN -o cartpole_expert.hdf5
        collect=dict(data_path="./cartpole_expert.hdf5"),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = cartpole_bc_create_config = EasyDict(
    env=dict(
        type="cartpole",
        import_names=["dizoo.classic_control.cartpole.envs.cartpole_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="bc"),
)
