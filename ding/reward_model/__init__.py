"""Reward models: parts of a run that give samples other rewards or goals."""

from ding.reward_model.base import (
    BaseRewardModel,
    RewardModelConfig,
    create_reward_model,
    get_reward_model_cls,
)
from ding.reward_model.gail import GailRewardModel
from ding.reward_model.her import HindsightGoals
from ding.reward_model.her_episodes import HerRewardModel
from ding.reward_model.icm import ICMRewardModel
from ding.reward_model.part import LearnedReward, RewardModelError
from ding.reward_model.rnd import RndRewardModel

__all__ = [
    "BaseRewardModel",
    "GailRewardModel",
    "HerRewardModel",
    "HindsightGoals",
    "ICMRewardModel",
    "LearnedReward",
    "RewardModelConfig",
    "RewardModelError",
    "RndRewardModel",
    "create_reward_model",
    "get_reward_model_cls",
]
