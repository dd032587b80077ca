"""MAPPO on simple_spread (mpe2); returns are on the documented scale, see the config of QMIX.

`python -m ledger --only simple_spread_mappo --seeds 0` reaches its stop value after 748,800 joint
steps, and then -64.0 in 100 fresh episodes. With 10 passes over each rollout instead of 20 it was
at -77 after 500,000 steps, with 20 at -71.3.
"""

from easydict import EasyDict

main_config = simple_spread_mappo_config = EasyDict(
    exp_name="simple_spread_mappo_seed0",
    env=dict(
        env_family="mpe",
        env_id="simple_spread_v3",
        n_agent=3,
        max_cycles=25,
        obs_agent_id=True,
        reward_scale=2.0,
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=96,
        stop_value=-62,
    ),
    policy=dict(
        model=dict(
            actor_head_hidden_size=128,
            actor_head_layer_num=1,
            critic_head_hidden_size=128,
            critic_head_layer_num=1,
        ),
        discount_factor=0.9,
        learn=dict(
            epoch_per_collect=20,
            batch_size=400,
            learning_rate=0.0007,
            entropy_weight=0.01,
        ),
        collect=dict(n_sample=1600),
        eval=dict(evaluator=dict(eval_freq=1000)),
    ),
)

create_config = simple_spread_mappo_create_config = EasyDict(
    env=dict(type="pettingzoo", import_names=["ding.envs.pettingzoo_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="mappo"),
)
