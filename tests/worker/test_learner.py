from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch

from ding.utils.batch import Rows
from ding.utils.checkpoint import load_checkpoint
from ding.utils.errors import ConfigError
from ding.worker import BaseLearner, Commander, LearnerHook, create_learner, register_learner_hook
from ding.worker.learner import (
    LogBuffer,
    LogShowHook,
    TrainingDivergedError,
    add_learner_hook,
    build_learner_hook_by_cfg,
    merge_hooks,
    show_hooks,
)
from worker.fakes import dqn


class FakeMode:
    """A learn mode that anybody could write."""

    def __init__(self, n_output: int = 0, loss: float = 1.0) -> None:
        self.n_output, self.loss, self.loaded = n_output, loss, None

    def forward(self, data: Any, **kwargs: Any) -> Any:
        output = {"total_loss": torch.tensor(self.loss), "cur_lr": 0.1, "extra": 3}
        return [dict(output) for _ in range(self.n_output)] if self.n_output else output

    def monitor_vars(self) -> list[str]:
        return ["total_loss", "cur_lr", "not there"]

    def state_dict(self) -> dict[str, Any]:
        return {"model": {"w": torch.ones(1)}}

    def load_state_dict(self, state: Any) -> None:
        self.loaded = state

    def get_attribute(self, name: str) -> Any:
        return {"learn": {"resume_training": True}}


def learner_of(tmp_path: Any, mode: Any = None, **hook: Any) -> BaseLearner:
    cfg = dict(hook=hook) if hook else {}
    return BaseLearner(cfg, policy=mode or FakeMode(), exp_name=str(tmp_path))


def data(n: int = 4) -> Rows:
    return Rows({"obs": np.zeros((n, 3), dtype=np.float32), "reward": np.zeros(n)})


class Noting(LearnerHook):
    notes: list[str] = []  # noqa: RUF012

    def __call__(self, engine: Any) -> None:
        self.notes.append(f"{self.name}@{engine.train_iter}")


def test_hooks_run_by_priority_at_their_positions(tmp_path: Any) -> None:
    Noting.notes.clear()
    learner = learner_of(tmp_path, FakeMode(2))
    for name, priority, position in (
        ("late", 90, "after_iter"),
        ("early", 1, "after_iter"),
        ("also early", 1, "after_iter"),
        ("before", 50, "before_iter"),
        ("start", 5, "before_run"),
        ("end", 5, "after_run"),
    ):
        learner.register_hook(Noting(name, priority, position))
    learner.setup_dataloader([data()])
    learner.start()
    after = [f"{name}@{i}" for i in (0, 1) for name in ("early", "also early", "late")]
    assert Noting.notes == ["start@0", "before@0", *after, "end@2"]
    learner.close()


def test_own_hook_by_config(tmp_path: Any) -> None:
    Noting.notes.clear()
    register_learner_hook("noting_for_a_test", Noting)
    entry = dict(type="noting_for_a_test", name="mine", priority=3, position="before_iter")
    with learner_of(tmp_path, own=entry) as learner:
        learner.train(data())
    assert Noting.notes == ["mine@0"]
    with pytest.raises(TypeError, match="LearnerHook"):
        register_learner_hook("x", dict)  # type: ignore[arg-type]


def test_bad_hooks() -> None:
    with pytest.raises(ConfigError, match="'log_show'"):
        build_learner_hook_by_cfg(dict(a=dict(type="log_shw")))
    with pytest.raises(ConfigError, match="'after_iter'"):
        LogShowHook("x", position="after_itr")
    with pytest.raises(ValueError, match="negative"):
        LogShowHook("x", -1)
    with pytest.raises(ConfigError, match=r"save_ckpt_after_iter = 2\.5"):
        build_learner_hook_by_cfg(dict(save_ckpt_after_iter=2.5))


def test_merged_hooks() -> None:
    a = build_learner_hook_by_cfg(dict(log_show_after_iter=1))
    b = build_learner_hook_by_cfg({})
    add_learner_hook(b, Noting("first", 0))
    merged = merge_hooks(a, b)
    assert [hook.name for hook in merged["after_iter"]] == ["first", "log_show_after_iter"]
    assert "first(0), log_show_after_iter(20)" in show_hooks(merged)


@pytest.mark.parametrize(("n_output", "counted"), [(0, 1), (3, 3)])
def test_train_iter_counts_outputs(n_output: int, counted: int, tmp_path: Any) -> None:
    with learner_of(tmp_path, FakeMode(n_output)) as learner:
        outputs = learner.train(data(), envstep=7)
        assert len(outputs) == counted
        assert learner.train_iter == counted
        assert learner.collector_envstep == 7


def test_checkpoints(tmp_path: Any) -> None:
    mode = FakeMode()
    with learner_of(tmp_path, mode, save_ckpt_after_iter=2) as learner:
        for _ in range(5):
            learner.train(data(), envstep=9)
        learner.call_hook("after_run")
        names = sorted(p.name for p in (tmp_path / "ckpt").iterdir())
        assert names == [f"iteration_{i}.pth.tar" for i in (0, 2, 4, 5)]
        state = load_checkpoint(tmp_path / "ckpt" / "iteration_5.pth.tar")
        assert state["last_iter"] == 5
        assert state["last_step"] == 9
        learner.save_checkpoint("mine.pth.tar")
        assert (tmp_path / "ckpt" / "mine.pth.tar").is_file()
    path = str(tmp_path / "ckpt" / "iteration_4.pth.tar")
    with learner_of(tmp_path, mode, load_ckpt_before_run=path) as other:
        other.call_hook("before_run")
        assert mode.loaded is not None
        assert other.train_iter == 4
    named = BaseLearner(policy=mode, exp_name=str(tmp_path), instance_name="second")
    assert named.save_checkpoint().parent.name == "ckpt_second"
    named.close()


def test_logs_are_in_their_place(tmp_path: Any) -> None:
    with learner_of(tmp_path, log_show_after_iter=2) as learner:
        for _ in range(4):
            learner.train(data(), envstep=3)
    directory = tmp_path / "log" / "learner"
    text = (directory / "learner_logger.txt").read_text()
    assert "train iter 2" in text
    assert "total_loss: 1" in text
    assert list(directory.glob("events.out.tfevents*"))


def test_log_goes_on_after_loading_the_state(tmp_path: Any) -> None:
    with learner_of(tmp_path, log_show_after_iter=3) as learner:
        learner.train(data())
        learner.train(data())
        state = learner.state_dict()
    with learner_of(tmp_path, log_show_after_iter=3) as other:
        other.load_state_dict(state)
        assert other.train_iter == 2
        for _ in range(3):
            other.train(data())


def test_log_buffer_averages() -> None:
    buffer = LogBuffer()
    buffer.add({"a": torch.tensor(1.0), "b": 2})
    buffer.add({"a": torch.tensor(3.0), "b": 4})
    assert buffer.averages() == {"a": 2.0, "b": 3.0}
    buffer.clear()
    assert buffer.averages() == {}


@pytest.mark.parametrize("column", ["reward", None])
def test_nan_loss_names_its_cause(column: str | None, tmp_path: Any) -> None:
    rows = data().columns
    if column:
        rows[column][1] = np.nan
    pattern = f"NaN or infinite numbers in {column}" if column else "lower the learning rate"
    with learner_of(tmp_path, FakeMode(loss=float("nan"))) as learner:
        with pytest.raises(TrainingDivergedError, match=pattern) as error:
            learner.train(Rows(rows))
        assert "train iter 0" in str(error.value)
    assert load_checkpoint(tmp_path / "diverged_batch.pth.tar")["train_iter"] == 0


def bad_rows() -> list[dict[str, Any]]:
    return [{"obs": np.zeros(3), "reward": r, "info": {"x": None}} for r in (0.0, np.nan, 1.0)]


BATCHES = {
    "rows": (bad_rows(), "reward"),
    "episodes": ([bad_rows(), bad_rows()[:1]], "reward"),
    "episodes in columns": ([Rows({"x": np.array([1.0, np.inf]), "y": np.ones(2)})], "x"),
    "columns of tensors": ({"x": torch.ones(2), "y": torch.tensor([torch.nan])}, "y"),
    "rows of other keys": ([{"x": 1.0}, {"y": float("inf")}], "data"),
    "of any length": ([{"x": np.ones(2)}, {"x": np.array([np.nan])}], "x"),
    "one array": (np.array([np.nan]), "data"),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_nan_loss_of_any_data_is_diagnosed(kind: str, tmp_path: Any) -> None:
    batch, column = BATCHES[kind]
    pattern = rf"numbers in {column}\. The batch is in"
    with (
        learner_of(tmp_path, FakeMode(loss=float("nan"))) as learner,
        pytest.raises(TrainingDivergedError, match=pattern),
    ):
        learner.train(batch)  # type: ignore[arg-type]
    assert load_checkpoint(tmp_path / "diverged_batch.pth.tar", trusted=True)["train_iter"] == 0


def test_nan_loss_of_data_that_cannot_be_saved(tmp_path: Any) -> None:
    with (
        learner_of(tmp_path, FakeMode(loss=float("nan"))) as learner,
        pytest.raises(TrainingDivergedError, match="could not be saved"),
    ):
        learner.train([{"x": np.nan, "f": lambda: 0}])


def test_misuse(tmp_path: Any) -> None:
    with pytest.raises(TypeError, match="learn_mode"):
        learner_of(tmp_path, dqn())
    learner = create_learner(dict(type="base"), exp_name=str(tmp_path))
    with pytest.raises(ValueError, match="iterable"):
        learner.setup_dataloader()


def test_commander_asks_the_policy(tmp_path: Any) -> None:
    class Counter:
        train_iter, envstep, priority_info = 4, 50, {"x": 1}

    class Mode:
        @staticmethod
        def get_setting_collect(info: Any) -> Any:
            return info

    with closing(
        Commander({}, Counter(), Counter(), policy=Mode(), exp_name=str(tmp_path))
    ) as commander:
        info = commander.step()
    assert info["learner_step"] == 4
    assert info["envstep"] == 50
    assert "type" in Commander.default_config()
