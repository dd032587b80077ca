"""A teacher: divergences by hand, its falling weight, what its pupils learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import DiscreteSACPolicy, PPOPolicy, SACPolicy
from ding.policy.teacher import Teacher, TeacherConfig, divergence
from ding.utils.batch import Rows
from ding.utils.checkpoint import save_checkpoint
from ding.utils.errors import CheckpointError, ConfigError

MODEL = dict(obs_shape=2, action_shape=2, encoder_hidden_size_list=[16])


def test_divergences_by_hand() -> None:
    even, sure = torch.tensor([[0.0, 0.0]]), torch.tensor([[math.log(3.0), 0.0]])
    by_hand = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert divergence(even, sure).tolist() == pytest.approx([by_hand])
    assert divergence((even, even), (sure, even)).tolist() == pytest.approx([by_hand])
    one, other = (
        {"mu": torch.tensor([[mu]]), "sigma": torch.tensor([[sigma]])}
        for mu, sigma in ((1.0, 1.0), (0.0, 2.0))
    )
    assert divergence(one, other).tolist() == pytest.approx([math.log(2) + 2 / 8 - 0.5])
    both = {"action_type": even, "action_args": one}, {"action_type": sure, "action_args": other}
    assert divergence(*both).tolist() == pytest.approx([by_hand + math.log(2) + 2 / 8 - 0.5])


def teacher_file(policy: Any, path: Path) -> str:
    save_checkpoint(path, policy.learn_mode.state_dict())
    return str(path)


def test_the_weight_falls_and_is_saved(tmp_path: Path) -> None:
    policy = PPOPolicy(dict(cuda=False, model=MODEL))
    path = teacher_file(policy, tmp_path / "t.pth.tar")
    cfg = TeacherConfig(path=path, weight=1.0, weight_end=0.5, decay=4)
    teacher = Teacher(cfg, policy._model, "compute_actor")
    batch = {"obs": torch.zeros(3, 2)}
    weights = [float(teacher.add_to(batch)["teacher_weight"]) for _ in range(6)]
    assert weights == [1.0, 0.875, 0.75, 0.625, 0.5, 0.5]
    again = Teacher(cfg, policy._model, "compute_actor")
    again.load_state_dict(teacher.state_dict())
    assert again.weight == 0.5


OBS = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)


def ppo_rows() -> Rows:
    rng = np.random.default_rng(1)
    n = len(OBS)
    return Rows(
        dict(
            obs=OBS,
            next_obs=OBS,
            action=rng.integers(0, 2, n),
            reward=np.zeros(n, np.float32),
            done=np.ones(n, bool),
            truncated=np.zeros(n, bool),
        )
    )


def sac_rows(action: np.ndarray) -> Rows:
    zeros = np.zeros(len(OBS), np.float32)
    done = np.ones(len(OBS), bool)
    return Rows(dict(obs=OBS, next_obs=OBS, action=action, reward=zeros, done=done))


@pytest.mark.parametrize(
    ("cls", "learn", "rows"),
    [
        (PPOPolicy, dict(batch_size=64, epoch_per_collect=1, learning_rate=0.01), ppo_rows()),
        (SACPolicy, dict(learning_rate_policy=0.01), sac_rows(np.tanh(OBS))),
        (DiscreteSACPolicy, dict(learning_rate_policy=0.01), sac_rows(np.zeros(64, np.int64))),
    ],
)
def test_a_pupil_becomes_like_its_teacher(
    cls: Any, learn: dict[str, Any], rows: Rows, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    expert = cls(dict(cuda=False, model=MODEL))
    with torch.no_grad():
        for p in expert._model.parameters():
            p.mul_(3)  # far from a new network
    path = teacher_file(expert, tmp_path / "t.pth.tar")
    taught = dict(path=path, weight=100.0, weight_end=100.0)
    pupil = cls(dict(cuda=False, model=MODEL, learn={**learn, "teacher": taught}))

    def distance() -> float:
        logits = [
            policy._model(torch.from_numpy(OBS), mode="compute_actor")["logit"]
            for policy in (expert, pupil)
        ]
        return float(divergence(*logits).mean().detach())

    before = distance()
    for _ in range(60):
        pupil.learn_mode.forward(rows)
    assert distance() < 0.2 * before
    assert pupil.learn_mode.state_dict()["teacher"]["count"] == 60


def test_what_can_teach_nothing_is_refused(tmp_path: Path) -> None:
    other = PPOPolicy(dict(cuda=False, model={**MODEL, "obs_shape": 3}))
    path = teacher_file(other, tmp_path / "t.pth.tar")
    with pytest.raises(CheckpointError, match="has another network than this policy"):
        PPOPolicy(dict(cuda=False, model=MODEL, learn=dict(teacher=dict(path=path))))
    with pytest.raises(ConfigError, match="obs_norm = True: the teacher"):
        PPOPolicy(dict(cuda=False, obs_norm=True, model=MODEL, learn=dict(teacher=dict(path=path))))
    with pytest.raises(ConfigError, match=r"teacher\.path is missing"):
        TeacherConfig()
