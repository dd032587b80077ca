"""The smallest config of any algorithm for one cell; no algorithm is named here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ding.data.demonstrations import Demonstrations
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.policy import Policy, get_policy_cls

from . import worlds
from .claims import CLAIMS, Cell

_DIRECTORY = TemporaryDirectory()
EXP_NAME = "run"
_UNROLL = 4
_MODEL: dict[str, Any] = dict(
    actor_head_hidden_size=8,
    critic_head_hidden_size=8,
    head_hidden_size=8,
    num_quantiles=4,
    quantile_embedding_size=4,
    n_atom=5,
    layer_num=1,
    hidden_size=8,
    att_head_dim=4,
    att_layer_num=1,
    memory_len=4,
)
_POLICY: dict[str, Any] = dict(burnin_step=2, learn_unroll_len=_UNROLL)
_LEARN: dict[str, Any] = dict(
    update_per_collect=2,
    epoch_per_collect=2,
    aux_freq=1,
    aux_train_epoch=1,
    learning_rate_quantile=1e-3,  # as large as that of the others
)


def config_of(cell: Cell, n_step: int = 16, **env: Any) -> list[dict[str, Any]]:
    """[main_config, create_config] that collects about `n_step` steps at a time."""
    claim = CLAIMS[cell.algorithm]
    default = get_policy_cls({"type": cell.algorithm}).default_config()
    policy: dict[str, Any] = _known(_POLICY, default)
    if default.random_collect_size:
        policy["random_collect_size"] = n_step
    if "action_space" in default and cell.action in claim.actions:
        several = cell.action == "multi_discrete"
        one = cell.action.removesuffix("_agents")
        policy["action_space"] = "discrete" if several else one
    cls = get_policy_cls({"type": cell.algorithm})
    single_steps = getattr(cls, "draws_sequences", False)
    policy["collect"] = _collect(default.collect, n_step, single_steps)
    policy["collect"] |= _told_kind(policy, default, cell.action)
    n_sample = policy["collect"].get("n_sample", n_step)
    if default.on_policy and "learn_unroll_len" in default:
        n_sample //= _UNROLL  # a batch counts sequences, a collect steps
    policy["learn"] = dict(batch_size=n_sample // 2, **_known(_LEARN, default.learn))
    if default.on_policy:
        policy["learn"].pop("update_per_collect")
    if default.learn.get("target_theta", 0.0) is None:
        policy["learn"]["target_update_freq"] = 3  # several times in a run
    policy["eval"] = dict(evaluator=dict(eval_freq=4))
    if not default.on_policy:
        policy["other"] = dict(replay_buffer=dict(replay_buffer_size=200))
    if claim.demonstrated:
        fits = cell.action in claim.actions
        path = demonstrated(cell.observation, cell.action, cell.masked) if fits else "none.hdf5"
        policy["other"]["demonstrations"] = dict(path=path)
    policy["model"] = _model(cell, {**default, **policy})
    main = dict(
        exp_name=EXP_NAME,
        env=dict(
            observation=cell.observation,
            action=cell.action,
            masked=cell.masked,
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=2,
            stop_value=1e9,
            env_wrapper=list(claim.env_wrapper),
            alone=claim.alone,
            **env,
        ),
        policy=policy,
    )
    create = dict(
        env=dict(type="conformance_world", import_names=[worlds.__name__]),
        policy=dict(type=cell.algorithm),
    )
    return [main, create]


@cache
def demonstrated(observation: str, action: str, masked: bool) -> str:
    """A file of two episodes of 30 steps whose numbers are drawn from the spaces of the world."""
    world = worlds.WorldEnv(dict(observation=observation, action=action, masked=masked))
    spaces = world.observation_space, world.action_space
    world.close()
    for i, space in enumerate(spaces):
        space.seed(i)
    seen = [spaces[0].sample() for _ in range(61)]
    rows = [
        dict(obs=obs, action=spaces[1].sample(), reward=1.0, next_obs=after, done=i % 30 == 29)
        for i, (obs, after) in enumerate(pairwise(seen))
    ]
    path = Path(_DIRECTORY.name) / f"{observation}_{action}_{masked}.hdf5"
    Demonstrations.of_steps(rows).save(path)
    return str(path)


def _told_kind(policy: dict[str, Any], default: Mapping[str, Any], action: str) -> dict[str, Any]:
    """Settings of collecting for a clone: without noise what it clones is what it does already."""
    if "continuous" not in default or action != "continuous":
        return {}
    policy |= dict(continuous=True, loss_type="mse_loss")
    return dict(noise=True)


def _known(small: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in small.items() if name in default}


def _collect(default: Mapping[str, Any], n_step: int, single_steps: bool) -> dict[str, Any]:
    if default["n_episode"] is not None:
        return dict(n_episode=n_step // 4)
    if default["unroll_len"] > 1 and single_steps:
        return dict(unroll_len=_UNROLL, n_sample=n_step)
    if default["unroll_len"] > 1:
        return dict(unroll_len=_UNROLL, n_sample=n_step // _UNROLL)
    return dict(n_sample=n_step)


def _model(cell: Cell, policy: Mapping[str, Any]) -> dict[str, Any]:
    """One size per layer; images have three convolutions first."""
    sizes = [4, 4, 4, 8] if cell.observation == "image" else [8]
    small = {**_MODEL, "encoder_hidden_size_list": sizes, "hidden_size_list": sizes}
    valid = get_policy_cls({"type": cell.algorithm}).model_signature(policy)
    return _known(small, dict.fromkeys(valid or ()))


def trained(config: list[dict[str, Any]], **limits: Any) -> Policy:
    """The policy after a run through its pipeline."""
    default = get_policy_cls(config[1]["policy"]).default_config()
    pipeline = serial_pipeline_onpolicy if default.on_policy else serial_pipeline
    return pipeline(config, seed=0, **limits)
