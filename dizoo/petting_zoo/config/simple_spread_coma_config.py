"""COMA on simple_spread (mpe2); returns are on the documented scale, see the config of QMIX."""

from easydict import EasyDict

main_config = simple_spread_coma_config = EasyDict(
    exp_name="simple_spread_coma_seed0",
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
            actor_hidden_size_list=[128, 128],
            critic_hidden_size_list=[128, 128],
        ),
        discount_factor=0.9,
        reward_norm=True,
        learn=dict(
            critic_epoch_per_collect=8,
            batch_size=400,
            learning_rate=0.0005,
            critic_learning_rate=0.001,
            entropy_weight=0.005,
        ),
        collect=dict(n_sample=800),
        eval=dict(evaluator=dict(eval_freq=1000)),
    ),
)

create_config = simple_spread_coma_create_config = EasyDict(
    env=dict(type="pettingzoo", import_names=["ding.envs.pettingzoo_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="coma"),
)
