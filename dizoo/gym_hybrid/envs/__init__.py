from dizoo.gym_hybrid.envs.gym_hybrid_env import GymHybridEnv
from dizoo.gym_hybrid.envs.tasks import Moving, Sliding

__all__ = ["GymHybridEnv", "Moving", "Sliding"]
