"""BDQ on the lattice: 625 joint actions, 4 branches of 5."""

from easydict import EasyDict

main_config = lattice_bdq_config = EasyDict(
    exp_name="lattice_bdq_seed0",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=-2.05,  # the best return is -2
    ),
    policy=dict(
        model=dict(encoder_hidden_size_list=[128, 128], layer_num=0),
        discount_factor=0.9,
        learn=dict(
            update_per_collect=4, batch_size=128, learning_rate=0.001, target_update_freq=100
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.02, decay=4000),
            replay_buffer=dict(replay_buffer_size=5000),
        ),
    ),
)

create_config = lattice_bdq_create_config = EasyDict(
    env=dict(type="lattice", import_names=["dizoo.toy.lattice.envs.lattice_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="bdq"),
)
