"""PPO on Connect Four by self-play."""

from easydict import EasyDict

main_config = connect_four_ppo_config = EasyDict(
    exp_name="connect_four_ppo_seed0",
    env=dict(
        collector_env_num=64,
        evaluator_env_num=20,
        n_evaluator_episode=200,
        stop_value=0.95,  # against a random player
    ),
    policy=dict(
        model=dict(
            obs_shape=84,
            action_shape=7,
            encoder_hidden_size_list=[128, 128],
            share_encoder=False,
            activation="tanh",
        ),
        discount_factor=1.0,
        learn=dict(epoch_per_collect=4, batch_size=512, learning_rate=0.001, entropy_weight=0.1),
        collect=dict(
            n_episode=256,
            gae_lambda=0.9,
            collector=dict(past_share=0.2, past_every=200, past_kept=50),
        ),
        eval=dict(
            evaluator=dict(
                eval_freq=1000,
            )
        ),
    ),
)

create_config = connect_four_ppo_create_config = EasyDict(
    env=dict(type="connect_four", import_names=["dizoo.board_games.envs.connect_four_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
    collector=dict(type="episode_1v1"),
    evaluator=dict(type="battle_interaction"),
)
