"""Every algorithm in every space that it claims, through the pipelines that users call."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conformance.claims import CLAIMS, Cell, cells, foreign_cells, foreign_masks, home
from conformance.configs import EXP_NAME, config_of, trained
from conformance.table import PAGE, with_table
from conformance.worlds import UNCLAIMED_ACTIONS, World, WorldEnv
from ding.entry.evaluation import evaluate
from ding.pipeline.state import PREVIOUS_NAME, STATE_NAME
from ding.policy import Policy, get_policy_cls
from ding.utils.batch import ByEnv, stack, stacked_of, tree_map
from ding.utils.errors import ConfigError
from ding.utils.registry import POLICY_REGISTRY

FIRST, SECOND = 40, 70
"""Env steps of a run, and of the same run when it has gone on."""


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing the learning curve would take most of the time."""
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)


@pytest.fixture(autouse=True)
def _starts_of_evaluations_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs evaluate from starts of their own: here they take those of `evaluate(seed=...)`."""
    monkeypatch.setattr("ding.worker.evaluator.evaluation_seeds", starts_by_hand)


def starts_by_hand(seed: int, n: int, again: int = 0) -> list[int]:
    return [seed + i for i in range(n)]


# --- the table -----------------------------------------------------------------------------------


def test_every_registered_policy_has_a_claim() -> None:
    names = POLICY_REGISTRY.query()
    own = [name for name in names if POLICY_REGISTRY.get(name).__module__.startswith("ding.")]
    assert sorted(CLAIMS) == own, "add a line to tests/conformance/claims.py"


@pytest.mark.parametrize("algorithm", CLAIMS)
def test_the_class_says_the_same(algorithm: str) -> None:
    cls, claim = get_policy_cls({"type": algorithm}), CLAIMS[algorithm]
    assert set(cls.action_kinds or ()) == set(claim.actions)
    assert cls.keeps_to_masks is claim.masks


def test_docs_are_in_step() -> None:
    page = PAGE.read_text()
    assert page == with_table(page), "run: python -m tests.conformance.table"


# --- what is claimed -----------------------------------------------------------------------------


def result_of(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "result.json").read_text())


def learner_of(directory: Path, name: str) -> dict[str, Any]:
    state = torch.load(directory / "ckpt" / name, weights_only=True)
    return state["learner"]


def leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(found.append, tree)
    return found


def differ(a: Any, b: Any) -> bool:
    """By more than the rounding of probabilities that add up to one."""
    pairs = zip(leaves(a), leaves(b), strict=True)
    return any(float(abs(x - y).max()) > 1e-7 for x, y in pairs)


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_trains_evaluates_and_goes_on(cell: Cell, tmp_path: Path) -> None:
    config, directory = config_of(cell), tmp_path / EXP_NAME
    trained(config, max_env_step=FIRST)
    first = result_of(directory)
    assert first["env_step"] >= FIRST and first["train_iter"] >= 2
    assert first["dropped_steps"] == 0
    assert len(first["curve"]) >= 2

    before, after = (learner_of(directory, name) for name in (PREVIOUS_NAME, STATE_NAME))
    assert before["train_iter"] == 0
    assert differ(before["policy"]["model"], after["policy"]["model"])
    logged = [value for values in after["log"].values() for value in values]
    assert logged and all(map(math.isfinite, logged))

    checkpoint = directory / "ckpt" / f"iteration_{first['train_iter']}.pth.tar"
    again = evaluate(config, seed=0, load_path=checkpoint)
    assert list(again.reward) == pytest.approx(first["eval_value_raw"], abs=1e-6)

    trained(config, max_env_step=SECOND, resume=True)
    second = result_of(directory)
    assert second["env_step"] >= SECOND and second["train_iter"] > first["train_iter"]
    assert second["curve"][: len(first["curve"])] == first["curve"]
    assert second["dropped_steps"] == 0


@pytest.mark.parametrize("algorithm", CLAIMS)
def test_a_run_that_goes_on_is_the_one_without_a_break(algorithm: str, tmp_path: Path) -> None:
    whole, cut = config_of(home(algorithm)), config_of(home(algorithm))
    cut[0]["exp_name"] = "cut"
    trained(whole, max_env_step=SECOND)
    trained(cut, max_env_step=FIRST)
    trained(cut, max_env_step=SECOND, resume=True)
    names = (EXP_NAME, "cut")
    a, b = (leaves(learner_of(tmp_path / name, STATE_NAME)["policy"]) for name in names)
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def once_trained(algorithm: str, **env: Any) -> Policy:
    """After a single collect that holds several ends of episodes, and the updates by it."""
    config = config_of(home(algorithm), n_step=32, **env)
    config[0]["policy"]["learn"]["batch_size"] *= 2  # every step of it in every update
    return trained(config, max_train_iter=1)


@pytest.mark.parametrize("algorithm", CLAIMS)
def test_last_observation_counts_where_a_limit_cut_off(algorithm: str) -> None:
    weights = {
        (end, shift): once_trained(algorithm, end=end, shift=shift)._model.state_dict()
        for end in ("terminated", "truncated")
        for shift in (0.0, 10.0)
    }
    bootstraps = CLAIMS[algorithm].bootstraps
    assert differ(weights["terminated", 0.0], weights["truncated", 0.0]) is bootstraps
    assert not differ(weights["terminated", 0.0], weights["terminated", 10.0])
    assert differ(weights["truncated", 0.0], weights["truncated", 10.0]) is bootstraps


@pytest.mark.parametrize("each", [False, True], ids=["team", "each"])
@pytest.mark.parametrize("cell", [c for c in cells() if "_agents" in c.action], ids=str)
def test_nothing_is_learned_from_the_dead(cell: Cell, each: bool) -> None:
    states = []
    for dead_shift in (0.0, 10.0):
        config = config_of(cell, 32, dies=True, each=each, dead_shift=dead_shift)
        policy = trained(config, max_train_iter=1)
        assert all(map(math.isfinite, (float(x.sum()) for x in leaves(policy._model.state_dict()))))
        states.append(policy._model.state_dict())
    assert not differ(*states)


@pytest.mark.parametrize("algorithm", CLAIMS)
def test_memory_of_the_episode(algorithm: str) -> None:
    policy, ids = once_trained(algorithm), np.arange(200)
    space = WorldEnv(config_of(home(algorithm))[0]["env"]).observation_space
    space.seed(0)
    past, other, now = (stack([space.sample() for _ in ids]) for _ in range(3))
    with torch.no_grad():
        for weight in policy._model.parameters():
            if weight.ndim > 1:  # else one action may be best whatever is seen
                weight.add_(torch.randn_like(weight))

    def act(*history: Any) -> Any:
        policy.eval_mode.reset()
        for obs in history:
            _, output = stacked_of(policy.eval_mode.forward(ByEnv(ids, obs)))
        return output["action"]

    assert differ(act(past, now), act(other, now)) is CLAIMS[algorithm].recurrent
    assert not differ(act(past, now), act(past, now)), "an episode that is over is forgotten"


# --- what is not ---------------------------------------------------------------------------------


def refused(cell: Cell, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(world: World, action: Any) -> Any:
        raise AssertionError("collected before the error")

    monkeypatch.setattr(World, "step", step)
    with pytest.raises(ConfigError, match=message):
        trained(config_of(cell), max_env_step=FIRST)
    assert not list(Path.cwd().iterdir()), "nothing is left behind"


@pytest.mark.parametrize("cell", foreign_cells(UNCLAIMED_ACTIONS), ids=str)
def test_other_actions_are_refused(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    space = "".join(word.capitalize() for word in cell.action.split("_"))
    kind = space if cell.action in UNCLAIMED_ACTIONS else cell.action
    refused(cell, rf"policy '{cell.algorithm}' is for .*, but the env's are {kind} \(", monkeypatch)


@pytest.mark.parametrize("cell", foreign_masks(), ids=str)
def test_other_masks_are_refused(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(cell, rf"policy '{cell.algorithm}'.*action_mask", monkeypatch)
