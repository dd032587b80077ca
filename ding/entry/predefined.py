"""Configs without a config file: those of the zoo, and one made up for any Gymnasium env."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

import gymnasium as gym

from ding.entry.first_run import Task, settings_for, task_of
from ding.envs import DingEnvWrapper
from ding.envs.given import maker_of
from ding.envs.packages import register_package, unknown_id
from ding.pipeline.spaces import check_kind
from ding.utils.errors import DingError
from ding.utils.registry import POLICY_REGISTRY

ZOO = {
    "connect_four": "dizoo.board_games.config",
    "kuhn_poker": "dizoo.poker.config",
    "leduc_poker": "dizoo.poker.config",
    "league_demo": "dizoo.league_demo.config",
    "rock_paper_scissors": "dizoo.league_demo.config",
    "zero_sum": "dizoo.league_demo.config",
    "slime_volley": "dizoo.slime_volley.config",
    "tictactoe": "dizoo.board_games.config",
    "climbing": "dizoo.matrix_games.config",
    "penalty": "dizoo.matrix_games.config",
    "qtran_matrix": "dizoo.matrix_games.config",
    "two_step": "dizoo.matrix_games.config",
    "micro_battle_2s3z": "dizoo.micro_battle.config",
    "micro_battle_3m": "dizoo.micro_battle.config",
    "micro_battle_8m": "dizoo.micro_battle.config",
    "micro_duel_3m": "dizoo.micro_battle.config",
    "simple_spread": "dizoo.petting_zoo.config",
    "speaker_listener": "dizoo.petting_zoo.config",
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

_ENV = {"ngu": dict(env_wrapper=["obs_plus_prev_action_reward"])}
_EITHER = {"discrete", "continuous"}
"""Policies for both have to be told which."""

Configs = tuple[dict[str, Any], dict[str, Any]]
Say = Callable[[str], None]


def predefined_config(
    env: str, policy: str, steps: int | None = None, say: Say = lambda text: None
) -> Configs:
    """The zoo's config for this pair, or one made for the Gymnasium env of that id.

    `say` is told what was chosen, and why.
    """
    policy = policy.lower()
    if env in ZOO:
        return _of_zoo(env, policy)
    register_package(env)
    if env not in gym.registry and maker_of(env) is None:
        known = [*ZOO, *gym.registry]
        raise DingError(
            f"unknown env '{env}' (-e): not in the zoo, no Gymnasium id{unknown_id(env, known)}"
        )
    POLICY_REGISTRY.get(policy)  # an unknown name is an error here, with the nearest one
    probe = DingEnvWrapper(cfg={"env_id": env})
    spec = gym.registry.get(env)
    limit, threshold = (spec.max_episode_steps, spec.reward_threshold) if spec else (None, None)
    try:
        task = task_of(probe, policy, steps, limit, threshold)
    finally:
        probe.close()
    main = default_config(env, policy, task, say)
    main["env"]["env_id"] = env
    return main, dict(env_manager=dict(type="base"), policy=dict(type=policy))


def _of_zoo(env: str, policy: str) -> Configs:
    module = f"{ZOO[env]}.{env}_{policy}_config"
    if find_spec(module) is None:
        POLICY_REGISTRY.get(policy)  # an unknown name is another mistake than a missing config
        known = ", ".join(policies_of(env))
        raise DingError(
            f"the zoo has no config for -e {env} -p {policy}; it has {known}; or write one, "
            "pass it by -c"
        )
    loaded = import_module(module)
    return loaded.main_config, loaded.create_config


def policies_of(env: str) -> list[str]:
    """Policies that the zoo has a config for."""
    package = import_module(ZOO[env])
    others = [name for name in ZOO if name.startswith(f"{env}_")]
    found = []
    for module in iter_modules(package.__path__):
        policy = module.name.removeprefix(f"{env}_").removesuffix("_config")
        is_own = module.name == f"{env}_{policy}_config"
        if is_own and not any(module.name.startswith(f"{other}_") for other in others):
            found.append(policy)
    return sorted(found)


def takes_either(policy: str) -> bool:
    """Whether the policy has to be told what kind the actions are."""
    return set(POLICY_REGISTRY.get(policy).action_kinds or ()) >= _EITHER


def default_config(
    name: str, policy: str, task: Task, say: Say = lambda text: None
) -> dict[str, Any]:
    """The main_config of a policy for such a task, whose env is yet to be named."""
    check_kind({"type": policy}, task.action_space)
    settings, said = settings_for(policy, task)
    if said:
        say(said)
    if takes_either(policy):
        if "continuous" in POLICY_REGISTRY.get(policy).default_config():
            loss = "mse_loss" if task.is_continuous else None
            settings |= dict(continuous=task.is_continuous, loss_type=loss)
        else:
            settings["action_space"] = task.kind
    return dict(
        exp_name=f"{name.replace('/', '_').replace(':', '_')}_{policy}_seed0",
        env=dict(
            collector_env_num=4 if task.is_continuous else 8,
            evaluator_env_num=8,
            n_evaluator_episode=8,
            stop_value=float("inf") if task.threshold is None else task.threshold,
            **({} if task.limit is None else dict(max_episode_steps=task.limit)),
            **_ENV.get(policy, {}),
        ),
        policy=settings,
    )
