"""Callbacks: what they are told, how they end a run, and what is left when one raises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ding
from ding.config import read_config
from ding.entry import serial_pipeline
from ding.entry.parallel import parallel_pipeline
from ding.entry.predefined import predefined_config
from ding.pipeline.callbacks import EarlyStopping, SaveEvery, VideoEvery
from ding.utils.errors import ConfigError, DingError

SMALL: dict[str, Any] = {
    "learn.batch_size": 4,
    "learn.update_per_collect": 2,
    "collect.n_sample": 8,
    "eval.evaluator.eval_freq": 4,
    "env.collector_env_num": 2,
    "env.evaluator_env_num": 1,
    "env.n_evaluator_episode": 1,
}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)


def trained(*callbacks: Any, steps: int = 80) -> Any:
    return ding.train("CartPole-v1", "dqn", steps=steps, callbacks=callbacks, **SMALL)


class Diary:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def step(self, run: Any) -> None:
        self.events.append(("step", run.collector.envstep))

    def update(self, run: Any, metrics: dict[str, Any]) -> None:
        self.events.append(("update", float(metrics["total_loss"]) >= 0))

    def episode(self, run: Any, return_: float, length: int) -> None:
        self.events.append(("episode", return_ == length >= 8))

    def evaluation(self, run: Any, returns: list[float]) -> None:
        self.events.append(("evaluation", run.learner.train_iter))

    def checkpoint(self, run: Any, path: Path) -> None:
        self.events.append(("checkpoint", Path(path).is_file()))

    def end(self, run: Any, result: dict[str, Any]) -> None:
        self.events.append(("end", result["env_step"]))


def test_an_object_is_told_of_everything() -> None:
    diary = Diary()
    trained(diary)
    of = {kind: [value for k, value in diary.events if k == kind] for kind, _ in diary.events}
    assert of["step"] == list(range(8, 88, 8))
    assert of["update"] == [True] * 20
    assert of["evaluation"] == [0, 4, 8, 12, 16, 20]
    assert of["episode"] and all(of["episode"])
    assert len(of["checkpoint"]) >= 2 and all(of["checkpoint"])
    assert of["end"] == [80] and diary.events[-1][0] == "end"


def test_a_function_stands_for_step_and_ends_the_run_with_false() -> None:
    run = trained(lambda run: run.collector.envstep < 24)
    assert run.result["env_step"] == 24
    assert not run.result["stop"] and not run.result["interrupted"]
    assert run.history[-1]["envstep"] == 24  # evaluated as it was left


class Worse:
    """Stands in for an evaluator with these means."""

    def __init__(self, *means: float) -> None:
        self.history = [{"reward_mean": mean} for mean in means]

    @property
    def evaluator(self) -> Any:
        return self


@pytest.mark.parametrize(
    ("means", "goes_on"),
    [((1, 2, 3), True), ((3, 2, 2), False), ((3, 2, 3.5), True), ((3, 2, 3.05), False)],
)
def test_early_stopping_counts_evaluations_since_the_best(means: Any, goes_on: bool) -> None:
    assert EarlyStopping(patience=2, min_delta=0.1).evaluation(Worse(*means), []) is goes_on
    with pytest.raises(DingError, match="patience = 0"):
        EarlyStopping(patience=0)


def test_early_stopping_ends_a_run() -> None:
    run = ding.train(
        "CartPole-v1",
        "dqn",
        steps=2000,
        callbacks=[EarlyStopping(patience=2, min_delta=1e6)],
        **SMALL,
    )
    assert [point["train_iter"] for point in run.history] == [0, 4, 8]


def test_checkpoints_every_so_many_steps_load_as_agents() -> None:
    run = trained(SaveEvery(steps=30))
    found = sorted((run.directory / "ckpt").glob("step_*.pth.tar"))
    assert [path.name for path in found] == ["step_32.pth.tar", "step_64.pth.tar"]
    assert ding.load(found[0]).evaluate(episodes=1)[0] >= 8


def test_videos_every_so_many_steps() -> None:
    pytest.importorskip("imageio_ffmpeg")
    run = trained(VideoEvery(steps=40))
    assert len(list((run.directory / "video").glob("*.mp4"))) == 2


class Clumsy:
    def evaluation(self, run: Any, returns: list[float]) -> None:
        if run.learner.train_iter >= 8:
            raise ZeroDivisionError("in the callback")


def test_one_that_raises_ends_the_run_with_its_state_saved() -> None:
    with pytest.raises(ZeroDivisionError, match="in the callback") as caught:
        trained(Clumsy())
    assert caught.traceback[-1].name == "evaluation"
    run = Path("CartPole-v1_dqn_seed0")
    config = str(run / "total_config.py")
    serial_pipeline(config, seed=0, resume=run, max_env_step=80)
    assert (run / "result.json").is_file()


def test_configs_name_callbacks_by_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("quitters.py").write_text("def quitter(run):\n    return run.collector.envstep < 16\n")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    main, create = predefined_config("CartPole-v1", "dqn")
    main["callbacks"] = ["quitters:quitter"]
    run = ding.train([main, create], steps=80, **SMALL)
    assert run.result["env_step"] == 16
    # A run may go on with other callbacks, or with none.
    config = read_config(run.directory / "total_config.py")
    config[0]["callbacks"] = []
    serial_pipeline(config, seed=0, resume=run.directory, max_env_step=32)
    assert json.loads((run.directory / "result.json").read_text())["env_step"] == 32
    with pytest.raises(ConfigError, match="only serial runs"):
        parallel_pipeline([main, create], 0, max_env_step=32)


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (object(), "is no function and has none of the methods"),
        ("nowhere:Name", "cannot find 'nowhere:Name'"),
        ("ding.pipeline.callbacks:Nothing", "cannot find"),
    ],
)
def test_what_is_no_callback_is_refused(callback: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        trained(callback)
    assert not list(Path().iterdir())
