"""What is remembered of an episode, how it is saved, and that it can be read by nobody's code."""

from __future__ import annotations

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import BaseEnvManager
from ding.envs.manager.flight.file import Flight, FlightError, describe_env, load_flight
from ding.envs.manager.flight.recorder import FlightRecorder
from ding.envs.manager.flight.replay import env_maker, replay_flight
from ding.utils.batch import ByEnv, length, tree_map
from ding.utils.plain import NotPlainError, from_plain, to_plain
from dizoo.classic_control.cartpole.envs.cartpole_env import CartPoleEnv
from envs.counting import CountingEnv

ALL = np.arange(3)


def recorder(count: int = 3, **kwargs: Any) -> FlightRecorder:
    made = FlightRecorder(count, **kwargs)
    for i in range(count):
        made.began(i)
    return made


def actions_of(flight: Flight) -> list[Any]:
    return [value for part in flight.actions for value in part.tolist()]


def test_every_subset_of_envs_at_its_own_pace() -> None:
    r = recorder()
    r.record(ALL, np.array([10, 20, 30]))
    r.record(np.array([2, 0]), np.array([31, 11]))
    r.began(0)
    r.record(np.array([1]), np.array([21]))
    r.record(ALL, np.array([12, 22, 32]))
    assert actions_of(r.flight(0, "e")) == [12]
    assert actions_of(r.flight(1, "e")) == [20, 21, 22]
    assert actions_of(r.flight(2, "e")) == [30, 31, 32]
    assert [r.flight(i, "e").step for i in range(3)] == [1, 3, 3]


def test_a_long_episode_beside_short_ones() -> None:
    r = recorder(2)
    for t in range(9000):
        if t % 10 == 0:
            r.began(1)
        if t == 3000:
            r.began(0)
        r.record(ALL[:2], np.array([t, -t]))
    assert actions_of(r.flight(0, "e")) == list(range(3000, 9000))
    assert actions_of(r.flight(1, "e")) == [-t for t in range(8990, 9000)]


def test_short_episodes_leave_nothing_behind() -> None:
    r = recorder(1)
    for t in range(20_000):
        if t % 10 == 0:
            r.began(0)
        r.record(ALL[:1], np.array([t]))
    assert len(r._steps) <= 512
    assert actions_of(r.flight(0, "e")) == list(range(19_990, 20_000))


def test_the_callers_arrays_may_change_afterwards() -> None:
    r = recorder()
    block = np.zeros((3, 2), dtype=np.float32)
    for t in range(3):
        block[:] = t
        r.record(ALL, block)
    assert r.flight(1, "e").actions[0].tolist() == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("as_tuple", [False, True])
def test_nested_actions(as_tuple: bool) -> None:
    r = recorder()
    for t in range(4):
        move, fire = np.full((3, 2), t, dtype=np.float32), np.array([t, t + 1, t + 2])
        r.record(ALL, (move, fire) if as_tuple else {"move": move, "fire": fire})
    (columns,) = r.flight(2, "e").actions
    parts = columns if as_tuple else (columns["move"], columns["fire"])
    assert parts[0].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert parts[1].tolist() == [2, 3, 4, 5]


def test_the_form_of_actions_may_change(tmp_path: Path) -> None:
    r = recorder(1)
    one = ALL[:1]
    r.record(one, np.array([3]))
    r.record(one, np.array([0.5], dtype=np.float32))
    r.record(one, np.array([[1, 2]], dtype=np.int8))
    r.record(one, {"a": np.array([7])})
    flight = load_flight(r.flight(0, "e").save(tmp_path))
    rows = [tree_map(lambda leaf: (leaf.dtype.str, leaf.tolist()), row) for row in flight.rows()]
    assert rows == [("<i8", [3]), ("<f4", [0.5]), ("|i1", [[1, 2]]), {"a": ("<i8", [7])}]
    assert flight.last_actions() == [3, 0.5, [1, 2], {"a": 7}]


def test_objects_are_kept_and_saved_if_they_are_plain(tmp_path: Path) -> None:
    r = recorder(1)
    column = np.empty(1, dtype=object)
    for action in ("left", {"to": [1, 2]}):
        column[0] = action
        r.record(ALL[:1], column)
    flight = load_flight(r.flight(0, "e").save(tmp_path))
    assert [row[0] for row in flight.rows()] == ["left", {"to": [1, 2]}]
    column[0] = object()
    r.record(ALL[:1], column)
    flight = load_flight(r.flight(0, "e").save(tmp_path))
    assert flight.hindrance == "an action: object is no plain data"
    assert len(flight.rows()) == 3


def test_memory_is_bounded_and_the_loss_is_told() -> None:
    r = recorder(2, most_bytes=8 * 2**20)
    for t in range(6000):
        r.record(ALL[:2], np.full((2, 256), t, dtype=np.float32))
        if t % 100 == 0:
            assert r.nbytes <= 8 * 2**20
    flight = r.flight(0, "e")
    assert flight.step == 6000
    assert 2000 < length(flight.actions[0]) < 4000
    lost = 6000 - length(flight.actions[0])
    assert flight.hindrance == f"its first {lost} actions are not known any more"
    assert flight.actions[0][:, 0].tolist() == list(range(lost, 6000))
    with pytest.raises(FlightError, match="cannot be replayed"):
        replay_flight(flight, CountingEnv)
    r.began(0)
    assert r.flight(0, "e").hindrance == ""
    assert r.flight(1, "e").step == 6000


def test_actions_of_ended_episodes_make_room_first() -> None:
    r = recorder(2, most_bytes=2**20)
    for t in range(600):
        if t % 10 == 0:
            r.began(1)
        r.record(ALL[:2], np.full((2, 256), t, dtype=np.float32))
        assert r.nbytes <= 2**20 + 4096
    assert r.flight(0, "e").hindrance == ""
    assert r.flight(0, "e").actions[0][:, 0].tolist() == list(range(600))
    assert r.flight(1, "e").actions[0][:, 0].tolist() == list(range(590, 600))


def test_seeds_of_an_episode() -> None:
    r = FlightRecorder(1)
    assert r.flight(0, "e").seed is None
    r.seeded(0, 7, False)
    r.began(0, {"level": 2})
    r.told(0, 7)
    flight = r.flight(0, "e")
    assert (flight.seed, flight.dynamic_seed, flight.resets) == (7, False, 1)
    assert (flight.episode_seed, flight.reset_kwargs) == (7, {"level": 2})
    r.began(0)
    r.told(0, np.int64(99))
    assert (r.flight(0, "e").episode_seed, r.flight(0, "e").resets) == (99, 2)
    r.began(0)
    r.told(0, 99)  # it drew no new seed: that of the last episode is not this one's
    assert (r.flight(0, "e").episode_seed, r.flight(0, "e").resets) == (None, 3)
    r.record(ALL[:1], np.array([1]))
    r.seeded(0, 8)  # says nothing of the running episode
    assert (r.flight(0, "e").seed, r.flight(0, "e").resets, r.flight(0, "e").step) == (7, 3, 1)
    r.began(0)
    r.told(0, "nonsense")
    assert (r.flight(0, "e").seed, r.flight(0, "e").step) == (8, 0)
    assert (r.flight(0, "e").episode_seed, r.flight(0, "e").resets) == (None, 1)


def test_base_env_tells_the_seed_of_its_episode() -> None:
    env = CartPoleEnv()
    assert env.episode_seed is None
    env.seed(3, dynamic_seed=False)
    first = env.reset()
    assert env.episode_seed == 3
    second = env.reset()
    assert env.episode_seed != 3
    other = CartPoleEnv()
    other.seed(env.episode_seed, dynamic_seed=False)  # type: ignore[arg-type]
    assert np.array_equal(other.reset(), second)
    assert not np.array_equal(first, second)


def full_flight() -> Flight:
    fn = partial(CartPoleEnv, cfg=EasyDict(env_id="CartPole-v0", env_kwargs={}))
    r = FlightRecorder(4, [fn] * 4, {"step_timeout": 0.5})
    r.seeded(3, 21)
    r.began(3)
    r.told(3, 5)
    for t in range(10):
        r.record(np.array([3]), np.array([t]))
    return r.flight(3, "ValueError('no')", "", "nan")


def test_file(tmp_path: Path) -> None:
    flight = full_flight()
    path = flight.save(tmp_path / "deep" / "er")
    assert path.name.startswith("env3_2")
    assert path.name.endswith("_nan.json")
    loaded = load_flight(path)
    same = {**vars(loaded), "actions": actions_of(loaded)}
    assert same == {**vars(flight), "actions": actions_of(flight)}
    assert loaded.actions[0].dtype == np.int64
    assert set(loaded.versions) == {"python", "ding", "numpy", "gymnasium"}
    assert (loaded.step_timeout, loaded.reset_timeout) == (0.5, None)
    again = [flight.save(path.parent).name for _ in range(2)]
    assert again == [f"{path.stem}-2.json", f"{path.stem}-3.json"]
    assert len(list(path.parent.iterdir())) == 3


def test_summary_says_it_all(tmp_path: Path) -> None:
    path = tmp_path / "a b.json"
    assert full_flight().summary(path) == (
        "Env 3 step failed: ValueError('no') (seed 21, episode step 10, last actions "
        f"[2, 3, 4, 5, 6, 7, 8, 9]); saved as {path}, to replay it: ding -m replay '{path}'"
    )
    r = FlightRecorder(1, [CountingEnv])
    r.began(0)
    r.record(ALL[:1], np.zeros((1, 8, 8), dtype=np.float32))
    assert "last actions ['<float32 8x8>']" in r.flight(0, "e").summary()
    assert r.flight(0, "e").summary(Path("x.json")).endswith("ding -m replay x.json --trust")
    r = FlightRecorder(1, [lambda: CountingEnv()])
    assert "ding.envs.replay_flight('x.json', env_fn)" in r.flight(0, "e").summary(Path("x.json"))


def damages(text: str) -> dict[str, str]:
    body = json.loads(text)
    return {
        "half of it": text[: len(text) // 2],
        "nothing": "",
        "a number": "3",
        "another format": text.replace("ding flight 1", "ding flight 0"),
        "another seed": text.replace('"seed": 21', '"seed": 22'),
        "another action": text.replace(body["actions"][0]["__array__"][:4], "AQAA", 1),
        "fewer fields": json.dumps({k: v for k, v in body.items() if k != "resets"}),
        "no text at all": "\udcff\udcfe",
    }


@pytest.mark.parametrize("damage", range(8))
def test_damaged_files_are_refused(damage: int, tmp_path: Path) -> None:
    path = full_flight().save(tmp_path)
    damaged = list(damages(path.read_text()).values())[damage]
    path.write_bytes(damaged.encode("utf-8", "surrogateescape"))
    with pytest.raises(FlightError, match=str(path)):
        load_flight(path)


def test_missing_file() -> None:
    with pytest.raises(FlightError, match="no flight file at 'nowhere"):
        load_flight("nowhere.json")


def local_env() -> Any:
    class LocalEnv(CountingEnv):
        pass

    return LocalEnv


@pytest.mark.parametrize(
    "fn",
    [
        lambda: CountingEnv(),
        local_env(),
        partial(CountingEnv, tag=object()),  # type: ignore[arg-type]
        partial(CountingEnv, events={(0, 1): lambda: None}),  # type: ignore[dict-item]
    ],
)
def test_envs_that_cannot_be_described(fn: Any) -> None:
    assert describe_env(fn) is None


def test_env_description_makes_the_same_env() -> None:
    cfg = EasyDict(env_id="CartPole-v1", env_wrapper=[CartPoleEnv], nested={"a": (1, 2)})
    env = describe_env(partial(dict, cfg=cfg))
    assert env is not None
    flight = Flight(**{**vars(full_flight()), "env": json.loads(json.dumps(env))})
    made = env_maker(flight, trust=True)()
    assert made == {"cfg": cfg}
    assert made["cfg"].nested.a == (1, 2)
    assert made["cfg"].env_wrapper == [CartPoleEnv]


@pytest.mark.parametrize(
    ("call", "kwargs", "told"),
    [
        ("os:system", {"command": "true"}, "'os:system', which is not part of ding"),
        ("dingo.evil:Env", {}, "not part of ding"),
        ("ding.utils.checkpoint:load_checkpoint", {"path": "x"}, "is no env class"),
        ("ding.envs:DingEnvWrapper", {"env": {"__name__": "os:abort"}}, "'os:abort'"),
        ("ding.envs:DingEnvWrapper", {"cfg": {"env_id": "evil:Env-v0"}}, "imports a module"),
        (
            "ding.envs:DingEnvWrapper",
            {"cfg": {"__items__": [["env_id", "evil:Env-v0"], [1, 2]]}},
            "imports a module",
        ),
        ("ding.envs:DingEnvWrapper", {"cfg": {"replay_path": "/"}}, "writes files"),
        ("ding.envs:NoSuchEnv", {}, "cannot import 'ding.envs:NoSuchEnv'"),
    ],
)
def test_a_file_cannot_run_code_of_its_choice(call: str, kwargs: Any, told: str) -> None:
    env = {"call": call, "args": [], "kwargs": kwargs}
    with pytest.raises(FlightError, match=told):
        env_maker(Flight(**{**vars(full_flight()), "env": env}))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "x"], "b": (1, (2,))},
        {1: "int key", (2, 3): "tuple key"},
        {"__tuple__": "a key like a tag"},
        EasyDict(a=EasyDict(b=1), c=[{"d": 2}]),
        (),
        {},
    ],
)
def test_plain_values_come_back(value: Any) -> None:
    back = from_plain(json.loads(json.dumps(to_plain(value))))
    assert back == value
    assert type(back) is type(value)


def test_plain_arrays_come_back_bit_by_bit() -> None:
    for array in (
        np.array([0.1, np.nan, -np.inf], dtype=np.float32),
        np.zeros((0, 3), dtype=np.uint8),
        np.array(5, dtype=np.int16),
    ):
        back = from_plain(json.loads(json.dumps(to_plain(array))))
        assert back.tobytes() == array.tobytes()
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
    with pytest.raises(NotPlainError, match="bytes"):
        from_plain({"__array__": "AAAA", "dtype": "<i8", "shape": [1]})
    with pytest.raises(NotPlainError, match="object"):
        from_plain({"__array__": "AAAAAAAAAAA=", "dtype": "|O", "shape": [1]})


def managed(events: dict[tuple[int, int], str], **cfg: Any) -> BaseEnvManager:
    fns = [partial(CountingEnv, 9), partial(CountingEnv, 9, events)]
    manager = BaseEnvManager(fns, {"retry_waiting_time": 0, **cfg})
    manager.seed(20)
    manager.launch()
    return manager


@pytest.mark.parametrize(
    ("event", "kind"),
    [("raise", "raised"), ("nan obs", "nan"), ("nan reward", "nan"), ("shape", "shape")],
)
def test_manager_saves_what_replays(event: str, kind: str) -> None:
    manager = managed({(0, 4): event})
    with pytest.raises(RuntimeError, match="Env 1 step failed") as caught:
        for t in range(9):
            manager.step({0: 0, 1: t % 4})
    assert manager.faults == {kind: 1}
    (path,) = Path("flight").glob(f"env1_*_{kind}.json")
    assert f"saved as {path}, to replay it: ding -m replay {path} --trust" in str(caught.value)
    found = replay_flight(path, trust=True)
    assert found.same
    assert [step.action for step in found.steps] == [None, 0, 1, 2]
    assert [step.reward for step in found.steps] == [None, 1, 2, 3]
    assert found.flight.episode_seed == manager._envs[1].episode_seed
    well = replay_flight(path, partial(CountingEnv, 9))
    assert well.failure is None
    assert not well.same


def test_manager_shows_the_envs_own_traceback() -> None:
    manager = managed({(0, 1): "raise"}, flight_dir=None)
    with pytest.raises(RuntimeError) as caught:
        manager.step({1: 0})
    text = str(caught.value)
    assert 'raise ZeroDivisionError("boom")' in text
    assert "envs/manager/" not in text
    assert not Path("flight").exists()


def test_failed_resets_are_saved_too(caplog: pytest.LogCaptureFixture) -> None:
    manager = managed({(0, 0): "raise"}, max_retry=2)
    assert manager.faults == {"reset": 1}
    assert "Trying again: Env 1 reset failed: ZeroDivisionError('boom')" in caplog.text
    (path,) = Path("flight").iterdir()
    found = replay_flight(path, trust=True)
    assert found.same
    assert found.failure is not None
    assert found.failure.step == 0


def test_steps_of_a_resumed_manager_are_known() -> None:
    events = {(1, 3): "raise"}
    manager = managed(events)
    for t in range(10):
        manager.step({0: 0, 1: t % 4})
    state = manager.state_dict()
    resumed = managed(events)
    resumed.load_state_dict(state)
    resumed.step({0: 3, 1: 2})
    with pytest.raises(RuntimeError, match=r"episode step 3, last actions \[1, 2, 3\]"):
        resumed.step({0: 0, 1: 3})
    flight = load_flight(next(Path("flight").iterdir()))
    assert (flight.seed, flight.resets) == (21, 2)
    assert flight.episode_seed == resumed._envs[1].episode_seed


def test_no_more_than_twenty_files(caplog: pytest.LogCaptureFixture) -> None:
    events = {(episode, 1): "raise" for episode in range(25)}
    manager = managed(events, max_retry=30)
    with caplog.at_level(logging.WARNING):
        for _ in range(25):
            manager.step({1: 0})
    assert len(list(Path("flight").iterdir())) == 20
    assert caplog.text.count("20 flights are saved in flight") == 1
    assert manager.faults == {"raised": 25}


def test_an_unwritable_directory_does_not_hide_the_error(caplog: pytest.LogCaptureFixture) -> None:
    Path("flight").write_text("a file is in the way")
    manager = managed({(0, 1): "raise"})
    with pytest.raises(RuntimeError, match="Env 1 step failed"):
        manager.step({1: 0})
    assert "cannot save the flight of env 1" in caplog.text


@pytest.mark.parametrize(
    ("given", "expected"), [("flight", "run/flight"), ("/abs", "/abs"), (None, "None")]
)
def test_flights_of_a_run(given: Any, expected: str) -> None:
    manager = BaseEnvManager([CountingEnv], {"flight_dir": given})
    manager.flights_under("run")
    assert str(manager._flights.directory) == expected


def test_stacked_actions_are_recorded_as_they_come() -> None:
    manager = managed({(0, 3): "raise"}, flight_dir=None)
    for t in range(2):
        manager.step(ByEnv(np.array([1]), np.array([t])))
    with pytest.raises(RuntimeError, match=r"last actions \[0, 1, 2\]"):
        manager.step(ByEnv(np.array([0, 1]), np.array([3, 2])))
