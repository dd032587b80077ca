"""The ledger's arithmetic and book-keeping; what it trains is not trained here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ding.utils.errors import DingError
from ledger import __main__ as ledger
from ledger import fingerprints, measures, peer, status
from ledger import outcome as outcomes
from ledger.compare import Finding, alarms, compare, permutation_p
from ledger.defaults import DEFAULTS
from ledger.fingerprints import fingerprint
from ledger.interval import interquartile_mean, interval
from ledger.outcome import Outcome, load_outcome, run_directory, run_seed
from ledger.probe import Trace, digest_of
from ledger.report import (
    keep_curves,
    markdown,
    merged,
    read_results,
    short_table,
    with_short_table,
    write_results,
)
from ledger.rows import ROWS
from ledger.status import Standing
from ledger.tasks import TASKS

TASK = TASKS[0]


def outcome(seed: int = 0, steps: int | None = 1000, mean: float = 200.0) -> Outcome:
    return Outcome(
        seed=seed, steps=steps, mean=mean, error=0.5, seconds=3.0, commit="abc", date="2025-01-01"
    )


def test_permutation_p_counts_the_splits_that_are_as_bad() -> None:
    # Of the 20 ways to choose 3 of 6 values, one has the sum 6, two have at most 7.
    assert permutation_p([4, 5, 6], [1, 2, 3]) == pytest.approx(1 / 20)
    assert permutation_p([3, 5, 6], [1, 2, 4]) == pytest.approx(2 / 20)
    assert permutation_p([1, 2, 3], [4, 5, 6]) == 1.0


def test_equal_results_are_no_evidence() -> None:
    assert permutation_p([7.1, 7.1, 7.1], [7.1, 7.1, 7.1]) == 1.0


def test_many_seeds_are_sampled() -> None:
    low, high = [float(i) for i in range(15)], [float(i + 20) for i in range(15)]
    assert permutation_p(high, low) < 0.001
    assert permutation_p(low, low) > 0.4


def test_more_steps_and_lower_return_are_both_worse() -> None:
    before = [outcome(s, 1000 + s, 200.0 - s) for s in range(3)]
    after = [outcome(s, 2000 + s, 150.0 - s) for s in range(3)]
    assert [f.p for f in compare(TASK, before, after)] == pytest.approx([1 / 20, 1 / 20])
    assert [f.p for f in compare(TASK, after, before)] == [1.0, 1.0]


def test_a_seed_that_misses_the_stop_value_counts_with_the_limit() -> None:
    steps, _ = compare(TASK, [outcome()], [outcome(steps=None)])
    assert (steps.before, steps.after) == (1000, TASK.limit)


def test_alarms_correct_for_the_number_of_tests() -> None:
    findings = [Finding("a", "return", 2, 1, p) for p in (0.03, 0.5)]
    assert alarms(findings[:1]) == findings[:1]
    assert alarms(findings) == []


def test_passing_needs_the_stop_value_and_the_fresh_return() -> None:
    assert outcome(mean=195.0).passed(195.0)
    assert not outcome(mean=194.9).passed(195.0)
    assert not outcome(steps=None).passed(195.0)


def test_results_survive_writing_and_new_seeds_replace_old_ones(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert read_results(file) == {}
    write_results(file, {TASK.name: [outcome(0), outcome(1)]})
    both = merged(read_results(file), {TASK.name: [outcome(1, 50)]})
    assert both == {TASK.name: [outcome(0), outcome(1, 50)]}


def test_markdown_names_what_was_missed() -> None:
    text = markdown({TASK.name: [outcome(0), outcome(1, None, 90.0)]})
    assert "| 1 of 2 |" in text
    assert "| 1 | not reached | 90.0 ± 0.5 |  | 3 |  | abc |" in text
    assert "solved |" not in text
    assert ", solved |" in markdown({TASK.name: [outcome(seed) for seed in TASK.seeds]})


def test_the_short_table_stands_between_its_marks() -> None:
    first, second = TASKS[1:3]
    results = {first.name: [outcome(mean=500.0)], second.name: [outcome(mean=0.0), outcome(1)]}
    rows = short_table(results).splitlines()[2:]
    assert rows == ["| CartPole-v1 | DQN |", "| CartPole with 200 steps | discrete SAC (1 of 2) |"]
    text = "above\n<!-- from the ledger -->\nold\n<!-- to here -->\nbelow\n"
    found = with_short_table(text, results)
    assert found.splitlines()[0] == "above" and found.splitlines()[-1] == "below"
    assert rows[0] in found and "old" not in found
    assert with_short_table(found, results) == found
    assert with_short_table("no marks", results) == "no marks"


def test_unknown_task_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DingError, match="did you mean 'cartpole_dqn'"):
        ledger.chosen(["cartpole_dqm"])


def test_every_task_has_its_config_and_a_name_of_its_own(tmp_path: Path) -> None:
    assert len({task.name for task in TASKS}) == len(TASKS)
    assert len({task.digest() for task in TASKS}) == len(TASKS)
    for task in TASKS:
        main, create = task.configs(tmp_path)
        assert main["exp_name"] == str(tmp_path)
        assert create["policy"]["type"] in task.name


def test_defaults_are_configs_that_no_return_ends(tmp_path: Path) -> None:
    names = [task.name for task in ROWS]
    assert len(set(names)) == len(names)
    assert len({task.digest() for task in DEFAULTS}) == len(DEFAULTS)
    assert not set(DEFAULTS) & set(ledger.chosen(None))
    assert ledger.chosen(None, defaults=True) == list(DEFAULTS)
    task = next(task for task in DEFAULTS if task.name == "defaults_frozenlake_dqn")
    main, create = task.configs(tmp_path)
    assert main["env"]["stop_value"] == float("inf")
    assert main["env"]["env_kwargs"] == {"is_slippery": False}
    assert (main["exp_name"], create["policy"]["type"]) == (str(tmp_path), "dqn")


def test_defaults_stand_beside_those_of_the_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "FILE", tmp_path / "sb3.json")
    task = DEFAULTS[0]
    content = {task.name: [{"seed": 0, "mean": 300.0, "error": 0.0, "seconds": 9.0}]}
    peer.FILE.write_text(json.dumps(content), encoding="utf-8")
    text = markdown({task.name: [replace(outcome(mean=400.0), error=0.0)]})
    row = next(line for line in text.splitlines() if line.startswith("| cartpole |"))
    ours, theirs = "400.0 [400.0, 400.0]", "300.0 [300.0, 300.0]"
    assert row == f"| cartpole | 50,000 | dqn | 250 | 1 | {ours} | {theirs} |"


def test_peers_train_what_is_missing_and_keep_each_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "FILE", tmp_path / "sb3.json")
    asked = []

    def trained(task: Any, seed: int, python: str) -> dict[str, Any]:
        asked.append((task.policy, seed))
        return {"seed": seed, "mean": 1.0 + seed, "error": 0.5, "seconds": 2.0}

    monkeypatch.setattr(peer, "_trained", trained)
    dqn, rainbow, ppo = DEFAULTS[:3]
    for _ in range(2):
        peer.train([(dqn, 0), (rainbow, 0), (ppo, 0), (ppo, 1)], "python", lambda text: None)
    assert asked == [("dqn", 0), ("ppo", 0), ("ppo", 1)]  # it has no Rainbow
    assert [o.mean for o in peer.outcomes(ppo)] == [1.0, 2.0]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Training that only leaves a result behind, and a list of where it did."""
    where: list[Path] = []

    def train(task: object, seed: int, directory: Path) -> dict[str, object]:
        where.append(directory)
        result = {"interrupted": False, "train_iter": 7, "stop": True, "env_step": 900}
        directory.mkdir()
        text = json.dumps({**result, "seconds": 1.0, "curve": []})
        (directory / "result.json").write_text(text, encoding="utf-8")
        return json.loads(text)

    import numpy as np

    monkeypatch.setattr(outcomes, "_train", train)
    monkeypatch.setattr(outcomes, "fresh_returns", lambda *_: np.array([190.0, 200.0]))
    return where


def test_a_finished_training_is_judged_but_not_trained_again(
    trained: list[Path], tmp_path: Path
) -> None:
    first = run_seed(TASK, 3, tmp_path)
    assert first is not None and (first.steps, first.mean, first.error) == (900, 195.0, 5.0)
    (run_directory(tmp_path, TASK, 3) / "outcome.json").unlink()  # as if killed before judging
    assert load_outcome(tmp_path, TASK, 3) is None
    assert run_seed(TASK, 3, tmp_path) == first == load_outcome(tmp_path, TASK, 3)
    assert len(trained) == 1


def test_another_config_makes_a_finished_run_worthless(trained: list[Path], tmp_path: Path) -> None:
    run_seed(TASK, 0, tmp_path)
    shorter = replace(TASK, limit=800)
    assert load_outcome(tmp_path, shorter, 0) is None
    again = run_seed(shorter, 0, tmp_path)
    assert again is not None and again.steps is None  # 900 steps are beyond the limit
    assert len(trained) == 2


SHORT_GAMES = [
    ("tictactoe_ppo", None, -40, 1),
    ("tictactoe_ppo", "dizoo.board_games.config.tictactoe_league_ppo_config", -40, 1),
    ("connect_four_ppo", None, 0, 1.01),
    ("micro_duel_3m_league_mappo", None, 0, 1.01),
    # Of one snapshot, which plays nearly uniformly.
    ("kuhn_poker_ppo", None, -0.46, -0.45),
]


@pytest.mark.parametrize(("name", "module", "low", "high"), SHORT_GAMES)
def test_games_are_judged_by_their_own_measure(
    name: str, module: str | None, low: float, high: float, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(measures, "GAMES", 10)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    task = next(task for task in TASKS if task.name == name)
    task = replace(task, limit=1, module=module or task.module)
    found = run_seed(task, 0, tmp_path)
    assert found is not None and found == load_outcome(tmp_path, task, 0)
    assert found.steps is not None and found.steps > 1 and low <= found.mean < high
    assert found.passed(low) and not found.passed(high)
    text = markdown({task.name: [found]})
    assert f"| seed | env steps | {task.judged_by} | updates" in text
    assert f"| 0 | {found.steps:,} | {found.mean:.3f} ± {found.error:.3f} |" in text


def test_curves_of_other_tasks_stay(tmp_path: Path) -> None:
    for task, returns in ((TASKS[1], [1.0]), (TASKS[0], [2.0, 3.004])):
        directory = run_directory(tmp_path, task, 0)
        directory.mkdir(parents=True)
        curve = [{"envstep": 10 * k, "reward_mean": r} for k, r in enumerate(returns)]
        (directory / "result.json").write_text(json.dumps({"curve": curve}), encoding="utf-8")
        keep_curves(tmp_path / "curves.json", tmp_path, task, [0])
    stored = json.loads((tmp_path / "curves.json").read_text(encoding="utf-8"))
    assert stored[TASKS[0].name] == {"0": [[0, 2.0], [10, 3.0]]}
    assert list(stored) == [TASKS[0].name, TASKS[1].name]
    assert stored[TASKS[1].name] == {"0": [[0, 1.0]]}


def test_another_code_makes_a_begun_run_worthless(
    trained: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "files_of", lambda name: ["ding/policy/dqn.py"])
    run_seed(TASK, 0, tmp_path)
    (run_directory(tmp_path, TASK, 0) / "outcome.json").unlink()  # as if killed before judging
    monkeypatch.setattr(outcomes, "files_of", lambda name: ["ding/policy/sac.py"])
    run_seed(TASK, 0, tmp_path)
    assert len(trained) == 2


def test_finished_runs_are_forgotten_and_begun_ones_are_not(
    trained: list[Path], tmp_path: Path
) -> None:
    run_seed(TASK, 0, tmp_path)
    run_seed(TASK, 1, tmp_path)
    (run_directory(tmp_path, TASK, 1) / "outcome.json").unlink()
    for seed in (0, 1):
        outcomes.forget_finished(tmp_path, TASK, seed)
        run_seed(TASK, seed, tmp_path)
    assert [path.name for path in trained] == ["seed0", "seed1", "seed0"]


def test_a_seed_is_written_down_beside_those_that_are_stored(
    trained: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "HERE", tmp_path)
    monkeypatch.setattr(ledger, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(ledger, "draw", lambda *args: None)
    monkeypatch.setattr(ledger, "keep_curves", lambda *args: {})
    for seed in (1, 0):
        run_seed(TASK, seed, tmp_path)
        ledger.store([(TASK, seed)], tmp_path)
    stored = read_results(tmp_path / "results.json")
    assert [o.seed for o in stored[TASK.name]] == [0, 1]
    assert TASK.title in (tmp_path / "README.md").read_text()


def test_a_job_that_cannot_start_does_not_keep_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(job: ledger.Job, root: Path, n_slot: int) -> Any:
        started.append(job[1])
        raise DingError("no such env")

    started: list[int] = []
    monkeypatch.setattr(ledger, "_start", start)
    jobs = [(TASK, 0), (TASK, 1)]
    assert ledger.train(jobs, tmp_path, n_slot=1) == jobs and started == [0, 1]
    assert "cartpole_dqn seed 1: no such env" in capsys.readouterr().out


def test_seeds_run_in_processes_and_failures_are_told(
    trained: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import subprocess
    import sys

    monkeypatch.setattr(ledger, "files_of", lambda name: [])
    started = []

    def start(job: ledger.Job, root: Path, n_slot: int) -> subprocess.Popen[bytes]:
        started.append(job[1])
        run_directory(root, *job).parent.mkdir(exist_ok=True)
        log = run_directory(root, *job).with_suffix(".log")
        log.write_text("first\nlast words\n", encoding="utf-8")
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(ledger, "_start", start)
    jobs = [(TASK, 1)]
    ended: list[ledger.Job] = []
    failed = ledger.train(jobs, tmp_path, n_slot=2, ended=ended.append)
    assert failed == ended == jobs
    assert started == [1]
    assert "cartpole_dqn seed 1: failed: last words" in capsys.readouterr().out


# --- what a row depends on ----------------------------------------------------------------------


def test_fingerprints_see_code_and_not_what_is_said_about_it() -> None:
    def of(text: str | None) -> str:
        return fingerprint(["a.py"], lambda name: text)

    plain = of("def f(x):\n    return x + 1\n")
    assert of('"""Doc."""\n\n\ndef f(x):\n    """More."""\n    return (x + 1)  # so\n') == plain
    assert len({plain, of("def f(x):\n    return x + 2\n"), of(None), of("")}) == 4
    assert fingerprint(["b.py"], lambda name: "x") != fingerprint(["c.py"], lambda name: "x")


def test_files_of_rows_are_kept_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "FILES", tmp_path / "files.json")
    assert fingerprints.files_of("a") is None
    fingerprints.keep_files("b", ["ding/y.py", "ding/x.py"])
    fingerprints.keep_files("a", ["ding/a.py", "ding/y.py"])
    fingerprints.keep_files("c", [])
    assert fingerprints.files_of("b") == ["ding/x.py", "ding/y.py"]
    assert sorted(fingerprints.files_of("a") or []) == ["ding/a.py", "ding/y.py"]
    assert fingerprints.files_of("c") == []


def test_a_trace_has_the_files_whose_functions_ran() -> None:
    import ding

    root = Path(ding.__file__).parents[1]
    with Trace(root) as trace:
        from ding.utils.limits import Limits

        Limits().reached(1, 2)
    assert "ding/utils/limits.py" in trace.files
    with Trace(root) as trace:
        pass
    assert "ding/utils/limits.py" not in trace.files


def test_digests_see_every_bit_and_name() -> None:
    import torch

    weights = {"a": torch.zeros(2), "b": torch.ones(3)}
    other = {**weights, "a": torch.tensor([0.0, -0.0])}
    renamed = {"a": weights["a"], "c": weights["b"]}
    assert digest_of(weights) == digest_of(dict(reversed(weights.items())))
    assert len({digest_of(one) for one in (weights, other, renamed)}) == 3


@pytest.fixture
def known_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "files_of", lambda name: ["ding/utils/limits.py"])


def now() -> str:
    from ledger.fingerprints import here

    return fingerprint(["ding/utils/limits.py"], here)


def test_a_seed_is_fresh_confirmed_stale_or_missing(
    known_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = replace(outcome(), code=now())
    of = status.standing_of
    assert of(TASK, fresh) is Standing.FRESH
    assert of(TASK, replace(fresh, confirmed="abc")) is Standing.CONFIRMED
    assert of(TASK, replace(fresh, code="other")) is Standing.STALE
    assert of(TASK, replace(outcome(), commit="abc-dirty")) is Standing.STALE
    assert of(TASK, None) is Standing.MISSING
    monkeypatch.setattr(status, "files_of", lambda name: None)
    assert of(TASK, fresh) is Standing.STALE


def test_what_is_due_comes_cheapest_first_and_dear_rows_need_one_seed(known_files: None) -> None:
    cheap, dear, new, half = TASKS[:4]
    stale = replace(outcome(), code="other")
    stored = {
        cheap.name: [replace(stale, seed=k, date=f"2025-01-0{9 - k}") for k in range(4)],
        dear.name: [replace(stale, seed=k, seconds=4000.0) for k in range(5)],
        half.name: [replace(stale, seed=k, seconds=5000.0, code=now()) for k in range(3)],
    }
    seeds = status.seeds_of([dear, cheap, new, half], stored)
    found = [(seed.task.name, seed.number) for seed in status.due(seeds)]
    oldest_first = [(cheap.name, k) for k in (4, 3, 2, 1, 0)]
    unknown = [(new.name, k) for k in range(5)]
    assert found == [*oldest_first, (dear.name, 0), *unknown]
    text = status.table(seeds)
    assert f"{half.name:<36} 3 fresh, 2 missing" in text
    assert "1.11 h" in text.split(dear.name)[1].split("\n")[0]
    assert "1.12 h + 5?" in text.split("\n")[-1]


# --- what seeds say together --------------------------------------------------------------------


def test_the_interquartile_mean_weighs_parts_of_values() -> None:
    import numpy as np

    assert interquartile_mean(np.array([0.0, 2.0, 4.0, 100.0])) == 3.0
    # Of five values the second and the fourth count by three quarters.
    assert interquartile_mean(np.array([9.0, 0.0, 1.0, 2.0, 3.0])) == pytest.approx(2.0)
    assert interquartile_mean(np.array([7.0])) == 7.0


def test_intervals_are_those_of_seeds_and_of_episodes() -> None:
    middle, low, high = interval([replace(outcome(mean=10.0), error=1.0)])
    assert middle == 10.0 and (low, high) == pytest.approx((10 - 1.96, 10 + 1.96), abs=0.1)
    sure = [replace(outcome(mean=m), error=0.0) for m in (1.0, 2.0, 3.0)]
    middle, low, high = interval(sure)
    assert middle == 2.0 and (low, high) == (1.0, 3.0)
