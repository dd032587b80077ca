"""DQN on tic-tac-toe by self-play."""

from easydict import EasyDict

main_config = tictactoe_dqn_config = EasyDict(
    exp_name="tictactoe_dqn_seed0",
    env=dict(
        collector_env_num=32,
        evaluator_env_num=20,
        n_evaluator_episode=200,
        stop_value=1e9,  # a limit ends the run: draws with a perfect player are the most
    ),
    policy=dict(
        model=dict(obs_shape=18, action_shape=9, encoder_hidden_size_list=[256, 256]),
        discount_factor=1.0,
        learn=dict(
            update_per_collect=8, batch_size=256, learning_rate=0.001, target_update_freq=200
        ),
        collect=dict(n_sample=512),
        eval=dict(
            evaluator=dict(
                eval_freq=1000,
                opponents=dict(
                    random="random", perfect="dizoo.board_games.envs.tictactoe_env:perfect"
                ),
            )
        ),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.2, decay=100_000),
            replay_buffer=dict(replay_buffer_size=200_000),
        ),
    ),
)

create_config = tictactoe_dqn_create_config = EasyDict(
    env=dict(type="tictactoe", import_names=["dizoo.board_games.envs.tictactoe_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
    collector=dict(type="sample_1v1"),
    evaluator=dict(type="battle_interaction"),
)
