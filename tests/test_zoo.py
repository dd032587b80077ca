"""Every config of the zoo compiles and fits its env; what preprocessing does to Atari games."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import compile_config
from ding.entry.predefined import ZOO, predefined_config
from ding.envs import get_vec_env_setting
from ding.envs.two_player import SeatsSpace
from ding.pipeline.spaces import fit_model_to_env
from ding.policy import create_policy
from ding.utils.batch import stack, take
from ding.utils.errors import DingError
from ding.worker.battle.games import split_turns
from dizoo.atari.envs import AtariEnv

ROOT = Path(__file__).parents[1]
FILES = sorted(ROOT.glob("dizoo/**/config/*_config.py"))
MODULES = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES]


@pytest.mark.parametrize("module", MODULES, ids=[file.stem for file in FILES])
def test_config_fits_its_env(module: str) -> None:
    loaded = import_module(module)
    main = {key: part for key, part in loaded.main_config.items() if key != "league"}
    cfg = compile_config(main, auto=True, create_cfg=loaded.create_config, save_cfg=False)
    assert cfg.exp_name.startswith(module.rpartition(".")[2].removesuffix("_config"))
    assert cfg.env.evaluator_env_num <= cfg.env.n_evaluator_episode
    env_fn, collector, evaluator = get_vec_env_setting(cfg.env)
    assert collector is not None and evaluator is not None
    env = env_fn(cfg=evaluator[0])
    try:
        env.seed(0, dynamic_seed=False)
        obs = env.reset()
    except DingError as error:
        if "pip install" not in str(error):
            raise
        create_policy(cfg.policy, enable_field=["eval"])  # the config tells the model's shapes
        pytest.skip(str(error))
    fit_model_to_env(cfg.policy, env)
    policy = create_policy(cfg.policy, enable_field=["eval"])
    if isinstance(env.action_space, SeatsSpace):
        seen, _ = split_turns(stack([obs]), 1)
        seats = {k: take(seen, (0, k)) for k in (0, 1)}
        moves = policy.eval_mode.forward(seats)
        env.step(np.array([moves[k]["action"] for k in (0, 1)]))
    else:
        output = policy.eval_mode.forward({0: obs})[0]
        env.step(output["action"])
    env.close()


def test_short_names_find_configs() -> None:
    for name, package in ZOO.items():
        stems = [m.rpartition(".")[2] for m in MODULES if m.startswith(f"{package}.{name}_")]
        assert stems, name
        for stem in stems:
            policy = stem.removeprefix(f"{name}_").removesuffix("_config")
            main, _ = predefined_config(name, policy)
            assert main["exp_name"].startswith(f"{name}_{policy}")


# --- Atari ---------------------------------------------------------------------------------------

needs_atari = pytest.mark.skipif(find_spec("ale_py") is None, reason="needs the extra [atari]")


def made(collect: bool, **cfg: Any) -> AtariEnv:
    create = AtariEnv.create_collector_env_cfg if collect else AtariEnv.create_evaluator_env_cfg
    env = AtariEnv(create({"collector_env_num": 1, "evaluator_env_num": 1, **cfg})[0])
    env.seed(0, dynamic_seed=False)
    return env


def test_only_collecting_has_lives_and_clipped_rewards() -> None:
    collecting, evaluating = made(True)._cfg, made(False)._cfg
    names = [w if isinstance(w, str) else w["type"] for w in collecting["env_wrapper"]]
    usual = ["noop_reset", "max_and_skip", "episodic_life", "fire_reset", "warp_frame"]
    assert names == [*usual, "frame_stack"] and collecting["rew_clip"]
    assert "episodic_life" not in str(evaluating["env_wrapper"])
    assert len(evaluating["env_wrapper"]) == 5 and not evaluating["rew_clip"]


@needs_atari
def test_atari_observations() -> None:
    env = made(True)
    obs = env.reset()
    assert obs.shape == env.observation_space.shape == (4, 84, 84) and obs.dtype == np.uint8
    assert obs.std() > 0 and all(np.array_equal(obs[0], frame) for frame in obs)
    for _ in range(5):  # the paddle goes up
        before, obs = obs, env.step(2).obs
        assert np.array_equal(obs[:3], before[1:])
    assert not np.array_equal(obs[3], obs[0])
    env.close()


@needs_atari
def test_atari_episodes_end_with_a_life_when_collecting_only() -> None:
    """In Space Invaders with three lives, pressing buttons at random."""
    steps, rewards = [], set()
    for collect in (True, False):
        env = made(collect, env_id="ALE/SpaceInvaders-v5")
        env.reset()
        rng = np.random.default_rng(0)
        count, done = 0, False
        while not done:
            step = env.step(int(rng.integers(6)))
            count, done = count + 1, step.done
            if collect:
                rewards.add(step.reward)
        lives = env._env.unwrapped.ale.lives()
        assert (lives == 0) != collect
        assert "truncated" not in step.info
        steps.append(count)
        env.close()
    assert rewards == {0.0, 1.0} and steps[0] < steps[1]
    assert step.info["eval_episode_return"] > 4


@needs_atari
def test_atari_is_repeatable() -> None:
    first, second = made(True), made(True)
    for env in (first, second):
        env.reset()
    for action in [2, 3, 3, 0, 2, 5] * 20:
        one, two = first.step(action), second.step(action)
        assert np.array_equal(one.obs, two.obs) and one.reward == two.reward
    first.close()
    second.close()
