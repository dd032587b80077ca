"""Established entries of trainings with an expert: its steps become a file, the rest is a config.

The expert is a config with weights (`policy.collect.model_path`, `policy.load_path` or the best
checkpoint of its run), or the file of demonstrations that the config names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ding.config import override
from ding.config.tree import MISSING, lookup
from ding.entry.demo_data import collect_demo_data
from ding.entry.serial import serial_pipeline
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike, read_input
from ding.policy import Policy
from ding.utils.errors import ConfigError

logger = logging.getLogger(__name__)

_SECTION = "policy.other.demonstrations"
_SQIL = {"share": 0.5, "agent_reward": 0.0, "expert_reward": 1.0}
_FORMER = {
    "policy.learn.per_train_iter_k": "pretrain",
    "policy.learn.expert_replay_buffer_size": None,
    "policy.collect.pho": "share",
}
"""Established keys of DQfD and R2D3, and what they are called in the section above."""
EXPERT_MODES = ("serial_gail", "serial_sqil", "serial_dqfd", "serial_r2d3")
_COUNT = 5000
"""Steps that an expert plays where nothing says how many."""


def serial_pipeline_sqil(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    expert_cfg: ConfigLike | None = None,
    seed: int | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    expert_model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
) -> Policy:
    """SQIL: half of each batch is the expert's, worth 1 a step, the agent's own are worth 0."""
    config = with_expert(input_cfg, expert_cfg, seed, expert_model, _SQIL)
    options: Any = dict(max_train_iter=max_train_iter, max_env_step=max_env_step, resume=resume)
    return serial_pipeline(config, seed, env_setting, model, **options)


def serial_pipeline_dqfd(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    expert_cfg: ConfigLike | None = None,
    seed: int | None = None,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    expert_model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    resume: str | Path | bool = False,
) -> Policy:
    """DQfD (and R2D3): learn from the expert first, then from both."""
    config = with_expert(input_cfg, expert_cfg, seed, expert_model, {})
    options: Any = dict(max_train_iter=max_train_iter, max_env_step=max_env_step, resume=resume)
    return serial_pipeline(config, seed, env_setting, model, **options)


serial_pipeline_r2d3 = serial_pipeline_dqfd


def serial_pipeline_gail(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    expert_cfg: ConfigLike | None = None,
    seed: int | None = None,
    model: nn.Module | None = None,
    max_train_iter: float = 10**10,
    max_env_step: float = 10**10,
    collect_data: bool = True,
    resume: str | Path | bool = False,
) -> Policy:
    """GAIL; with `collect_data` the expert plays first, else `reward_model.data_path` is read."""
    main, create, _ = read_input(input_cfg)
    section = main.get("reward_model") or {}
    count = int(_taken(section, "collect_count", _COUNT))
    weights = _taken(section, "expert_model_path", None)
    if not section.get("data_path"):
        if expert_cfg is None or not collect_data:
            raise ConfigError(
                "no expert: set reward_model.data_path to a file of demonstrations, or give the "
                "config of an expert and collect_data = True"
            )
        path = expert_file(main, expert_cfg, seed, count, weights=weights)
        main = override(main, {"reward_model.data_path": str(path)})
    options: Any = dict(max_train_iter=max_train_iter, max_env_step=max_env_step, resume=resume)
    return serial_pipeline([main, create], seed, None, model, **options)


def with_expert(
    input_cfg: ConfigLike,
    expert_cfg: ConfigLike | None,
    seed: int | None,
    expert_model: nn.Module | None,
    settings: Mapping[str, Any],
) -> list[Any]:
    """The config with a section of demonstrations; its own settings win over `settings`."""
    main, create, system = read_input(input_cfg)
    main = override(main, {})
    given = {new: lookup(main, old) for old, new in _FORMER.items() if new is not None}
    given = {name: value for name, value in given.items() if value is not MISSING}
    count = lookup(main, "policy.learn.expert_replay_buffer_size")
    for path in _FORMER:
        parent, _, key = path.rpartition(".")
        section = lookup(main, parent)
        if isinstance(section, dict):
            section.pop(key, None)
    own = lookup(main, _SECTION)
    section = {**settings, **given, **(own if isinstance(own, dict) else {})}
    if not section.get("path"):
        if expert_cfg is None:
            raise ConfigError(
                f"no expert: set {_SECTION}.path to a file of demonstrations (made by `ding demo "
                "make`), or give the config of an expert"
            )
        n_step = _COUNT if count is MISSING else int(count)
        section["path"] = str(expert_file(main, expert_cfg, seed, n_step, expert_model))
    return [override(main, {_SECTION: section}), create, system]


def expert_file(
    main: Mapping[str, Any],
    expert_cfg: ConfigLike,
    seed: int | None,
    n_step: int,
    expert_model: nn.Module | None = None,
    weights: str | None = None,
) -> Path:
    """The expert's steps in a file beside the run; one that is there already is used again."""
    path = Path(f"{main.get('exp_name', 'default_experiment')}_expert.hdf5")
    if path.is_file():
        logger.warning("the expert's steps in '%s' are used again; remove it for new ones", path)
        return path
    expert_main, create, _ = read_input(expert_cfg)
    former = lookup(expert_main, "policy.collect.model_path")
    if former is not MISSING:
        expert_main = override(expert_main, {})
        lookup(expert_main, "policy.collect").pop("model_path")
        weights = weights or former
    expert_main = override(expert_main, {"policy.collect.data_type": "ding"})
    expert_seed = main.get("seed", 0) if seed is None else seed
    collect_demo_data(
        [expert_main, create],
        expert_seed,
        n_step,
        path,
        model=expert_model,
        state_dict_path=weights,
    )
    logger.warning("%s steps of the expert, not counted as the agent's, are in '%s'", n_step, path)
    return path


def _taken(section: Any, key: str, default: Any) -> Any:
    return section.pop(key, default) if isinstance(section, dict) else default


def check_has_expert(cfg: Any, mode: str) -> None:
    """Refuse a config that does not say what this mode of the command is for."""
    model = cfg.get("reward_model")
    if mode == "serial_gail" and (model is None or model.type != "gail"):
        raise ConfigError("-m serial_gail needs main_config.reward_model = dict(type='gail', ...)")
    if mode != "serial_gail" and cfg.policy.other.get("demonstrations") is None:
        raise ConfigError(f"-m {mode} needs {_SECTION} = dict(path=FILE, ...)")
