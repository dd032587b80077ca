"""QMIX on simple_spread (mpe2): three agents cover three landmarks in 25 steps.

Returns are 3 G + C, the scale of the documented results: G sums the distances of the landmarks from
their nearest agents, C counts collisions, both negative. mpe2's own rewards, summed over agents,
are 1.5 G + 0.5 C: half of it. Random actions give -162, a scripted assignment -50;
`ledger/README.md` has what this config reaches.
"""

from easydict import EasyDict

main_config = simple_spread_qmix_config = EasyDict(
    exp_name="simple_spread_qmix_seed0",
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
        stop_value=-61,
    ),
    policy=dict(
        # All is seen, so there is nothing to remember.
        model=dict(
            hidden_size_list=[128, 128],
            lstm_type=None,
            mixing_embed_dim=32,
        ),
        discount_factor=0.9,
        reward_norm=True,
        learn=dict(
            update_per_collect=20,
            batch_size=128,
            learning_rate=0.001,
            # At a constant rate of 0.001 QMIX stood at -64 after 600,000 steps and at -290 later.
            lr_scheduler=dict(type="linear", unit="env_step", decay=1_000_000, end=0.05),
            optim_type="adam",
            weight_decay=0.0,
            grad_clip_value=10.0,
            target_update_theta=0.005,
            double_q=True,
        ),
        collect=dict(n_sample=200, unroll_len=1),
        eval=dict(evaluator=dict(eval_freq=4000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=40000),
            replay_buffer=dict(replay_buffer_size=200000),
        ),
    ),
)

create_config = simple_spread_qmix_create_config = EasyDict(
    env=dict(type="pettingzoo", import_names=["ding.envs.pettingzoo_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="qmix"),
)
