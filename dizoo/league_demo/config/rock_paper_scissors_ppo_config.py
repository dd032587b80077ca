"""PPO by fictitious self-play: the average of its past policies nears the equilibrium."""

from easydict import EasyDict

main_config = rock_paper_scissors_ppo_config = EasyDict(
    exp_name="rock_paper_scissors_ppo_seed0",
    env=dict(
        game_type="rock_paper_scissors",
        collector_env_num=32,
        evaluator_env_num=8,
        n_evaluator_episode=32,
        stop_value=1e9,  # none: the last policy answers its past ones, their average is the result
    ),
    policy=dict(
        model=dict(
            obs_shape=2,
            action_shape=3,
            encoder_hidden_size_list=[16],
            share_encoder=False,
            activation="tanh",
        ),
        learn=dict(
            epoch_per_collect=2,
            batch_size=128,
            learning_rate=0.01,
            entropy_weight=0.3,
            value_norm=False,
            adv_norm=False,
        ),
        collect=dict(
            n_episode=128,
            collector=dict(past_share=1.0, past_every=2, past_kept=1000, past_at_once=8),
        ),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = rock_paper_scissors_ppo_create_config = EasyDict(
    env=dict(type="league_demo", import_names=["dizoo.league_demo.envs.game_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
    collector=dict(type="episode_1v1"),
    evaluator=dict(type="battle_interaction"),
)
