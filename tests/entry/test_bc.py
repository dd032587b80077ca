"""Cloning runs: from a file to a policy that does as well, and what stops them before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import override
from ding.data.demo_formats import load_demonstrations
from ding.data.demonstrations import Demonstrations
from ding.entry import (
    parallel_pipeline,
    record,
    serial_pipeline,
    serial_pipeline_bc,
    serial_pipeline_dagger,
)
from ding.entry.bc import split
from ding.entry.cli import main
from ding.utils.errors import DingError
from dizoo.classic_control.cartpole.config.cartpole_bc_config import (
    create_config as cartpole_create,
)
from dizoo.classic_control.cartpole.config.cartpole_bc_config import main_config as cartpole
from dizoo.classic_control.pendulum.config.pendulum_bc_config import (
    create_config as pendulum_create,
)
from dizoo.classic_control.pendulum.config.pendulum_bc_config import main_config as pendulum
from entry.configs import pair
from entry.test_demo import upright

pytest.importorskip("h5py")
FILE = "cartpole_expert.hdf5"


def config(**changes: Any) -> list[Any]:
    few = {"env.evaluator_env_num": 10, "env.n_evaluator_episode": 10}
    return [override(cartpole, {"exp_name": "run", **few, **changes}), cartpole_create]


def result() -> dict[str, Any]:
    return json.loads(Path("run/result.json").read_text())


def test_ten_episodes_are_enough_for_cartpole() -> None:
    record(upright, "CartPole-v1", 10, FILE)
    policy, stop = serial_pipeline_bc(config(), 0, FILE)
    assert stop
    assert np.mean(result()["eval_value_raw"]) >= 475
    assert result()["env_step"] == 0
    acted = policy.eval_mode.forward({0: np.array([0.0, 0.0, 0.1, 0.0], np.float32)})
    assert acted[0]["action"] == 1


def swing(obs: Any) -> np.ndarray:
    """Torque in [-1, 1]: add energy until the pole is up, then hold it there."""
    cos, sin, speed = obs
    angle = np.arctan2(sin, cos)
    energy = speed**2 / 6 + 5 * (cos - 1)
    torque = -8 * angle - 2 * speed if cos > 0.9 else -3 * energy * np.sign(speed or 1.0)
    return np.clip(np.array([torque]), -2, 2).astype(np.float32)


def test_continuous_actions_are_cloned() -> None:
    """Push the way the car moves: about 89; random actions return about -33."""
    made = record(lambda obs: [1.0 if obs[1] >= 0 else -1.0], "MountainCarContinuous-v0", 10)
    assert made.returns.min() > 88
    env = {"env_id": "MountainCarContinuous-v0", "stop_value": 85}
    main_config = override(pendulum, {"exp_name": "run", "policy.model.obs_shape": 2})
    main_config["env"] = {**main_config["env"], **env}
    _, stop = serial_pipeline_bc([main_config, dict(policy=dict(type="bc"))], 0, made)
    assert stop
    assert result()["eval_value"] > 85


def test_the_command_and_going_on(capsys: Any) -> None:
    record(upright, "CartPole-v1", 2, FILE)
    argv = ["-m", "serial_bc", "-e", "cartpole", "-p", "bc", "--exp-name"]
    assert main([*argv, "whole", "--train-iter", "20"]) == 0
    assert "2 episodes, 1000 steps, return mean 500.00; 100 steps held out" in (
        capsys.readouterr().err
    )
    assert main([*argv, "cut", "--train-iter", "9"]) == 0
    assert main([*argv, "cut", "--train-iter", "20", "--resume"]) == 0
    from ding.utils.checkpoint import load_checkpoint

    a, b = (load_checkpoint(f"{name}/ckpt/iteration_20.pth.tar") for name in ("whole", "cut"))
    assert all(np.array_equal(a["model"][key], b["model"][key]) for key in a["model"])


def test_a_checkpoint_is_a_start_for_others() -> None:
    record(upright, "CartPole-v1", 3, FILE)
    serial_pipeline_bc(config(), 0, FILE)
    network = {"encoder_hidden_size_list": [64, 64], "obs_shape": 4, "action_shape": 2}
    dqn = override(pair("dqn")[0], {"exp_name": "q", "policy.model": network})
    dqn["policy"]["load_path"] = "run/ckpt/ckpt_best.pth.tar"
    serial_pipeline([dqn, pair("dqn")[1]], max_train_iter=1)
    first = json.loads(Path("q/result.json").read_text())["curve"][0]
    assert first["reward_mean"] > 200  # a fresh network returns about 10


def test_early_stopping_and_the_best_weights() -> None:
    """Random actions cannot be met: what is held out is met worse and worse."""
    rng = np.random.default_rng(0)
    noise = record(lambda obs: rng.integers(2), "CartPole-v1", 30)
    settings = {"policy.learn.train_epoch": 200, "policy.learn.early_stop_epoch": 3}
    policy, stop = serial_pipeline_bc(config(**settings), 0, noise)
    assert not stop
    n_batch = (noise.n_step * 9 // 10) // 64
    assert result()["train_iter"] < 60 * n_batch
    assert policy.early_stop.since == 3
    _, held_out = split(noise, 0.1, 0)
    from ding.utils.batch import Rows, take

    kept = {name: noise.columns[name] for name in ("obs", "action")}
    measured = policy.held_out(Rows(take(kept, held_out)))
    assert measured["loss"] == pytest.approx(policy.early_stop.best, rel=1e-5)


def test_whole_episodes_are_held_out() -> None:
    made = record(upright, "CartPole-v1", 10)
    train, held_out = split(made, 0.1, seed=3)
    assert (len(train), len(held_out)) == (4500, 500)
    assert len(set(made.episode_id[held_out])) == 1
    few, rest = split(made.episodes(slice(0, 2)), 0.1, seed=3)
    assert (len(few), len(rest)) == (900, 100)
    assert sorted([*few, *rest]) == list(range(1000))


def test_normalised_observations() -> None:
    """A scale that no network could learn from with these steps."""
    made = record(upright, "CartPole-v1", 10)
    policy, _ = serial_pipeline_bc(config(**{"policy.obs_norm": True}), 0, made)
    state = policy.acting_parts.state_dict()["obs_norm"]
    assert next(iter(state.values()))["count"] == 4500
    assert np.mean(result()["eval_value_raw"]) >= 475


def test_what_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    record(upright, "CartPole-v1", 1, FILE)
    Path("bad.hdf5").write_bytes(Path(FILE).read_bytes()[:-100])
    pendulum_made = record(swing, "Pendulum-v1", 1)
    before = set(tmp_path.rglob("*"))
    cases: list[tuple[Any, Any, str]] = [
        (config(), "nothing.hdf5", "no demonstrations at"),
        (config(), "bad.hdf5", "damaged"),
        (config(), pendulum_made, "env 'Pendulum-v1', but the run's env is 'CartPole-v1'"),
        (config(**{"policy.collect.data_path": None}), None, r"policy\.collect\.data_path"),
        (config(**{"policy.learn.batch_size": 5000}), FILE, "batch_size = 5000"),
        (config(**{"policy.continuous": True, "policy.loss_type": "l1_loss"}), FILE, "continuous"),
        (pair("dqn"), FILE, "does not learn from demonstrations"),
    ]
    for given, source, message in cases:
        with pytest.raises(DingError, match=message):
            serial_pipeline_bc(given, 0, source)
    assert set(tmp_path.rglob("*")) == before


def test_torques_beyond_the_network_are_refused() -> None:
    changes = {"exp_name": "run", "env.act_scale": False}
    with pytest.raises(DingError, match=r"beyond \[-1, 1\].*act_scale"):
        serial_pipeline_bc(
            [override(pendulum, changes), pendulum_create], 0, record(swing, "Pendulum-v1", 2)
        )


def test_other_modes_refuse_it(capsys: Any) -> None:
    assert main(["-m", "serial", "-e", "cartpole", "-p", "bc"]) == 1
    assert "use serial_pipeline_bc (-m serial_bc)" in capsys.readouterr().err
    with pytest.raises(DingError, match="use -m serial_bc"):
        parallel_pipeline(config())
    assert main(["-m", "serial_bc", "-e", "cartpole", "-p", "bc", "--env-step", "5"]) == 1
    assert "--env-step has no effect with -m serial_bc" in capsys.readouterr().err


# --- dagger --------------------------------------------------------------------------------------


def test_dagger_asks_the_expert_where_the_learner_goes() -> None:
    changes = {"env.collector_env_num": 2, "policy.learn.train_epoch": 1}
    done = serial_pipeline_dagger(
        config(**changes), upright, 0, n_round=3, n_episode=2, epochs_per_round=3
    )
    known: Demonstrations = done.demonstrations
    assert known.n_step > 1000
    assert done.expert_labels == known.n_step
    labels = [upright(obs) for obs in known.columns["obs"][::50]]
    assert known.columns["action"][::50].tolist() == labels
    assert result()["env_step"] == known.n_step
    # The expert alone acts in the first round.
    assert known.returns[:2].tolist() == [500.0, 500.0]
    assert done.stop


def test_dagger_with_a_policy_and_refusals() -> None:
    record(upright, "CartPole-v1", 5, FILE)
    expert, _ = serial_pipeline_bc(config(), 0, FILE)
    small = {"exp_name": "dagger", "env.collector_env_num": 2}
    for given in (expert, "run"):
        done = serial_pipeline_dagger(config(**small), given, n_round=1, n_episode=2)
        assert done.demonstrations.n_episode == 2
        assert load_demonstrations(done.demonstrations.save(f"{type(given).__name__}.hdf5"))
    with pytest.raises(DingError, match="beta = 2"):
        serial_pipeline_dagger(config(), expert, beta=2)
    with pytest.raises(DingError, match="is no run"):
        Path("empty").mkdir()
        serial_pipeline_dagger(config(), "empty")
