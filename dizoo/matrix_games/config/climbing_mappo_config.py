"""MAPPO on the climbing game: 5 or 7; the 11 lies beside a loss of 30."""

from easydict import EasyDict

main_config = climbing_mappo_config = EasyDict(
    exp_name="climbing_mappo_seed0",
    env=dict(
        game="climbing",
        collector_env_num=8,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=5,
    ),
    policy=dict(
        model=dict(
            actor_head_hidden_size=32,
            critic_head_hidden_size=32,
            actor_head_layer_num=1,
        ),
        discount_factor=1.0,
        learn=dict(
            epoch_per_collect=4,
            batch_size=64,
            learning_rate=0.003,
            entropy_weight=0.05,
        ),
        collect=dict(n_sample=128),
        eval=dict(evaluator=dict(eval_freq=100)),
    ),
)

create_config = climbing_mappo_create_config = EasyDict(
    env=dict(type="matrix_game", import_names=["dizoo.matrix_games.envs.matrix_game_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="mappo"),
)
