"""The parallel run is the serial one with its parts elsewhere: in lockstep, the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import SACPolicy
from ding.utils.limits import Limits

from .configs import pair
from .lockstep import generators, leaves, losses, parallel, serial

CASES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "dqn": ("dqn", dict(learn=dict(update_per_collect=3)), None),
    "nstep and priorities": (
        "dqn",
        dict(nstep=3, priority=True, priority_IS_weight=True, learn=dict(update_per_collect=1)),
        "advanced",
    ),
    "ppo": ("ppo", dict(learn=dict(value_norm=True)), None),
    "qmix": ("qmix", dict(reward_norm=True), None),
    "sac, normalised, warmed up": (
        "sac",
        dict(obs_norm=True, reward_norm=True, nstep=2, learn=dict(update_per_collect=1)),
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_numbers_as_a_serial_run(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, policy, buffer = CASES[case]
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    monkeypatch.setattr(SACPolicy, "_add_noise", _same_noise)
    limits = Limits(env_step=400)
    results = []
    for name, run in (("serial", serial), ("parallel", parallel)):
        config = pair(kind, exp_name=name, policy=policy)
        if buffer is not None:
            config[1]["replay_buffer"] = dict(type=buffer)
        config[1]["env_manager"] = dict(type="base")
        with generators(monkeypatch), pytest.MonkeyPatch.context() as patch:
            noted = losses(patch)
            results.append((*run(config, limits), noted))
    (weights, history, loss), (other_weights, other_history, other_loss) = results
    assert len(loss) > 20
    assert loss == other_loss
    assert history == other_history
    for name, part in weights.items():
        for one, other in zip(leaves(part), leaves(other_weights[name]), strict=True):
            # Moments are those of other chunks of the same random steps.
            assert np.allclose(one, other, rtol=1e-12 if name.endswith("norm") else 0, atol=0)


def _same_noise(_: Any, batch: Any) -> None:
    """A row has the same noise whoever learns from it."""
    batch["noise"] = torch.sin(9 * batch["action"])
    batch["next_noise"] = torch.sin(7 * batch["action"])
