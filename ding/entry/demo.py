"""Demonstrations: record them, make them with a trained policy, look at them, check them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ding.config import compile_config
from ding.data.demo_file import refuse_existing
from ding.data.demo_formats import load_demonstrations
from ding.data.demo_summary import draw, no_better_than_random, summary
from ding.data.demonstrations import Demonstrations, Origin
from ding.data.space_fit import misfit
from ding.entry.demo_data import env_name, origin_of
from ding.entry.trained import load_weights, prepared
from ding.envs import get_vec_env_setting, manager_of
from ding.envs.obs_map import ObsMap, obs_map
from ding.envs.spaces import check_supported
from ding.pipeline.run import ConfigLike, read_input
from ding.policy import Policy
from ding.policy.modes import CollectMode
from ding.policy.random_policy import get_random_policy, random_actions
from ding.utils.batch import Rows, stack, take
from ding.utils.errors import DemonstrationError
from ding.worker import EpisodeCollector

logger = logging.getLogger(__name__)

N_RANDOM = 5
"""Episodes of random actions that every recording is compared with."""


def record(
    act: Callable[[Any], Any],
    env: str | gym.Env[Any, Any],
    n_episode: int,
    path: str | Path | None = None,
    seed: int = 0,
) -> Demonstrations:
    """Play episodes of any Gymnasium env by a function from observation to action.

    They are saved if a path is given; the env may be an id.
    """
    _check_count(n_episode)
    if path is not None:
        refuse_existing(path)
    made = gym.make(env) if isinstance(env, str) else env
    name = str(path or f"record of {made}")
    try:
        see = obs_map(made.observation_space)
        origin = _origin(made, see, seed, name)
        episodes = [_played(made, see, act, seed if i == 0 else None) for i in range(n_episode)]
        rng = np.random.default_rng(seed)

        def at_random(obs: Any) -> Any:
            return take(random_actions(made.action_space, 1, rng), 0)

        random = [_played(made, see, at_random, None) for _ in range(N_RANDOM)]
    finally:
        if isinstance(env, str):
            made.close()
    return _concluded(episodes, random, origin, path)


def _check_count(n_episode: int) -> None:
    if n_episode < 1:
        raise DemonstrationError(f"{n_episode} episodes: demonstrations have at least one")


def _origin(env: gym.Env[Any, Any], see: ObsMap, seed: int, name: str) -> Origin:
    check_supported(env.action_space, "action_space")
    spec = env.spec
    return Origin(
        env_id=spec.id if spec else None,
        obs_space=see.presented,
        action_space=env.action_space,
        seed=seed,
        versions={"gymnasium": gym.__version__},
        name=name,
    )


def _played(
    env: gym.Env[Any, Any], see: ObsMap, act: Callable[[Any], Any], seed: int | None
) -> Rows:
    """Steps of one episode."""
    obs, _ = env.reset(seed=seed)
    space, rows, done = env.action_space, [], False
    while not done:
        action = _as_in(space, act(obs))
        next_obs, reward, terminated, truncated, _ = env.step(action)
        done = bool(terminated or truncated)
        rows.append(
            {
                "obs": see(obs),
                "action": action,
                "reward": np.float32(reward),
                "next_obs": see(next_obs),
                "done": done,
                "truncated": bool(truncated and not terminated),
            }
        )
        obs = next_obs
    return Rows(stack(rows))


def _as_in(space: gym.Space[Any], action: Any) -> Any:
    """The action with the dtype of its space."""
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        return action
    array = np.asarray(action)
    whole = space.dtype is None or space.dtype.kind == "f" or array.dtype.kind in "biu"
    if array.size != int(np.prod(space.shape or ())) or not whole:
        raise DemonstrationError(
            f"the function gave the action {action!r}, but actions are {space}"
        )
    fitting = array.reshape(space.shape or ()).astype(space.dtype)
    if misfit(fitting[None], space):
        raise DemonstrationError(
            f"the function gave the action {action!r}, but actions are {space}"
        )
    return fitting


def _concluded(
    episodes: list[Any], random: list[Any], origin: Origin, path: str | Path | None
) -> Demonstrations:
    """Check, compare with random actions, and save."""
    by_chance = Demonstrations.of_episodes(random, replace(origin, name="random actions"))
    returns = tuple(float(x) for x in by_chance.returns)
    made = Demonstrations.of_episodes(episodes, replace(origin, random_returns=returns))
    if warning := no_better_than_random(made):
        logger.warning("%s: %s", origin.name, warning)
    if path is not None:
        made.save(path)
    return made


def make(
    run: str | Path,
    n_episode: int,
    path: str | Path,
    seed: int = 0,
    load_path: str | Path | None = None,
) -> Demonstrations:
    """Let the policy of a run (its directory, or a config file) play as it is evaluated."""
    refuse_existing(path)
    _check_count(n_episode)
    input_cfg, checkpoint = run_of(Path(run), load_path)
    cfg, env, policy = prepared(input_cfg, seed, None, None, evaluating=True, most_envs=n_episode)
    with env:
        load_weights(policy, policy.eval_mode, None, cfg, checkpoint)
        origin = origin_of(cfg, env, seed, str(path))
        mode = _recording(policy)
        with EpisodeCollector({}, env=env, policy=mode, exp_name=cfg.exp_name) as collector:
            episodes = collector.collect(n_episode)
            collector.reset_policy(get_random_policy(mode, env.action_space))
            random = collector.collect(max(N_RANDOM, env.env_num))
    return _concluded(episodes, random, origin, path)


def run_of(run: Path, load_path: str | Path | None) -> tuple[ConfigLike, Path | None]:
    """Config and checkpoint of a run."""
    given = None if load_path is None else Path(load_path)
    if not run.is_dir():
        return str(run), given
    config = run / "total_config.py"
    if not config.is_file():
        raise DemonstrationError(f"'{run}' is no run: it has no total_config.py")
    return str(config), given or run / "ckpt" / "ckpt_best.pth.tar"


def plain_transition(obs: Any, output: Any, timestep: Any) -> dict[str, Any]:
    """Columns of a step that demonstrations have."""
    return {
        "obs": obs,
        "action": output["action"],
        "reward": timestep.reward,
        "next_obs": timestep.obs,
        "done": timestep.done,
    }


def _recording(policy: Policy) -> CollectMode:
    """Acts as in evaluation, and records plain steps."""
    mode = policy.eval_mode

    def attribute(name: str) -> Any:
        raise NotImplementedError(name)  # Evaluation gathers no statistics.

    return CollectMode(
        mode.forward,
        plain_transition,
        lambda steps: steps,
        mode.reset,
        attribute,
        mode.set_attribute,
        mode.state_dict,
        mode.load_state_dict,
    )


def show(path: str | Path, picture: str | Path | None = None) -> str:
    """A page about a file; the picture goes to a file too."""
    demonstrations = load_demonstrations(path)
    if picture is not None:
        draw(demonstrations, refuse_existing(picture))
    return summary(demonstrations)


def check(path: str | Path, input_cfg: ConfigLike) -> str:
    """Refuse a file that a run of this config could not learn from."""
    demonstrations = load_demonstrations(path)
    main, create, _ = read_input(input_cfg)
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    env_fn, collector_cfg, _ = get_vec_env_setting(cfg.env)
    with closing(manager_of(dict(type="base"), env_fn, (collector_cfg or [])[:1])) as env:
        check_for_env(demonstrations, cfg.env, env)
    return (
        f"'{path}' fits {env_name(cfg.env)}: {demonstrations.n_episode} episodes, "
        f"{demonstrations.n_step} steps"
    )


def check_for_env(demonstrations: Demonstrations, env_cfg: Mapping[str, Any], env: Any) -> None:
    """Refuse demonstrations that are not of this env."""
    demonstrations.check(env.observation_space, env.action_space, env_name(env_cfg))
