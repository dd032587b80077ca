"""QMIX on the micro battle 2s3z; settings are those of the map 3m."""

from easydict import EasyDict

from dizoo.micro_battle.config.micro_battle_3m_qmix_config import shared

main_config = micro_battle_2s3z_qmix_config = EasyDict(
    exp_name="micro_battle_2s3z_qmix_seed0",
    env=dict(
        map_name="2s3z",
        collector_env_num=16,
        evaluator_env_num=32,
        n_evaluator_episode=64,
        stop_value=0.95,
    ),
    policy=shared,
)

create_config = micro_battle_2s3z_qmix_create_config = EasyDict(
    env=dict(type="micro_battle", import_names=["dizoo.micro_battle.envs.micro_battle_env"]),
    env_manager=dict(type="gym_vector"),
    policy=dict(type="qmix"),
)
