"""Demonstrations by the established functions: collect them, write them, flatten episodes."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from ding.data.demo_file import refuse_existing
from ding.data.demonstrations import Demonstrations, Origin
from ding.data.hdf5 import h5py, write_tree
from ding.data.safe_pickle import loads_data
from ding.data.step_columns import STEP_KEYS
from ding.entry.trained import load_weights, prepared
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike
from ding.rl_utils.adder import get_nstep_return_data
from ding.torch_utils.data_helper import to_tensor
from ding.utils.batch import Rows, columns_of, concat, take, tree_map
from ding.utils.checkpoint import whole_file
from ding.utils.checksum import with_checksum
from ding.utils.errors import ConfigError, DemonstrationError
from ding.worker import create_serial_collector

DataType = Literal["naive", "hdf5", "ding"]


def collect_demo_data(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    seed: int = 0,
    collect_count: int = 1000,
    expert_data_path: str | Path | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    state_dict: Mapping[str, Any] | None = None,
    state_dict_path: str | Path | None = None,
) -> list[Any]:
    """Let a trained policy collect so many samples; they are saved and returned.

    The path defaults to `policy.collect.save_path`, the format is `policy.collect.data_type`.
    """
    cfg, env, policy = prepared(input_cfg, seed, env_setting, model, evaluating=False)
    with env:
        path, data_type = _target(cfg, expert_data_path)
        origin = origin_of(cfg, env, seed, str(path))
        load_weights(policy, policy.collect_mode, state_dict, cfg, state_dict_path)
        settings = _collector_settings(cfg, get_train_sample=True)
        with _collector(cfg, env, policy, settings) as collector:
            samples = _collected(collector, collect_count, _as_learned(policy))
    if data_type == "ding":
        Demonstrations.of_steps(samples, origin).save(path)
    else:
        offline_data_save_type(samples, path, data_type)
    return samples


def collect_episodic_demo_data(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    seed: int = 0,
    collect_count: int = 10,
    expert_data_path: str | Path | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    state_dict: Mapping[str, Any] | None = None,
    state_dict_path: str | Path | None = None,
) -> list[Any]:
    """Let a trained policy play so many whole episodes; they are saved and returned."""
    cfg, env, policy = prepared(
        input_cfg, seed, env_setting, model, evaluating=False, most_envs=collect_count
    )
    with env:
        path, data_type = _target(cfg, expert_data_path)
        origin = origin_of(cfg, env, seed, str(path))
        load_weights(policy, policy.collect_mode, state_dict, cfg, state_dict_path)
        settings = {**_collector_settings(cfg, get_train_sample=False), "type": "episode"}
        with _collector(cfg, env, policy, settings) as collector:
            episodes = collector.collect(collect_count, policy_kwargs=_as_learned(policy))
    if data_type == "ding":
        Demonstrations.of_episodes(episodes, origin).save(path)
    elif data_type == "hdf5":
        offline_data_save_type([step for steps in episodes for step in steps], path, "hdf5")
    else:
        _save_pickle(path, [_tensor_rows(steps) for steps in episodes])
    return episodes


def episode_to_transitions(
    data_path: str | Path, expert_data_path: str | Path, nstep: int
) -> list[Any]:
    """Flatten a pickle of episodes into one of n-step transitions."""
    return episode_to_transitions_filter(data_path, expert_data_path, nstep, -np.inf)


def episode_to_transitions_filter(
    data_path: str | Path, expert_data_path: str | Path, nstep: int, min_episode_return: float
) -> list[Any]:
    """The same of the episodes whose return is at least this one."""
    refuse_existing(expert_data_path)
    episodes = _read_episodes(Path(data_path))
    returns = [float(np.sum([np.sum(step["reward"]) for step in steps])) for steps in episodes]
    kept = [s for s, r in zip(episodes, returns, strict=True) if r >= min_episode_return]
    if not kept:
        raise DemonstrationError(
            f"'{data_path}': no episode of {len(episodes)} returns {min_episode_return} or more "
            f"(the best {max(returns)})"
        )
    transitions = [row for steps in kept for row in get_nstep_return_data(steps, nstep)]
    offline_data_save_type(transitions, expert_data_path, "naive")
    return transitions


def _read_episodes(path: Path) -> list[Any]:
    try:
        episodes = loads_data(path.read_bytes())
    except Exception as error:  # A foreign file can break the reader in any way.
        raise DemonstrationError(f"'{path}' cannot be read as data: {error}") from error
    if not (isinstance(episodes, list) and all(isinstance(e, list) and e for e in episodes)):
        raise DemonstrationError(f"'{path}' holds no list of episodes (lists of steps)")
    return episodes


def offline_data_save_type(
    exp_data: Sequence[Any], path: str | Path, data_type: str = "naive"
) -> None:
    """Write samples as a pickle of rows ('naive'), or as `<path without .pkl>_demos.hdf5`."""
    if data_type == "naive":
        _save_pickle(Path(path), _tensor_rows(exp_data))
    elif data_type == "hdf5":
        _save_flat(_hdf5_path(path), columns_of(exp_data))
    else:
        raise ConfigError(f"data_type = '{data_type}': 'naive' or 'hdf5'")


def _hdf5_path(path: str | Path) -> Path:
    stem = str(path).removesuffix(".pkl")
    return Path(f"{stem}_demos.hdf5")


def _tensor_rows(steps: Sequence[Any]) -> list[Any]:
    # A row may be a view of a whole column, and all of that would be pickled with it.
    return [tree_map(_own_tensor, dict(row)) for row in steps]


def _own_tensor(value: Any) -> Any:
    tensor = to_tensor(value)
    return tensor.clone() if isinstance(tensor, torch.Tensor) else tensor


def _save_pickle(path: Path, rows: list[Any]) -> None:
    with whole_file(refuse_existing(path)) as file:
        file.write(with_checksum(pickle.dumps(rows)))


def _save_flat(path: Path, columns: Mapping[str, Any]) -> None:
    """The established layout, with the flags of truncation besides."""
    refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with h5py().File(temporary, "w") as file:
            for key in (*STEP_KEYS, "truncated"):
                if key in columns:
                    write_tree(file, key, columns[key], compression="gzip")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def origin_of(cfg: Any, env: Any, seed: int, name: str) -> Origin:
    """The env of a compiled config, as demonstrations remember it."""
    return Origin(
        env_id=env_name(cfg.env),
        obs_space=env.observation_space,
        action_space=env.action_space,
        seed=seed,
        name=name,
    )


def env_name(env_cfg: Mapping[str, Any]) -> str | None:
    """Gymnasium id of a config's env, or else its registered name."""
    name = env_cfg.get("env_id") or env_cfg.get("type")
    return str(name) if name else None


def _target(cfg: Any, given: str | Path | None) -> tuple[Path, DataType]:
    """Where to write and in which format; refused if something is there."""
    collect = cfg.policy.collect
    path = given or collect.save_path
    if path is None:
        raise ConfigError("where to? give expert_data_path, or set policy.collect.save_path")
    is_hdf5 = Path(path).suffix in (".hdf5", ".h5")
    data_type: DataType = collect.data_type or ("ding" if is_hdf5 else "naive")
    refuse_existing(_hdf5_path(path) if data_type == "hdf5" else path)
    return Path(path), data_type


def _collector_settings(cfg: Any, *, get_train_sample: bool) -> dict[str, Any]:
    settings = dict(cfg.policy.collect.collector)
    if settings["type"] == "episode":
        settings["get_train_sample"] = get_train_sample
    return settings


def _collector(cfg: Any, env: Any, policy: Any, settings: Mapping[str, Any]) -> Any:
    return create_serial_collector(
        settings, env=env, policy=policy.collect_mode, exp_name=cfg.exp_name
    )


def _as_learned(policy: Any) -> dict[str, Any]:
    """Settings to explore as little as the policy ever does; not at all where it has an eps."""
    settings = policy.command_mode.get_setting_collect({"learner_step": 0, "envstep": 10**10})
    return {**settings, "eps": 0.0} if "eps" in settings else settings


def _collected(collector: Any, count: int, kwargs: Mapping[str, Any]) -> list[Any]:
    parts: list[Any] = []
    while sum(len(part["done"]) for part in parts) < count:
        parts.append(columns_of(collector.collect(policy_kwargs=kwargs)))
    return Rows(take(concat(parts), slice(0, count)))
