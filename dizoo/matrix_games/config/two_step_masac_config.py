"""MASAC on the two-step game: 8, found while all are still random."""

from easydict import EasyDict

main_config = two_step_masac_config = EasyDict(
    exp_name="two_step_masac_seed0",
    env=dict(
        game="two_step",
        collector_env_num=8,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=8,
    ),
    policy=dict(
        model=dict(
            actor_head_hidden_size=32,
            critic_head_hidden_size=32,
        ),
        discount_factor=1.0,
        random_collect_size=200,
        learn=dict(
            update_per_collect=8,
            batch_size=64,
            learning_rate_q=0.003,
            learning_rate_policy=0.003,
            learning_rate_alpha=0.003,
            target_theta=0.05,
            alpha=0.5,
            target_entropy=0.2,
        ),
        collect=dict(n_sample=16),
        eval=dict(evaluator=dict(eval_freq=100)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000)),
    ),
)

create_config = two_step_masac_create_config = EasyDict(
    env=dict(type="matrix_game", import_names=["dizoo.matrix_games.envs.matrix_game_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="masac"),
)
