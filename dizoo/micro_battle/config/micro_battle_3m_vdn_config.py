"""VDN on the micro battle 3m, with the settings of QMIX."""

from easydict import EasyDict

from dizoo.micro_battle.config.micro_battle_3m_qmix_config import shared

main_config = micro_battle_3m_vdn_config = EasyDict(
    exp_name="micro_battle_3m_vdn_seed0",
    env=dict(
        map_name="3m",
        collector_env_num=16,
        evaluator_env_num=32,
        n_evaluator_episode=64,
        stop_value=0.95,
    ),
    policy={**shared, "model": dict(hidden_size_list=[64, 64], lstm_type=None)},
)

create_config = micro_battle_3m_vdn_create_config = EasyDict(
    env=dict(type="micro_battle", import_names=["dizoo.micro_battle.envs.micro_battle_env"]),
    env_manager=dict(type="gym_vector"),
    policy=dict(type="vdn"),
)
