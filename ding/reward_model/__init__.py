"""Reward models: parts of a run that give samples other rewards or goals."""

from ding.reward_model.her import HindsightGoals
from ding.reward_model.her_episodes import HerRewardModel

__all__ = ["HerRewardModel", "HindsightGoals"]
