"""MAPPO by self-play on the battle 3m of two teams."""

from easydict import EasyDict

main_config = micro_duel_3m_mappo_config = EasyDict(
    exp_name="micro_duel_3m_mappo_seed0",
    env=dict(
        map_name="3m",
        collector_env_num=64,
        evaluator_env_num=16,
        n_evaluator_episode=32,
        stop_value=1e9,  # a limit ends the run
    ),
    policy=dict(
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
        collect=dict(n_episode=128, collector=dict(past_share=0.3, past_every=50, past_kept=50)),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = micro_duel_3m_mappo_create_config = EasyDict(
    env=dict(type="micro_duel", import_names=["dizoo.micro_battle.envs.duel_env"]),
    env_manager=dict(type="gym_vector"),
    policy=dict(type="mappo"),
    collector=dict(type="episode_1v1"),
    evaluator=dict(type="battle_interaction"),
)
