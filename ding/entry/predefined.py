"""Configs without a config file: those of the zoo, and one made up for any Gymnasium env."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import gymnasium as gym

from ding.utils.errors import DingError, nearest
from ding.utils.registry import POLICY_REGISTRY

ZOO = {
    "cartpole": "dizoo.classic_control.cartpole.config",
    "pendulum": "dizoo.classic_control.pendulum.config",
}

_COLLECT = {"ppo": dict(n_sample=1024)}


def predefined_config(env: str, policy: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The zoo's config for this pair, or the policy's defaults on the Gymnasium env of that id."""
    policy = policy.lower()
    if env in ZOO:
        module = f"{ZOO[env]}.{env}_{policy}_config"
        if find_spec(module) is None:
            POLICY_REGISTRY.get(policy)  # an unknown name is another mistake than a missing config
            raise DingError(
                f"the zoo has no config for -e {env} -p {policy}; write one, pass it by -c"
            )
        loaded = import_module(module)
        return loaded.main_config, loaded.create_config
    if env not in gym.registry:
        known = [*ZOO, *gym.registry]
        raise DingError(
            f"unknown env '{env}' (-e): not in the zoo, no Gymnasium id{nearest(env, known)}"
        )
    POLICY_REGISTRY.get(policy)  # an unknown name is an error here, with the nearest one
    return _default_config(env, policy), dict(
        env_manager=dict(type="base"), policy=dict(type=policy)
    )


def _default_config(env: str, policy: str) -> dict[str, Any]:
    threshold = gym.registry[env].reward_threshold
    settings: dict[str, Any] = dict(collect=_COLLECT.get(policy, {}))
    if policy == "ppo":
        made = gym.make(env)
        continuous = isinstance(made.action_space, gym.spaces.Box)
        made.close()
        settings["action_space"] = "continuous" if continuous else "discrete"
    return dict(
        exp_name=f"{env.replace('/', '_')}_{policy}",
        env=dict(
            env_id=env,
            collector_env_num=8,
            evaluator_env_num=8,
            n_evaluator_episode=8,
            stop_value=float("inf") if threshold is None else threshold,
        ),
        policy=settings,
    )
