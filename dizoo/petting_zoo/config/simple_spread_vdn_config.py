"""VDN on simple_spread (mpe2); returns are on the documented scale, see the config of QMIX."""

from easydict import EasyDict

main_config = simple_spread_vdn_config = EasyDict(
    exp_name="simple_spread_vdn_seed0",
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
        stop_value=-60,
    ),
    policy=dict(
        model=dict(
            hidden_size_list=[128, 128],
            lstm_type=None,
        ),
        discount_factor=0.9,
        reward_norm=True,
        learn=dict(
            update_per_collect=10,
            batch_size=256,
            learning_rate=0.0005,
            optim_type="adam",
            weight_decay=0.0,
            grad_clip_value=10.0,
            target_update_theta=0.02,
            double_q=True,
        ),
        collect=dict(n_sample=200, unroll_len=1),
        eval=dict(evaluator=dict(eval_freq=2500)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=40000),
            replay_buffer=dict(replay_buffer_size=200000),
        ),
    ),
)

create_config = simple_spread_vdn_create_config = EasyDict(
    env=dict(type="pettingzoo", import_names=["ding.envs.pettingzoo_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="vdn"),
)
