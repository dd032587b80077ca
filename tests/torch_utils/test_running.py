from __future__ import annotations

import numpy as np
import pytest

from ding.torch_utils.running_statistics import Moments, RunningScale


def test_running_scale_is_the_std_of_all() -> None:
    rng = np.random.default_rng(0)
    scale, seen = RunningScale(), []
    assert scale.std == 1.0
    for n in (5, 1, 40):
        values = rng.normal(3, 7, n)
        scale.update(values)
        seen.append(values)
    assert scale.std == pytest.approx(np.concatenate(seen).std(), rel=1e-6)
    other = RunningScale()
    other.load_state_dict(scale.state_dict())
    assert other.std == scale.std


def test_deviation_of_equal_values_is_one() -> None:
    """Returns of 1000 that differ by rounding have no scale of their own; -1e-3 and 1e-3 do."""
    scale = RunningScale()
    scale.update(np.full(64, 1000.0, dtype=np.float32))
    scale.update(np.full(64, np.nextafter(np.float32(1000.0), np.float32(0.0))))
    assert scale.std == pytest.approx(1.0)
    scale.update(np.array([900.0, 1100.0]))
    assert scale.std == pytest.approx(np.sqrt(2 * 100**2 / 130), rel=1e-4)
    small = RunningScale()
    small.update(np.array([-1e-3, 1e-3]))
    assert small.std == pytest.approx(1e-3, rel=1e-4)


def test_every_column_has_its_own_deviation() -> None:
    rows = np.array([[5.0, 1.0, 0.0], [5.0, 3.0, 0.0]])
    assert Moments.of(rows).scale.tolist() == [1.0, 1.0, 1.0]
    assert Moments.of(2 * rows).scale.tolist() == [1.0, 2.0, 1.0]
