from __future__ import annotations

import numpy as np

from ding.worker.collector.trajectory import PartialTransitions


def ids(*env_id: int) -> np.ndarray:
    return np.array(env_id, dtype=np.int64)


def put(partial: PartialTransitions, env_id: np.ndarray, value: float = 0.0) -> None:
    obs = {"x": env_id[:, None] + np.float32(value)}
    partial.put(env_id, obs, {"action": env_id * 10})


def test_rows_come_back_in_the_order_of_the_answers() -> None:
    partial = PartialTransitions(4)
    put(partial, ids(0, 2, 3))
    put(partial, ids(1))
    assert partial.note_arrival(ids(3, 1)).tolist() == [True, True]
    obs, output = partial.rows(ids(3, 1))
    assert obs["x"].tolist() == [[3.0], [1.0]]
    assert output["action"].tolist() == [30, 10]
    obs, output = partial.rows(ids(2))
    assert obs["x"].tolist() == [[2.0]]
    assert output["action"].tolist() == [20]


def test_what_was_put_is_a_copy() -> None:
    partial, block = PartialTransitions(2), np.zeros((2, 3))
    partial.put(ids(0, 1), block, {"action": ids(0, 0)})
    block += 1
    assert not partial.rows(ids(0, 1))[0].any()


def test_an_answer_that_nobody_asked_for() -> None:
    partial = PartialTransitions(3)
    put(partial, ids(1))
    assert partial.note_arrival(ids(0, 1, 2)).tolist() == [False, True, False]
    assert partial.note_arrival(ids(1)).tolist() == [False]


def test_stale_steps_are_named_once() -> None:
    partial = PartialTransitions(3)
    put(partial, ids(0, 1))
    partial.mark_stale()
    assert partial.any_stale
    partial.note_arrival(ids(1, 2))
    assert partial.pop_stale(ids(1, 2)).tolist() == [True, False]
    assert partial.any_stale
    partial.put(ids(1), np.zeros((1, 7)), {"other": ids(1)})  # outputs of another kind
    partial.note_arrival(ids(0, 1))
    assert partial.pop_stale(ids(0, 1)).tolist() == [True, False]
    assert not partial.any_stale


def test_an_env_that_acts_again_has_no_stale_step() -> None:
    partial = PartialTransitions(2)
    put(partial, ids(0))
    partial.mark_stale()
    put(partial, ids(0))
    assert partial.pop_stale(ids(0)).tolist() == [False]


def test_clear() -> None:
    partial = PartialTransitions(2)
    put(partial, ids(0, 1))
    partial.mark_stale()
    partial.clear()
    assert not partial.any_stale
    assert partial.note_arrival(ids(0, 1)).tolist() == [False, False]
