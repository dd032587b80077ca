"""MAPPO on the micro battle 8m; settings are those of the map 3m."""

from easydict import EasyDict

from dizoo.micro_battle.config.micro_battle_3m_mappo_config import shared

main_config = micro_battle_8m_mappo_config = EasyDict(
    exp_name="micro_battle_8m_mappo_seed0",
    env=dict(
        map_name="8m",
        special_global_state=True,
        collector_env_num=32,
        evaluator_env_num=32,
        n_evaluator_episode=64,
        stop_value=0.95,
    ),
    policy=shared,
)

create_config = micro_battle_8m_mappo_create_config = EasyDict(
    env=dict(type="micro_battle", import_names=["dizoo.micro_battle.envs.micro_battle_env"]),
    env_manager=dict(type="gym_vector"),
    policy=dict(type="mappo"),
)
