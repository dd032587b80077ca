"""Workers that join and leave while a run goes on, machines that are lost, orders from outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ding.entry.parallel import ParallelRun
from ding.parallel.backend import AnswerLostError, Call, Order, ThreadBackend
from ding.parallel.coordinator import Coordinator
from ding.parallel.data_flow import ReplayFeed
from ding.parallel.ledger import Ledger
from ding.utils.limits import Limits
from entry.configs import pair


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.parallel.fleet._LOOK_SECONDS", 0.0)


class Machines(ThreadBackend):
    """A cluster in miniature: so much room, orders that were given, things that are gone."""

    def __init__(self, **rooms: int) -> None:
        super().__init__()
        self.rooms, self.given = rooms, list[Order]()
        self.gone = 0
        """Chunks to be lost on their way to the buffer."""

    def room(self, role: str) -> int | None:
        return self.rooms.get(role)

    def orders(self) -> list[Order]:
        given, self.given = self.given, []
        return given

    def result(self, call: Call) -> Any:
        answer = super().result(call)
        if call.method == "add" and self.gone:
            self.gone -= 1
            raise AnswerLostError("its machine is gone")
        return answer


Step = tuple[int, Callable[[Coordinator], None]]


def run(backend: Machines, *steps: Step, kind: str = "dqn", **limits: int) -> Any:
    """Train, doing each of `steps` once so many env steps are there; the coordinator and result."""
    limit = Limits(**{"env_step": 3000, **limits})
    with ParallelRun(pair(kind), 0, limit, backend=backend) as parallel:
        follow, left = parallel._follow, list(steps)

        def look(coordinator: Coordinator) -> None:
            if left and coordinator.ledger.env_steps >= left[0][0]:
                left.pop(0)[1](coordinator)
            follow(coordinator)

        parallel._follow = look  # type: ignore[method-assign]
        result = parallel.train()
        assert not left
        return parallel.coordinator, result


@pytest.mark.parametrize("kind", ["dqn", "ppo"])
def test_collectors_join_and_leave(kind: str, capsys: Any) -> None:
    backend, seen = Machines(collector=1, learner=1), []

    def join(coordinator: Coordinator) -> None:
        seen.append(len(coordinator.collectors))
        backend.rooms["collector"] = 4

    def leave(coordinator: Coordinator) -> None:
        seen.append(len(coordinator.collectors))
        backend.rooms["collector"] = 2
        coordinator.pool.wanted = 2
        for worker in coordinator.collectors[:2]:
            backend.kill(worker.services[0])

    coordinator, result = run(backend, (500, join), (1500, leave), kind=kind)
    assert seen == [1, 4]
    # Which two, and whether a dead one is made anew, depends on whether its death is noticed
    # before the surplus is sent away.
    names = {worker.name for worker in coordinator.collectors}
    assert len(names) == 2 and names <= {f"collector{i}" for i in range(4)}
    restarts = result["ledger"]["restarts"]
    assert set(restarts) <= {"collector"} and sum(restarts.values()) <= 2
    assert result["env_step"] >= 3000
    assert "room for 1 of 2 collectors" in capsys.readouterr().err


def test_waits_for_a_learner(capsys: Any) -> None:
    run(Machines(collector=2, learner=0), env_step=300)
    assert "room for 0 of 1 learners: waiting for ding -m dist" in capsys.readouterr().err


def test_chunks_on_a_lost_machine_are_counted_as_lost() -> None:
    backend = Machines(collector=2, learner=1)
    backend.gone = 3
    _, result = run(backend)
    # One that went with others is only known to be lost when they are sent again alone.
    assert 1 <= result["ledger"]["chunks"]["lost"] <= 3
    assert backend.gone == 0
    assert result["ledger"]["restarts"] == {}
    chunks = result["ledger"]["chunks"]
    assert chunks["stored"] == result["ledger"]["samples"] / 256


def test_orders(capsys: Any) -> None:
    backend, seen = Machines(learner=1), []

    def give(*orders: Order) -> Callable[[Coordinator], None]:
        def given(coordinator: Coordinator) -> None:
            seen.append(len(coordinator.collectors))
            backend.given = list(orders)

        return given

    steps = [
        (300, give(Order("add", "collector", 2))),
        (900, give(Order("delete", "collector", 3))),
        (1500, give(Order("restart", "collector", name="collector0"))),
        (1800, give(Order("restart", "learner"), Order("restart", "collector", name="who"))),
        (2100, give(Order("delete", "learner"))),
    ]
    _, result = run(backend, *steps)
    assert seen == [2, 4, 1, 1, 1]
    assert result["ledger"]["restarts"] == {"collector": 1, "learner": 1}
    told = capsys.readouterr().err
    assert "there is no collector 'who' to restart, only collector0" in told
    assert "the run keeps 1 learners" in told


def test_samples_of_weights_that_are_too_old_are_not_learned() -> None:
    ledger = Ledger(updates=50)
    policy: Any = SimpleNamespace(
        learn=SimpleNamespace(batch_size=4, update_per_collect=1),
        collect=SimpleNamespace(n_sample=4),
        other={},
        random_collect_size=0,
    )
    fleet = SimpleNamespace(max_policy_lag=10)
    coordinator: Any = SimpleNamespace(policy_cfg=policy, ledger=ledger, fleet=fleet)
    feed = ReplayFeed(coordinator, buffer=None, chunk=4)  # type: ignore[arg-type]
    for train_iter in (50, 40, 39):
        weights: Any = SimpleNamespace(train_iter=train_iter)
        feed._take_of(weights, Call(None, "collect", None, None), {})
    assert feed.queued == 2
    assert ledger.chunks.stale == 1
    assert (ledger.lag.last, ledger.lag.most) == (11, 11)
