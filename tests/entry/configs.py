"""Small configs that train for a second, and files made of them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from ding.config import deep_merge_dicts

DQN: dict[str, Any] = dict(
    exp_name="run",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=2,
        evaluator_env_num=2,
        n_evaluator_episode=2,
        stop_value=1e6,
    ),
    policy=dict(
        model=dict(encoder_hidden_size_list=[16]),
        learn=dict(batch_size=16, update_per_collect=1),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=20)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000)),
    ),
)
PPO: dict[str, Any] = dict(
    exp_name="run",
    env=DQN["env"],
    policy=dict(
        model=dict(encoder_hidden_size_list=[16]),
        learn=dict(batch_size=32, epoch_per_collect=2),
        collect=dict(n_sample=64),
        eval=dict(evaluator=dict(eval_freq=8)),
    ),
)
SAC: dict[str, Any] = dict(
    exp_name="run",
    env=dict(
        act_scale=True,
        collector_env_num=1,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=1e6,
    ),
    policy=dict(
        random_collect_size=40,
        model=dict(actor_head_hidden_size=16, critic_head_hidden_size=16),
        learn=dict(batch_size=16, update_per_collect=1),
        collect=dict(n_sample=5),
        eval=dict(evaluator=dict(eval_freq=20)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000)),
    ),
)
QMIX: dict[str, Any] = dict(
    exp_name="run",
    env={k: v for k, v in DQN["env"].items() if k != "env_id"},
    policy=dict(
        model=dict(hidden_size_list=[8]),
        learn=dict(batch_size=8, update_per_collect=2),
        collect=dict(n_sample=16, unroll_len=3),
        eval=dict(evaluator=dict(eval_freq=20)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000)),
    ),
)
CREATE: dict[str, dict[str, Any]] = {
    "dqn": dict(policy=dict(type="dqn")),
    "ppo": dict(policy=dict(type="ppo")),
    "sac": dict(env=dict(type="pendulum"), policy=dict(type="sac")),
    "qmix": dict(env=dict(type="matrix_game"), policy=dict(type="qmix")),
}
MAIN: dict[str, dict[str, Any]] = {"dqn": DQN, "ppo": PPO, "sac": SAC, "qmix": QMIX}


def changed(main: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with the values at these dotted paths set (or dropped: None)."""
    config = deepcopy(main)
    for path, value in changes.items():
        *parents, last = path.split(".")
        section = config
        for name in parents:
            section = section.setdefault(name, {})
        if value is None:
            section.pop(last, None)
        else:
            section[last] = value
    return config


def pair(kind: str, **sections: Any) -> list[dict[str, Any]]:
    """[main_config, create_config] of an algorithm, with sections merged in."""
    return [deep_merge_dicts(MAIN[kind], sections), deepcopy(CREATE[kind])]


def config_file(
    directory: Path, kind: str = "dqn", changes: dict[str, Any] | None = None, name: str = "cfg.py"
) -> Path:
    main = changed(MAIN[kind], changes or {})
    path = directory / name
    path.write_text(f"main_config = {main!r}\ncreate_config = {CREATE[kind]!r}\n")
    return path
