"""The page about first runs: its env trains, its commands find their configs, its numbers hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ding.entry.predefined import predefined_config
from ding.envs.spaces import MOST_CHOICES

PAGE = Path(__file__).parents[2] / "docs/first_run.md"
TEXT = PAGE.read_text()


def test_the_corridor_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    space: dict[str, Any] = {"__name__": "guide"}
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    exec(block, space)
    (promised,) = re.findall(r"`moves` is `(.*?)`", TEXT)
    assert str(space["moves"]) == promised


def policy_of(env: str, policy: str, steps: int) -> dict[str, Any]:
    return predefined_config(env, policy, steps)[0]["policy"]


def test_numbers_of_the_rule() -> None:
    ppo = policy_of("FrozenLake-v1", "ppo", 10_000)
    assert ppo["collect"]["n_sample"] == 496 and not ppo["obs_norm"]
    dqn = policy_of("FrozenLake-v1", "dqn", 20_000)
    assert dqn["other"]["eps"] == {"type": "linear", "start": 1.0, "end": 0.05, "decay": 2000}
    assert dqn["other"]["replay_buffer"]["replay_buffer_size"] == 20_000
    scaled = [
        policy_of("FrozenLake-v1", name, 10_000).get("reward_norm") for name in ("a2c", "ppo")
    ]
    assert scaled == [True, None]
    sac = policy_of("Pendulum-v1", "sac", 10_000)
    assert sac["random_collect_size"] == 500 and sac["learn"]["batch_size"] == 256
    assert f"{MOST_CHOICES:,} values" in TEXT


@pytest.mark.parametrize(("steps", "limit"), [(2_000, 100), (50_000, 500), (10**6, 1_000)])
def test_endless_envs_get_a_limit(steps: int, limit: int) -> None:
    said: list[str] = []
    main, _ = predefined_config("CliffWalking-v1", "dqn", steps, said.append)
    assert main["env"]["max_episode_steps"] == limit
    assert f"at most {limit:,} steps" in said[0]
    assert "max_episode_steps" not in predefined_config("FrozenLake-v1", "dqn", steps)[0]["env"]
