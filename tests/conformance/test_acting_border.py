"""Acting from a published state or a checkpoint is acting in the learner's own process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conformance.claims import CLAIMS, home
from conformance.configs import EXP_NAME, config_of, trained
from conformance.worlds import WorldEnv
from ding.entry import serial_pipeline
from ding.entry.evaluation import evaluate
from ding.policy import ActingState, Policy, create_policy
from ding.utils.batch import ByEnv, Rows, columns_of, stack, stacked_of, tree_map
from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.errors import CheckpointError

N = 2
GAMMA_RETURNS = np.array([0.0, 40.0, -25.0, 100.0], dtype=np.float32)


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)


def leaves(tree: Any) -> list[np.ndarray]:
    found: list[Any] = []
    tree_map(found.append, tree)
    return [np.asarray(leaf) for leaf in found]


def assert_same(one: Any, other: Any) -> None:
    first, second = leaves(one), leaves(other)
    assert len(first) == len(second) > 0
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


def observations(config: list[dict[str, Any]], n: int, seed: int) -> list[Any]:
    """`n` observations in a row of `N` envs, stacked."""
    cfg = config[0]["env"]
    envs = [WorldEnv({**WorldEnv.default_config(), **cfg}) for _ in range(N)]
    for i, env in enumerate(envs):
        env.seed(seed + i)
    rows = [[env.reset() for env in envs]]
    while len(rows) < n:
        steps = [env.step(env.random_action()) for env in envs]
        rows.append([s.obs if not s.done else e.reset() for s, e in zip(steps, envs, strict=True)])
    return [stack(row) for row in rows]


def acted(policy: Policy, obs: list[Any], settings: dict[str, Any]) -> list[Any]:
    """Outputs of collecting and evaluating, with a generator that begins anew."""
    policy.rng.bit_generator.state = np.random.default_rng(7).bit_generator.state
    torch.manual_seed(7)  # of the noise in noisy layers
    policy.collect_mode.reset()
    policy.eval_mode.reset()
    ids = np.arange(N)
    outputs = [stacked_of(policy.collect_mode.forward(ByEnv(ids, o), **settings))[1] for o in obs]
    best = [stacked_of(policy.eval_mode.forward(ByEnv(ids, o)))[1] for o in obs]
    return [*outputs, *best, samples(policy, obs, outputs)]


def samples(policy: Policy, obs: list[Any], outputs: list[Any]) -> Any:
    """Training samples of the first env's steps, with values and log-probabilities, if any."""
    done = np.zeros(N, dtype=bool)

    class Step:
        reward, abnormal, truncated = np.arange(N, dtype=np.float32), done, done

    steps = []
    for before, output, after in zip(obs, outputs, obs[1:], strict=False):
        Step.obs, Step.done = after, done  # type: ignore[attr-defined]
        step = policy.collect_mode.process_transition(before, output, Step)
        steps.append(tree_map(lambda leaf: leaf[0], {**step, "done": done, "truncated": done}))
    steps[-1]["done"] = np.bool_(True)
    columns = stack(steps)
    columns["end"] = columns["done"].copy()
    columns["episode_id"] = np.zeros(len(steps), dtype=np.int64)
    return columns_of(policy.collect_mode.get_train_sample(Rows(columns)))


@pytest.mark.parametrize("algorithm", CLAIMS)
def test_acting_elsewhere_is_acting_here(algorithm: str, tmp_path: Path) -> None:
    config = config_of(home(algorithm))
    learner = trained(config, max_env_step=60)
    if "return_scale" in learner.acting_parts:
        learner._return_scale.update(GAMMA_RETURNS)  # type: ignore[attr-defined]
    if "temperature" in learner.acting_parts:
        learner._temperature.log_alpha.data.fill_(-1.5)  # type: ignore[attr-defined]
    settings = learner.command_mode.get_setting_collect({"learner_step": 0, "envstep": 0})
    obs = observations(config, 6, seed=3)
    wanted = acted(learner, obs, settings)
    elsewhere = create_policy(learner._cfg, enable_field=["eval", "collect"])
    fresh = leaves(elsewhere.acting_state().parts)
    elsewhere.load_acting_state(learner.acting_state(3))
    assert_same(acted(elsewhere, obs, settings), wanted)
    learned = leaves(learner.acting_state().parts)
    assert any(not np.array_equal(a, b) for a, b in zip(fresh, learned, strict=True))
    path = tmp_path / "checkpoint.pth.tar"
    save_checkpoint(path, learner.learn_mode.state_dict())
    for field in ("collect", "eval"):
        loaded = create_policy(learner._cfg, enable_field=["collect", "eval"])
        getattr(loaded, f"{field}_mode").load_state_dict(load_checkpoint(path))
        assert_same(acted(loaded, obs, settings), wanted)


def test_a_published_state_does_not_change_with_the_next_update() -> None:
    learner = trained(config_of(home("dqn")), max_env_step=60)
    state = learner.acting_state(1)
    before = [leaf.copy() for leaf in leaves(state.parts)]
    for parameter in learner._model.parameters():
        parameter.data.add_(1.0)
    for leaf, old in zip(leaves(state.parts), before, strict=True):
        assert np.array_equal(leaf, old)


def test_a_state_that_lacks_a_part_is_refused() -> None:
    learner = trained(config_of(home("ppo")), max_env_step=60)
    state = learner.acting_state(1)
    parts = {name: part for name, part in state.parts.items() if name != "return_scale"}
    with pytest.raises(CheckpointError, match="lacks return_scale"):
        learner.load_acting_state(ActingState(1, parts))


@pytest.mark.parametrize("fields", [["collect", "learn"], ["eval", "collect", "command", "learn"]])
@pytest.mark.parametrize("algorithm", ["dqn", "ppo", "sac", "pg"])
def test_acting_follows_learning_whatever_was_made_first(algorithm: str, fields: list[str]) -> None:
    config = config_of(home(algorithm))
    cfg = trained(config, max_env_step=60)._cfg
    policy = create_policy(cfg, enable_field=fields)
    obs = ByEnv(np.arange(N), observations(config, 1, seed=0)[0])

    def logits() -> Any:
        policy.rng.bit_generator.state = np.random.default_rng(7).bit_generator.state
        return stacked_of(policy.collect_mode.forward(obs))[1]

    first = logits()
    with_one_more = {k: v + 0.5 for k, v in policy._model.state_dict().items()}
    for name, parameter in policy._model.named_parameters():
        parameter.data.copy_(with_one_more[name])  # in place, as an optimizer does
    expected = create_policy(cfg, enable_field=["collect"])
    expected.load_acting_state(policy.acting_state(0))
    expected.rng.bit_generator.state = np.random.default_rng(7).bit_generator.state
    assert_same(logits(), stacked_of(expected.collect_mode.forward(obs))[1])
    assert leaves(first)[0].shape == leaves(logits())[0].shape


# --- normalisers ---------------------------------------------------------------------------------


def pendulum(algorithm: str, **policy: Any) -> list[dict[str, Any]]:
    main = dict(
        exp_name=EXP_NAME,
        env=dict(
            env_id="Pendulum-v1",
            collector_env_num=4,
            evaluator_env_num=2,
            n_evaluator_episode=2,
            stop_value=1e9,
            env_wrapper=["obs_norm", dict(type="reward_norm", reward_discount=0.9)],
        ),
        policy=policy,
    )
    create = dict(
        env=dict(type="ding_env_wrapper_generated"),
        env_manager=dict(type="base"),
        policy=dict(type=algorithm),
    )
    return [main, create]


PPO = dict(
    action_space="continuous",
    collect=dict(n_sample=256),
    learn=dict(batch_size=64, epoch_per_collect=2),
    eval=dict(evaluator=dict(eval_freq=1000)),
)
SAC = dict(
    random_collect_size=64,
    collect=dict(n_sample=16),
    learn=dict(batch_size=16, update_per_collect=2),
    eval=dict(evaluator=dict(eval_freq=1000)),
    model=dict(actor_head_hidden_size=8, critic_head_hidden_size=8),
)


@pytest.mark.parametrize(("algorithm", "policy"), [("ppo", PPO), ("sac", SAC)])
def test_normalisers_are_one_for_all_envs_and_are_saved(
    algorithm: str, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The starts of an evaluation by hand, for the comparison below.
    starts = "ding.worker.evaluator.evaluation_seeds"
    monkeypatch.setattr(starts, lambda seed, n, again=0: [seed + i for i in range(n)])
    config = pendulum(algorithm, **policy)
    trained_policy: Any = serial_pipeline(config, seed=0, max_env_step=600)
    moments = trained_policy.acting_state().parts["obs_norm"][""]
    result = json.loads((Path(EXP_NAME) / "result.json").read_text())
    assert moments["count"] == result["env_step"]  # of all four envs, evaluation not among them
    assert moments["mean"].shape == (3,)
    checkpoint = load_checkpoint(max((Path(EXP_NAME) / "ckpt").glob("iteration_*")))
    assert checkpoint["obs_norm"][""]["count"] == moments["count"]
    # The very state that was evaluated last scores the same when it is loaded again.
    again = evaluate([{**config[0], "exp_name": "again"}, config[1]], seed=0, state_dict=checkpoint)
    assert list(again.reward) == pytest.approx(result["eval_value_raw"], abs=1e-3)


def test_evaluating_without_the_statistics_is_refused() -> None:
    config = pendulum("ppo", **PPO)
    policy: Any = serial_pipeline(config, seed=0, max_env_step=256)
    state = {"model": policy._model.state_dict()}
    with pytest.raises(CheckpointError, match="no 'obs_norm'"):
        evaluate([{**config[0], "exp_name": "again"}, config[1]], seed=0, state_dict=state)


def test_a_run_with_normalisers_is_resumed_bit_for_bit() -> None:
    for algorithm, policy in (("ppo", PPO), ("sac", SAC)):
        config = pendulum(algorithm, **policy)
        config[0]["exp_name"] = f"{algorithm}_whole"
        whole: Any = serial_pipeline(config, seed=0, max_env_step=1024)
        config[0]["exp_name"] = f"{algorithm}_parts"
        serial_pipeline(config, seed=0, max_env_step=512)
        resumed: Any = serial_pipeline(config, seed=0, max_env_step=1024, resume=True)
        assert_same(resumed.acting_state().parts, whole.acting_state().parts)


def test_moments_merge_exactly() -> None:
    from ding.policy.normaliser import ObsNormaliser

    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((240, 3)) * [1.0, 50.0, 0.01] + [0.0, 1e4, -3.0]).astype(np.float32)
    whole, shared = ObsNormaliser((-10, 10)), ObsNormaliser((-10, 10))
    for start in range(0, 240, 8):
        whole.gather(rows[start : start + 8])
    whole.merge(whole.take_gathered())
    parts = [ObsNormaliser((-10, 10)) for _ in range(8)]
    for start in range(0, 240, 8):
        for i, part in enumerate(parts):
            part.gather(rows[start + i : start + i + 1])
    for part in parts:
        shared.merge(part.take_gathered())
    for normaliser in (whole, shared):
        moments = normaliser.state_dict()[""]
        assert moments["count"] == 240
        assert moments["mean"] == pytest.approx(rows.astype(np.float64).mean(axis=0), rel=1e-9)
        assert moments["square"] / 240 == pytest.approx(rows.astype(np.float64).var(axis=0))
    assert whole(rows) == pytest.approx(shared(rows), abs=1e-4)
    assert np.abs(whole(rows)).max() < 10


def test_masks_and_flags_are_never_normalised() -> None:
    from ding.policy.normaliser import ObsNormaliser

    ones = np.ones((4, 3), dtype=np.float32)
    place = np.arange(12, dtype=np.float32).reshape(4, 3)
    flags = {"action_mask": ones * [1, 0, 0], "alive": ones[:, 0], "has_key_flag": ones[:, :1]}
    nested = {"place": place, **flags, "unit": {"place": place, "alive": ones[:, 0]}}
    normaliser = ObsNormaliser((-3, 3))
    normaliser.gather(nested)
    normaliser.merge(normaliser.take_gathered())
    assert sorted(normaliser.state_dict()) == ["/place", "/unit/place"]
    seen = normaliser({**nested, "alive": 0 * ones[:, 0]})
    assert list(seen) == list(nested)
    assert seen["place"][:, 0] == pytest.approx((place[:, 0] - 4.5) / place[:, 0].std(), rel=1e-5)
    assert seen["action_mask"].tolist() == [[1, 0, 0]] * 4
    assert seen["alive"].tolist() == [0] * 4 and seen["unit"]["alive"].tolist() == [1] * 4
    assert seen["has_key_flag"].tolist() == [[1]] * 4
