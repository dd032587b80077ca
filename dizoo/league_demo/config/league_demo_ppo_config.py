"""PPO on the prisoner's dilemma by naive self-play: both learn to defect."""

from easydict import EasyDict

main_config = league_demo_ppo_config = EasyDict(
    exp_name="league_demo_ppo_seed0",
    env=dict(
        game_type="prisoner_dilemma",
        collector_env_num=32,
        evaluator_env_num=8,
        n_evaluator_episode=32,
        stop_value=-5.5,  # a random player gives -5 to who defects, -10.5 to who cooperates
    ),
    policy=dict(
        model=dict(
            obs_shape=2,
            action_shape=2,
            encoder_hidden_size_list=[16],
            share_encoder=False,
            activation="tanh",
        ),
        learn=dict(epoch_per_collect=4, batch_size=64, learning_rate=0.003),
        collect=dict(n_episode=64),
        eval=dict(evaluator=dict(eval_freq=100)),
    ),
)

create_config = league_demo_ppo_create_config = EasyDict(
    env=dict(type="league_demo", import_names=["dizoo.league_demo.envs.game_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
    collector=dict(type="episode_1v1"),
    evaluator=dict(type="battle_interaction"),
)
