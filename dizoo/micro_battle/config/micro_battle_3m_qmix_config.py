"""QMIX on the micro battle 3m. Returns are the share of battles won; random play wins none.

`shared` is what the other configs of QMIX and VDN here have in common with it.
"""

from easydict import EasyDict

shared = dict(
    # A marine sees nearly all that there is, and its last action: there is little to remember.
    model=dict(
        hidden_size_list=[64, 64],
        lstm_type=None,
        mixing_embed_dim=32,
    ),
    discount_factor=0.99,
    learn=dict(
        update_per_collect=8,
        batch_size=256,
        learning_rate=0.0005,
        optim_type="adam",
        weight_decay=0.0,
        grad_clip_value=10.0,
        target_update_theta=0.01,
        double_q=True,
    ),
    collect=dict(n_sample=256, unroll_len=1),
    eval=dict(evaluator=dict(eval_freq=800)),
    other=dict(
        eps=dict(type="linear", start=1.0, end=0.05, decay=50000),
        replay_buffer=dict(replay_buffer_size=200000),
    ),
)

main_config = micro_battle_3m_qmix_config = EasyDict(
    exp_name="micro_battle_3m_qmix_seed0",
    env=dict(
        map_name="3m",
        collector_env_num=16,
        evaluator_env_num=32,
        n_evaluator_episode=64,
        stop_value=0.95,
    ),
    policy=shared,
)

create_config = micro_battle_3m_qmix_create_config = EasyDict(
    env=dict(type="micro_battle", import_names=["dizoo.micro_battle.envs.micro_battle_env"]),
    env_manager=dict(type="gym_vector"),
    policy=dict(type="qmix"),
)
