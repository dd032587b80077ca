"""What holds between config values: filled in where it follows, an error where it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ding.config.merge import Origin
from ding.config.schema import build
from ding.config.tree import MISSING, lookup, misfit_error, put
from ding.config.values import describe, fits
from ding.utils.errors import ConfigError, nearest

_MAX_EVALUATOR_ENVS = 8
_SEQUENCE_KEYS = {"burn_in": "policy.burnin_step", "unroll_len": "policy.learn_unroll_len"}
"""What a buffer of sequences takes from a policy that has such settings."""

SETTLED: dict[str, tuple[tuple[Any, ...], str]] = {
    "policy.learn.learner.dataloader.num_workers": (
        (0,),
        "the learner gets its batches from the buffer in its own process; leave it at 0",
    ),
    "policy.collect.collector.deepcopy_obs": ((False, True), "observations are always copied"),
    "policy.collect.collector.transform_obs": ((False, True), "samples are stacked columns anyway"),
    "policy.other.replay_buffer.deepcopy": ((False, True), "samples are always copied"),
}
"""Established keys that nothing reads: the values that hold anyway, and why others cannot."""


_NORMALISERS = {
    "obs_norm": {"clip_range": "policy.obs_norm_range"},
    "reward_norm": {"reward_discount": "policy.reward_norm_discount"},
}
"""Env wrappers that are parts of the policy, and where their options go."""


def apply_rules(
    tree: dict[str, Any], origins: dict[str, Origin], policy_class: Any, *, settled: bool
) -> None:
    """Fill in what follows from other values; `settled`: what nothing says is an error."""
    env, policy = tree["env"], tree["policy"]
    _settle_amount(policy["collect"], origins, settled)
    if policy.get("unroll_len") is not None:
        _derive(tree, origins, "policy.collect.unroll_len", "policy.unroll_len")
    _fit_buffer(tree, origins, policy_class)
    if lookup(tree, "policy.collect.env_num") is not MISSING:
        _derive(tree, origins, "policy.collect.env_num", "env.collector_env_num")
    if env.get("evaluator_env_num") is None:
        env["evaluator_env_num"] = min(env["n_evaluator_episode"], _MAX_EVALUATOR_ENVS)
        origins["env.evaluator_env_num"] = Origin("from env.n_evaluator_episode")
    _lift_normalisers(tree, origins)
    _derive(tree, origins, "policy.eval.evaluator.stop_value", "env.stop_value")
    _derive(tree, origins, "policy.eval.evaluator.n_episode", "env.n_evaluator_episode")


def _fit_buffer(tree: dict[str, Any], origins: dict[str, Origin], policy_class: Any) -> None:
    """The buffer draws what the policy learns from: sequences, or sums of `nstep` rewards."""
    buffer = "policy.other.replay_buffer"
    leaders: dict[str, str] = {}
    get_train_sample = getattr(policy_class, "_get_train_sample", None)
    # A policy that sums rewards by itself has no use for a buffer that does it again.
    of_steps = getattr(get_train_sample, "single_steps", False)
    if of_steps and lookup(tree, f"{buffer}.discount_factor") is not MISSING:
        leaders["discount_factor"] = "policy.discount_factor"
    if lookup(tree, f"{buffer}.burn_in") is not MISSING:
        draws = getattr(policy_class, "draws_sequences", False)
        leaders |= {"unroll_len": "policy.collect.unroll_len"} if draws else _SEQUENCE_KEYS
    elif of_steps and lookup(tree, f"{buffer}.nstep") is not MISSING:
        leaders["nstep"] = "policy.nstep"
    for key, leader in leaders.items():
        if lookup(tree, leader) is not MISSING:
            _derive(tree, origins, f"{buffer}.{key}", leader)
    if lookup(tree, "policy.other.her") not in (MISSING, None):
        tree["policy"]["other"]["replay_buffer"]["links"] = True
        origins[f"{buffer}.links"] = Origin("from policy.other.her")


def check_rules(cfg: Mapping[str, Any], policy: Any) -> None:
    """What types cannot say, then what the policy itself has to say."""
    if not cfg["exp_name"].strip():
        raise ConfigError("config key 'exp_name' is empty; it names the directory of the run")
    _check_env(cfg["env"])
    _check_settled(cfg)
    _check_model(cfg["policy"], getattr(policy, "model_signature", None))
    config_class = getattr(policy, "config_class", None)
    if config_class is not None:
        build(config_class, cfg["policy"], "policy")
    if hasattr(policy, "check_config"):
        policy.check_config(cfg)


def _settle_amount(collect: dict[str, Any], origins: dict[str, Origin], settled: bool) -> None:
    given = [key for key in ("n_sample", "n_episode") if collect.get(key) is not None]
    chosen = [key for key in given if origins[f"policy.collect.{key}"].source != "default"]
    if len(chosen) == 1:  # the user's choice replaces the other one's default
        for key in set(given) - set(chosen):
            collect[key] = None
            origins[f"policy.collect.{key}"] = Origin(f"from policy.collect.{chosen[0]}")
    elif len(given) == 2:
        raise ConfigError(
            f"config keys 'policy.collect.n_sample' (= {collect['n_sample']}) and "
            f"'policy.collect.n_episode' (= {collect['n_episode']}) exclude each other; keep one"
        )
    elif not given and settled:
        raise ConfigError(
            "config key 'policy.collect.n_sample' or 'policy.collect.n_episode' is required: how "
            "much is collected at a time; for example policy=dict(collect=dict(n_sample=8), ...)"
        )


def _lift_normalisers(tree: dict[str, Any], origins: dict[str, Origin]) -> None:
    """Normalisers listed as env wrappers become the policy's: one for all envs, saved with it."""
    kept = []
    for wrapper in tree["env"].get("env_wrapper") or []:
        options = dict(wrapper) if isinstance(wrapper, Mapping) else {"type": wrapper}
        name = options.pop("type", None)
        if name not in _NORMALISERS or f"policy.{name}" not in origins:
            kept.append(wrapper)
            continue
        options |= options.pop("kwargs", None) or {}
        options.pop("collect_only", None)  # an evaluation never updates the statistics
        settings = {f"policy.{name}": True}
        for key, value in options.items():
            if key not in _NORMALISERS[name]:
                hint = nearest(key, _NORMALISERS[name])
                raise ConfigError(f"config key 'env.env_wrapper': '{name}' has no '{key}'{hint}")
            settings[_NORMALISERS[name][key]] = value
        for path, value in settings.items():
            put(tree, path, value)
            origins[path] = Origin("from env.env_wrapper")
    if "env_wrapper" in tree["env"]:
        tree["env"]["env_wrapper"] = kept


def _derive(tree: dict[str, Any], origins: dict[str, Origin], path: str, leader: str) -> None:
    """One value in two places; setting the second to something else could have no effect."""
    value, given = lookup(tree, leader), lookup(tree, path)
    chosen = path in origins and origins[path].source != "default"
    if chosen and given not in (MISSING, None, value):
        raise ConfigError(
            f"config key '{path}' (= {given!r}) follows '{leader}' (= {value!r}); set only that"
        )
    put(tree, path, value)
    origins[path] = Origin(f"from {leader}")


def _check_env(env: Mapping[str, Any]) -> None:
    for key in ("collector_env_num", "n_evaluator_episode", "evaluator_env_num"):
        if env.get(key) is not None and env[key] < 1:
            raise ConfigError(f"config key 'env.{key}' must be at least 1, got {env[key]}")
    episodes, envs = env["n_evaluator_episode"], env["evaluator_env_num"]
    if episodes < envs:
        raise ConfigError(
            f"config key 'env.n_evaluator_episode' (= {episodes}) is below 'env.evaluator_env_num' "
            f"(= {envs}): each of these envs plays an episode at least; set n_evaluator_episode="
            f"{envs} or evaluator_env_num={episodes}"
        )


def _check_settled(cfg: Mapping[str, Any]) -> None:
    for path, (values, reason) in SETTLED.items():
        value = lookup(cfg, path)
        if value is not MISSING and value not in values:
            raise ConfigError(f"config key '{path}' = {value!r} can have no effect: {reason}")


def _check_model(policy: Mapping[str, Any], signature: Any) -> None:
    model = policy.get("model") or {}
    for key, value in model.items():
        if key.endswith("size_list") and not fits(value, list[int] | None):
            raise misfit_error(f"policy.model.{key}", value, describe(list[int]))
    valid = None if signature is None or model.get("type") else signature(policy)
    if valid is None:
        return
    for key, value in model.items():
        if key not in valid and key not in ("type", "import_names"):
            raise ConfigError(
                f"unknown config key 'policy.model.{key}' (= {value!r}){nearest(key, valid)}"
            )
