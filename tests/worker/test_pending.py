from __future__ import annotations

import numpy as np

from ding.worker.collector.pending import Pending


def ids(*env_id: int) -> np.ndarray:
    return np.array(env_id, dtype=np.int64)


def put(pending: Pending, env_id: np.ndarray, value: float = 0.0) -> None:
    obs = {"x": env_id[:, None] + np.float32(value)}
    pending.put(env_id, obs, {"action": env_id * 10})


def test_rows_come_back_in_the_order_of_the_answers() -> None:
    pending = Pending(4)
    put(pending, ids(0, 2, 3))
    put(pending, ids(1))
    assert pending.arrived(ids(3, 1)).tolist() == [True, True]
    obs, output = pending.rows(ids(3, 1))
    assert obs["x"].tolist() == [[3.0], [1.0]]
    assert output["action"].tolist() == [30, 10]
    obs, output = pending.rows(ids(2))
    assert obs["x"].tolist() == [[2.0]]
    assert output["action"].tolist() == [20]


def test_what_was_put_is_a_copy() -> None:
    pending, block = Pending(2), np.zeros((2, 3))
    pending.put(ids(0, 1), block, {"action": ids(0, 0)})
    block += 1
    assert not pending.rows(ids(0, 1))[0].any()


def test_an_answer_that_nobody_asked_for() -> None:
    pending = Pending(3)
    put(pending, ids(1))
    assert pending.arrived(ids(0, 1, 2)).tolist() == [False, True, False]
    assert pending.arrived(ids(1)).tolist() == [False]


def test_disowned_steps_are_told_once() -> None:
    pending = Pending(3)
    put(pending, ids(0, 1))
    pending.disown()
    assert pending.any_stale
    pending.arrived(ids(1, 2))
    assert pending.unwanted(ids(1, 2)).tolist() == [True, False]
    assert pending.any_stale
    pending.put(ids(1), np.zeros((1, 7)), {"other": ids(1)})  # outputs of another kind
    pending.arrived(ids(0, 1))
    assert pending.unwanted(ids(0, 1)).tolist() == [True, False]
    assert not pending.any_stale


def test_an_env_that_acts_again_has_no_stale_step() -> None:
    pending = Pending(2)
    put(pending, ids(0))
    pending.disown()
    put(pending, ids(0))
    assert pending.unwanted(ids(0)).tolist() == [False]


def test_clear() -> None:
    pending = Pending(2)
    put(pending, ids(0, 1))
    pending.disown()
    pending.clear()
    assert not pending.any_stale
    assert pending.arrived(ids(0, 1)).tolist() == [False, False]
