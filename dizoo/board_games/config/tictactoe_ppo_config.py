"""PPO on tic-tac-toe by self-play."""

from easydict import EasyDict

main_config = tictactoe_ppo_config = EasyDict(
    exp_name="tictactoe_ppo_seed0",
    env=dict(
        tremble=0.15,  # so that it knows the answer to every blunder, also to its own
        collector_env_num=64,
        evaluator_env_num=20,
        n_evaluator_episode=200,
        stop_value=1e9,  # a limit ends the run, e.g. --env-step 6e5, when the learning rate is 0
    ),
    policy=dict(
        model=dict(
            obs_shape=18,
            action_shape=9,
            encoder_hidden_size_list=[128, 128],
            share_encoder=False,
            activation="tanh",
        ),
        discount_factor=1.0,
        learn=dict(
            epoch_per_collect=4,
            batch_size=1024,
            learning_rate=0.002,
            lr_scheduler=dict(type="linear", unit="env_step", decay=600_000),
            entropy_weight=0.15,
        ),
        collect=dict(
            n_episode=1024,
            gae_lambda=0.9,
            collector=dict(past_share=0.3, past_every=200, past_kept=50),
        ),
        eval=dict(
            evaluator=dict(
                eval_freq=500,
                opponents=dict(
                    random="random", perfect="dizoo.board_games.envs.tictactoe_env:perfect"
                ),
            )
        ),
    ),
)

create_config = tictactoe_ppo_create_config = EasyDict(
    env=dict(type="tictactoe", import_names=["dizoo.board_games.envs.tictactoe_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
    collector=dict(type="episode_1v1"),
    evaluator=dict(type="battle_interaction"),
)
