"""RND and ICM: what is new is worth more, and how it is added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.reward_model import ICMRewardModel, RndRewardModel, create_reward_model
from ding.utils.batch import Rows, columns_of
from ding.utils.errors import ConfigError, DingError
from ding.utils.seed import set_pkg_seed

SMALL = dict(obs_shape=3, hidden_size_list=[16, 16], update_per_collect=50, learning_rate=0.01)


def samples(n: int, place: float = 0.0, seed: int = 0, **columns: Any) -> Rows:
    """Observations near a place, with actions that move the first coordinate."""
    rng = np.random.default_rng(seed)
    obs = (place + 0.1 * rng.normal(size=(n, 3))).astype(np.float32)
    action = rng.integers(0, 2, n)
    next_obs = obs.copy()
    next_obs[:, 0] += np.where(action == 1, 0.5, -0.5).astype(np.float32)
    reward = np.ones(n, np.float32)
    return Rows(dict(obs=obs, action=action, next_obs=next_obs, reward=reward, **columns))


def rewards(data: Any) -> np.ndarray:
    return columns_of(data)["reward"]


@pytest.mark.parametrize(
    ("model_class", "more"), [(RndRewardModel, {}), (ICMRewardModel, dict(action_shape=2))]
)
def test_what_was_learned_is_worth_less_than_what_is_new(model_class: Any, more: Any) -> None:
    set_pkg_seed(0)
    cfg = {**SMALL, **more, "intrinsic_reward_type": "assign", "obs_norm": False}
    model = model_class(cfg)
    known, new = samples(200), samples(200, place=3.0)
    before = rewards(model.estimate(known)).mean() / rewards(model.estimate(new)).mean()
    for seed in range(3):
        model.collect_data(samples(200, seed=seed))
        logged = model.train()
        model.clear_data()
    after = rewards(model.estimate(known)).mean() / rewards(model.estimate(new)).mean()
    assert after < 0.1 * before and logged["loss"] > 0


def test_rewards_are_divided_by_the_deviation_of_all_that_were_seen() -> None:
    model = RndRewardModel({**SMALL, "intrinsic_reward_type": "assign", "update_per_collect": 1})
    seen = [samples(50, seed=0), samples(80, place=1.0, seed=1)]
    errors = []
    for data in seen:
        model.collect_data(data)
        model.train()
        errors.append(model.novelty({"next_obs": columns_of(data)["next_obs"]}))
        model.clear_data()
    deviation = np.concatenate(errors).astype(np.float64).std()
    found = rewards(model.estimate(seen[1]))
    assert np.allclose(found, errors[1] / deviation, rtol=1e-5)


def fixed(kind: str, **cfg: Any) -> RndRewardModel:
    """A model whose novelty is the first coordinate of next_obs."""
    model = RndRewardModel({**SMALL, "intrinsic_reward_type": kind, "obs_norm": False, **cfg})
    model._novelty = lambda batch: batch["next_obs"][:, 0]  # type: ignore[method-assign]
    return model


def test_three_ways_to_give_it() -> None:
    data = Rows(dict(next_obs=np.eye(3, dtype=np.float32), reward=np.float32([2, 4, 6])))
    common: dict[str, Any] = dict(intrinsic_reward_norm="none", intrinsic_reward_weight=0.5)
    added = fixed("add", extrinsic_reward_norm_max=2.0, **common).estimate(data)
    assert rewards(added).tolist() == [1.5, 2.0, 3.0]
    plain = fixed("add", extrinsic_reward_norm=False, **common).estimate(data)
    assert rewards(plain).tolist() == [2.5, 4.0, 6.0]
    assert rewards(fixed("assign", **common).estimate(data)).tolist() == [1.0, 0.0, 0.0]
    new = columns_of(fixed("new", **common).estimate(data))
    assert new["reward"].tolist() == [2, 4, 6] and new["intrinsic_reward"].tolist() == [1, 0, 0]
    assert rewards(data).tolist() == [2, 4, 6]  # what was given stays


def test_stretched_within_the_batch_as_the_older_models_did() -> None:
    data = Rows(dict(next_obs=np.diag(np.float32([3, 5, 1])), reward=np.zeros(3, np.float32)))
    data.columns["next_obs"][:, 0] = [3, 5, 1]
    found = rewards(fixed("assign", intrinsic_reward_norm="batch").estimate(data))
    assert np.allclose(found, [0.5, 1.0, 0.0])


def test_rewards_keep_their_axes() -> None:
    data = Rows(dict(next_obs=np.eye(3, dtype=np.float32), reward=np.ones((3, 2), np.float32)))
    found = rewards(fixed("add", intrinsic_reward_norm="none").estimate(data))
    assert found.shape == (3, 2) and np.allclose(found[0], 1.01)


def test_images_and_dicts() -> None:
    frames = np.random.default_rng(0).integers(0, 256, (8, 1, 36, 36), dtype=np.uint8)
    model = RndRewardModel(dict(obs_shape=[1, 36, 36], hidden_size_list=[4, 4, 4, 8]))
    data = Rows(dict(next_obs=frames, reward=np.zeros(8, np.float32)))
    model.collect_data(data)
    assert rewards(model.estimate(data)).shape == (8,)
    parts = dict(near=np.ones((8, 3), np.float32), far=np.ones((8, 2), np.float32))
    model = RndRewardModel(dict(obs_shape=dict(near=3, far=2), hidden_size_list=[4]))
    model.collect_data(Rows(dict(next_obs=parts)))
    assert np.isfinite(model.novelty(dict(next_obs=parts))).all()


def test_icm_learns_which_continuous_action_was_taken() -> None:
    set_pkg_seed(0)
    rng = np.random.default_rng(0)
    obs, action = rng.normal(size=(2, 256, 2)).astype(np.float32)
    data = Rows(dict(obs=obs, action=action, next_obs=obs + action, reward=np.zeros(256)))
    cfg = dict(obs_shape=2, action_shape=2, action_space="continuous", hidden_size_list=[32, 32])
    model = ICMRewardModel({**cfg, "learning_rate": 0.005, "obs_norm": False})
    model.collect_data(data)
    first = model.train()["inverse_loss"]
    for _ in range(3):
        last = model.train()["inverse_loss"]
    assert last < 0.3 < first or last < 0.3 * first


def test_a_restored_model_goes_on_bit_for_bit() -> None:
    one, other = (RndRewardModel({**SMALL, "clear_buffer_per_iters": 9}) for _ in range(2))
    one.collect_data(samples(20))
    one.train()
    other.load_state_dict(one.state_dict())
    results = []
    for model in (one, other):
        model.collect_data(samples(30, place=1.0))
        model.train()
        results.append(rewards(model.estimate(samples(9))))
    assert np.array_equal(*results)


def test_initial_weights_leave_torchs_own_stream_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    RndRewardModel(SMALL)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (dict(intrinsic_reward_weight=-1.0), "intrinsic_reward_weight = -1.0"),
        (dict(intrinsic_reward_weight=float("nan")), "intrinsic_reward_weight = nan"),
        (dict(intrinsic_reward_type="ad"), "did you mean 'add'"),
        (dict(extrinsic_reward_norm_max=0.0), "extrinsic_reward_norm_max = 0.0"),
        (dict(obs_norm_clamp_min=2.0), "obs_norm_clamp_min = 2.0"),
        (dict(obs_shape=None), "obs_shape is missing"),
        (dict(clear_buffer_per_iters=0), "clear_buffer_per_iters = 0"),
    ],
)
def test_bad_settings_are_refused(cfg: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RndRewardModel({**SMALL, **cfg})


def test_created_by_name_from_either_section() -> None:
    for cfg in ({"type": "rnd", **SMALL}, {"reward_model": {"type": "rnd", **SMALL}}):
        assert isinstance(create_reward_model(cfg, "cpu", None), RndRewardModel)
    with pytest.raises(ConfigError, match=r"'reward_model.type' is missing; one of: .*rnd"):
        create_reward_model(SMALL)
    with pytest.raises(DingError, match="did you mean 'rnd'"):
        create_reward_model({"type": "rdn"})
