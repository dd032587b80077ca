from __future__ import annotations

import logging
import pickle
import threading
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import (
    BaseEnvManager,
    BaseEnvTimestep,
    DingEnvWrapper,
    EnvState,
    StepByEnv,
    create_env_manager,
    get_env_manager_cls,
)
from ding.utils.batch import ByEnv
from ding.utils.errors import DingError, EnvError

from ..counting import CountingEnv

Events = dict[tuple[int, int], str]


def launched(count: int = 2, *, events: Events | None = None, **cfg: Any) -> BaseEnvManager:
    """Env 0 has the events; all episodes are 3 steps long."""
    fns = [lambda i=i: CountingEnv(events=events if i == 0 else None) for i in range(count)]
    manager = BaseEnvManager(fns, {"retry_waiting_time": 0, **cfg})
    manager.launch()
    return manager


def step_all(manager: BaseEnvManager) -> StepByEnv:
    ready = manager.ready_obs
    return manager.step(ByEnv(ready.ids, np.ones(len(ready.ids), dtype=np.int64)))


def steps_of(manager: BaseEnvManager) -> list[float]:
    return [float(obs[1]) for obs in manager.ready_obs.values()]


def failures_in_a_row(manager: BaseEnvManager) -> list[int]:
    return [slot.failures for slot in manager._slots]


def test_rows_and_columns_of_a_step() -> None:
    manager = launched()
    assert manager.ready_obs.stacked.shape == (2, 2)
    by_env = manager.step({0: np.array(1), 1: np.array(2)})
    step = by_env.stacked
    assert step.obs.dtype == step.reward.dtype == np.float32
    assert step.reward.tolist() == [1, 1]
    assert step.env_id.tolist() == [0, 1]
    assert step.info == [{}, {}]
    for flags in (step.done, step.truncated, step.abnormal):
        assert flags.dtype == bool
        assert not flags.any()
    assert isinstance(by_env, dict)
    assert isinstance(by_env[1], BaseEnvTimestep)
    assert by_env[1].obs.tolist() == [0, 1]
    assert [int(a) for env in manager._envs for a in env.actions] == [1, 2]


def test_last_observation_and_the_next_first_one() -> None:
    manager = launched()
    for _ in range(2):
        step_all(manager)
    before = manager.ready_obs.stacked
    kept = before.copy()
    step = step_all(manager).stacked
    assert step.done.all()
    assert not step.truncated.any()
    assert step.obs[:, 1].tolist() == [3, 3]
    assert steps_of(manager) == [0, 0]
    assert [info["eval_episode_return"] for info in step.info] == [6.0, 6.0]
    assert np.array_equal(before, kept)


def test_truncation_is_reported() -> None:
    manager = launched(events={(0, 2): "truncate"})
    step_all(manager)
    step = step_all(manager).stacked
    assert step.done.tolist() == step.truncated.tolist() == [True, False]
    assert steps_of(manager) == [0, 2]


def test_some_envs_may_step_alone() -> None:
    manager = launched(3)
    step = manager.step({2: 1, 0: 1})
    assert step.stacked.env_id.tolist() == [2, 0]
    assert steps_of(manager) == [1, 0, 1]
    manager.step(ByEnv(np.array([1]), np.array([1])))
    assert steps_of(manager) == [1, 1, 1]


def test_episode_num() -> None:
    manager = launched(episode_num=2)
    for _ in range(3):
        step_all(manager)
    for _ in range(2):
        manager.step({0: 1})
    manager.step({0: 1})
    assert manager.env_state_done(0)
    assert not manager.env_state_done(1)
    assert manager.ready_obs_id == [1]
    assert manager.active_env == [1]
    assert list(manager.ready_obs) == [1]
    for _ in range(3):
        step_all(manager)
    assert manager.done
    assert len(manager.ready_obs) == 0
    manager.reset({1: None})
    assert manager.ready_obs_id == [1]
    manager.reset()
    assert [slot.episodes for slot in manager._slots] == [0, 0]


def test_without_auto_reset() -> None:
    manager = launched(1, auto_reset=False)
    for _ in range(3):
        step_all(manager)
    assert manager.env_state == {0: EnvState.NEED_RESET}
    with pytest.raises(RuntimeError, match="env 0 cannot step: it is NEED_RESET"):
        manager.step({0: 1})
    manager.reset({0: {}})
    assert steps_of(manager) == [0]


def test_reset_arguments_are_remembered() -> None:
    manager = launched()
    manager.reset({1: {"level": 3}})
    assert manager.kwargs == [{}, {"level": 3}]
    for _ in range(3):
        step_all(manager)
    assert manager.kwargs == [{}, {"level": 3}]
    manager.close()
    manager.launch({0: {"level": 5}})
    assert manager.kwargs == [{"level": 5}, {}]


def episode_seeds(manager: BaseEnvManager) -> list[float]:
    return [float(x) for x in manager.ready_obs.stacked[:, 0]]


def test_static_seeds_repeat_with_every_full_reset() -> None:
    manager = launched()
    manager.seed(10, dynamic_seed=False)
    manager.reset()
    assert episode_seeds(manager) == [10, 11]
    for _ in range(3):
        step_all(manager)
    second = episode_seeds(manager)
    assert second != [10, 11]
    manager.reset()
    assert episode_seeds(manager) == [10, 11]
    for _ in range(3):
        step_all(manager)
    assert episode_seeds(manager) == second
    manager.reset({0: None})
    assert episode_seeds(manager)[0] not in (10, second[0])


def test_dynamic_seeds_go_on() -> None:
    manager = launched()
    manager.seed({1: 7})
    manager.reset()
    first = episode_seeds(manager)
    assert first[0] == 0
    manager.reset()
    assert episode_seeds(manager)[1] != first[1]
    manager.seed([3, 7])
    manager.reset()
    assert episode_seeds(manager)[1] == first[1]


def test_seed_before_launch_makes_runs_equal() -> None:
    def run() -> list[Any]:
        manager = BaseEnvManager([lambda: CountingEnv()] * 2)
        manager.seed(4)
        manager.launch()
        return [
            manager.ready_obs.stacked.tolist(),
            [int(manager.random_action()[i]) for i in (0, 1)],
        ]

    assert run() == run()


@pytest.mark.parametrize(
    ("seed", "error"),
    [("x", TypeError), ([1], ValueError), ({9: 1}, ValueError), (None, TypeError)],
)
def test_wrong_seeds(seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"seed|env id 9"):
        launched().seed(seed)


def test_wrong_use_changes_nothing() -> None:
    manager = BaseEnvManager([lambda: CountingEnv()] * 2)
    with pytest.raises(RuntimeError, match=r"not launched: call launch\(\) first"):
        manager.step({0: 1})
    with pytest.raises(RuntimeError, match="not launched"):
        _ = manager.ready_obs
    with pytest.raises(RuntimeError, match="not launched"):
        manager.reset()
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


def test_wrong_construction() -> None:
    with pytest.raises(ValueError, match="list of callables"):
        BaseEnvManager([])
    with pytest.raises(ValueError, match="list of callables"):
        BaseEnvManager([CountingEnv()])  # type: ignore[list-item]
    with pytest.raises(AssertionError, match="'reset' or 'renew', not 'again'"):
        launched(retry_type="again")


def test_step_failure_says_what_happened() -> None:
    manager = BaseEnvManager([lambda: CountingEnv(), lambda: CountingEnv(5, {(0, 4): "raise"})])
    manager.seed(20)
    manager.launch()
    for action in (1, 2, 3):
        manager.step({0: 0, 1: action})
    with pytest.raises(RuntimeError, match="Env 1 step failed") as caught:
        manager.step({0: 0, 1: 0})
    assert isinstance(caught.value, EnvError)
    told, _, place = str(caught.value).partition("; raised in ")
    assert told == (
        "Env 1 step failed: ZeroDivisionError('boom') "
        "(seed 21, episode step 4, last actions [1, 2, 3, 0])"
    )
    assert __file__.rpartition("/")[0].rpartition("/")[0] in place
    assert "counting.py:" in place
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert manager.env_state == {0: EnvState.RUN, 1: EnvState.ERROR}
    assert steps_of(manager) == [1]
    with pytest.raises(RuntimeError, match="it is ERROR"):
        manager.step({1: 0})
    manager.reset({1: None})
    assert manager.ready_obs_id == [0, 1]


def test_only_actions_of_the_episode_are_shown() -> None:
    manager = launched(1, events={(1, 2): "raise"})
    for _ in range(4):
        step_all(manager)
    with pytest.raises(RuntimeError, match=r"episode step 2, last actions \[1, 1\]\)"):
        step_all(manager)


@pytest.mark.parametrize("event", ["raise", "nan obs", "nan reward", "shape", "dtype"])
def test_tolerated_failure_drops_the_episode(event: str, caplog: pytest.LogCaptureFixture) -> None:
    manager = launched(events={(0, 2): event}, max_retry=2)
    step_all(manager)
    with caplog.at_level(logging.WARNING):
        by_env = step_all(manager)
    step = by_env.stacked
    assert step.abnormal.tolist() == [True, False]
    assert step.done.tolist() == [False, False]
    assert step.reward.tolist() == [0, 2]
    assert step.info[0]["abnormal"] is True
    assert "Error" in step.info[0]["error"]
    assert np.isfinite(step.obs).all()
    assert "Env 0 step failed" in caplog.text
    assert steps_of(manager) == [0, 2]
    assert failures_in_a_row(manager) == [1, 0]
    step_all(manager)
    assert failures_in_a_row(manager) == [0, 0]


def test_failures_in_a_row_are_too_many() -> None:
    manager = launched(1, events={(0, 1): "raise", (1, 1): "raise"}, max_retry=2)
    assert step_all(manager).stacked.abnormal.all()
    with pytest.raises(RuntimeError, match="Env 0 step failed"):
        step_all(manager)


def test_renew_makes_a_new_env_with_another_seed() -> None:
    manager = BaseEnvManager(
        [lambda: CountingEnv(events={(0, 1): "raise"})], {"max_retry": 9, "retry_type": "renew"}
    )
    manager.seed(5, dynamic_seed=False)
    manager.launch()
    old = manager._envs[0]
    assert episode_seeds(manager) == [5]
    step_all(manager)
    assert manager._envs[0] is not old
    assert old.closed == 1
    assert episode_seeds(manager) != [5]
    manager.reset()
    assert episode_seeds(manager) == [5]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ("nan obs", "Env 0 step failed: .*obs is NaN.*max_retry>1.*episode step 1"),
        ("nan reward", "reward is NaN"),
        ("shape", r"obs has shape \(3,\) .* declares \(2,\)"),
        ("dtype", "dtype complex128, but .* float32"),
    ],
)
def test_unusable_steps(event: str, text: str) -> None:
    manager = launched(events={(0, 1): event})
    with pytest.raises(RuntimeError, match=text):
        step_all(manager)
    assert manager.env_state[0] == EnvState.ERROR


def test_infinite_observations_are_allowed() -> None:
    step = step_all(launched(events={(0, 1): "inf obs"})).stacked
    assert step.obs[0].tolist() == [np.inf, -np.inf]
    assert not step.abnormal.any()


def test_abnormal_step_of_the_env_itself() -> None:
    manager = launched(1, events={(0, 3): "abnormal"}, episode_num=1)
    for _ in range(2):
        step_all(manager)
    step = step_all(manager).stacked
    assert step.abnormal.all()
    assert step.obs[0, 1] == 3
    assert not manager.done
    manager.reset({0: None})
    assert steps_of(manager) == [0]


@pytest.mark.parametrize("retry_type", ["reset", "renew"])
def test_reset_failure(retry_type: str) -> None:
    made: list[CountingEnv] = []

    def make() -> CountingEnv:
        made.append(CountingEnv(events={(0, 0): "raise", (1, 0): "raise"}))
        return made[-1]

    manager = BaseEnvManager(
        [make], {"max_retry": 2, "retry_type": retry_type, "retry_waiting_time": 0}
    )
    with pytest.raises(RuntimeError) as caught:
        manager.launch()
    assert str(caught.value).partition("; raised in ")[0] == (
        "Env 0 reset has exceeded max retries(2), "
        "and the latest exception is: ZeroDivisionError('boom')"
    )
    assert manager.closed
    assert len(made) == (1 if retry_type == "reset" else 2)
    assert all(env.closed for env in made)


def test_reset_is_tried_again() -> None:
    manager = launched(1, events={(0, 0): "raise", (1, 0): "nan obs"}, max_retry=3)
    assert manager.episode == [2]


def test_timeouts() -> None:
    manager = launched(events={(0, 1): "sleep"}, step_timeout=0.02)
    with pytest.raises(TimeoutError, match=r"step of env 0 took longer than 0\.02 seconds"):
        step_all(manager)
    with pytest.raises(RuntimeError, match=r"reset of env 0 took longer than 0\.02 seconds"):
        launched(events={(0, 0): "sleep"}, reset_timeout=0.02)


def test_timeouts_need_the_main_thread() -> None:
    errors: list[Exception] = []

    def launch() -> None:
        try:
            launched(step_timeout=1)
        except DingError as error:
            errors.append(error)

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    assert "main thread" in str(errors[0])


def test_env_attributes_as_lists() -> None:
    manager = launched()
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


def test_spaces_before_launch_cost_no_further_env() -> None:
    made: list[int] = []

    def make() -> CountingEnv:
        made.append(1)
        return CountingEnv()

    manager = BaseEnvManager([make, make])
    assert made == []
    assert manager.observation_space.shape == (2,)
    assert manager.action_space.n == 4
    assert manager.reward_space.shape == (1,)
    assert len(made) == 1
    manager.launch()
    assert len(made) == 2
    manager.close()
    manager.launch()
    assert len(made) == 4


def test_spaces_that_appear_with_the_first_reset() -> None:
    class Late(CountingEnv):
        _observation_space = None

        def reset(self, **kwargs: Any) -> np.ndarray:
            self._observation_space = gym.spaces.Box(-9, 9, (2,), dtype=np.float32)
            return super().reset(**kwargs)

    manager = BaseEnvManager([Late])
    assert manager.observation_space.shape == (2,)
    manager.launch()
    assert step_all(manager).stacked.obs.dtype == np.float32


def test_vector_rewards() -> None:
    class Pair(CountingEnv):
        _reward_space = gym.spaces.Box(-9, 9, (2,), dtype=np.float32)

        def step(self, action: Any) -> BaseEnvTimestep:
            step = super().step(action)
            return step._replace(reward=np.full(2, step.reward), done=np.array([step.done]))

    fns = [lambda: Pair(events={(0, 1): "raise"}), Pair]
    manager = BaseEnvManager(fns, {"max_retry": 2})
    manager.launch()
    step = step_all(manager).stacked
    assert step.reward.tolist() == [[0, 0], [1, 1]]
    assert step.done.shape == (2,)


def test_failure_beside_rewards_in_arrays() -> None:
    class Boxed(CountingEnv):
        def step(self, action: Any) -> BaseEnvTimestep:
            step = super().step(action)
            return step._replace(reward=np.array([step.reward]))

    fns = [lambda: Boxed(events={(0, 1): "nan reward"}), Boxed]
    manager = BaseEnvManager(fns, {"max_retry": 2})
    manager.launch()
    step = step_all(manager).stacked
    assert step.reward.tolist() == [0, 1]
    assert step.abnormal.tolist() == [True, False]


def test_rewards_that_do_not_fit_each_other() -> None:
    class Wide(CountingEnv):
        def step(self, action: Any) -> BaseEnvTimestep:
            return super().step(action)._replace(reward=np.zeros(3))

    manager = BaseEnvManager([Wide, CountingEnv])
    manager.launch()
    with pytest.raises(ValueError, match="are no numbers or arrays of one shape"):
        step_all(manager)


def test_calls_for_one_env() -> None:
    class Shaping(CountingEnv):
        def enable_save_figure(self, path: str) -> None:
            self.tag = path

        def reward_shaping(self, transitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{**t, "reward": t["reward"] + 1} for t in transitions]

    manager = BaseEnvManager([Shaping, Shaping])
    manager.launch()
    manager.enable_save_figure(1, "here")
    assert manager.tag == ["t", "here"]
    assert manager.reward_shaping(0, [{"reward": 1}]) == [{"reward": 2}]
    with pytest.raises(ValueError, match="unknown env id 2"):
        manager.enable_save_figure(2, "there")


def test_renewed_envs_record_too() -> None:
    class Recording(CountingEnv):
        def enable_save_replay(self, replay_path: str) -> None:
            self.tag = replay_path

    cfg = {"max_retry": 2, "retry_type": "renew"}
    manager = BaseEnvManager([lambda: Recording(events={(0, 1): "raise"})], cfg)
    manager.launch()
    manager.enable_save_replay(["videos"])
    step_all(manager)
    assert manager.tag == ["videos"]


def test_every_env_is_closed_even_if_one_fails_to() -> None:
    class Sticky(CountingEnv):
        def close(self) -> None:
            super().close()
            raise OSError("stuck")

    manager = BaseEnvManager([Sticky, CountingEnv, Sticky])
    manager.launch()
    envs = manager._envs
    with pytest.raises(OSError, match="stuck"):
        manager.close()
    assert [env.closed for env in envs] == [1, 1, 1]
    assert manager.closed


def test_envs_made_before_a_failure_are_closed() -> None:
    made: list[CountingEnv] = []

    def fail() -> CountingEnv:
        raise OSError("no display")

    manager = BaseEnvManager([lambda: made.append(CountingEnv()) or made[0], fail])
    with pytest.raises(OSError, match="no display"):
        manager.launch()
    assert made[0].closed == 1
    assert manager.closed


def cartpoles() -> BaseEnvManager:
    return BaseEnvManager([lambda: DingEnvWrapper(cfg={"env_id": "CartPole-v1"})] * 3)


def trace(manager: BaseEnvManager, steps: int) -> list[Any]:
    seen = []
    for _ in range(steps):
        step = manager.step(manager.random_action()).stacked
        seen.append((step.obs.tolist(), step.done.tolist(), manager.ready_obs.stacked.tolist()))
    return seen


def test_state_continues_bit_exactly() -> None:
    manager = cartpoles()
    manager.seed(1)
    manager.launch()
    trace(manager, 37)
    state = pickle.loads(pickle.dumps(manager.state_dict()))
    expected = trace(manager, 60)
    other = cartpoles()
    other.load_state_dict(state)
    assert trace(other, 60) == expected
    manager.load_state_dict(state)
    assert trace(manager, 60) == expected
    with pytest.raises(ValueError, match="state is of 3 envs, here are 1"):
        launched(1).load_state_dict(state)


def test_unpicklable_envs_begin_new_episodes(caplog: pytest.LogCaptureFixture) -> None:
    class Held(CountingEnv):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    manager = BaseEnvManager([Held] * 2, {"episode_num": 2})
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
    other = BaseEnvManager([Held] * 2, {"episode_num": 2})
    other.load_state_dict(state)
    assert steps_of(other) == [0, 0]
    assert episode_seeds(other) != first
    for _ in range(3):
        step_all(other)
    assert other.done


def test_factories() -> None:
    assert get_env_manager_cls({}) is BaseEnvManager
    manager = create_env_manager({"type": "base", "max_retry": 0}, [CountingEnv])
    assert manager.env_num == 1
    assert manager._failures.max_retry == 1
    with pytest.raises(DingError, match="unknown env_manager 'bas'; did you mean 'base'"):
        get_env_manager_cls({"type": "bas"})
    assert BaseEnvManager.default_config().cfg_type == "BaseEnvManagerDict"
    assert "step" in BaseEnvManager.method_name_list
