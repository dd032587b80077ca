"""compile_config: defaults of every part, bottom up, with the user's values on top."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from ding.config.explain import CompiledConfig, compiled, origins_of
from ding.config.files import config_text, save_config
from ding.config.given_env import with_places
from ding.config.layout import layout
from ding.config.merge import Origin, merge, respelt
from ding.config.parts import PLACES, checked_create_config, classes_of, refuse_parts_not_built
from ding.config.rules import apply_rules, check_rules
from ding.config.schema import deep_merge_dicts
from ding.config.tree import MISSING, lookup, plain_dict, put
from ding.utils.errors import ConfigError

logger = logging.getLogger(__name__)

ALIASES = {
    "policy.learn.nstep": "policy.nstep",
    "policy.batch_size": "policy.learn.batch_size",
    "policy.update_per_collect": "policy.learn.update_per_collect",
    "policy.learning_rate": "policy.learn.learning_rate",
    "policy.n_sample": "policy.collect.n_sample",
    "policy.n_episode": "policy.collect.n_episode",
    "policy.use_cuda": "policy.cuda",
    "policy.learn.target_update_theta": "policy.learn.target_theta",
    "policy.learn.grad_norm": "policy.learn.grad_clip_value",
    "policy.learn.unroll_len": "policy.collect.unroll_len",
    "policy.learn.discount_factor": "policy.discount_factor",
    "policy.collect.discount_factor": "policy.discount_factor",
    "policy.eval.evaluator.stop_value": "env.stop_value",
    "policy.eval.evaluator.n_episode": "env.n_evaluator_episode",
}
"""Older or derived spellings, accepted where no part declares such a key itself."""


def compile_config(  # noqa: PLR0913  (the established signature)
    cfg: Mapping[str, Any],
    env_manager: Any = None,
    policy: Any = None,
    learner: Any = None,
    collector: Any = None,
    evaluator: Any = None,
    buffer: Any = None,
    env: Any = None,
    reward_model: Any = None,
    world_model: Any = None,
    seed: int | None = None,
    auto: bool = False,
    create_cfg: Mapping[str, Any] | None = None,
    save_cfg: bool = True,
    save_path: str = "total_config.py",
    renew_dir: bool = True,
) -> CompiledConfig:
    """The whole config of a run, merged and checked, saved to `./<exp_name>` if `save_cfg`.

    Classes of the parts are passed in or, with `auto`, taken from the registries by the types in
    `create_cfg`; a part left None is the usual one (BaseLearner, InteractionSerialEvaluator, ...).
    Without a `seed` it is the config's own, or 0.
    """
    if not isinstance(cfg, Mapping):
        raise ConfigError(f"main_config must be a dict, got {type(cfg).__name__}")
    if auto and create_cfg is None:
        raise ConfigError("compile_config(auto=True) needs create_cfg, which names the parts")
    passed = {
        "env": env,
        "env_manager": env_manager,
        "policy": policy,
        "learner": learner,
        "collector": collector,
        "evaluator": evaluator,
        "replay_buffer": buffer,
        "reward_model": reward_model,
    }
    main = with_places(_with_seed(plain_dict(deepcopy(cfg)), seed))
    for given in (main, {"world_model": world_model}):
        refuse_parts_not_built(given)
    create = checked_create_config(create_cfg, main)
    source_of = partial(_source, main=main, create=_combined(create, {}), earlier=origins_of(cfg))
    classes = classes_of(passed, create, main, auto)
    user = _combined(create, main)
    origins: dict[str, Origin] = {}
    schema = layout(classes, user, settled=auto)
    tree = merge(schema, respelt(schema, user, ALIASES), origins=origins, source_of=source_of)
    apply_rules(tree, origins, classes.get("policy"), settled=auto)
    result = compiled(tree, origins, create)
    check_rules(result, classes.get("policy"))
    if save_cfg:
        save_compiled(result, save_path, renew_dir)
    return result


def _with_seed(main: dict[str, Any], seed: int | None) -> dict[str, Any]:
    if seed is None:
        return {"seed": 0} | main
    if main.get("seed", seed) != seed:
        logger.warning("seed=%s in the config gives way to seed=%s", main["seed"], seed)
    return main | {"seed": seed}


def _combined(create: dict[str, Any], main: dict[str, Any]) -> dict[str, Any]:
    """create_config in its places below main_config; the names of classes are as in `create`."""
    user: dict[str, Any] = {}
    for part, settings in create.items():
        placed: dict[str, Any] = {}
        put(placed, PLACES[part], settings)
        user = deep_merge_dicts(user, placed)
    user = deep_merge_dicts(user, main)
    for part, settings in create.items():
        for key in settings.keys() & {"type", "import_names"}:
            put(user, f"{PLACES[part]}.{key}", settings[key])
    return user


def _source(
    path: str, main: dict[str, Any], create: dict[str, Any], earlier: dict[str, Origin]
) -> str:
    """Origin of a value: an argument, create_config, `override`, the user, or nobody."""
    if path == "seed":
        return "argument"
    if lookup(main, path) is MISSING:
        if lookup(create, path) is not MISSING:
            return "create_config"
        if path.endswith(".type"):
            return "default"  # a part that nobody named
    return earlier[path].source if path in earlier else "user"


def save_compiled(
    cfg: CompiledConfig, save_path: str = "total_config.py", renew_dir: bool = True
) -> None:
    """Write a compiled config to its directory, which is made; `exp_name` becomes its name."""
    config_text(cfg)  # raises for what cannot be saved, before anything is made
    folder = _made_dir(cfg["exp_name"], renew_dir)
    cfg["exp_name"] = folder
    save_config(cfg, Path(folder) / save_path, save_formatted=True)


def _made_dir(name: str, renew: bool) -> str:
    """Make the directory and return its name; with `renew` it is always a new one."""
    stamped = f"{name}_{datetime.now():%y%m%d_%H%M%S}"
    if Path(name).is_file():
        raise ConfigError(f"exp_name '{name}' is a file, not a directory: choose another name")
    names = iter([name, stamped, *(f"{stamped}_{i}" for i in range(1, 1000))])
    for candidate in names:
        try:
            Path(candidate).mkdir(parents=True, exist_ok=not renew)
        except FileExistsError:
            continue
        except OSError as error:
            reason = f"{error.strerror} ({error.filename})"
            raise ConfigError(f"exp_name '{name}': cannot make this directory: {reason}") from error
        else:
            return candidate
    raise ConfigError(f"could not make a new directory for exp_name '{name}'")
