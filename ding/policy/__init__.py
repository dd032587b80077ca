"""Algorithms, one file each, and what they share."""

from ding.policy.base import (
    CollectMode,
    CommandMode,
    EvalMode,
    LearnMode,
    Policy,
    create_policy,
    get_policy_cls,
    register_policy,
    takes_all_envs,
)
from ding.policy.config import CollectConfig, EvalConfig, LearnConfig, OtherConfig, PolicyConfig
from ding.policy.discrete_sac import DiscreteSACPolicy
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.policy.ppo import PPOConfig, PPOPolicy
from ding.policy.random_policy import PolicyFactory, get_random_policy
from ding.policy.sac import SACConfig, SACPolicy

CommandModePolicy = Policy

__all__ = [
    "CollectConfig",
    "CollectMode",
    "CommandMode",
    "CommandModePolicy",
    "DQNConfig",
    "DQNPolicy",
    "DiscreteSACPolicy",
    "EvalConfig",
    "EvalMode",
    "LearnConfig",
    "LearnMode",
    "OtherConfig",
    "PPOConfig",
    "PPOPolicy",
    "Policy",
    "PolicyConfig",
    "PolicyFactory",
    "SACConfig",
    "SACPolicy",
    "create_policy",
    "get_policy_cls",
    "get_random_policy",
    "register_policy",
    "takes_all_envs",
]
