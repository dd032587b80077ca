"""MASAC on simple_spread (mpe2); returns are on the documented scale, see the config of QMIX."""

from easydict import EasyDict

main_config = simple_spread_masac_config = EasyDict(
    exp_name="simple_spread_masac_seed0",
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
        stop_value=-85,
    ),
    policy=dict(
        model=dict(
            actor_head_hidden_size=128,
            critic_head_hidden_size=128,
        ),
        discount_factor=0.9,
        reward_norm=True,
        random_collect_size=5000,
        learn=dict(
            update_per_collect=10,
            batch_size=256,
            learning_rate_q=0.0005,
            learning_rate_policy=0.0005,
            learning_rate_alpha=0.0003,
            target_theta=0.01,
            alpha=0.05,
            target_entropy=0.3,
        ),
        collect=dict(n_sample=200),
        eval=dict(evaluator=dict(eval_freq=2500)),
        other=dict(replay_buffer=dict(replay_buffer_size=200000)),
    ),
)

create_config = simple_spread_masac_create_config = EasyDict(
    env=dict(type="pettingzoo", import_names=["ding.envs.pettingzoo_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="masac"),
)
