"""QMIX on speaker_listener (mpe2); returns and what differs between agents: see MAPPO's config.

`ding -m serial -e speaker_listener -p qmix -s 0` evaluates at -9.9 after 120,200 joint steps. A
replay of 200,000 steps, mostly of words that meant nothing yet, was at -15 after 225,000.
"""

from easydict import EasyDict

from dizoo.petting_zoo.config import speaker_listener_mappo_config as mappo

main_config = speaker_listener_qmix_config = EasyDict(
    exp_name="speaker_listener_qmix_seed0",
    env=mappo.main_config.env,
    policy=dict(
        # What the speaker said last is seen, so there is nothing to remember.
        model=dict(
            hidden_size_list=[128, 128],
            lstm_type=None,
            mixing_embed_dim=32,
        ),
        discount_factor=0.95,
        reward_norm=True,
        learn=dict(
            update_per_collect=10,
            batch_size=256,
            learning_rate=0.001,
            lr_scheduler=dict(type="linear", unit="env_step", decay=400_000, end=0.05),
            optim_type="adam",
            weight_decay=0.0,
            grad_clip_value=10.0,
            target_update_theta=0.01,
            double_q=True,
        ),
        collect=dict(n_sample=200, unroll_len=1),
        eval=dict(evaluator=dict(eval_freq=1500)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=20000),
            replay_buffer=dict(replay_buffer_size=25000),
        ),
    ),
)

create_config = speaker_listener_qmix_create_config = EasyDict(
    env=dict(type="pettingzoo", import_names=["ding.envs.pettingzoo_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="qmix"),
)
