"""PPO on slime volley by self-play; the bot is never played against but to evaluate."""

from easydict import EasyDict

main_config = slime_volley_ppo_config = EasyDict(
    exp_name="slime_volley_ppo_seed0",
    env=dict(
        action_repeat=4,
        collector_env_num=128,
        evaluator_env_num=20,
        n_evaluator_episode=40,
        stop_value=1e9,  # a limit ends the run; the most is 5
    ),
    policy=dict(
        model=dict(
            obs_shape=12,
            action_shape=6,
            encoder_hidden_size_list=[64, 64],
            share_encoder=False,
            activation="tanh",
        ),
        discount_factor=0.99,
        learn=dict(
            epoch_per_collect=4,
            batch_size=1024,
            learning_rate=0.001,
            lr_scheduler=dict(type="linear", unit="env_step", decay=3_000_000, end=0.1),
            entropy_weight=0.01,
        ),
        collect=dict(
            n_sample=16384,
            gae_lambda=0.95,
            collector=dict(past_share=0.2, past_every=100, past_kept=50),
        ),
        eval=dict(
            evaluator=dict(eval_freq=2000, opponents=dict(bot="dizoo.slime_volley.envs.bot:bot"))
        ),
    ),
)

create_config = slime_volley_ppo_create_config = EasyDict(
    env=dict(type="slime_volley", import_names=["dizoo.slime_volley.envs.slime_volley_env"]),
    env_manager=dict(type="gym_vector"),
    policy=dict(type="ppo"),
    collector=dict(type="sample_1v1"),
    evaluator=dict(type="battle_interaction"),
)
