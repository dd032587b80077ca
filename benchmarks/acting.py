"""Microseconds of `Agent.act` for one observation, for networks of two layers of 64."""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.agent import Agent
from ding.agent.card import Card
from ding.config import compile_config

_CHOICE = spaces.Discrete(4)
_TORQUE = spaces.Box(-2.0, 2.0, (2,), dtype=np.float32)
_ENCODER = dict(encoder_hidden_size_list=[64, 64])
_CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("sac", _TORQUE, dict(model=dict(actor_head_hidden_size=64))),
    ("dqn", _CHOICE, dict(model=_ENCODER)),
    ("ppo", _CHOICE, dict(model=_ENCODER, action_space="discrete", collect=dict(n_sample=64))),
    (
        "ppo",
        _TORQUE,
        dict(model=_ENCODER, action_space="continuous", collect=dict(n_sample=64), obs_norm=True),
    ),
]


def agent_of(policy: str, action: Any, settings: dict[str, Any]) -> Agent:
    shape = int(action.n) if isinstance(action, spaces.Discrete) else action.shape[0]
    model = dict(obs_shape=8, action_shape=shape, **settings["model"])
    main = dict(env=dict(stop_value=1, n_evaluator_episode=1), policy={**settings, "model": model})
    create = dict(policy=dict(type=policy))
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    space = spaces.Box(-1.0, 1.0, (8,), dtype=np.float32)
    return Agent(Card(policy=cfg.policy, observation_space=space, action_space=action))


def main(number: int = 2000, repeats: int = 5) -> None:
    obs = np.zeros(8, np.float32)
    for policy, action, settings in _CASES:
        agent = agent_of(policy, action, settings)
        agent.act(obs)
        seconds = min(timeit.repeat(lambda a=agent: a.act(obs), number=number, repeat=repeats))
        print(f"{policy:4} {action!s:32} {seconds / number * 1e6:6.1f} us")


if __name__ == "__main__":
    main()
