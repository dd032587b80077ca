from dizoo.matrix_games.envs.matrix_game_env import MatrixGameEnv

__all__ = ["MatrixGameEnv"]
