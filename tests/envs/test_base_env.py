from __future__ import annotations

import numpy as np
import pytest
from easydict import EasyDict

import ding.env
import ding.envs
from ding.envs import (
    BaseEnv,
    BaseEnvTimestep,
    DingEnvWrapper,
    StepByEnv,
    VecStep,
    get_env_cls,
    get_vec_env_setting,
    is_truncated,
)
from ding.utils.errors import DingError

from .counting import CountingEnv


def seeds(seed: int, dynamic: bool, count: int = 4) -> list[int | None]:
    env = CountingEnv()
    env.seed(seed, dynamic)
    return [env._next_seed() for _ in range(count)]


def test_alias_package_offers_the_same_names() -> None:
    assert all(getattr(ding.env, name) is getattr(ding.envs, name) for name in ding.envs.__all__)
    assert ding.env.__all__ == ding.envs.__all__


def test_unseeded_env_has_no_seed() -> None:
    assert CountingEnv()._next_seed() is None


def test_static_seed_is_used_first_then_drawn_from() -> None:
    static = seeds(5, dynamic=False)
    draws = [int(x) for x in np.random.default_rng(5).integers(2**31, size=4)]
    assert static == [5, *draws[:3]]
    assert seeds(5, dynamic=True) == draws
    assert len(set(static)) == 4


def test_seed_survives_a_subclass_without_super_init() -> None:
    class Bare(CountingEnv):
        def __init__(self) -> None:
            pass

    env = Bare()
    assert env._next_seed() is None
    env.seed(3, dynamic_seed=False)
    assert env._next_seed() == 3


@pytest.mark.parametrize("kind", [dict, EasyDict])
def test_env_cfgs_are_copies_without_the_counts(kind: type) -> None:
    cfg = kind(collector_env_num=3, evaluator_env_num=2, maps=kind(size=1))
    collect = BaseEnv.create_collector_env_cfg(cfg)
    evaluate = BaseEnv.create_evaluator_env_cfg(cfg)
    assert (len(collect), len(evaluate)) == (3, 2)
    assert collect[0] == {"maps": {"size": 1}}
    collect[0]["maps"]["size"] = 9
    assert collect[1]["maps"]["size"] == cfg["maps"]["size"] == 1
    assert cfg["collector_env_num"] == 3


@pytest.mark.parametrize(
    ("cfg", "text"),
    [
        ({}, "lacks 'collector_env_num'"),
        ({"collector_env_num": 0}, "a positive int, got 0"),
    ],
)
def test_bad_env_count(cfg: dict[str, int], text: str) -> None:
    with pytest.raises(DingError, match=text):
        BaseEnv.create_collector_env_cfg(cfg)


def test_get_vec_env_setting() -> None:
    cfg = {
        "env_id": "CartPole-v1",
        "collector_env_num": 2,
        "evaluator_env_num": 1,
        "rew_clip": True,
    }
    make, collect, evaluate = get_vec_env_setting(cfg)
    assert make is DingEnvWrapper
    assert [c["rew_clip"] for c in collect or []] == [True, True]
    assert [c["rew_clip"] for c in evaluate or []] == [False]
    assert make(collect[0]).observation_space.shape == (4,)  # type: ignore[index]
    assert get_vec_env_setting(cfg, eval_=False)[2] is None
    assert get_vec_env_setting(cfg, collect=False)[1] is None
    assert cfg["collector_env_num"] == 2


def test_get_env_cls_by_name() -> None:
    assert get_env_cls({"type": "cartpole"}).__name__ == "CartPoleEnv"
    assert get_env_cls({"type": "ding_env_wrapper_generated"}) is DingEnvWrapper
    with pytest.raises(DingError, match="did you mean 'cartpole'"):
        get_env_cls({"type": "cartpol"})
    with pytest.raises(DingError, match=r"import_names.*'no_such_module'"):
        get_env_cls({"type": "mine", "import_names": ["no_such_module"]})


def test_is_truncated() -> None:
    assert is_truncated({"truncated": True})
    assert is_truncated({"TimeLimit.truncated": True})
    assert not is_truncated({"truncated": False})
    assert not is_truncated({})
    assert not is_truncated(None)


def test_step_by_env_rows_are_timesteps() -> None:
    flags = np.array([False, True])
    obs = {"a": np.array([[1.0], [2.0]])}
    ids = np.array([4, 7])
    infos: list[dict[str, object]] = [{}, {"x": 1}]
    reward = np.array([0.5, 1.5], dtype=np.float32)
    steps = StepByEnv(ids, VecStep(obs, reward, flags, infos, flags, ~flags, ids))
    assert list(steps) == [4, 7]
    row = steps[7]
    assert isinstance(row, BaseEnvTimestep)
    assert (row.obs["a"], row.reward, row.done, row.info) == (2.0, 1.5, True, {"x": 1})


def test_replays_are_refused_by_default() -> None:
    with pytest.raises(DingError, match="CountingEnv cannot save replays"):
        CountingEnv().enable_save_replay("somewhere")
