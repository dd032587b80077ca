from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ding.envs import BaseEnvManager, DingEnvWrapper, EnvState
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.policy import DQNPolicy
from ding.utils.batch import ByEnv, columns_of
from ding.utils.errors import ConfigError, DingError, EnvError
from ding.worker import EpisodeCollector, SampleCollector
from ding.worker.evaluator import BaseSerialEvaluator

from ..counting import CountingEnv

EPS = {"eps": 0.5}
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


class CountingVector(VectorEnv[Any, Any, Any]):
    """obs is (env, step, action taken); env i has episodes of `lengths[i]` steps; reward 2."""

    def __init__(
        self, num_envs: int, mode: str, lengths: list[int], events: dict[int, str] | None = None
    ) -> None:
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode(mode)}
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), dtype=np.float64)
        self.single_action_space = gym.spaces.Discrete(4, start=1)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.lengths, self.events = np.array(lengths), dict(events or {})
        self.ticks = 0
        self.obs = np.zeros((num_envs, 3))

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.over = np.zeros(self.num_envs, dtype=bool)
        self.obs[:] = 0
        self.obs[:, 0] = np.arange(self.num_envs)
        return self.obs, {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        assert self.action_space.contains(actions)
        self.ticks += 1
        event = self.events.pop(self.ticks, None)
        if event == "raise":
            raise ZeroDivisionError("boom")
        if event == "sleep":
            time.sleep(5)
        fresh = self.over.copy()
        self.obs[:, 1] += 1
        self.obs[:, 2] = actions
        if self.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP:
            self.obs[fresh, 1:] = 0
        else:
            fresh[:] = False
        self.over = (self.obs[:, 1] == self.lengths) & ~fresh
        truncated = self.over & (np.arange(self.num_envs) == 1)
        infos: dict[str, Any] = {"count": self.obs[:, 1].copy()}
        if event == "told":
            infos |= {"abnormal": np.array([True, False]), "_abnormal": np.array([True, False])}
        obs = self.obs
        if event == "shape":
            obs = obs[:, :2]
        if event == "nan":
            obs = obs.copy()
            obs[1, 1] = np.nan
        if self.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP and self.over.any():
            infos |= {"final_obs": self.obs.copy(), "final_info": {"last": self.obs[:, 1].copy()}}
            self.obs[self.over, 1:] = 0
        return obs, np.where(fresh, 0.0, 2.0), self.over & ~truncated, truncated, infos


class NestedEnv(gym.Env[Any, Any]):
    """Adds up its actions; two steps an episode."""

    def __init__(self) -> None:
        number = gym.spaces.Discrete(9)
        box = gym.spaces.Box(-9, 9, (2,), dtype=np.float64)
        self.observation_space = gym.spaces.Dict(a=box, b=gym.spaces.Tuple([number]))
        self.action_space = gym.spaces.Dict(x=gym.spaces.Discrete(3, start=1), y=number)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.start = 0, self.np_random.uniform(size=2)
        return {"a": self.start, "b": (0,)}, {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs = {"a": self.start * int(action["x"]), "b": (int(action["y"]),)}
        return obs, float(action["x"]), self.steps == 2, False, {}


@pytest.fixture(autouse=True)
def counting_id() -> Iterator[None]:
    gym.register("Counting-v0", vector_entry_point=CountingVector)  # type: ignore[arg-type]
    yield
    del gym.registry["Counting-v0"]


def manager_of(count: int, env: dict[str, Any], **cfg: Any) -> GymVectorEnvManager:
    fns = [partial(DingEnvWrapper, cfg=dict(env)) for _ in range(count)]
    return GymVectorEnvManager(fns, {"retry_waiting_time": 0, **cfg})


def counting(
    mode: AutoresetMode = AutoresetMode.NEXT_STEP,
    lengths: tuple[int, ...] = (2, 3),
    events: dict[int, str] | None = None,
    **cfg: Any,
) -> GymVectorEnvManager:
    kwargs = {"mode": mode.value, "lengths": list(lengths), "events": events}
    env = {"env_id": "Counting-v0", "env_kwargs": kwargs}
    manager = manager_of(len(lengths), env, **cfg)
    manager.launch()
    return manager


def launched(cls: Any, count: int, env_id: str, seed: int = 3, **cfg: Any) -> Any:
    manager = cls([partial(DingEnvWrapper, cfg={"env_id": env_id})] * count, cfg)
    manager.seed(seed)
    manager.launch()
    return manager


def step_all(manager: Any, action: int = 0) -> Any:
    ids = manager.ready_obs.ids
    return manager.step(ByEnv(ids, np.full(len(ids), action))).stacked


def played(manager: Any, n_step: int) -> list[Any]:
    """Columns of so many steps with the same random actions for every manager."""
    rng, out = np.random.default_rng(0), []
    shape = (manager.env_num, *manager.action_space.shape)
    for _ in range(n_step):
        discrete = isinstance(manager.action_space, gym.spaces.Discrete)
        actions = rng.integers(2, size=shape) if discrete else rng.uniform(-1, 1, shape)
        actions = actions.astype(manager.action_space.dtype)
        obs = manager.ready_obs
        step = manager.step(ByEnv(obs.ids, actions[obs.ids])).stacked
        out += [obs.stacked, step.obs, step.reward, step.done, step.truncated, step.env_id]
    return out


def same(some: list[Any], others: list[Any]) -> bool:
    pairs = zip(some, others, strict=True)
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs)


@pytest.mark.parametrize(("env_id", "n_step"), [("CartPole-v1", 80), ("Pendulum-v1", 210)])
def test_sync_gives_the_data_of_base(env_id: str, n_step: int) -> None:
    base = launched(BaseEnvManager, 3, env_id)
    sync = launched(GymVectorEnvManager, 3, env_id, vectorization_mode="sync")
    assert sync.observation_space == base.observation_space
    assert sync.action_space == base.action_space
    assert same(played(sync, n_step), played(base, n_step))


def test_async_gives_the_data_of_sync() -> None:
    sync, async_ = (
        launched(GymVectorEnvManager, 2, "CartPole-v1", vectorization_mode=mode)
        for mode in ("sync", "async")
    )
    with async_:
        assert same(played(async_, 30), played(sync, 30))


def test_vectorised_version_is_taken_and_seeded() -> None:
    first, again, other = (
        launched(GymVectorEnvManager, 4, "CartPole-v1", seed) for seed in (3, 3, 4)
    )
    assert type(first._simulators.vector).__name__ == "CartPoleVectorEnv"
    data = played(first, 60)
    assert same(data, played(again, 60))
    assert not np.array_equal(data[0], played(other, 1)[0])


def test_static_seeds_repeat_with_every_full_reset() -> None:
    for mode in ("vector_entry_point", "sync"):
        manager = launched(GymVectorEnvManager, 2, "CartPole-v1", vectorization_mode=mode)
        manager.seed(7, dynamic_seed=False)
        manager.reset()
        first = manager.ready_obs.stacked
        step_all(manager)
        manager.reset()
        assert np.array_equal(manager.ready_obs.stacked, first)
        manager.seed(7, dynamic_seed=True)
        manager.reset()
        dynamic = manager.ready_obs.stacked
        manager.reset()
        assert not np.array_equal(manager.ready_obs.stacked, dynamic)


@pytest.mark.parametrize("mode", MODES)
def test_only_real_transitions_are_seen(mode: AutoresetMode) -> None:
    manager = counting(mode, lengths=(2, 3, 5))
    ends: dict[int, int] = {0: 0, 1: 0, 2: 0}
    for _ in range(60):
        before = manager.ready_obs
        step = step_all(manager, action=2)
        assert step.obs.dtype == step.reward.dtype == np.float32
        assert np.array_equal(step.env_id, before.ids)
        assert step.obs[:, 0].tolist() == before.ids.tolist()
        assert step.obs[:, 1].tolist() == (before.stacked[:, 1] + 1).tolist()
        assert step.obs[:, 2].tolist() == [3] * len(before.ids)  # actions here begin at 1
        assert step.reward.tolist() == [2] * len(before.ids)
        for k in np.flatnonzero(step.done).tolist():
            i, length = int(step.env_id[k]), (2, 3, 5)[int(step.env_id[k])]
            ends[i] += 1
            assert step.obs[k, 1] == length
            assert step.info[k]["eval_episode_return"] == 2 * length
            assert step.info[k]["last" if mode is AutoresetMode.SAME_STEP else "count"] == length
            assert step.truncated[k] == step.info[k].get("truncated", False) == (i == 1)
    assert min(ends.values()) >= 9


def test_the_step_of_a_reset_is_hidden() -> None:
    manager = counting(lengths=(2, 3))
    seen = []
    for _ in range(6):
        seen.append(manager.ready_obs_id)
        step_all(manager)
    # Env 0 ends after 2 steps and is reset while env 1 takes its third; then both are over.
    assert seen == [[0, 1], [0, 1], [1], [0, 1], [0, 1], [1]]


def test_when_all_end_together_all_begin_at_once() -> None:
    manager = counting(lengths=(2, 2))
    for _ in range(2):
        step_all(manager)
    assert manager.ready_obs_id == [0, 1]
    assert manager.ready_obs.stacked[:, 1].tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_collectors_and_evaluator_see_whole_episodes(
    mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"env_id": "Counting-v0", "env_kwargs": {"mode": mode, "lengths": [2, 3, 5]}}
    model = {"obs_shape": 3, "action_shape": 4, "encoder_hidden_size_list": [8]}
    policy = DQNPolicy({"type": "dqn", "model": model})
    with EpisodeCollector({}, env=manager_of(3, env), policy=policy.collect_mode) as collector:
        for n_episode in (3, 7, 4):
            episodes = [
                columns_of(rows) for rows in collector.collect(n_episode, policy_kwargs=EPS)
            ]
            assert len(episodes) == n_episode
            for steps in episodes:
                length = (2, 3, 5)[int(steps["obs"][0, 0])]
                assert steps["obs"][:, 1].tolist() == list(range(length))
                assert steps["next_obs"][:, 1].tolist() == list(range(1, length + 1))
                assert steps["done"].tolist() == [False] * (length - 1) + [True]
    with SampleCollector({}, env=manager_of(3, env), policy=policy.collect_mode) as sampler:
        for _ in range(5):
            samples = sampler.collect(13, policy_kwargs=EPS)
            assert len(samples) == 13
            columns = columns_of(samples)
            assert (columns["next_obs"][:, 1] == columns["obs"][:, 1] + 1).all()
    cfg = {"n_episode": 8}
    with BaseSerialEvaluator(cfg, env=manager_of(3, env), policy=policy.eval_mode) as evaluator:
        assert evaluator.eval().reward["length"] == [2, 2, 2, 3, 3, 3, 5, 5]


def test_nested_observations_and_actions() -> None:
    gym.register("Nested-v0", entry_point=NestedEnv)  # type: ignore[arg-type]
    base = launched(BaseEnvManager, 2, "Nested-v0")
    sync = launched(GymVectorEnvManager, 2, "Nested-v0", vectorization_mode="sync")
    del gym.registry["Nested-v0"]
    assert sync.observation_space == base.observation_space
    for _ in range(5):
        actions = base.random_action()
        drawn = sync.random_action()
        assert all(np.array_equal(drawn[i], actions[i]) for i in range(2))
        ours, theirs = sync.step(actions).stacked, base.step(actions).stacked
        for tree, other in ((ours.obs, theirs.obs), (sync.ready_obs.stacked, base._obs)):
            assert tree["a"].dtype == np.float32
            assert np.array_equal(tree["a"], other["a"])
            assert np.array_equal(tree["b"]["0"], other["b"]["0"])
        assert np.array_equal(ours.reward, theirs.reward)
        assert np.array_equal(ours.done, theirs.done)


def test_memory_is_not_written_again() -> None:
    manager = counting()
    first = manager.ready_obs.stacked
    step = step_all(manager)
    step_all(manager)
    assert first[:, 1].tolist() == [0, 0]
    assert step.obs[:, 1].tolist() == [1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_an_env_left_out_at_its_beginning_comes_back(mode: AutoresetMode) -> None:
    manager = counting(mode, lengths=(9, 2))
    manager.step({0: 0})
    assert manager.env_state == {0: EnvState.RUN, 1: EnvState.RESET}
    with pytest.raises(RuntimeError, match="env 1 cannot step: it is RESET, not RUN"):
        manager.step({1: 0})
    while manager.ready_obs_id != [0, 1]:
        step_all(manager)
    assert manager.ready_obs.stacked[1, 1] == 0
    step_all(manager)
    with pytest.raises(ValueError, match=r"leaves out envs \[1\] in the middle"):
        manager.step({0: 0})


def test_episode_num_and_done() -> None:
    manager = counting(lengths=(2, 3), episode_num=1)
    for _ in range(2):
        step_all(manager)
    assert manager.env_state_done(0)
    assert manager.ready_obs_id == manager.active_env == [1]
    step_all(manager)
    assert manager.done
    assert len(manager.ready_obs) == 0
    manager.reset()
    assert not manager.done
    assert manager.ready_obs_id == [0, 1]


@pytest.mark.parametrize("env_id", ["CartPole-v1", "MountainCar-v0"])
def test_without_auto_reset(env_id: str) -> None:
    env = {"env_id": env_id, "max_episode_steps": 3}
    manager = manager_of(2, env, auto_reset=False)
    manager.launch()
    for _ in range(3):
        step = step_all(manager)
    assert step.truncated.all()
    assert set(manager.env_state.values()) == {EnvState.NEED_RESET}
    manager.reset({0: None})
    assert manager.ready_obs_id == [0]
    for _ in range(3):
        step_all(manager)
    assert manager.env_state[0] == EnvState.NEED_RESET


def test_reset_of_one_env_in_the_middle() -> None:
    manager = counting(lengths=(5, 3))
    step_all(manager)
    manager.reset({1: None})
    assert manager.ready_obs_id == [0]  # env 1 must run to its end first
    for _ in range(3):
        step_all(manager)
    assert manager.ready_obs_id == [0, 1]
    assert manager.ready_obs.stacked[:, 1].tolist() == [4, 0]
    manager.reset({0: None, 1: None})
    assert manager.ready_obs.stacked[:, 1].tolist() == [0, 0]
    sync = launched(GymVectorEnvManager, 2, "CartPole-v1", vectorization_mode="sync")
    step_all(sync)
    kept = sync.ready_obs.stacked[0]
    sync.reset({1: None})
    assert sync.ready_obs_id == [0, 1]
    assert np.array_equal(sync.ready_obs.stacked[0], kept)
    assert np.abs(sync.ready_obs.stacked[1]).max() <= 0.05


@pytest.mark.parametrize(
    ("event", "fault"), [("raise", "raised"), ("nan", "nan"), ("shape", "shape")]
)
@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_a_failure_drops_all_episodes(event: str, fault: str, retry_type: str) -> None:
    manager = counting(events={2: event}, lengths=(5, 5), max_retry=2, retry_type=retry_type)
    step_all(manager)
    step = step_all(manager)
    assert step.abnormal.all() and not step.done.any()
    assert step.obs[:, 1].tolist() == [1, 1]  # what they showed before
    assert all("error" in info for info in step.info)
    assert dict(manager.faults) == {fault: 1, "lost": 1}
    assert manager.ready_obs.stacked[:, 1].tolist() == [0, 0]
    assert not step_all(manager).abnormal.any()


def test_too_many_failures_in_a_row_end_the_run() -> None:
    manager = counting(events={2: "raise", 3: "raise"}, lengths=(9, 9), max_retry=2)
    step_all(manager)
    step_all(manager)
    with pytest.raises(EnvError, match=r"ZeroDivisionError\('boom'\).*test_gym_vector.py"):
        step_all(manager)
    assert set(manager.env_state.values()) == {EnvState.ERROR}
    manager.close()
    assert manager.closed


def test_a_step_that_hangs_is_cut() -> None:
    manager = counting(events={1: "sleep"}, max_retry=2, step_timeout=0.05)
    assert step_all(manager).abnormal.all()
    assert manager.faults["timeout"] == 1
    with pytest.raises(TimeoutError, match="step of the vector env took longer"):
        step_all(counting(events={1: "sleep"}, step_timeout=0.05))


def test_what_an_env_calls_abnormal_is_abnormal() -> None:
    manager = counting(events={1: "told"})
    step = step_all(manager)
    assert step.abnormal.tolist() == [True, False]
    assert [set(info) for info in step.info] == [{"count", "abnormal"}, {"count"}]
    assert not step_all(manager).abnormal.any()


def test_a_dead_process_of_an_async_vector_env_is_replaced() -> None:
    cfg: dict[str, Any] = {"vectorization_mode": "async", "max_retry": 2}
    with launched(GymVectorEnvManager, 2, "CartPole-v1", **cfg) as manager:
        step_all(manager)
        process = manager._simulators.vector.processes[1]
        process.kill()
        process.join(5)
        assert step_all(manager).abnormal.all()
        assert not step_all(manager).abnormal.any()
        assert manager.faults == {"raised": 1, "lost": 1}


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_resume_is_exact(mode: str) -> None:
    manager = launched(GymVectorEnvManager, 3, "CartPole-v1", vectorization_mode=mode)
    played(manager, 25)
    state = manager.state_dict()
    going_on = played(manager, 40)
    other = launched(GymVectorEnvManager, 3, "CartPole-v1", 99, vectorization_mode=mode)
    other.load_state_dict(state)
    assert same(played(other, 40), going_on)
    assert {i: int(a) for i, a in other.random_action().items()} == {
        i: int(a) for i, a in manager.random_action().items()
    }


def test_resume_of_what_cannot_be_saved_begins_anew() -> None:
    with launched(GymVectorEnvManager, 2, "CartPole-v1", vectorization_mode="async") as manager:
        played(manager, 3)
        first = manager.ready_obs.stacked
        state = manager.state_dict()
        assert state["envs"] is None
        manager.load_state_dict(state)
        assert manager.ready_obs_id == [0, 1]
        assert not np.array_equal(manager.ready_obs.stacked, first)
    with pytest.raises(ValueError, match="state is of 2 envs, here are 3"):
        manager_of(3, {"env_id": "CartPole-v1"}).load_state_dict(state)


def test_clipped_rewards_and_whole_returns() -> None:
    kwargs = {"mode": "NextStep", "lengths": [2, 2]}
    env = {"env_id": "Counting-v0", "env_kwargs": kwargs, "rew_clip": True}
    manager = manager_of(2, env)
    manager.launch()
    step_all(manager)
    step = step_all(manager)
    assert step.reward.tolist() == [1, 1]
    assert step.info[0]["eval_episode_return"] == 4


class OwnStep(DingEnvWrapper):
    def step(self, action: Any) -> Any:
        return super().step(action)


@pytest.mark.parametrize(
    ("env", "cfg", "message"),
    [
        ({"env_wrapper": ["flat_obs"]}, {}, r"cannot do env.env_wrapper = \['flat_obs'\]"),
        ({"replay_path": "videos"}, {}, "cannot do env.replay_path = 'videos'"),
        ({"env_id": "CartPol-v1"}, {}, "unknown env_id 'CartPol-v1'; did you mean 'CartPole-v1'"),
        ({"env_kwargs": {"tail": 1}}, {}, r"cannot make 2 envs 'CartPole-v1' with {'tail': 1}"),
        ({}, {"vectorization_mode": "synch"}, "= 'synch'; did you mean 'sync'"),
        (
            {"env_id": "Pendulum-v1"},
            {"vectorization_mode": "vector_entry_point"},
            "doesn't have a vector entry point",
        ),
    ],
)
def test_what_cannot_be_done_is_named(env: Any, cfg: Any, message: str) -> None:
    with pytest.raises(DingError, match=message):
        manager_of(2, {"env_id": "CartPole-v1"} | env, **cfg).launch()


def test_envs_that_a_vector_env_cannot_replace() -> None:
    with pytest.raises(DingError, match=r"by env\.env_id and cannot run CountingEnv; use env\.man"):
        GymVectorEnvManager([CountingEnv])
    with pytest.raises(DingError, match=r"would never call OwnStep\.step"):
        GymVectorEnvManager([partial(OwnStep, cfg={"env_id": "CartPole-v1"})])
    with pytest.raises(DingError, match="here is another env or factory"):
        GymVectorEnvManager([lambda: DingEnvWrapper(lambda: gym.make("CartPole-v1"))])
    cfgs: list[dict[str, Any]] = [
        {"env_id": "CartPole-v1"},
        {"env_id": "CartPole-v1", "act_scale": False},
    ]
    with pytest.raises(DingError, match=r"env\.act_scale is True for env 0 and False for env 1"):
        GymVectorEnvManager([partial(DingEnvWrapper, cfg=cfg) for cfg in cfgs])


def test_single_envs_stay_out_of_reach() -> None:
    manager = counting()
    with pytest.raises(DingError, match="cannot save replays"):
        manager.enable_save_replay("videos")
    with pytest.raises(DingError, match=r"pass reset arguments to single envs \(0: {'a': 1}\)"):
        manager.reset({0: {"a": 1}})
    with pytest.raises(ValueError, match="unknown env id 5"):
        manager.step({5: 0})
    sync = launched(GymVectorEnvManager, 2, "CartPole-v1", vectorization_mode="sync")
    assert sync.gravity == [9.8, 9.8]
    sync.close()
    sync.close()
    with pytest.raises(RuntimeError, match="not launched"):
        _ = sync.ready_obs


def test_a_vector_env_must_say_when_it_resets() -> None:
    with pytest.raises(ValueError, match="is not a valid AutoresetMode"):
        counting(mode=type("Mode", (), {"value": "never"}))  # type: ignore[arg-type]


def test_default_config_has_the_usual_keys() -> None:
    cfg = GymVectorEnvManager.default_config()
    assert cfg.vectorization_mode == "auto"
    assert cfg.max_retry == 1
    with pytest.raises(ConfigError):
        manager_of(1, {"env_id": "CartPole-v1"}, vectorization_mode="")
