"""Sharded learning: several learners train one policy, each on a shard of every batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ding.torch_utils.distributed import Group
from ding.torch_utils.optim import Adam, AdamW, RMSprop
from ding.utils.errors import ConfigError
from ding.utils.log import WorkerLog


def own_address() -> str:
    """Of this machine, as other learners know it."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return "127.0.0.1"
    return str(ray.util.get_node_ip_address())


class NoLog(WorkerLog):
    """Of those beside rank 0, which writes for all."""

    def info(self, message: str) -> None:
        pass

    def scalars(self, values: Mapping[str, Any], step: int) -> None:
        pass


def indivisible(size: int, world: int) -> ConfigError:
    return ConfigError(
        f"policy.learn.batch_size = {size} is not a multiple of the {world} learners "
        f"(policy.learn.learner.learner_num) that share it; set it to "
        f"{(size // world + 1) * world}"
    )


def check_shared_config(policy_cfg: Any, world: int) -> None:
    """Refuse settings that several learners would not follow."""
    alone = "or policy.learn.learner.learner_num = 1"
    if policy_cfg.learn.get("compile", False):
        raise ConfigError(
            "policy.learn.compile = True: a compiled update can't wait for other learners to "
            f"average gradients with; set it to False, {alone}"
        )
    if not policy_cfg.get("bp_update_sync", True):
        raise ConfigError(
            "policy.bp_update_sync = False: learners that do not average their gradients would "
            f"each train a policy of their own; set it to True, {alone}"
        )
    if policy_cfg.learn.batch_size % world:
        raise indivisible(policy_cfg.learn.batch_size, world)


def check_shared_policy(policy: Any) -> None:
    """Refuse what would not stay the same in all learners."""
    alone = "or set policy.learn.learner.learner_num = 1"
    for name, module in policy._model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise ConfigError(
                f"policy.model has a {type(module).__name__} ('{name}'): each learner would "
                f"normalise by its own share of a batch; set policy.model.norm_type = 'LN', {alone}"
            )
    parts = [*vars(policy).values(), *policy.learn_state.values()]
    for part in parts:
        known = isinstance(part, (Adam, AdamW, RMSprop))
        if isinstance(part, torch.optim.Optimizer) and not known:
            raise ConfigError(
                f"{type(policy).__name__} learns with {type(part).__module__}."
                f"{type(part).__name__}, which averages no gradients with other learners; take "
                f"Adam, AdamW or RMSprop of ding.torch_utils, {alone}"
            )


def begin_alike(policy: Any, group: Group) -> None:
    """The weights of rank 0 for all, and the same numbers to shuffle by.

    Moments of optimizers and running statistics are alike already: as new, or as loaded by each.
    """
    for part in (*policy.acting_parts.values(), *policy.learn_state.values()):
        module = getattr(part, "module", part)  # a target network is in the `module` of its part
        if isinstance(module, nn.Module):
            for tensor in module.state_dict().values():
                group.broadcast_(tensor)
    rng = policy.rng.bit_generator
    text = bytearray(json.dumps(rng.state).encode().ljust(512))
    group.broadcast_(torch.frombuffer(text, dtype=torch.uint8))
    rng.state = json.loads(text)
