from dizoo.bitflip.envs.bitflip_env import BitFlipEnv, goal_reward, merge_goal, split_goal

__all__ = ["BitFlipEnv", "goal_reward", "merge_goal", "split_goal"]
