from dizoo.classic_control.mountain_car.envs.sparse_env import SparseMountainCarEnv

__all__ = ["SparseMountainCarEnv"]
