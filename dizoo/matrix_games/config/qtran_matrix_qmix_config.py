"""QMIX on the matrix of the QTRAN paper: training ends at 0, the best is 8."""

from easydict import EasyDict

main_config = qtran_matrix_qmix_config = EasyDict(
    exp_name="qtran_matrix_qmix_seed0",
    env=dict(
        game="qtran",
        collector_env_num=8,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=0,
    ),
    policy=dict(
        model=dict(
            hidden_size_list=[32],
            lstm_type=None,
        ),
        discount_factor=1.0,
        learn=dict(
            update_per_collect=8,
            batch_size=32,
            learning_rate=0.003,
            optim_type="adam",
            weight_decay=0.0,
            target_update_theta=0.05,
        ),
        collect=dict(n_sample=16, unroll_len=2),
        eval=dict(evaluator=dict(eval_freq=100)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=1.0, decay=1),
            replay_buffer=dict(replay_buffer_size=2000),
        ),
    ),
)

create_config = qtran_matrix_qmix_create_config = EasyDict(
    env=dict(type="matrix_game", import_names=["dizoo.matrix_games.envs.matrix_game_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="qmix"),
)
