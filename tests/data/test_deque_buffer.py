from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.data.buffer import BufferedData, DequeBuffer, DequeBufferWrapper
from ding.data.buffer.middleware import (
    PriorityExperienceReplay,
    clone_object,
    group_sample,
    padding,
    sample_range_view,
    staleness_check,
    use_time_check,
)
from ding.utils.errors import ConfigError
from ding.worker import create_buffer


def filled(n: int, size: int = 10, **meta: Any) -> DequeBuffer:
    buffer = DequeBuffer(size=size)
    for i in range(n):
        buffer.push(i, {key: value(i) for key, value in meta.items()})
    return buffer


def data_of(elements: list[Any]) -> list[Any]:
    return [element.data for element in elements]


def test_push_get_and_overwrite() -> None:
    buffer = DequeBuffer(size=3)
    first = buffer.push({"obs": 1}, {"env": 0})
    assert isinstance(first, BufferedData)
    assert buffer.get_by_index(first.index) is first
    for i in range(4):
        buffer.push(i)
    assert buffer.count() == len(buffer) == 3
    assert buffer.get_by_index(first.index) is None
    assert [buffer.get(0).data, buffer.get(-1).data] == [1, 3]
    assert data_of(list(buffer)) == [1, 2, 3]
    buffer.clear()
    assert buffer.count() == 0
    assert buffer.push(9).index not in ("0", first.index)


def test_sample() -> None:
    buffer = filled(10)
    assert sorted(data_of(buffer.sample(10))) == list(range(10))
    assert len(buffer.sample(20, replace=True)) == 20
    with pytest.raises(ValueError, match="11 of 10"):
        buffer.sample(11)
    assert len(buffer.sample(11, ignore_insufficient=True)) == 10
    assert set(data_of(buffer.sample(3, sample_range=slice(-3, None)))) == {7, 8, 9}
    indices = [buffer.get(i).index for i in (4, 2)]
    assert data_of(buffer.sample(indices=indices)) == [4, 2]
    with pytest.raises(ValueError, match="size or indices"):
        buffer.sample()


def test_update_and_delete() -> None:
    buffer = filled(6)
    index = buffer.get(2).index
    assert buffer.update(index, "new", {"k": 1})
    assert (buffer.get(2).data, buffer.get(2).meta) == ("new", {"k": 1})
    buffer.delete(index)
    buffer.delete([buffer.get(0).index, "77"])
    assert data_of(list(buffer)) == [1, 3, 4, 5]
    assert buffer.count() == 4
    assert not buffer.update(index, 0)
    assert sorted(data_of(buffer.sample(4))) == [1, 3, 4, 5]
    for i in range(6, 14):  # holes are overwritten like anything else
        buffer.push(i)
    assert data_of(list(buffer)) == list(range(4, 14))


def test_groups_and_unroll() -> None:
    buffer = filled(10, episode=lambda i: i // 4)
    groups = buffer.sample(3, groupby="episode")
    assert sorted(len(group) for group in groups) == [2, 4, 4]
    assert all(len({e.meta["episode"] for e in group}) == 1 for group in groups)
    by_parity = buffer.sample(2, groupby=lambda element: element.data % 2)
    assert sorted(data_of(group)[0] for group in by_parity) == [0, 1]
    for group in buffer.sample(2, groupby="episode", unroll_len=3):
        assert np.diff(data_of(group)).tolist() == [1, 1]
    with pytest.raises(ValueError, match="3 of 2"):
        buffer.sample(3, groupby="episode", unroll_len=3)
    with pytest.raises(ValueError, match="groupby"):
        buffer.sample(1, unroll_len=2)
    sliced = DequeBuffer(size=10, sliced=True)
    for i in range(7):
        sliced.push(i, {"e": 0})
    starts = {sliced.sample(1, groupby="e", unroll_len=3)[0][0].data for _ in range(30)}
    assert starts == {0, 3}


def test_data_survive_a_file(tmp_path: Path) -> None:
    buffer = filled(6, k=lambda i: i)
    buffer.delete(buffer.get(1).index)
    buffer.save_data(tmp_path / "data")
    other = DequeBuffer(size=10)
    other.load_data(tmp_path / "data")
    assert [(e.data, e.index, e.meta) for e in other] == [(e.data, e.index, e.meta) for e in buffer]
    assert other.count() == 5


def test_middleware_wraps_in_order_and_views_have_their_own() -> None:
    calls: list[str] = []

    def noting(name: str) -> Any:
        def middleware(action: str, chain: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append(f"{name} {action}")
            return chain(*args, **kwargs)

        return middleware

    buffer = DequeBuffer(size=4).use(noting("a")).use(noting("b"))
    view = buffer.view().use(noting("c"))
    buffer.push(1)
    view.sample(1)
    assert calls == ["b push", "a push", "c sample", "b sample", "a sample"]


def test_clone_object() -> None:
    buffer = DequeBuffer(size=4).use(clone_object())
    item = {"x": [1]}
    buffer.push(item)
    item["x"].append(2)
    drawn = buffer.sample(1)[0]
    drawn.data["x"].append(3)
    assert buffer.get(0).data == {"x": [1]}


def test_use_time_check() -> None:
    buffer = DequeBuffer(size=4)
    buffer.use(use_time_check(buffer, max_use=2))
    for i in range(3):
        buffer.push(i)
    assert [e.meta["use_count"] for e in buffer.sample(3)] == [1, 1, 1]
    assert len(buffer.sample(3)) == 3
    assert buffer.count() == 0


def test_staleness_check() -> None:
    buffer = DequeBuffer(size=4)
    buffer.use(staleness_check(buffer, max_staleness=10))
    for i in range(3):
        buffer.push(i, {"train_iter_data_collected": 5 * i})
    drawn = buffer.sample(2, train_iter_sample_data=10)
    assert sorted(e.meta["staleness"] for e in drawn) == [0, 5]
    assert buffer.count() == 2
    with pytest.raises(ValueError, match="train_iter_data_collected"):
        buffer.push(1)
    with pytest.raises(ValueError, match="train_iter_sample_data"):
        buffer.sample(1)


def test_priority() -> None:
    buffer = DequeBuffer(size=8)
    per = PriorityExperienceReplay(buffer, priority_power_factor=1.0, IS_weight_power_factor=1.0)
    buffer.use(per)
    for i in range(4):
        buffer.push(i, {"priority": float(1 + 2 * (i == 3))})  # 3 is half of all
    counts = np.zeros(4)
    weights = {}
    for _ in range(200):
        for element in buffer.sample(4):
            counts[element.data] += 1
            weights[element.data] = element.meta["priority_IS"]
    assert counts / counts.sum() == pytest.approx([1 / 6] * 3 + [1 / 2], abs=0.03)
    assert weights[0] == pytest.approx(1)
    assert weights[3] == pytest.approx(1 / 3, rel=1e-3)
    buffer.update(buffer.get(3).index, 3, {"priority": 0.0})
    state = per.state_dict()
    assert sum(e.data == 3 for _ in range(20) for e in buffer.sample(4)) < 5
    buffer.delete(buffer.get(0).index)
    assert all(e.data != 0 for _ in range(20) for e in buffer.sample(3))
    per.load_state_dict(state)
    assert per._tree.total == pytest.approx(3, abs=1e-3)
    assert buffer.push(9).meta["priority"] == 3.0
    buffer.clear()
    assert per._tree.total == 0


def test_padding_and_group_sample_and_range() -> None:
    buffer = filled(10, episode=lambda i: i // 4)
    padded = buffer.view().use(padding())
    assert {len(group) for group in padded.sample(3, groupby="episode")} == {4}
    empty = buffer.view().use(padding("none"))
    groups = empty.sample(3, groupby="episode")
    assert sum(e.data is None for group in groups for e in group) == 2
    with pytest.raises(ConfigError, match="did you mean 'random'"):
        padding("randam")
    small = buffer.view().use(group_sample(2))
    for group in small.sample(3, groupby="episode"):
        assert np.diff(data_of(group)).tolist() == [1]
    last = buffer.view().use(sample_range_view(buffer, start=-2))
    assert set(data_of(last.sample(2))) == {8, 9}


def test_wrapper_is_uniform_or_prioritised() -> None:
    uniform = create_buffer(dict(type="deque", replay_buffer_size=4))
    assert isinstance(uniform, DequeBufferWrapper)
    uniform.push([{"x": i} for i in range(4)])
    assert sorted(int(row["x"]) for row in uniform.sample(4) or []) == [0, 1, 2, 3]
    uniform.update({"priority": [1]})
    cfg = dict(type="deque", replay_buffer_size=4, priority=True, priority_IS_weight=True)
    prioritised = create_buffer(cfg)
    prioritised.push([{"x": i} for i in range(4)])
    rows: Any = prioritised.sample(4)
    info = {k: rows.columns[k] for k in ("replay_unique_id", "replay_buffer_idx")}
    prioritised.update({**info, "priority": [5000.0, 0, 0, 0]})
    drawn: Any = prioritised.sample(4)
    assert drawn.columns["priority"].max() == pytest.approx(1000)
    assert drawn.columns["IS"].min() < 1
    other = create_buffer(cfg)
    other.load_state_dict(prioritised.state_dict())
    assert other.count() == 4
    with pytest.raises(ConfigError, match="priority_IS_weight"):
        create_buffer(dict(type="deque", priority_IS_weight=True))
    limited = create_buffer(dict(type="deque", max_use=1))
    limited.push([{"x": 1}, {"x": 2}])
    assert len(limited.sample(2) or []) == 2
    assert limited.sample(1) is None
