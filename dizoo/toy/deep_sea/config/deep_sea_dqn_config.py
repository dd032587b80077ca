"""DQN without a bonus on deep sea of size 20, beside `deep_sea_rnd_dqn_config`."""

from easydict import EasyDict

main_config = deep_sea_dqn_config = EasyDict(
    exp_name="deep_sea_dqn_seed0",
    env=dict(
        size=20,
        collector_env_num=8,
        evaluator_env_num=4,
        n_evaluator_episode=4,
        stop_value=0.98,
    ),
    policy=dict(
        model=dict(encoder_hidden_size_list=[128, 128], dueling=False),
        discount_factor=0.99,
        learn=dict(
            update_per_collect=20, batch_size=128, learning_rate=0.001, target_update_freq=200
        ),
        collect=dict(n_sample=160),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            eps=dict(type="linear", start=0.1, end=0.01, decay=20_000),
            replay_buffer=dict(replay_buffer_size=100_000),
        ),
    ),
)

create_config = deep_sea_dqn_create_config = EasyDict(
    env=dict(type="deep_sea", import_names=["dizoo.toy.deep_sea.envs.deep_sea_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
)
