"""Configs without a config file: those of the zoo, and one made up for any Gymnasium env."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import gymnasium as gym

from ding.envs import DingEnvWrapper
from ding.envs.packages import register_package
from ding.utils.errors import DingError, nearest
from ding.utils.registry import POLICY_REGISTRY

ZOO = {
    "connect_four": "dizoo.board_games.config",
    "league_demo": "dizoo.league_demo.config",
    "rock_paper_scissors": "dizoo.league_demo.config",
    "zero_sum": "dizoo.league_demo.config",
    "tictactoe": "dizoo.board_games.config",
    "climbing": "dizoo.matrix_games.config",
    "penalty": "dizoo.matrix_games.config",
    "qtran_matrix": "dizoo.matrix_games.config",
    "two_step": "dizoo.matrix_games.config",
    "simple_spread": "dizoo.petting_zoo.config",
    "bitflip": "dizoo.bitflip.config",
    "bitflip20": "dizoo.bitflip.config",
    "reach": "dizoo.toy.reach.config",
    "acrobot": "dizoo.classic_control.acrobot.config",
    "cartpole": "dizoo.classic_control.cartpole.config",
    "cartpole_fixed": "dizoo.classic_control.cartpole.config",
    "cartpole_no_velocity": "dizoo.classic_control.cartpole.config",
    "lattice": "dizoo.toy.lattice.config",
    "deep_sea": "dizoo.toy.deep_sea.config",
    "minigrid_doorkey": "dizoo.minigrid.config",
    "minigrid_empty": "dizoo.minigrid.config",
    "mountain_car_sparse": "dizoo.classic_control.mountain_car.config",
    "halfcheetah": "dizoo.mujoco.config",
    "hopper": "dizoo.mujoco.config",
    "lunarlander": "dizoo.box2d.lunarlander.config",
    "mountain_car": "dizoo.classic_control.mountain_car.config",
    "pendulum": "dizoo.classic_control.pendulum.config",
    "gym_hybrid": "dizoo.gym_hybrid.config",
    "pong": "dizoo.atari.config",
    "qbert": "dizoo.atari.config",
    "spaceinvaders": "dizoo.atari.config",
    "walker2d": "dizoo.mujoco.config",
}

_COLLECT = {
    "a2c": dict(n_sample=64),
    "ppg": dict(n_sample=1024),
    "ppo": dict(n_sample=1024),
    "ppo_recurrent": dict(n_sample=1024),
}
_ENV = {"ngu": dict(env_wrapper=["obs_plus_prev_action_reward"])}
_EITHER = {"discrete", "continuous"}
"""Policies for both have to be told which."""


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
    register_package(env)
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
    space = None
    if takes_either(policy):
        made = DingEnvWrapper(cfg={"env_id": env})
        space = made.action_space
        made.close()
    threshold = gym.registry[env].reward_threshold
    main = default_config(env, policy, space, float("inf") if threshold is None else threshold)
    main["env"]["env_id"] = env
    return main


def takes_either(policy: str) -> bool:
    """Whether the policy has to be told what kind the actions are."""
    return set(POLICY_REGISTRY.get(policy).action_kinds or ()) >= _EITHER


def default_config(name: str, policy: str, action_space: Any, stop_value: float) -> dict[str, Any]:
    """The main_config of a policy with its defaults, on an env that is yet to be named."""
    settings: dict[str, Any] = dict(collect=_COLLECT.get(policy, {}))
    if takes_either(policy):
        continuous = isinstance(action_space, gym.spaces.Box)
        settings["action_space"] = "continuous" if continuous else "discrete"
    return dict(
        exp_name=f"{name.replace('/', '_')}_{policy}",
        env=dict(
            collector_env_num=8,
            evaluator_env_num=8,
            n_evaluator_episode=8,
            stop_value=stop_value,
            **_ENV.get(policy, {}),
        ),
        policy=settings,
    )
