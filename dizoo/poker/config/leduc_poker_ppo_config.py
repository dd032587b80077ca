"""PPO by fictitious self-play on Leduc poker: the average of its past policies is the result."""

from easydict import EasyDict

main_config = leduc_poker_ppo_config = EasyDict(
    exp_name="leduc_poker_ppo_seed0",
    env=dict(
        collector_env_num=64,
        evaluator_env_num=8,
        n_evaluator_episode=200,
        stop_value=1e9,  # none: the last policy answers its past ones, their average is the result
    ),
    policy=dict(
        model=dict(
            obs_shape=32,
            action_shape=3,
            encoder_hidden_size_list=[64, 64],
            share_encoder=False,
            activation="tanh",
        ),
        discount_factor=1.0,
        learn=dict(
            epoch_per_collect=4,
            batch_size=256,
            learning_rate=0.003,
            entropy_weight=0.1,
            value_norm=False,
        ),
        collect=dict(
            n_episode=512,
            gae_lambda=1.0,
            collector=dict(past_share=0.5, past_every=8, past_kept=1000, past_at_once=16),
        ),
        eval=dict(evaluator=dict(eval_freq=1000)),
    ),
)

create_config = leduc_poker_ppo_create_config = EasyDict(
    env=dict(type="leduc_poker", import_names=["dizoo.poker.envs.leduc_poker_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
    collector=dict(type="episode_1v1"),
    evaluator=dict(type="battle_interaction"),
)
