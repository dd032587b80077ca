"""Whole runs with every service in a thread: what they learn, survive, save and refuse."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ding.entry.parallel import ParallelRun, parallel_pipeline
from ding.entry.parallel_config import translated
from ding.entry.serial import train
from ding.parallel.backend import Call, ThreadBackend
from ding.parallel.checkpointing import MANIFEST, load_manifest
from ding.parallel.coordinator import spread_epsilon
from ding.parallel.services import CollectorService
from ding.pipeline.run import Run
from ding.utils.errors import CheckpointError, ConfigError, DingError
from ding.utils.limits import Limits
from entry.configs import pair


class KillingBackend(ThreadBackend):
    """Kills the service that gets a certain call, as it gets it."""

    def __init__(self, method: str, times: tuple[int, ...]) -> None:
        super().__init__()
        self._method, self._times = method, times
        self._seen: Counter[str] = Counter()
        self.killed = 0

    def call(self, service: Any, method: str, *args: Any) -> Call:
        call = super().call(service, method, *args)
        self._seen[method] += 1
        if method == self._method and self._seen[method] in self._times:
            self.killed += 1
            self.kill(service)
        return call


def run(kind: str, backend: Any = None, **limits: int) -> tuple[dict[str, Any], list[Any]]:
    """The result, and the counters at every look at them."""
    counters: list[Any] = []
    with ParallelRun(
        pair(kind), 0, Limits(**{"env_step": 1500, **limits}), backend=backend or ThreadBackend()
    ) as parallel:
        follow = parallel._follow

        def look(coordinator: Any) -> None:
            ledger = coordinator.ledger
            counters.append((ledger.env_steps, ledger.updates, ledger.version, ledger.samples))
            follow(coordinator)

        parallel._follow = look  # type: ignore[method-assign]
        return parallel.train(), counters


def assert_balanced(result: dict[str, Any], counters: list[Any]) -> None:
    chunks = result["ledger"]["chunks"]
    assert chunks["asked"] >= chunks["stored"] + chunks["lost"] + chunks["stale"]
    assert result["env_step"] == result["ledger"]["env_steps"]
    for before, after in pairwise(counters):
        assert all(a >= b for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("kind", ["dqn", "ppo", "sac"])
def test_runs_to_its_limit(kind: str) -> None:
    result, counters = run(kind)
    assert_balanced(result, counters)
    assert result["env_step"] >= 1500
    assert result["train_iter"] > 0
    assert result["curve"][-1]["train_iter"] == result["train_iter"]
    directory = Path(result["exp_name"])
    for name in ("result.json", "curve.png", "total_config.py", f"ckpt/{MANIFEST}", "log"):
        assert (directory / name).exists(), name
    assert len(list((directory / "policy").iterdir())) == 1
    assert kind == "ppo" or len(list((directory / "data").iterdir())) == 1
    assert (directory / "ckpt" / f"iteration_{result['train_iter']}.pth.tar").is_file()


LOSSES = [
    ("dqn", "collect"),
    ("dqn", "add"),
    ("dqn", "draw"),
    ("dqn", "learn"),
    ("dqn", "evaluate"),
    ("dqn", "state"),
    ("dqn", "save"),
    ("dqn", "is_saved"),
    ("ppo", "collect"),
    ("ppo", "learn_together"),
    ("sac", "collect_random"),
]


@pytest.mark.parametrize(("kind", "method"), LOSSES)
def test_goes_on_when_a_service_dies(kind: str, method: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("ding.parallel.coordinator._STATE_SECONDS", 0.0)
    backend = KillingBackend(method, (1, 3))
    result, counters = run(kind, backend)
    assert backend.killed
    assert sum(result["ledger"]["restarts"].values()) == backend.killed
    assert_balanced(result, counters)
    assert result["env_step"] >= 1500
    chunks = result["ledger"]["chunks"]
    assert chunks["lost"] == (backend.killed if method.startswith("collect") else chunks["lost"])
    assert load_manifest(Path(result["exp_name"])).ledger["updates"] == result["train_iter"]


def test_a_service_that_hangs_is_replaced(monkeypatch: Any, capsys: Any) -> None:
    collect, hung = CollectorService.collect, threading.Event()

    def collect_or_hang(self: Any, *args: Any) -> Any:
        if not hung.is_set():
            hung.set()
            time.sleep(8.0)
        return collect(self, *args)

    monkeypatch.setattr(CollectorService, "collect", collect_or_hang)
    main, create = pair("dqn")
    main["policy"]["collect"]["collector"] = {"collector_num": 1}  # nothing goes on without it
    system = {"coordinator": {"collector_task_timeout": 3.0}}
    result = parallel_pipeline(
        [main, create, system], 0, max_env_step=1500, backend=ThreadBackend()
    )
    assert result["ledger"]["restarts"] == {"collector": 1}
    assert result["ledger"]["chunks"]["lost"] == 1
    assert "has not answered for 3 s" in capsys.readouterr().err


def test_a_service_that_keeps_dying_ends_the_run(monkeypatch: Any) -> None:
    monkeypatch.setattr("ding.parallel.worker_pool._MOST_IN_A_ROW", 3)
    with pytest.raises(Exception, match=r"learner was lost 4 times in a row"):
        run("dqn", KillingBackend("begin", tuple(range(10))))


def interrupted_run(seconds: float) -> dict[str, Any]:
    with ParallelRun(pair("dqn"), 0, Limits(env_step=10**6), backend=ThreadBackend()) as parallel:
        timer = threading.Timer(seconds, lambda: setattr(parallel._interrupt, "asked", True))
        timer.start()
        return parallel.train()


def test_what_was_interrupted_goes_on() -> None:
    first = interrupted_run(2.0)
    assert first["interrupted"]
    directory = Path(first["exp_name"])
    saved = load_manifest(directory)
    assert saved.ledger["env_steps"] == first["env_step"] > 0
    assert (directory / "ckpt" / f"iteration_{first['train_iter']}.pth.tar").is_file()
    limit = first["env_step"] + 1000
    again = parallel_pipeline(
        pair("dqn"), 0, max_env_step=limit, resume=directory, backend=ThreadBackend()
    )
    assert again["exp_name"] == str(directory)
    assert again["env_step"] >= limit
    assert again["train_iter"] >= first["train_iter"]
    assert again["seconds"] > first["seconds"]
    assert again["curve"][: len(first["curve"])] == first["curve"]
    chunks = again["ledger"]["chunks"]
    assert chunks["lost"] == saved.ledger["chunks"]["asked"] - saved.ledger["chunks"]["stored"]


def test_what_is_finished_stays_finished() -> None:
    main, create = pair("dqn")
    main["env"]["stop_value"] = 5.0
    configs = [main, create]
    first = parallel_pipeline(configs, 0, backend=ThreadBackend())
    assert first["stop"]
    again = parallel_pipeline(configs, 0, resume=first["exp_name"], backend=ThreadBackend())
    for key in ("stop", "env_step", "train_iter", "eval_value"):
        assert again[key] == first[key]


def test_damaged_checkpoints_are_refused() -> None:
    result, _ = run("dqn", env_step=500)
    directory = Path(result["exp_name"])
    manifest = directory / "ckpt" / MANIFEST
    plain = json.loads(manifest.read_text())
    (directory / plain["buffer"]).unlink()
    with pytest.raises(CheckpointError, match=r"data/buffer_\d+\.bin is missing"):
        load_manifest(directory)
    manifest.write_text(manifest.read_text()[:100])
    with pytest.raises(CheckpointError, match="can't be resumed"):
        load_manifest(directory)
    manifest.unlink()
    with pytest.raises(CheckpointError, match="nothing to resume"):
        ParallelRun(pair("dqn"), 0, resume=directory, backend=ThreadBackend())


def test_another_config_is_not_resumed() -> None:
    result, _ = run("dqn", env_step=500)
    main, create = pair("dqn")
    main["policy"]["discount_factor"] = 0.5
    with pytest.raises(ConfigError, match="discount_factor"):
        ParallelRun([main, create], 0, resume=result["exp_name"], backend=ThreadBackend())


def saved_steps() -> int:
    """Env steps in the last checkpoint, if there is one."""
    there = Path("run/ckpt", MANIFEST).exists()
    return load_manifest(Path("run")).ledger["env_steps"] if there else 0


class ForsakenBackend(ThreadBackend):
    """The learner dies when `may_die` says so, and no other one ever comes."""

    def __init__(self, may_die: Callable[[], bool]) -> None:
        super().__init__()
        self._may_die, self._over = may_die, threading.Event()
        self.is_forsaken = False

    def spawn(self, name: str, factory: Any, role: str = "") -> Any:
        comes = role != "learner" or not self.is_forsaken
        return super().spawn(name, factory if comes else self._over.wait, role)

    def call(self, service: Any, method: str, *args: Any) -> Call:
        call = super().call(service, method, *args)
        if method == "learn" and self._may_die():
            self.is_forsaken = True
            self.kill(service)
        return call

    def close(self) -> None:
        self._over.set()
        super().close()


@pytest.mark.parametrize("saved", [False, True])
def test_nobody_waits_for_a_learner_that_is_away(
    saved: bool, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr("ding.parallel.coordinator._AWAY_SECONDS", 0.2)
    main, create = pair("dqn")
    main["checkpoint_seconds"] = 1e-3 if saved else 60
    backend = ForsakenBackend(lambda: saved_steps() > 0 or not saved)
    with ParallelRun([main, create], 0, Limits(env_step=10**6), backend=backend) as parallel:
        follow = parallel._follow

        def interrupt(coordinator: Any) -> None:
            parallel._interrupt.asked = backend.is_forsaken
            follow(coordinator)

        monkeypatch.setattr(parallel, "_follow", interrupt)
        if not saved:
            with pytest.raises(KeyboardInterrupt):
                parallel.train()
            return
        result = parallel.train()
    assert result["interrupted"]
    assert "the last checkpoint stays" in capsys.readouterr().err
    assert result["env_step"] == saved_steps()


def test_collectors_explore_at_rates_of_their_own() -> None:
    assert [spread_epsilon(0.5, i, 3) for i in range(3)] == [0.5, 0.5**4.5, 0.5**8]
    assert spread_epsilon(0.5, 0, 1) == 0.5
    with ParallelRun(pair("dqn"), 0, Limits(env_step=600), backend=ThreadBackend()) as parallel:
        parallel.train()
        rates = [parallel.coordinator.settings(i)["eps"] for i in range(2)]
    assert rates[1] == pytest.approx(rates[0] ** 8)


class Starting:
    """In place of processes that start: they are there after so many questions."""

    def __init__(self, questions: int) -> None:
        self._left = questions
        self.abandoned = False

    @property
    def is_over(self) -> bool:
        self._left -= 1
        return self._left < 0

    def taken(self) -> ThreadBackend:
        return ThreadBackend()

    def abandon(self) -> None:
        self.abandoned = True


@pytest.mark.parametrize("kind", ["dqn", "ppo", "sac"])
def test_begins_here_and_goes_on_elsewhere(kind: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("ding.entry.parallel.StartingRay", lambda *_, **__: Starting(20))
    with ParallelRun(pair(kind), 0, Limits(env_step=1500)) as parallel:
        result = parallel.train()
        assert parallel._saved is not None
        before = parallel._saved.ledger
        assert parallel.fleet.collector_num == len(parallel.coordinator.collectors) == 2
        assert parallel.coordinator.training_returns, "its collectors tell what episodes came to"
    assert 0 < before["env_steps"] < 1500 <= result["env_step"]
    assert 0 < before["updates"] < result["train_iter"]
    assert_balanced(result, [])


@pytest.mark.parametrize("kind", ["dqn", "ppo"])
def test_what_is_done_before_others_have_started_is_what_a_serial_run_does(
    kind: str, monkeypatch: Any
) -> None:
    starting = Starting(10**6)
    monkeypatch.setattr("ding.entry.parallel.StartingRay", lambda *_, **__: starting)
    result = parallel_pipeline(pair(kind), 0, max_env_step=1500)
    assert starting.abandoned
    n_sample = pair(kind)[0]["policy"]["collect"]["n_sample"]
    chunks = result["ledger"]["chunks"]
    assert chunks["stored"] == chunks["asked"] == result["ledger"]["samples"] / n_sample
    assert result["ledger"]["lag"]["most"] <= 1
    serial = serial_updates(kind, 1500)
    assert result["train_iter"] == pytest.approx(serial, rel=0.05)


def serial_updates(kind: str, env_step: int) -> int:
    with Run(pair(kind), 0, limits=Limits(env_step=env_step)) as run:
        return int(train(run)["train_iter"])


def test_whole_episodes() -> None:
    main, create = pair("ppo")
    policy = main["policy"]
    policy["learn"], policy["collect"] = dict(batch_size=64), dict(n_episode=4)
    create["policy"]["type"] = "pg"
    result = parallel_pipeline([main, create], 0, max_env_step=600, backend=ThreadBackend())
    assert result["env_step"] >= 600
    chunks = result["ledger"]["chunks"]
    assert chunks["stored"] >= 2
    assert result["train_iter"] > 0


def test_several_learners_learn_as_one() -> None:
    main, create = pair("dqn")
    main["policy"]["learn"]["learner"] = dict(learner_num=2)
    backend = KillingBackend("learn", (3,))
    result = parallel_pipeline([main, create], 0, max_env_step=1500, backend=backend)
    assert result["ledger"]["restarts"] == {"learner": 1}
    assert result["train_iter"] > 0


# --- configs -------------------------------------------------------------------------------------


def test_established_parallel_config() -> None:
    main, create = pair("dqn")
    main["env"] |= dict(collector_episode_num=2, evaluator_episode_num=1, evaluator_env_num=3)
    main["env"].pop("n_evaluator_episode", None)
    main["policy"].setdefault("collect", {})["collector"] = dict(
        collector_num=3, update_policy_second=3
    )
    main["policy"]["learn"]["learner"] = dict(learner_num=1, send_policy_freq=1)
    tasks = dict(collector_task_space=2, learner_task_space=1, eval_interval=5)
    main["policy"].setdefault("other", {})["commander"] = tasks
    fs = dict(type="flask_fs", import_names=["ding.worker.learner.comm.flask_fs_learner"])
    create |= dict(
        learner=dict(type="base", import_names=["ding.worker.learner.base_learner"]),
        collector=dict(type="zergling", import_names=["ding.worker.collector.zergling"]),
        commander=dict(type="solo", import_names=["ding.worker.coordinator.solo"]),
        comm_learner=fs,
        comm_collector=fs,
    )
    create["policy"]["type"] = "dqn_command"
    system = dict(coordinator={}, path_data="./data", path_policy="./policy", learner_gpu_num=0)
    new_main, new_create, fleet = translated(main, create, system)
    assert fleet.collector_num == 3
    assert new_main["env"]["n_evaluator_episode"] == 3
    assert new_create["collector"] == {"type": "sample"}
    assert main["policy"]["collect"]["collector"]["collector_num"] == 3  # The given one stays.
    result = parallel_pipeline([main, create, system], 0, max_env_step=600, backend=ThreadBackend())
    assert result["env_step"] >= 600


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("policy.collect.collector.collector_num", 0, "collector_num = 0"),
        ("policy.learn.learner.learner_num", 1.5, "learner_num = 1.5"),
    ],
)
def test_settings_must_make_sense(path: str, value: Any, message: str) -> None:
    from ding.config import override

    main, create = pair("dqn")
    with pytest.raises(ConfigError, match=message):
        translated(override(main, {path: value}), create, None)
    for name, value in (("learner_task_timeout", 0), ("max_policy_lag", -1), ("head_start", 3)):
        with pytest.raises(ConfigError, match=f"{name} = {value}: must be"):
            translated(main, create, {"coordinator": {name: value}})


def test_what_fails_at_once_leaves_nothing_behind() -> None:
    main, create = pair("dqn")
    main["policy"]["load_path"] = "nowhere.pth.tar"
    with pytest.raises(CheckpointError, match=r"nowhere\.pth\.tar"):
        parallel_pipeline([main, create], 0, backend=ThreadBackend())
    assert not list(Path().iterdir())


@pytest.mark.learning
def test_the_zoo_has_one_that_reaches_its_goal() -> None:
    from dizoo.classic_control.cartpole.config.parallel import cartpole_dqn_config as zoo

    configs = [zoo.main_config, zoo.create_config, zoo.system_config]
    result = parallel_pipeline(configs, 0, max_env_step=60_000, backend=ThreadBackend())
    assert result["stop"], [point["reward_mean"] for point in result["curve"]]


def test_budgets_are_checked_as_in_a_serial_run(capsys: pytest.CaptureFixture[str]) -> None:
    warm_up = pair("dqn", policy=dict(random_collect_size=60))
    with pytest.raises(ConfigError, match="random_collect_size = 60: so many random steps"):
        parallel_pipeline(warm_up, max_env_step=50, backend=ThreadBackend())
    buffer = dict(replay_buffer_size=9000)
    large = pair("dqn", policy=dict(learn=dict(batch_size=5000), other=dict(replay_buffer=buffer)))
    with pytest.raises(DingError, match="a batch takes 5,000"):
        parallel_pipeline(large, max_env_step=40, backend=ThreadBackend())
    assert "40 env steps give about 5 updates" in capsys.readouterr().err
