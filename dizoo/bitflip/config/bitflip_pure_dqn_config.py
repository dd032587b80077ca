"""The same as `bitflip_her_dqn_config` without hindsight: it never reaches its goals."""

from easydict import EasyDict

main_config = bitflip_pure_dqn_config = EasyDict(
    exp_name="bitflip_pure_dqn_seed0",
    env=dict(
        n_bits=15,
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=0.95,
    ),
    policy=dict(
        model=dict(encoder_hidden_size_list=[256, 256], dueling=False),
        discount_factor=0.98,
        learn=dict(
            update_per_collect=8, batch_size=128, learning_rate=0.001, target_update_freq=200
        ),
        collect=dict(n_sample=40),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            eps=dict(type="linear", start=0.5, end=0.05, decay=20_000),
            replay_buffer=dict(replay_buffer_size=100_000),
        ),
    ),
)

create_config = bitflip_pure_dqn_create_config = EasyDict(
    env=dict(type="bitflip", import_names=["dizoo.bitflip.envs.bitflip_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
)
