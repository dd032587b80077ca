"""A league on tic-tac-toe: a main player and two kinds of exploiter, all PPO."""

from easydict import EasyDict

main_config = tictactoe_league_ppo_config = EasyDict(
    exp_name="tictactoe_league_ppo_seed0",
    env=dict(
        collector_env_num=64,
        evaluator_env_num=20,
        n_evaluator_episode=200,
        stop_value=1e9,  # a limit ends the run
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
        learn=dict(epoch_per_collect=4, batch_size=512, learning_rate=0.001, entropy_weight=0.1),
        collect=dict(n_episode=512, gae_lambda=0.9),
        eval=dict(
            evaluator=dict(
                opponents=dict(
                    random="random", perfect="dizoo.board_games.envs.tictactoe_env:perfect"
                ),
            )
        ),
    ),
    league=dict(
        active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
        main_player=dict(one_phase_step=200),
        main_exploiter=dict(one_phase_step=200),
        league_exploiter=dict(one_phase_step=200),
    ),
)

create_config = tictactoe_league_ppo_create_config = EasyDict(
    env=dict(type="tictactoe", import_names=["dizoo.board_games.envs.tictactoe_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
    collector=dict(type="episode_1v1"),
    evaluator=dict(type="battle_interaction"),
)
