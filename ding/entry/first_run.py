"""Settings of a first run: chosen by kind of task and of algorithm, scaled to the budget.

`docs/first_run.md` has the rule in words. What a policy does not declare is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from ding.config import deep_merge_dicts
from ding.envs import BaseEnv, DingEnvWrapper
from ding.envs.agents import AgentsSpace
from ding.model.encoder import IMAGE_SIZES, is_image
from ding.pipeline.spaces import action_kind
from ding.utils.registry import POLICY_REGISTRY

USUAL_STEPS = 200_000
"""Env steps that settings are scaled to where nobody says how many."""
_EVALUATIONS = 20
_MOST_ENVS = 8
"""Envs collect in step, so samples of one collect are a multiple of this."""
_SUPPORT = {"v_min", "v_max"}
_RANDOM_EPISODES, _RANDOM_STEPS = 3, 3000

_WHOLE = ("lr_scheduler", "replay_buffer", "evaluator")
"""Sections whose keys belong to other parts than the policy."""

Settings = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """Facts that the rule goes by."""

    obs_space: gym.Space[Any]
    action_space: gym.Space[Any]
    steps: int = USUAL_STEPS
    horizon: int | None = None
    """Most steps of an episode, if that is known."""
    rewards: tuple[float, float] = (0.0, 0.0)
    """Least and largest reward of a step in a few episodes at random."""
    threshold: float | None = None
    """Return that counts as solved."""
    limit: int | None = None
    """Most steps of an episode that are set since the env has no limit."""

    @property
    def is_image(self) -> bool:
        return _holds_image(self.obs_space)

    @property
    def kind(self) -> str:
        """Kind of the actions, as policies name it."""
        kind = action_kind(self.action_space)
        return "discrete" if kind == "multi_discrete" else kind

    @property
    def is_continuous(self) -> bool:
        return isinstance(self.action_space, gym.spaces.Box)


def _holds_image(space: gym.Space[Any]) -> bool:
    if isinstance(space, gym.spaces.Dict):
        return any(map(_holds_image, space.spaces.values()))
    return is_image(space.shape)


def _is_scaled(space: gym.Space[Any]) -> bool:
    """Whether all numbers are within [-1, 1] already."""
    within = isinstance(space, gym.spaces.Box) and (space.low >= -1).all()
    return bool(within and (space.high <= 1).all())  # type: ignore[attr-defined]


def rewards_at_random(env: BaseEnv) -> tuple[float, float]:
    """Least and largest reward of a step in a few episodes of random actions."""
    rewards = [0.0]
    env.seed(0, dynamic_seed=False)
    for _ in range(_RANDOM_EPISODES):
        env.reset()
        over = False
        while not over and len(rewards) < _RANDOM_STEPS:
            step = env.step(env.random_action())
            rewards.append(float(np.sum(step.reward)))
            over = bool(step.done)
    return min(rewards), max(rewards)


def task_of(
    env: BaseEnv,
    policy: str,
    steps: int | None,
    horizon: int | None = None,
    threshold: float | None = None,
) -> Task:
    """Look at an env; at its rewards only if the policy has to know how large returns can be."""
    cls = POLICY_REGISTRY.get(policy)
    signature = cls.model_signature(cls.default_config()) or ()
    budget = USUAL_STEPS if steps is None else steps
    limit = None
    if isinstance(env, DingEnvWrapper) and horizon is None:
        horizon = env.step_limit
        limit = _limit_for(budget) if horizon is None else None
    return Task(
        env.observation_space,
        env.action_space,
        budget,
        limit or horizon,
        rewards_at_random(env) if set(signature) >= _SUPPORT else (0.0, 0.0),
        threshold,
        limit,
    )


def _limit_for(steps: int) -> int:
    """Most steps of an episode, where the env would let a policy that is stuck play for ever."""
    return min(max(steps // 100, 100), 1000)


def settings_for(policy: str, task: Task) -> tuple[Settings, str]:
    """The policy section for this task, and one line that says what was chosen."""
    cls = POLICY_REGISTRY.get(policy)
    default = cls.default_config()
    if isinstance(task.action_space, AgentsSpace):
        return {}, ""
    chosen = _rule(default, task)
    known = _known(chosen, default)
    signature = cls.model_signature(deep_merge_dicts(default, known)) or ()
    known["model"] = {k: v for k, v in _model(default, task).items() if k in signature}
    return known, _told(known, task)


def _rule(default: Mapping[str, Any], task: Task) -> Settings:
    if default["on_policy"]:
        return _on_policy(default, task)
    if "eps" in default["other"]:
        return _by_values(default, task)
    return _by_actor(default, task)


def _on_policy(default: Mapping[str, Any], task: Task) -> Settings:
    has_critic = "gae_lambda" in default["collect"]
    n_sample = 2048 if task.is_continuous else 1024
    if not {"epoch_per_collect", "actor_epoch_per_collect"} & default["learn"].keys():
        n_sample = 64
    n_sample = max(min(n_sample, task.steps // 20) // _MOST_ENVS * _MOST_ENVS, 64)
    batch_size = min(128 if n_sample > 64 else 64, n_sample)
    settings: Settings = {
        "discount_factor": 0.99,
        "obs_norm": _needs_norm(task),
        "learn": {
            "batch_size": batch_size,
            "entropy_weight": 0.0 if task.is_continuous else 0.01,
            "lr_scheduler": {"type": "linear", "unit": "env_step", "decay": task.steps, "end": 0.1},
        },
        "collect": {"n_sample": n_sample},
    }
    if "epoch_per_collect" in default["learn"]:
        settings["learn"]["learning_rate"] = 1e-3
        epochs = default["learn"]["epoch_per_collect"]
        updates = epochs * (n_sample // batch_size)
    else:
        updates = max(n_sample // batch_size, 1)
    # Returns of hundreds are out of reach for a critic that does not scale its values itself.
    if has_critic and (task.is_continuous or "value_norm" not in default["learn"]):
        settings["reward_norm"] = True
    settings["eval"] = _evaluation(updates / n_sample, task)
    return settings


def _needs_norm(task: Task) -> bool:
    space = task.obs_space
    has_floats = isinstance(space, gym.spaces.Box) and space.dtype == np.float32
    return has_floats and not task.is_image and not _is_scaled(space)


def _by_values(default: Mapping[str, Any], task: Task) -> Settings:
    """Actions by the largest value, explored by epsilon."""
    sequences = "learn_unroll_len" in default
    n_sample = 32 if sequences else 8
    per_collect = 8 if sequences else 4
    settings = _replayed(default, task)
    settings["discount_factor"] = 0.99
    settings["learn"] |= {
        "update_per_collect": per_collect,
        "batch_size": 32 if sequences else 64,
        "learning_rate": 1e-3,
        "learning_rate_quantile": 1e-3,
        "target_update_freq": 100,
        "grad_clip_type": "clip_norm",
        "grad_clip_value": 10.0,
    }
    settings["collect"] = {"n_sample": n_sample}
    settings["other"]["eps"] = {
        "type": "linear",
        "start": 1.0,
        "end": 0.05,
        "decay": max(task.steps // 10, 100),
    }
    if not sequences and default["nstep"] == 1:
        settings["nstep"] = 3
    settings["eval"] = _evaluation(per_collect / n_sample, task)
    return settings


def _by_actor(default: Mapping[str, Any], task: Task) -> Settings:
    """An actor of its own, explored by noise or by what it draws."""
    settings = _replayed(default, task)
    if default["collect"]["unroll_len"] > 1:
        settings["learn"] |= {"update_per_collect": 8}
        rate = 8 / (default["collect"]["n_sample"] * default["collect"]["unroll_len"])
        settings["eval"] = _evaluation(rate, task)
        return settings
    n_sample = 4
    settings["random_collect_size"] = max(min(1000, task.steps // 20), 64)
    settings["learn"] |= {"update_per_collect": n_sample, "batch_size": 256}
    settings["learn"] |= {"learning_rate_q": 1e-3, "learning_rate_policy": 1e-3}
    settings["collect"] = {"n_sample": n_sample}
    settings["eval"] = _evaluation(1.0, task)
    return settings


def _replayed(default: Mapping[str, Any], task: Task) -> Settings:
    size = min(max(task.steps, 10_000), 100_000 if task.is_image else 1_000_000)
    return {"learn": {}, "other": {"replay_buffer": {"replay_buffer_size": size}}}


def _evaluation(updates_per_step: float, task: Task) -> Settings:
    """A fixed number of evaluations within the budget, counted in updates."""
    freq = max(round(task.steps / _EVALUATIONS * updates_per_step), 1)
    return {"evaluator": {"eval_freq": freq}}


def _model(default: Mapping[str, Any], task: Task) -> Settings:
    settings: Settings = {}
    if task.is_image:
        settings["encoder_hidden_size_list"] = list(IMAGE_SIZES)
    else:
        size = 64 if default["on_policy"] else 128
        if not default["on_policy"] and "eps" not in default["other"]:
            settings |= {"actor_head_hidden_size": 256, "critic_head_hidden_size": 256}
        else:
            settings |= {"encoder_hidden_size_list": [size, size]}
    if default["on_policy"] and not task.is_image:
        settings |= {"share_encoder": False, "activation": "tanh"}
        settings |= {"actor_head_layer_num": 0, "critic_head_layer_num": 0}
    low, high = support(task, 0.99)
    return settings | {"v_min": low, "v_max": high}


def support(task: Task, gamma: float) -> tuple[float, float]:
    """Bounds of discounted returns: those of the rewards seen, all along an episode.

    A return that counts as solved bounds them too: a large reward comes once, not at every step.
    """
    n = task.horizon or 10**6
    weight = (1 - gamma**n) / (1 - gamma)
    low, high = (reward * weight for reward in task.rewards)
    if task.threshold is not None and task.threshold > 0:
        high = min(high, 1.5 * task.threshold) if high > 0 else 1.5 * task.threshold
        low = max(low, -1.5 * task.threshold) if task.rewards[1] > 1 else low
    low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if high - low >= 1 else (low - 1.0, high + 1.0)


def _known(chosen: Mapping[str, Any], default: Mapping[str, Any]) -> Settings:
    """Only what the policy declares; open sections take all."""
    known: Settings = {}
    for key, value in chosen.items():
        below = default.get(key)
        if key not in default:
            continue
        nested = isinstance(value, dict) and isinstance(below, dict) and key not in _WHOLE
        known[key] = _known(value, below or {}) if nested else value
    return known


def _told(settings: Settings, task: Task) -> str:
    kind = "images" if task.is_image else "vectors"
    actions = "continuous" if task.is_continuous else "discrete"
    parts = []
    if "discount_factor" in settings:
        parts.append(f"discount {settings['discount_factor']}")
    size = settings.get("other", {}).get("replay_buffer", {}).get("replay_buffer_size")
    if size:
        parts.append(f"replay of {size:,}")
    eps = settings.get("other", {}).get("eps")
    if eps:
        parts.append(f"epsilon to {eps['end']} within {eps['decay']:,} steps")
    if settings.get("random_collect_size"):
        parts.append(f"{settings['random_collect_size']:,} random steps first")
    if "v_max" in settings.get("model", {}):
        model = settings["model"]
        parts.append(f"returns from {model['v_min']:.3g} to {model['v_max']:.3g}")
    if task.limit is not None:
        parts.append(
            f"episodes of at most {task.limit:,} steps since the env has no limit "
            "(env.max_episode_steps)"
        )
    parts.append(f"{_EVALUATIONS} evaluations")
    return (
        f"settings for {kind}, {actions} actions and {task.steps:,} env steps (docs/first_run.md): "
        f"{', '.join(parts)}"
    )
