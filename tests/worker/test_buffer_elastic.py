"""Only the newest samples are drawn, as many as the env step says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ding.utils.errors import ConfigError
from ding.worker import ElasticReplayBuffer, create_buffer


def elastic(setting: Any, size: int = 20) -> ElasticReplayBuffer:
    cfg = dict(type="elastic", replay_buffer_size=size, set_buffer_size=setting)
    buffer = create_buffer(cfg)
    assert isinstance(buffer, ElasticReplayBuffer)
    return buffer


def drawn(buffer: ElasticReplayBuffer) -> set[int]:
    rows = buffer.sample(400, replace=True)
    assert rows is not None
    return {int(row["x"]) for row in rows}


@pytest.mark.parametrize(
    "setting", [dict(start=2, end=12, decay=100), lambda envstep: min(2 + envstep // 10, 12)]
)
def test_more_of_the_past_as_training_goes_on(setting: Any) -> None:
    buffer = elastic(setting)
    buffer.push([{"x": i} for i in range(20)], 0)
    assert drawn(buffer) == {18, 19}
    buffer.push({"x": 20}, 50)
    assert drawn(buffer) == set(range(14, 21))
    buffer.push({"x": 21}, 1000)
    assert drawn(buffer) == set(range(10, 22))
    assert buffer.sample(13) is None, "without replacement there are only 12"
    assert buffer.sample(1, sample_range=slice(0, 1))[0]["x"] == 2  # type: ignore[index]


def test_fewer_than_the_size() -> None:
    buffer = elastic(10)
    buffer.push([{"x": i} for i in range(4)])
    assert drawn(buffer) == {0, 1, 2, 3}
    assert drawn(elastic_like(buffer, None)) == {0, 1, 2, 3}


def elastic_like(buffer: ElasticReplayBuffer, setting: Any) -> ElasticReplayBuffer:
    other = elastic(setting)
    other.load_state_dict(buffer.state_dict())
    return other


def test_state_remembers_the_env_step(tmp_path: Path) -> None:
    setting = dict(start=2, end=12, decay=100)
    buffer = elastic(setting)
    buffer.push([{"x": i} for i in range(20)], 50)
    assert elastic_like(buffer, setting).current_size == buffer.current_size == 7
    buffer.save_data(tmp_path / "data")
    other = elastic(setting)
    other.load_data(tmp_path / "data")
    assert other.current_size == 7


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (0, "gives 0 at env step 0: it must be from 1 to replay_buffer_size = 20"),
        (21, "gives 21"),
        (dict(start=1, end=5), "start, end and a positive decay"),
        (dict(start=1, end=5, decay=0), "positive decay"),
        ("many", "a number, a dict or a function"),
    ],
)
def test_bad_settings(setting: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        elastic(setting)
