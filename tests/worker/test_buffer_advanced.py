from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ding.utils.batch import Rows
from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.errors import ConfigError, DingError
from ding.worker.buffer import AdvancedReplayBuffer, create_buffer
from ding.worker.buffer.flow import ThruputController


def buffer_of(size: int = 8, **cfg: Any) -> AdvancedReplayBuffer:
    silent = dict(sampled_data_attr=dict(print_freq=10**9))
    return AdvancedReplayBuffer(dict(replay_buffer_size=size, monitor=silent, **cfg))


def rows_of(low: int, high: int, collect_iter: int = 0) -> Rows:
    n = high - low
    return Rows({"x": np.arange(low, high), "collect_iter": np.full(n, collect_iter)})


def columns(sampled: Any) -> dict[str, np.ndarray]:
    assert sampled is not None
    return sampled.columns


def set_priority(buffer: AdvancedReplayBuffer, priorities: dict[int, float]) -> None:
    ids = np.array(list(priorities))
    info = {"replay_unique_id": ids, "replay_buffer_idx": ids % buffer._size}
    buffer.update({**info, "priority": list(priorities.values())})


def check_accounts(buffer: AdvancedReplayBuffer) -> None:
    accounts = buffer.accounts()
    assert accounts["pushed"] == accounts["valid"] + sum(accounts["removed"].values())
    assert accounts["valid"] == buffer.count() == np.count_nonzero(buffer._tree.priority)


def test_columns_of_what_is_drawn() -> None:
    buffer = buffer_of()
    buffer.push(rows_of(0, 4, collect_iter=3))
    drawn = columns(buffer.sample(4, cur_learner_iter=10))
    assert drawn["staleness"].tolist() == [7] * 4
    assert drawn["use"].tolist() == [1] * 4
    assert drawn["IS"].tolist() == [1] * 4
    assert drawn["priority"].tolist() == [1.0] * 4
    assert np.array_equal(drawn["replay_unique_id"], drawn["x"])
    assert np.array_equal(drawn["replay_buffer_idx"], drawn["x"])
    buffer.push({"x": 1, "collect_iter": 0})
    rows: Any = buffer.sample(2)
    assert isinstance(rows[0]["IS"], torch.Tensor)
    without = buffer_of()
    without.push([{"x": 1}])
    assert columns(without.sample(1))["staleness"].tolist() == [-1]


def test_draws_in_proportion_and_weights_are_those_of_the_paper() -> None:
    alpha, beta = 0.5, 0.4
    buffer = buffer_of(4, alpha=alpha, beta=beta, anneal_step=0)
    buffer.push(rows_of(0, 4))
    priorities = np.array([1.0, 4.0, 9.0, 16.0])
    set_priority(buffer, dict(enumerate(priorities)))
    share = priorities**alpha / (priorities**alpha).sum()
    weights = (4 * share) ** -beta
    counts = np.zeros(4)
    for _ in range(500):
        drawn = columns(buffer.sample(4))
        np.add.at(counts, drawn["x"], 1)
        assert drawn["IS"] == pytest.approx((weights / weights.max())[drawn["x"]], rel=1e-4)
    assert counts / counts.sum() == pytest.approx(share, abs=0.04)


def test_draws_are_stratified() -> None:
    buffer = buffer_of(16)
    buffer.push(rows_of(0, 16))
    for _ in range(20):  # one from each quarter of equal priorities
        assert (columns(buffer.sample(4))["x"] // 4).tolist() == [0, 1, 2, 3]


def test_beta_grows_to_one() -> None:
    buffer = buffer_of(4, beta=0.4, anneal_step=3)
    buffer.push(rows_of(0, 4))
    betas = []
    for _ in range(5):
        betas.append(buffer.beta)
        buffer.sample(1)
    assert betas == pytest.approx([0.4, 0.6, 0.8, 1.0, 1.0])


def test_new_samples_have_the_largest_priority() -> None:
    buffer = buffer_of(8)
    buffer.push(rows_of(0, 2))
    set_priority(buffer, {0: 5.0})
    buffer.push(rows_of(2, 3))
    buffer.push([{"x": 3, "collect_iter": 0, "priority": 2.0}])
    buffer.push([{"x": 4, "collect_iter": 0, "priority": None}])
    assert buffer._tree.priority[:5] == pytest.approx([5, 1, 5, 2, 5], abs=1e-3)
    assert "priority" not in [leaf.path[0] for leaf in buffer._store.leaves]  # type: ignore[union-attr]


def test_negative_errors_count_by_size_and_rubbish_is_refused() -> None:
    buffer = buffer_of(2)
    buffer.push(rows_of(0, 2))
    set_priority(buffer, {0: -3.0})
    assert buffer._tree.priority[0] == pytest.approx(3.0, abs=1e-4)
    with pytest.raises(DingError, match="NaN"):
        set_priority(buffer, {0: float("nan")})
    with pytest.raises(DingError, match="2 priorities for 1"):
        buffer.update({"replay_unique_id": [0], "priority": [1.0, 2.0]})
    assert buffer._tree.priority[0] == pytest.approx(3.0, abs=1e-4)


def test_gone_ids_are_skipped() -> None:
    buffer = buffer_of(4)
    buffer.push(rows_of(0, 4))
    buffer.push(rows_of(4, 6))  # 0 and 1 are overwritten
    set_priority(buffer, {0: 9.0, 1: 9.0, 2: 7.0, 99: 9.0})
    assert sorted(buffer._tree.priority.tolist()) == pytest.approx([1, 1, 1, 7], abs=1e-3)


def test_max_use_is_never_exceeded() -> None:
    buffer = buffer_of(8, max_use=3)
    buffer.push(rows_of(0, 4))
    set_priority(buffer, {0: 50.0})  # drawn several times in one batch, if it could be
    counts = np.zeros(4, int)
    while (drawn := buffer.sample(2)) is not None:
        np.add.at(counts, columns(drawn)["x"], 1)
        check_accounts(buffer)
    assert counts.max() == 3
    assert buffer.accounts()["removed"]["max_use"] == 4 - buffer.count()
    assert buffer.count() < 2


@pytest.mark.parametrize("in_order", [True, False])
def test_max_staleness(in_order: bool) -> None:
    buffer = buffer_of(12, max_staleness=10)
    ages = [0, 0, 3, 5] if in_order else [5, 0, 3, 0]
    for i, iteration in enumerate(ages):
        buffer.push(rows_of(2 * i, 2 * i + 2, iteration))
    for learner_iter, valid in ((9, 8), (10, 4), (12, 4), (13, 2), (15, 0)):
        drawn = buffer.sample(2, cur_learner_iter=learner_iter)
        assert buffer.count() == valid
        assert (drawn is None) == (valid < 2)
        check_accounts(buffer)
    assert buffer.accounts()["removed"]["max_staleness"] == 8


def test_sample_range_is_by_age() -> None:
    buffer = buffer_of(4)
    buffer.push(rows_of(0, 6))
    assert set(columns(buffer.sample(2, sample_range=slice(0, 2)))["x"]) == {2, 3}
    assert set(columns(buffer.sample(2, sample_range=slice(-2, None)))["x"]) == {4, 5}
    assert buffer.sample(3, sample_range=slice(0, 2)) is None


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9),
    st.lists(
        st.tuples(st.sampled_from(["push", "sample", "clear", "save"]), st.integers(1, 12)),
        max_size=25,
    ),
)
def test_every_sample_is_accounted_for(size: int, actions: list[tuple[str, int]]) -> None:
    cfg = dict(max_use=2, max_staleness=6)
    buffer, pushed = buffer_of(size, **cfg), 0
    for learner_iter, (action, n) in enumerate(actions):
        if action == "push":
            buffer.push(rows_of(pushed, pushed + n, learner_iter))
            pushed += n
        elif action == "sample":
            drawn = buffer.sample(min(n, size), learner_iter)
            if drawn is not None:
                info = columns(drawn)
                buffer.update({**info, "priority": np.arange(len(info["x"])) + 0.5})
        elif action == "clear":
            buffer.clear()
        else:
            other = buffer_of(size, **cfg)
            other.load_state_dict(buffer.state_dict())
            buffer = other
        check_accounts(buffer)
    assert buffer.accounts()["pushed"] == pushed


def test_state_is_restored_bit_for_bit(tmp_path: Path) -> None:
    buffer = buffer_of(50)
    buffer.push(rows_of(0, 70))
    for _ in range(5):
        info = columns(buffer.sample(16))
        buffer.update({**info, "priority": np.random.default_rng(0).random(16)})
    buffer.save_data(tmp_path / "data")
    save_checkpoint(tmp_path / "ckpt", buffer.state_dict())
    others = [buffer_of(50) for _ in range(3)]
    from_file, from_state, from_checkpoint = others
    from_file.load_data(tmp_path / "data")
    from_state.load_state_dict(buffer.state_dict())
    from_checkpoint.load_state_dict(load_checkpoint(tmp_path / "ckpt", trusted=True))
    for _ in range(4):
        expected = columns(buffer.sample(16))
        for other in others:
            found = columns(other.sample(16))
            assert expected.keys() == found.keys()
            assert all(np.array_equal(expected[key], found[key]) for key in expected)
    assert from_file.accounts() == buffer.accounts()
    larger = buffer_of(64)
    larger.load_state_dict(buffer.state_dict())
    assert larger.count() == 50
    assert larger._tree.total == pytest.approx(buffer._tree.total)
    only_data = buffer_of(50)
    only_data.load_state_dict({"data": [{"x": 1}, {"x": 2}]})
    assert only_data.count() == 2


def test_rate_limits_both_ways() -> None:
    now = [0.0]
    limit = dict(max=2.0, min=0.5)
    cfg = dict(push_sample_rate_limit=limit, window_seconds=10, sample_min_limit_ratio=1)
    control = ThruputController(cfg, clock=lambda: now[0])
    assert control.may_push(10)
    control.pushed(10)
    assert control.may_sample(20, valid=100)
    assert not control.may_sample(21, valid=100)
    control.sampled(10)
    assert control.may_push(10)
    assert not control.may_push(11)
    now[0] = 10.0  # 1 % is left of both: 0.1 and 0.1
    assert control.may_push(0)
    assert not control.may_push(1)
    assert control.state_dict() == pytest.approx({"pushed": 0.1, "sampled": 0.1})


def test_limits_in_the_buffer() -> None:
    limits = dict(push_sample_rate_limit=dict(max=2.0, min=0.1), sample_min_limit_ratio=2)
    buffer = buffer_of(20, thruput_controller=limits)
    buffer.push(rows_of(0, 10))
    assert buffer.sample(6) is None  # fewer than twice the batch
    assert buffer.sample(5) is not None
    buffer.push(rows_of(10, 20))
    assert buffer.count() == 10
    assert buffer.accounts()["refused"] == {"push": 10, "sample": 6, "not_a_dict": 0}
    check_accounts(buffer)


def test_only_dicts_are_kept(tmp_path: Path) -> None:
    buffer = AdvancedReplayBuffer(dict(replay_buffer_size=4), exp_name=str(tmp_path))
    buffer.push(["text", {"x": 1}, 3])
    assert buffer.count() == 1
    assert buffer.accounts()["refused"]["not_a_dict"] == 2
    buffer.close()
    assert "2 pushed samples" in (tmp_path / "log" / "buffer" / "buffer_logger.txt").read_text()


def test_monitor_writes_text_and_scalars(tmp_path: Path) -> None:
    written: dict[str, float] = {}

    class Writer:
        def add_scalar(self, name: str, value: float, step: int) -> None:
            written[name] = value

    monitor = dict(
        sampled_data_attr=dict(average_range=2, print_freq=4), periodic_thruput=dict(seconds=0)
    )
    cfg = dict(replay_buffer_size=4, monitor=monitor)
    buffer = AdvancedReplayBuffer(cfg, tb_logger=Writer(), exp_name=str(tmp_path))
    buffer.push(rows_of(0, 4))
    for learner_iter in range(4):
        buffer.sample(4, learner_iter)
    text = (tmp_path / "log" / "buffer" / "buffer_logger.txt").read_text()
    assert "sampled at update 3: use_mean 3.5" in text
    assert written["buffer_step/use_mean"] == 3.5
    assert written["buffer_step/staleness_max"] == 2.5
    assert written["buffer_step/stored"] == 4
    buffer.close()


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (dict(alpha=1.5), "alpha = 1.5"),
        (dict(beta=-1), "beta"),
        (dict(max_use=0), "max_use = 0"),
        (dict(anneal_step=-1), "anneal_step"),
        (dict(thruput_controller=dict(sample_min_limit_ratio=0.5)), "at least 1"),
        (
            dict(thruput_controller=dict(push_sample_rate_limit=dict(max=1.0, min=2.0))),
            "less than min",
        ),
        (dict(storage="disc"), "storage = 'disc'"),
        (dict(storage_path="x"), "storage_path"),
    ],
)
def test_wrong_settings(cfg: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_buffer(dict(type="advanced", **cfg))
