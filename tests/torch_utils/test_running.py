from __future__ import annotations

import numpy as np
import pytest

from ding.torch_utils.running_statistics import RunningScale


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
