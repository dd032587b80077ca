from dizoo.classic_control.cartpole.envs.cartpole_env import CartPoleEnv
from dizoo.classic_control.cartpole.envs.no_velocity_env import NoVelocityEnv

__all__ = ["CartPoleEnv", "NoVelocityEnv"]
