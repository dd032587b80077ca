"""Algorithms, one file each, and what they share."""

from ding.policy.a2c import A2CConfig, A2CPolicy
from ding.policy.acer import ACERConfig, ACERPolicy
from ding.policy.acting_state import ActingState
from ding.policy.averaged_dqn import AveragedDQNConfig, AveragedDQNPolicy
from ding.policy.base import Policy
from ding.policy.bdq import BDQPolicy
from ding.policy.c51 import C51Config, C51Policy
from ding.policy.collaq import CollaQConfig, CollaQPolicy
from ding.policy.coma import COMAConfig, COMAPolicy
from ding.policy.config import CollectConfig, EvalConfig, LearnConfig, OtherConfig, PolicyConfig
from ding.policy.d4pg import D4PGConfig, D4PGPolicy
from ding.policy.ddpg import DDPGConfig, DDPGPolicy
from ding.policy.discrete_sac import DiscreteSACPolicy
from ding.policy.dqfd import DQFDConfig, DQFDPolicy
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.policy.factory import create_policy, get_policy_cls, register_policy
from ding.policy.fqf import FQFConfig, FQFPolicy
from ding.policy.happo import HAPPOConfig, HAPPOPolicy
from ding.policy.impala import IMPALAConfig, IMPALAPolicy
from ding.policy.iqn import IQNConfig, IQNPolicy
from ding.policy.maddpg import MADDPGConfig, MADDPGPolicy, MATD3Config, MATD3Policy
from ding.policy.mappo import IPPOPolicy, MAPPOConfig, MAPPOPolicy
from ding.policy.masac import ContinuousMASACPolicy, MASACConfig, MASACPolicy
from ding.policy.mdqn import MDQNConfig, MDQNPolicy
from ding.policy.modes import (
    CollectMode,
    CommandMode,
    EvalMode,
    LearnMode,
    single_steps,
    takes_all_envs,
)
from ding.policy.ngu import NGUConfig, NGUPolicy
from ding.policy.normaliser import Statistics
from ding.policy.paddpg import PADDPGConfig, PADDPGPolicy
from ding.policy.pdqn import PDQNConfig, PDQNPolicy
from ding.policy.pg import PGConfig, PGPolicy
from ding.policy.ppg import PPGConfig, PPGPolicy
from ding.policy.ppo import PPOConfig, PPOPolicy
from ding.policy.ppo_offpolicy import PPOOffPolicy, PPOOffPolicyConfig
from ding.policy.ppo_recurrent import PPORecurrentConfig, PPORecurrentPolicy
from ding.policy.qmix import IDQNPolicy, QMIXConfig, QMIXPolicy, QPLEXPolicy, VDNPolicy
from ding.policy.qrdqn import QRDQNConfig, QRDQNPolicy
from ding.policy.qtran import QTRANConfig, QTRANPolicy
from ding.policy.r2d2 import R2D2Config, R2D2Policy
from ding.policy.r2d2_gtrxl import R2D2GTrXLPolicy
from ding.policy.r2d3 import R2D3Config, R2D3Policy
from ding.policy.rainbow import RainbowConfig, RainbowPolicy
from ding.policy.random_policy import PolicyFactory, RandomPolicy, get_random_policy
from ding.policy.sac import SACConfig, SACPolicy
from ding.policy.sql import SQLConfig, SQLPolicy
from ding.policy.sqn import SQNConfig, SQNPolicy
from ding.policy.td3 import TD3Config, TD3Policy
from ding.policy.wqmix import WQMIXConfig, WQMIXPolicy

CommandModePolicy = Policy

__all__ = [
    "A2CConfig",
    "A2CPolicy",
    "ACERConfig",
    "ACERPolicy",
    "ActingState",
    "AveragedDQNConfig",
    "AveragedDQNPolicy",
    "BDQPolicy",
    "C51Config",
    "C51Policy",
    "COMAConfig",
    "COMAPolicy",
    "CollaQConfig",
    "CollaQPolicy",
    "CollectConfig",
    "CollectMode",
    "CommandMode",
    "CommandModePolicy",
    "ContinuousMASACPolicy",
    "D4PGConfig",
    "D4PGPolicy",
    "DDPGConfig",
    "DDPGPolicy",
    "DQFDConfig",
    "DQFDPolicy",
    "DQNConfig",
    "DQNPolicy",
    "DiscreteSACPolicy",
    "EvalConfig",
    "EvalMode",
    "FQFConfig",
    "FQFPolicy",
    "HAPPOConfig",
    "HAPPOPolicy",
    "IDQNPolicy",
    "IMPALAConfig",
    "IMPALAPolicy",
    "IPPOPolicy",
    "IQNConfig",
    "IQNPolicy",
    "LearnConfig",
    "LearnMode",
    "MADDPGConfig",
    "MADDPGPolicy",
    "MAPPOConfig",
    "MAPPOPolicy",
    "MASACConfig",
    "MASACPolicy",
    "MATD3Config",
    "MATD3Policy",
    "MDQNConfig",
    "MDQNPolicy",
    "NGUConfig",
    "NGUPolicy",
    "OtherConfig",
    "PADDPGConfig",
    "PADDPGPolicy",
    "PDQNConfig",
    "PDQNPolicy",
    "PGConfig",
    "PGPolicy",
    "PPGConfig",
    "PPGPolicy",
    "PPOConfig",
    "PPOOffPolicy",
    "PPOOffPolicyConfig",
    "PPOPolicy",
    "PPORecurrentConfig",
    "PPORecurrentPolicy",
    "Policy",
    "PolicyConfig",
    "PolicyFactory",
    "QMIXConfig",
    "QMIXPolicy",
    "QPLEXPolicy",
    "QRDQNConfig",
    "QRDQNPolicy",
    "QTRANConfig",
    "QTRANPolicy",
    "R2D2Config",
    "R2D2GTrXLPolicy",
    "R2D2Policy",
    "R2D3Config",
    "R2D3Policy",
    "RainbowConfig",
    "RainbowPolicy",
    "RandomPolicy",
    "SACConfig",
    "SACPolicy",
    "SQLConfig",
    "SQLPolicy",
    "SQNConfig",
    "SQNPolicy",
    "Statistics",
    "TD3Config",
    "TD3Policy",
    "VDNPolicy",
    "WQMIXConfig",
    "WQMIXPolicy",
    "create_policy",
    "get_policy_cls",
    "get_random_policy",
    "register_policy",
    "single_steps",
    "takes_all_envs",
]
