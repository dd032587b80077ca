"""MAPPO on the micro battle 3m; every agent's critic has a state of its own."""

from easydict import EasyDict

shared = dict(
    model=dict(
        actor_head_hidden_size=64,
        actor_head_layer_num=1,
        critic_head_hidden_size=128,
        critic_head_layer_num=1,
    ),
    discount_factor=0.99,
    learn=dict(
        epoch_per_collect=5,
        batch_size=800,
        learning_rate=0.0007,
        entropy_weight=0.01,
    ),
    collect=dict(n_sample=3200),
    eval=dict(evaluator=dict(eval_freq=200)),
)

main_config = micro_battle_3m_mappo_config = EasyDict(
    exp_name="micro_battle_3m_mappo_seed0",
    env=dict(
        map_name="3m",
        special_global_state=True,
        collector_env_num=32,
        evaluator_env_num=32,
        n_evaluator_episode=64,
        stop_value=0.95,
    ),
    policy=shared,
)

create_config = micro_battle_3m_mappo_create_config = EasyDict(
    env=dict(type="micro_battle", import_names=["dizoo.micro_battle.envs.micro_battle_env"]),
    env_manager=dict(type="gym_vector"),
    policy=dict(type="mappo"),
)
