"""COMA on the two-step game: 7, or 8 where that is tried often enough."""

from easydict import EasyDict

main_config = two_step_coma_config = EasyDict(
    exp_name="two_step_coma_seed0",
    env=dict(
        game="two_step",
        collector_env_num=8,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=8,
    ),
    policy=dict(
        model=dict(
            actor_hidden_size_list=[32],
            critic_hidden_size_list=[32],
        ),
        discount_factor=1.0,
        learn=dict(
            critic_epoch_per_collect=4,
            batch_size=64,
            learning_rate=0.003,
            critic_learning_rate=0.01,
            entropy_weight=0.05,
        ),
        collect=dict(n_sample=128),
        eval=dict(evaluator=dict(eval_freq=100)),
    ),
)

create_config = two_step_coma_create_config = EasyDict(
    env=dict(type="matrix_game", import_names=["dizoo.matrix_games.envs.matrix_game_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="coma"),
)
