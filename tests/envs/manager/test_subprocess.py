"""The contract of `BaseEnvManager`, kept by managers whose envs live in workers."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    BaseEnvTimestep,
    DingEnvWrapper,
    EnvState,
    StepByEnv,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
    create_env_manager,
    get_env_manager_cls,
)
from ding.utils.batch import ByEnv
from ding.utils.errors import ConfigError, EnvError

from ..counting import CountingEnv

QUICK = {"retry_waiting_time": 0, "flight_dir": None, "envs_per_worker": 2}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "shared": (SyncSubprocessEnvManager, {}),
    "pickled": (SyncSubprocessEnvManager, {"shared_memory": False, "envs_per_worker": 1}),
    "thread": (ThreadEnvManager, {"wait_num": 9, "reset_inplace": True}),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[tuple[Any, dict[str, Any]]]:
    yield KINDS[request.param]
    assert not multiprocessing.active_children()


def launched(
    kind: tuple[Any, dict[str, Any]], count: int = 2, *, events: Any = None, **cfg: Any
) -> Any:
    """Env 0 has the events; all episodes are 3 steps long."""
    cls, own = kind
    fns = [partial(CountingEnv, events=events if i == 0 else None) for i in range(count)]
    manager = cls(fns, {**QUICK, **own, **cfg})
    manager.launch()
    return manager


def step_all(manager: Any) -> StepByEnv:
    ready = manager.ready_obs
    return manager.step(ByEnv(ready.ids, np.ones(len(ready.ids), dtype=np.int64)))


def steps_of(manager: Any) -> list[float]:
    return [float(obs[1]) for obs in manager.ready_obs.values()]


def episode_seeds(manager: Any) -> list[float]:
    return [float(x) for x in manager.ready_obs.stacked[:, 0]]


def test_rows_and_columns_of_a_step(kind: Any) -> None:
    with launched(kind) as manager:
        by_env = manager.step({0: np.array(1), 1: np.array(2)})
        step = by_env.stacked
        assert step.reward.tolist() == [1, 1]
        assert step.obs.dtype == step.reward.dtype == np.float32
        assert step.env_id.tolist() == [0, 1]
        assert step.info == [{}, {}]
        for flags in (step.done, step.truncated, step.abnormal):
            assert flags.dtype == bool
            assert not flags.any()
        assert isinstance(by_env[1], BaseEnvTimestep)
        assert by_env[1].obs.tolist() == [0, 1]
        assert [[int(a) for a in one] for one in manager.actions] == [[1], [2]]


def test_last_observation_and_the_next_first_one(kind: Any) -> None:
    with launched(kind) as manager:
        for _ in range(2):
            step_all(manager)
        step = step_all(manager).stacked
        assert step.done.all()
        assert not step.truncated.any()
        assert step.obs[:, 1].tolist() == [3, 3]
        assert steps_of(manager) == [0, 0]
        assert step.obs[:, 1].tolist() == [3, 3]
        assert [info["eval_episode_return"] for info in step.info] == [6.0, 6.0]


def test_truncation_and_partial_steps(kind: Any) -> None:
    with launched(kind, 3, events={(0, 2): "truncate"}) as manager:
        step_all(manager)
        step = step_all(manager).stacked
        assert step.done.tolist() == step.truncated.tolist() == [True, False, False]
        assert steps_of(manager) == [0, 2, 2]
        step = manager.step({2: 1, 0: 1}).stacked
        assert step.env_id.tolist() == [2, 0]
        assert step.obs[:, 1].tolist() == [3, 1]
        assert steps_of(manager) == [1, 2, 0]
        manager.step(ByEnv(np.array([1]), np.array([1])))
        assert steps_of(manager) == [1, 0, 0]


def test_episode_num(kind: Any) -> None:
    with launched(kind, episode_num=2) as manager:
        for _ in range(3):
            step_all(manager)
        for _ in range(3):
            manager.step({0: 1})
        assert manager.env_state_done(0)
        assert not manager.env_state_done(1)
        assert manager.ready_obs_id == manager.active_env == list(manager.ready_obs) == [1]
        for _ in range(3):
            step_all(manager)
        assert manager.done
        assert len(manager.ready_obs) == 0
        assert manager.episode == [1, 1]
        manager.reset({1: None})
        assert manager.ready_obs_id == [1]
        manager.reset()
        assert manager.ready_obs_id == [0, 1]


def test_without_auto_reset(kind: Any) -> None:
    with launched(kind, 1, auto_reset=False) as manager:
        for _ in range(3):
            step_all(manager)
        assert manager.env_state == {0: EnvState.NEED_RESET}
        with pytest.raises(RuntimeError, match="env 0 cannot step: it is NEED_RESET"):
            manager.step({0: 1})
        manager.reset({0: {}})
        assert steps_of(manager) == [0]
        assert manager.episode == [1]


def test_reset_arguments_are_remembered(kind: Any) -> None:
    with launched(kind) as manager:
        manager.reset({1: {"level": 3}})
        for _ in range(3):
            step_all(manager)
        assert manager.ready_obs_id == [0, 1]
        assert manager.kwargs == [{}, {"level": 3}]
        manager.close()
        manager.launch({0: {"level": 5}})
        assert manager.kwargs == [{"level": 5}, {}]


def test_seeds_are_those_of_the_base_manager(kind: Any) -> None:
    def seen(manager: Any) -> list[list[float]]:
        out = []
        with manager:
            manager.seed(10, dynamic_seed=False)
            manager.reset()
            out.append(episode_seeds(manager))
            for _ in range(3):
                step_all(manager)
            out.append(episode_seeds(manager))
            manager.reset()
            out.append(episode_seeds(manager))
            manager.reset({0: None})
            out.append(episode_seeds(manager))
            manager.seed({1: 77})
            for _ in range(3):
                step_all(manager)
            out.append(episode_seeds(manager))
        return out

    base = BaseEnvManager([CountingEnv] * 2, QUICK)
    base.launch()
    expected = seen(base)
    assert expected[0] == expected[2] == [10, 11]
    assert seen(launched(kind)) == expected


def test_wrong_use_changes_nothing(kind: Any) -> None:
    manager = kind[0]([CountingEnv] * 2, {**QUICK, **kind[1]})
    for use in (lambda: manager.step({0: 1}), lambda: manager.ready_obs, manager.reset):
        with pytest.raises(RuntimeError, match=r"not launched: call launch\(\) first"):
            use()
    with manager:
        manager.launch()
        for actions, error, text in [
            ({5: 1}, ValueError, "unknown env id 5: there are envs 0 to 1"),
            ({"a": 1}, ValueError, "unknown env id 'a'"),
            ({}, ValueError, "no actions"),
            ({0: 1.5}, ValueError, "dtype"),
            ({0: np.zeros(3, dtype=int)}, ValueError, "shape"),
        ]:
            with pytest.raises(error, match=text):
                manager.step(actions)
        with pytest.raises(ValueError, match="unknown env id 2"):
            manager.reset({2: None})
        with pytest.raises(RuntimeError, match="launched already"):
            manager.launch()
        assert steps_of(manager) == [0, 0]
        assert manager.episode == [0, 0]


def test_env_attributes_as_lists(kind: Any) -> None:
    manager = launched(kind)
    assert manager.tag == ["t", "t"]
    with pytest.raises(RuntimeError, match="'shout' cannot be called"):
        _ = manager.shout
    with pytest.raises(AttributeError, match="has 'nothing'"):
        _ = manager.nothing
    manager.close()
    manager.close()
    assert manager.env_state == {0: EnvState.VOID, 1: EnvState.VOID}
    with pytest.raises(AssertionError, match="closed"):
        _ = manager.tag


class Shaping(CountingEnv):
    def enable_save_figure(self, path: str) -> None:
        self.tag = path

    def enable_save_replay(self, replay_path: str) -> None:
        self.tag = replay_path

    def reward_shaping(self, transitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**t, "reward": t["reward"] + 1} for t in transitions]

    def render(self) -> int:
        return self.steps


def test_calls_for_one_env(kind: Any) -> None:
    fns = [partial(Shaping, events={(0, 1): "raise"}), Shaping]
    cfg = {**QUICK, **kind[1], "max_retry": 2, "retry_type": "renew"}
    with kind[0](fns, cfg) as manager:
        manager.launch()
        manager.enable_save_figure(1, "here")
        assert manager.tag == ["t", "here"]
        assert manager.reward_shaping(0, [{"reward": 1}]) == [{"reward": 2}]
        assert manager.ready_imgs == {0: 0, 1: 0}
        with pytest.raises(ValueError, match="unknown env id 2"):
            manager.enable_save_figure(2, "there")
        with pytest.raises(EnvError, match="env 1: 'reward_shaping' failed: KeyError"):
            manager.reward_shaping(1, [{}])
        manager.enable_save_replay("videos")
        step_all(manager)
        assert manager.ready_obs_id == [0, 1]
        assert manager.tag == ["videos", "videos"]


def run(manager: Any, steps: int, env_id: str) -> list[Any]:
    rng, seen = np.random.default_rng(0), []
    for _ in range(steps):
        ready = manager.ready_obs
        count = len(ready.ids)
        action = rng.integers(0, 2, count)
        if env_id == "Pendulum-v1":
            action = rng.uniform(-1, 1, (count, 1)).astype(np.float32)
        step = manager.step(ByEnv(ready.ids, action)).stacked
        numbers = (ready.stacked, step.obs, step.reward, step.done, step.truncated, step.env_id)
        seen.append(([part.tolist() for part in numbers], step.info))
    return seen


def gym_manager(cls: Any, env_id: str, **cfg: Any) -> Any:
    limit = {"max_episode_steps": 20} if env_id == "Pendulum-v1" else {}
    fn = partial(DingEnvWrapper, cfg={"env_id": env_id, **limit})
    manager = cls([fn] * 8, {"flight_dir": None, **cfg})
    manager.seed(3)
    return manager


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_same_data_as_in_process_with_any_number_of_workers(env_id: str) -> None:
    base = gym_manager(BaseEnvManager, env_id)
    base.launch()
    expected = run(base, 80, env_id)
    assert sum(sum(numbers[3]) for numbers, _ in expected) >= 3 * 8
    for per_worker in (1, 2, 4, 8):
        with gym_manager(SyncSubprocessEnvManager, env_id, envs_per_worker=per_worker) as manager:
            manager.launch()
            assert run(manager, 80, env_id) == expected


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_other_contexts(context: str) -> None:
    base = gym_manager(BaseEnvManager, "CartPole-v1")
    base.launch()
    cfg = {"context": context, "envs_per_worker": 8}
    with gym_manager(SyncSubprocessEnvManager, "CartPole-v1", **cfg) as manager:
        manager.launch()
        assert run(manager, 30, "CartPole-v1") == run(base, 30, "CartPole-v1")


def test_factories_that_cannot_be_sent() -> None:
    import threading

    lock = threading.Lock()
    cfg = {"context": "spawn", "envs_per_worker": 1}
    manager = SyncSubprocessEnvManager([lambda: (lock, CountingEnv())[1]], cfg)
    with pytest.raises(EnvError, match=r"context 'spawn'.*functools\.partial.*context='fork'"):
        manager.launch()
    assert manager.closed


class Nested(CountingEnv):
    _observation_space = gym.spaces.Dict(
        {
            "image": gym.spaces.Box(0, 255, (2, 3), dtype=np.uint8),
            "parts": gym.spaces.Tuple((gym.spaces.Discrete(9), gym.spaces.MultiBinary(3))),
        }
    )

    def __init__(self) -> None:
        super().__init__()
        self._action_space = gym.spaces.Dict(
            {"turn": gym.spaces.Box(-1, 1, (2,), dtype=np.float32), "go": gym.spaces.Discrete(3)}
        )

    def _obs(self, event: str | None) -> Any:
        bits = np.array([1, 0, self.steps % 2], dtype=np.int8)
        return {"image": np.full((2, 3), self.steps, dtype=np.uint8), "parts": (self.steps, bits)}


def test_nested_spaces(kind: Any) -> None:
    with kind[0]([Nested] * 2, {**QUICK, **kind[1]}) as manager:
        manager.launch()
        turn = np.array([[0.5, 0], [0, 1]], dtype=np.float32)
        action = {"turn": turn, "go": np.array([1, 2])}
        step = manager.step(ByEnv(np.arange(2), action)).stacked
        assert step.obs["image"].tolist() == [[[1] * 3] * 2] * 2
        assert step.obs["parts"][0].tolist() == [1, 1]
        assert step.obs["parts"][1].tolist() == [[1, 0, 1]] * 2
        manager.step({1: {"turn": turn[0], "go": np.array(0)}})
        assert manager.ready_obs.stacked["parts"][0].tolist() == [1, 2]
        assert float(manager.actions[0][0]["turn"][0]) == 0.5
        assert [int(a["go"]) for a in manager.actions[1]] == [2, 0]
        with pytest.raises(ValueError, match="dict with the keys"):
            manager.step({0: 1})


class Wordy(CountingEnv):
    _observation_space = gym.spaces.Text(9)

    def _obs(self, event: str | None) -> Any:
        return f"step {self.steps}"


class Wide(CountingEnv):
    """Its observations are not what its space says."""

    def _obs(self, event: str | None) -> Any:
        return np.full(5, self.steps, dtype=np.float32)


@pytest.mark.parametrize(("env", "text"), [(Wordy, "no fixed shape"), (Wide, r"shape \(5,\)")])
def test_spaces_that_cannot_be_shared(
    env: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        SyncSubprocessEnvManager([env] * 2, QUICK) as manager,
    ):
        manager.launch()
        for _ in range(4):
            step = step_all(manager).stacked
        assert len(caplog.records) == 1
        assert "observations are pickled" in caplog.text
        last = step.obs.tolist()
        assert last == ["step 1"] * 2 or last == [[1] * 5] * 2


class Vector(CountingEnv):
    _reward_space = gym.spaces.Box(-9, 9, (2,), dtype=np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        step = super().step(action)
        info = {"big": np.zeros(1000), "lock": multiprocessing.Lock()}
        return step._replace(reward=np.full(2, step.reward), done=np.array([step.done]), info=info)


def test_vector_rewards_and_large_infos(kind: Any) -> None:
    with kind[0]([Vector] * 2, {**QUICK, **kind[1]}) as manager:
        manager.launch()
        step = step_all(manager).stacked
        assert step.reward.tolist() == [[1, 1], [1, 1]]
        assert step.info[1]["big"].shape == (1000,)
        assert "Lock" in step.info[0]["lock"]


def test_views_stay_until_the_next_step() -> None:
    with launched((SyncSubprocessEnvManager, {"copy_on_get": False})) as manager:
        first = step_all(manager).stacked.obs
        assert first[:, 1].tolist() == [1, 1]
        assert not first.flags.owndata
        second = step_all(manager).stacked.obs
        assert first[:, 1].tolist() == second[:, 1].tolist() == [2, 2]


@pytest.mark.parametrize("cls", [SyncSubprocessEnvManager, ThreadEnvManager])
def test_state_continues_bit_exactly(cls: Any) -> None:
    cfg = {"envs_per_worker": 4, "wait_num": 99, "reset_inplace": True}
    with gym_manager(cls, "CartPole-v1", **cfg) as manager:
        manager.launch()
        run(manager, 37, "CartPole-v1")
        state = pickle.loads(pickle.dumps(manager.state_dict()))
        expected = run(manager, 60, "CartPole-v1")
        with gym_manager(cls, "CartPole-v1", **cfg) as other:
            other.load_state_dict(state)
            assert run(other, 60, "CartPole-v1") == expected
        manager.load_state_dict(state)
        assert run(manager, 60, "CartPole-v1") == expected
    with pytest.raises(ValueError, match="state is of 8 envs, here are 2"):
        cls([CountingEnv] * 2, QUICK).load_state_dict(state)


def test_work_while_the_envs_step() -> None:
    manager = launched((SyncSubprocessEnvManager, {}))
    flying: list[int] = []
    with manager:
        steps = manager.step(
            dict.fromkeys(range(2), 1), meanwhile=lambda: flying.append(manager.in_flight)
        )
        assert flying == [2] and len(steps) == 2

        def fail() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            manager.step(dict.fromkeys(range(2), 1), meanwhile=fail)
        assert manager.in_flight == 0 and steps_of(manager) == [2, 2]


def test_state_keeps_steps_in_flight() -> None:
    kind = (AsyncSubprocessEnvManager, {})
    with launched(kind, 3) as manager:
        for _ in range(2):
            manager.send(ByEnv(manager.ready_obs.ids, np.ones(3, dtype=np.int64)))
            while manager.in_flight:
                manager.recv()
        manager.send(ByEnv(np.arange(3), np.ones(3, dtype=np.int64)))
        state = pickle.loads(pickle.dumps(manager.state_dict()))
    other = AsyncSubprocessEnvManager([CountingEnv] * 3, QUICK)
    with other:
        other.load_state_dict(state)
        assert other.in_flight == 3
        step = other.recv(1).stacked
        assert sorted(step.env_id.tolist()) == [0, 1, 2]
        assert step.done.all()
        assert step.obs[:, 1].tolist() == [3, 3, 3]
        assert step.info[0] == {"eval_episode_return": 6.0}
        assert other.in_flight == 0
        assert steps_of(other) == [0, 0, 0]


class Held(CountingEnv):
    def __init__(self) -> None:
        super().__init__()
        self.lock = multiprocessing.Lock()


def test_unpicklable_envs_begin_new_episodes(caplog: pytest.LogCaptureFixture) -> None:
    cfg = {**QUICK, "episode_num": 2}
    with SyncSubprocessEnvManager([Held] * 2, cfg) as manager:
        manager.seed(3)
        manager.launch()
        first = episode_seeds(manager)
        for _ in range(4):
            step_all(manager)
        with caplog.at_level(logging.WARNING):
            state = manager.state_dict()
            manager.state_dict()
        assert caplog.text.count("cannot be saved") == 1
        assert state["envs"] is None
        manager.load_state_dict(state)
        assert steps_of(manager) == [0, 0]
        assert episode_seeds(manager) != first
        for _ in range(3):
            step_all(manager)
        assert manager.done


def test_factories_and_configs() -> None:
    for name, cls in [
        ("subprocess", SyncSubprocessEnvManager),
        ("async_subprocess", AsyncSubprocessEnvManager),
        ("thread", ThreadEnvManager),
    ]:
        assert get_env_manager_cls({"type": name}) is cls
    assert AsyncSubprocessEnvManager.config["wait_num"] == 2
    assert SyncSubprocessEnvManager.config["wait_num"] == float("inf")
    assert not SyncSubprocessEnvManager.overlaps
    assert ThreadEnvManager.overlaps
    manager = create_env_manager({"type": "subprocess", "envs_per_worker": 0}, [CountingEnv])
    with pytest.raises(ConfigError, match="'auto' or a positive int, not 0"):
        manager.launch()
    assert not multiprocessing.active_children()
