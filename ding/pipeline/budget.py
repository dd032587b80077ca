"""Budget: settings that cannot work within the limits of a run, refused or said at its start."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from ding.utils.errors import ConfigError, DingError
from ding.utils.limits import Limits

FEW_UPDATES = 100
_NO_LIMIT = Limits().env_step


def check_budget(policy_cfg: Mapping[str, Any], limits: Limits) -> None:
    """Refuse random steps first that leave nothing to learn from."""
    warm_up = _warm_up(policy_cfg)
    if not warm_up:
        return
    if warm_up >= limits.env_step:
        raise ConfigError(
            f"policy.random_collect_size = {warm_up}: so many random steps use up the budget of "
            f"{limits.env_step} env steps, and nothing would be learned; lower it, for example to "
            f"{limits.env_step // 10}, or give more env steps"
        )
    size = policy_cfg["other"]["replay_buffer"].get("replay_buffer_size")
    if size is not None and warm_up > size:
        raise ConfigError(
            f"policy.random_collect_size = {warm_up}: the replay buffer would lose the first of "
            "them before anything is learned (policy.other.replay_buffer.replay_buffer_size = "
            f"{size}); lower the one or raise the other"
        )


def budget_advice(policy_cfg: Mapping[str, Any], limits: Limits, longest: int | None) -> list[str]:
    """What is likely a mistake, a line each; `longest`: most steps of an episode, if known."""
    lines = []
    expected = _expected_updates(policy_cfg, limits)
    if expected is not None and expected < FEW_UPDATES:
        lines.append(
            f"{limits.env_step:,} env steps give about {expected:,} updates, few to learn from: "
            "give more env steps, or lower policy.collect.n_sample"
        )
    nstep = policy_cfg.get("nstep")
    if nstep and longest and nstep > longest:
        lines.append(
            f"policy.nstep = {nstep} is longer than an episode, which has at most {longest} steps: "
            "all returns are those of the whole rest of the episode"
        )
    return lines


def check_learned(
    policy_cfg: Mapping[str, Any], limits: Limits, env_step: int, n_stored: int | None
) -> None:
    """Raise for a run that ended without an update, unless its limits allowed none."""
    if limits.train_iter:
        raise no_update(policy_cfg, env_step, n_stored)


def no_update(policy_cfg: Mapping[str, Any], env_step: int, n_stored: int | None) -> DingError:
    """Why a run has ended without having learned anything."""
    said = f"the run ended after {env_step:,} env steps without a single update: "
    batch_size, nstep = policy_cfg["learn"].get("batch_size"), policy_cfg.get("nstep") or 1
    if n_stored is None:
        return DingError(said + "give more env steps")
    if batch_size is not None and n_stored < batch_size:
        return DingError(
            f"{said}the replay buffer has {n_stored:,} samples, and a batch takes {batch_size:,} "
            "(policy.learn.batch_size); give more env steps or lower it"
        )
    if nstep > 1:
        return DingError(
            f"{said}policy.nstep = {nstep} takes more steps in a row than there were; lower it"
        )
    return DingError(said + "give more env steps, or lower policy.learn.batch_size")


def _warm_up(policy_cfg: Mapping[str, Any]) -> int:
    if policy_cfg["on_policy"]:
        return 0
    return int(policy_cfg.get("random_collect_size") or 0)


def _expected_updates(policy_cfg: Mapping[str, Any], limits: Limits) -> int | None:
    """About how many updates the env steps allow, if both are known beforehand."""
    learn, n_sample = policy_cfg["learn"], policy_cfg["collect"].get("n_sample")
    if limits.env_step == _NO_LIMIT or not n_sample or limits.train_iter < FEW_UPDATES:
        return None
    n_collect = (limits.env_step - _warm_up(policy_cfg)) / n_sample
    if policy_cfg["on_policy"]:
        epochs, batch_size = learn.get("epoch_per_collect", 1), learn.get("batch_size") or n_sample
        return ceil(n_collect) * epochs * max(n_sample // batch_size, 1)
    steps = policy_cfg["collect"].get("unroll_len") or 1
    return int(n_collect / steps * learn.get("update_per_collect", 1))
