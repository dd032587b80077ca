"""Trainings with an expert: the established entries, parallel runs, resumed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.entry import (
    record,
    serial_pipeline,
    serial_pipeline_dqfd,
    serial_pipeline_gail,
    serial_pipeline_sqil,
)
from ding.entry.cli import main
from ding.utils.errors import ConfigError, DemonstrationError
from ding.utils.limits import Limits

from .configs import config_file, pair
from .lockstep import SEED, generators, losses, parallel, serial


def balance(obs: Any) -> int:
    """A linear controller that keeps the pole up."""
    return int(0.05 * obs[0] + 0.1 * obs[1] + obs[2] + 0.5 * obs[3] > 0)


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("expert") / "cartpole.hdf5"
    found = record(balance, "CartPole-v1", 2, path)
    assert found.returns.tolist() == [500, 500]
    return str(path)


def config(kind: str, name: str, path: str, **settings: Any) -> list[Any]:
    section = dict(path=path, share=0.25, **settings)
    made = pair("dqn", exp_name=name, policy=dict(other=dict(demonstrations=section)))
    made[1] = dict(env_manager=dict(type="base"), policy=dict(type=kind))
    return made


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sqil": ("dqn", dict(agent_reward=0.0, expert_reward=1.0)),
    "dqfd": ("dqfd", dict(pretrain=5, share_end=0.5, share_decay=20)),
}


@pytest.mark.parametrize("case", CASES)
def test_parallel_draws_what_serial_draws(
    case: str, expert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, settings = CASES[case]
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    results = []
    for name, run in (("serial", serial), ("parallel", parallel)):
        with generators(monkeypatch), pytest.MonkeyPatch.context() as patch:
            noted = losses(patch)
            made = config(kind, name, expert, **settings)
            # A parallel run draws several batches before it hears of their priorities.
            made[0]["policy"] |= dict(priority=False, priority_IS_weight=False)
            run(made, Limits(env_step=200))
            results.append(noted)
    assert len(results[0]) > 20 and results[0] == results[1]


def trained(made: list[Any], steps: int, resume: bool = False) -> list[np.ndarray]:
    policy = serial_pipeline(made, SEED, max_env_step=steps, resume=resume)
    return [p.detach().numpy().copy() for p in policy._model.parameters()]


@pytest.mark.parametrize("case", CASES)
def test_a_resumed_run_goes_on_bit_for_bit(case: str, expert: str) -> None:
    kind, settings = CASES[case]
    whole = trained(config(kind, "whole", expert, **settings), 200)
    trained(config(kind, "parts", expert, **settings), 100)
    resumed = trained(config(kind, "parts", expert, **settings), 200, resume=True)
    for one, other in zip(whole, resumed, strict=True):
        assert np.array_equal(one, other)


def test_sequences_of_an_expert_reach_a_recurrent_policy(expert: str) -> None:
    made = config("r2d3", "run", expert, pretrain=3)
    made[0]["policy"] |= dict(burnin_step=2, learn_unroll_len=4)
    made[0]["policy"]["learn"] |= dict(batch_size=8)
    policy = serial_pipeline(made, SEED, max_env_step=100)
    assert policy.learn_mode.monitor_vars()[-1] == "margin_loss"
    columns = type(policy).expert_columns(
        policy._cfg, dict(obs=np.zeros((3, 4), np.float32), episode_step=np.array([0, 1, 0]))
    )
    assert columns["begins"].tolist() == [True, False, True]
    assert all(not np.any(leaf) and len(leaf) == 3 for leaf in _leaves(columns["prev_state"]))


def _leaves(tree: Any) -> list[np.ndarray]:
    parts = (
        tree.values()
        if isinstance(tree, dict)
        else tree
        if isinstance(tree, (list, tuple))
        else None
    )
    return [tree] if parts is None else [leaf for part in parts for leaf in _leaves(part)]


def test_an_experts_config_is_played_first() -> None:
    serial_pipeline(pair("dqn", exp_name="expert"), SEED, max_env_step=50)
    agent, expert_cfg = pair("dqn", exp_name="agent"), pair("dqn", exp_name="expert")
    expert_cfg[0]["policy"]["collect"]["model_path"] = "expert/ckpt/ckpt_best.pth.tar"
    agent[0]["policy"]["learn"]["expert_replay_buffer_size"] = 64
    serial_pipeline_sqil(agent, expert_cfg, SEED, max_env_step=50)
    assert Path("agent_expert.hdf5").is_file() and Path("agent/result.json").is_file()
    established = pair("dqn", exp_name="dqfd")
    established[0]["policy"]["learn"] |= dict(per_train_iter_k=3, expert_replay_buffer_size=64)
    established[0]["policy"]["collect"]["pho"] = 0.5
    established[1] = dict(policy=dict(type="dqfd"))
    policy = serial_pipeline_dqfd(established, expert_cfg, SEED, max_env_step=50)
    section = policy._cfg.other.demonstrations
    assert (section.pretrain, section.share) == (3, 0.5)


def test_gail_reads_a_file_or_lets_an_expert_play(expert: str) -> None:
    section = dict(type="gail", update_per_collect=1, data_path=expert)
    made = pair("ppo", exp_name="gail", reward_model=section)
    serial_pipeline_gail(made, None, SEED, max_env_step=64)
    assert Path("gail/reward_model/ckpt/ckpt_last.pth.tar").is_file()
    section.pop("data_path")
    with pytest.raises(ConfigError, match=r"no expert: set reward_model\.data_path"):
        serial_pipeline_gail(pair("ppo", reward_model=section), None, SEED)


def test_what_does_not_fit_is_refused_before_anything_is_trained(expert: str) -> None:
    with pytest.raises(ConfigError, match="policy 'dqfd' needs demonstrations"):
        made = pair("dqn", exp_name="run")
        serial_pipeline([made[0], dict(policy=dict(type="dqfd"))], SEED)
    with pytest.raises(ConfigError, match=r"no expert: set policy\.other\.demonstrations\.path"):
        serial_pipeline_sqil(pair("dqn", exp_name="run"), None, SEED)
    with pytest.raises(ConfigError, match="learns on-policy; use an off-policy one"):
        section = dict(other=dict(demonstrations=dict(path=expert)))
        serial_pipeline(pair("ppo", exp_name="run", policy=section), SEED)
    with pytest.raises(DemonstrationError, match="no demonstrations at 'nowhere"):
        trained(config("dqn", "run", "nowhere.hdf5"), 50)
    with pytest.raises(DemonstrationError, match=r"CartPole-v1.*Pendulum|observations of"):
        section = dict(other=dict(demonstrations=dict(path=expert)))
        serial_pipeline(pair("sac", exp_name="run", policy=section), SEED)
    assert not Path("run").exists()


def test_modes_of_the_command_insist_on_their_section(
    expert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--env-step", "40", "-c"]
    plain = str(config_file(tmp_path, "dqn", {}, "plain.py"))
    assert main(["-m", "serial_gail", *words, plain]) == 1
    assert "needs main_config.reward_model = dict(type='gail'" in capsys.readouterr().err
    assert main(["-m", "serial_sqil", *words, plain]) == 1
    assert "-m serial_sqil needs policy.other.demonstrations" in capsys.readouterr().err
    section = {"policy.other.demonstrations": dict(path=expert)}
    assert main(["-m", "serial_sqil", *words, str(config_file(tmp_path, "dqn", section))]) == 0
