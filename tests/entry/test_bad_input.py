"""Whatever is wrong, the user gets one line that says what and where, and no new files."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from ding.entry import Run
from ding.entry.cli import main
from ding.utils.checkpoint import save_checkpoint
from entry.configs import config_file, pair

LIMIT = ["--train-iter", "3", "--env-step", "500"]


def files_of(directory: Path) -> set[Path]:
    return {p for p in directory.rglob("*") if "__pycache__" not in p.parts}


def refused(argv: list[str], pattern: str, capsys: Any, directory: Path, code: int = 1) -> None:
    before = files_of(directory)
    try:
        returned = main(argv)
    except SystemExit as leaving:
        returned = int(leaving.code or 0)
    error = capsys.readouterr().err
    assert returned == code, error
    last = error.strip().splitlines()[-1]
    assert last.startswith("ding: error: ")
    assert re.search(pattern, last), last
    assert "Traceback" not in error
    assert files_of(directory) == before


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


CONFIGS = [
    ("dqn", {"policy.learn.lerning_rate": 1}, r"policy\.learn\.lerning_rate.*'learning_rate'"),
    ("dqn", {"polcy": {}}, r"polcy.*'policy'"),
    ("dqn", {"policy.learn.batch_size": "abc"}, r"policy\.learn\.batch_size.*int.*'abc'"),
    ("dqn", {"policy.learn": 3}, r"learn' must be a dict, got 3"),
    ("dqn", {"env.stop_value": None}, r"'env\.stop_value' is required"),
    ("dqn", {"env.n_evaluator_episode": None}, r"'env\.n_evaluator_episode' is required"),
    ("ppo", {"policy.collect.n_sample": None}, r"'policy\.collect\.n_sample'.*is required"),
    ("dqn", {"env.env_id": None}, r"env_id"),
    ("dqn", {"env.env_id": "CartPol-v1"}, r"CartPol-v1.*'CartPole-v1'"),
    ("dqn", {"env.n_evaluator_episode": 1}, r"n_evaluator_episode.*1.*evaluator_env_num"),
    ("dqn", {"env.collector_env_num": 0}, r"collector_env_num.*at least 1"),
    ("dqn", {"policy.model.obs_shape": 5}, r"obs_shape = 5, but the env has 4"),
    ("dqn", {"policy.model.action_shape": 5}, r"action_shape = 5, but the env has 2"),
    ("dqn", {"policy.model.encoder_hidden_size_list": []}, r"encoder_hidden_size_list"),
    ("dqn", {"policy.model.duelling": True}, r"policy\.model\.duelling.*'dueling'"),
    ("dqn", {"env.env_id": "Pendulum-v1"}, r"'dqn' is for discrete actions.*use for example 'ppo'"),
    ("ppo", {"policy.action_space": "continuous"}, r"set policy\.action_space = 'discrete'"),
    ("ppo", {"env.env_id": "Pendulum-v1"}, r"set policy\.action_space = 'continuous'"),
    ("ppo", {"policy.learn.batch_size": 128}, r"batch_size = 128.*n_sample = 64"),
    ("ppo", {"policy.nstep": 3}, r"nstep has no effect"),
    ("ppo", {"policy.learn.dual_clip": 0.5}, r"dual_clip = 0.5.*above 1"),
    (
        "dqn",
        {"policy.priority": True, "policy.other.replay_buffer.type": "naive"},
        r"priority = True.*'naive'",
    ),
    ("dqn", {"policy.priority_IS_weight": True}, r"priority_IS_weight"),
    ("dqn", {"policy.other.replay_buffer.replay_buffer_size": 8}, r"replay_buffer_size = 8.*16"),
    ("dqn", {"policy.collect.n_sample": 0}, r"policy\.collect\.n_sample = 0"),
    ("dqn", {"policy.learn.update_per_collect": 0}, r"update_per_collect = 0"),
    ("dqn", {"policy.random_collect_size": -5}, r"random_collect_size = -5"),
    ("dqn", {"policy.learn.learning_rate": -1.0}, r"policy\.learn\.learning_rate = -1.0.*above 0"),
    ("sac", {"policy.learn.learning_rate_q": 0.0}, r"policy\.learn\.learning_rate_q = 0.0"),
    ("sac", {"policy.learn.target_theta": 1.5}, r"target_theta = 1.5"),
    ("dqn", {"policy.learn.target_update_freq": 0}, r"target_update_freq = 0"),
    (
        "dqn",
        {"policy.learn.target_update_freq": 5, "policy.learn.target_theta": 0.1},
        r"target_theta",
    ),
    ("dqn", {"policy.learn.grad_clip_type": "clip_nrm"}, r"clip_nrm.*clip_norm"),
    ("dqn", {"policy.learn.grad_clip_type": "clip_norm"}, r"set both or none"),
    ("dqn", {"policy.learn.threads": 0}, r"threads = 0"),
    ("dqn", {"policy.learn.multi_gpu": True}, r"multi_gpu"),
    ("dqn", {"policy.discount_factor": 1.5}, r"discount_factor = 1.5"),
    ("dqn", {"policy.other.eps.type": "expo"}, r"expo.*'exp'"),
    ("dqn", {"policy.other.eps.decay": 0}, r"decay"),
    ("dqn", {"policy.collect.unroll_len": 4}, r"unroll_len = 4"),
    ("dqn", {"policy.collect.n_episode": 4, "policy.collect.n_sample": None}, r"get_train_sample"),
    ("dqn", {"policy.collect.n_episode": 4}, r"exclude each other"),
    ("dqn", {"policy.eval.evaluator.stop_metric": "retrun"}, r"retrun.*'return'"),
    ("dqn", {"policy.eval.evaluator.stop_metric": "win_rate"}, r"'win'"),
    ("dqn", {"policy.eval.evaluator.eval_freq": 0}, r"eval_freq = 0"),
    ("dqn", {"policy.learn.learner.hook.save_ckpt_after_itr": 3}, r"'save_ckpt_after_iter'"),
    ("dqn", {"policy.learn.learner.hook.log_show_after_iter": 0}, r"log_show_after_iter = 0"),
    ("dqn", {"policy.learn.learner.hook.own": {"type": "nope"}}, r"hook\.own.*'nope'"),
    ("dqn", {"policy.load_path": "nope.pth.tar"}, r"no checkpoint at 'nope\.pth\.tar'"),
    ("dqn", {"policy.learn.learner.hook.load_ckpt_before_run": "no.pth.tar"}, r"'no\.pth\.tar'"),
    ("dqn", {"env.manager.max_rety": 2}, r"max_rety.*'max_retry'"),
    ("dqn", {"exp_name": ""}, r"exp_name"),
]


@pytest.mark.parametrize(("kind", "changes", "pattern"), CONFIGS, ids=[str(c[1]) for c in CONFIGS])
def test_bad_config(kind: str, changes: Any, pattern: str, capsys: Any, tmp_path: Path) -> None:
    path = config_file(tmp_path, kind, changes)
    refused(["-m", "serial", "-c", str(path), *LIMIT], pattern, capsys, tmp_path)


OPTIONS = [
    (["-s", "0"], 1, r"give a mode"),
    (["-m", "seral"], 1, r"'seral'.*'serial'"),
    (["-m", "parallel"], 1, r"-c FILE"),
    (["-m", "parallel", "-e", "cartpole"], 1, r"-c FILE"),
    (["-m", "parallel", "-p", "dqn"], 1, r"-p dqn: .*platform"),
    (["-m", "parallel", "-P", "locl"], 1, r"local"),
    (["-m", "dist"], 1, r"dist"),
    (["-m", "serial", "-e", "cartpole", "-p", "dqn", "-P", "local"], 1, r"--platform"),
    (["-m", "serial"], 1, r"-c FILE"),
    (["-m", "serial", "-e", "cartpole"], 1, r"-c FILE, or -e ENV and -p POLICY"),
    (["-m", "serial", "-e", "cartpol", "-p", "dqn"], 1, r"'cartpol'.*'cartpole'"),
    (["-m", "serial", "-e", "cartpole", "-p", "dqm"], 1, r"'dqm'.*'dqn'"),
    (["-m", "serial", "-e", "cartpole", "-p", "sac"], 1, r"no config for -e cartpole -p sac"),
    (["-m", "serial", "-e", "CartPole-v1", "-p", "dqm"], 1, r"'dqm'.*'dqn'"),
    (["-m", "serial", "-c", "x.py", "-e", "cartpole"], 1, r"not both"),
    (["-m", "serial", "-c", "nope.py"], 1, r"no config file 'nope\.py'"),
    (["-m", "serial", "-e", "cartpole", "-p", "dqn", "-s", "-1"], 1, r"seed = -1"),
    (["-m", "serial", "-e", "cartpole", "-p", "dqn", "-s", "0", "-s", "0"], 1, r"once"),
    (["-m", "serial", "-e", "cartpole", "-p", "dqn", "--resume"], 1, r"nothing to resume"),
    (["--resume", "nodir"], 1, r"nodir"),
    (["-m", "serial_onpolicy", "-e", "cartpole", "-p", "dqn"], 1, r"off-policy"),
    (["-m", "serial_onpolicy", "-e", "cartpole", "-p", "dqn", "-s", "0", "-s", "1"], 1, r"off-pol"),
    (["-m", "serial", "-e", "cartpole", "-p", "dqn", "--replay-path", "v"], 1, r"--replay-path"),
    (["-m", "eval", "-e", "cartpole", "-p", "dqn"], 1, r"no checkpoint given"),
    (["-m", "eval", "-e", "cartpole", "-p", "dqn", "--resume"], 1, r"--resume has no effect"),
    (["-m", "eval", "-e", "cartpole", "-p", "dqn", "--env-step", "5"], 1, r"--env-step has no"),
    (["-m", "eval", "-e", "cartpole", "-p", "dqn", "--load-path", "x"], 1, r"no checkpoint at 'x'"),
    (["-q", "polcy"], 1, r"'polcy'.*'policy'"),
    (["--train-iter", "inf"], 2, r"'inf' is not a positive whole number"),
    (["--train-iter", "nan"], 2, r"'nan' is not a positive whole number"),
    (["--env-step", "1.5"], 2, r"'1.5' is not a positive whole number"),
    (["--env-step", "many"], 2, r"'many' is not a positive whole number"),
    (["-s", "one"], 2, r"'one'"),
    (["--no-such-option"], 2, r"--no-such-option"),
]


@pytest.mark.parametrize(
    ("argv", "code", "pattern"), OPTIONS, ids=[" ".join(o[0]) for o in OPTIONS]
)
def test_bad_options(argv: list[str], code: int, pattern: str, capsys: Any, tmp_path: Path) -> None:
    refused(argv, pattern, capsys, tmp_path, code)


GYM = ["CartPole-v1", "dqn", "--steps", "100"]
MODE = ["-m", "serial", "-e", "CartPole-v1", "-p", "dqn", "--env-step", "100"]
EVAL = ["-m", "eval", "-e", "cartpole", "-p", "dqn"]
WRAPPER = "env.env_wrapper=[{'type': 'frame_stack', 'kwargs': {'n': 3}}]"
HUGE = "other.replay_buffer.replay_buffer_size=10000000000000"
COMMANDS = [
    (["trian"], 2, r"'trian'; did you mean 'train'"),
    (["frobnicate"], 2, r"'frobnicate'; valid: check, .*train"),
    (["train"], 2, r"ENV POLICY"),
    (["train", "CartPole-v1"], 2, r"which policy\? for example: ding train CartPole-v1 dqn"),
    (["train", "Pendulum-v1", "ppo"], 2, r"how long\? add --steps"),
    (["train", *GYM, "--seeds", "2", "--seed", "1"], 2, r"--seed K for one seed or --seeds N"),
    (["train", *GYM, "--jobs", "2"], 2, r"add --seeds N"),
    (["train", "CartPole-v1", "dqn", "--steps", "0"], 2, r"'0' is not a positive whole number"),
    (["train", *GYM, "extra"], 2, r"'extra'.*KEY=VALUE"),
    (["train", *GYM, "a..b=3"], 2, r"'a\.\.b=3'.*KEY=VALUE"),
    (["train", *GYM, "seed=3"], 2, r"--seed 3"),
    (["train", *GYM, "nstep=3", "nstep=4"], 2, r"'nstep' is given twice: 3 and 4"),
    (["train", *GYM, "--stepz", "3"], 2, r"--stepz"),
    (["train", "cartpole-v1", "dqn"], 1, r"'cartpole-v1'.*did you mean 'CartPole-v1'"),
    (["train", "CartPole-v1", "cql"], 1, r"unknown policy 'cql'; valid: a2c, .*vdn"),
    (["train", "CartPole-v1", "dqm"], 1, r"did you mean 'dqn'"),
    (["train", "CartPole-v1", "sac", "--steps", "9"], 1, r"'sac' is for .*'discrete_sac'"),
    (["train", "no_mod:Env", "dqn"], 1, r"cannot import 'no_mod'"),
    (["train", *GYM, "lerning_rate=1"], 1, r"policy\.lerning_rate.*'policy\.learn\.learning_rate'"),
    (["train", *GYM, "learn.batch_size=abc"], 1, r"policy\.learn\.batch_size' must be int.*'abc'"),
    (["train", *GYM, "learn.ent_coef=1"], 1, r"policy\.learn\.ent_coef' \(= 1\)"),
    (["train", "CartPole-v1", "ppo", "ent_coef=1", "--steps", "9"], 1, r"learn\.entropy_weight'"),
    (["train", "CartPole-v1", "ppo", "n_steps=1", "--steps", "9"], 1, r"collect\.n_sample'"),
    (["train", *GYM, "model.encoder_hidden_size_list=128"], 1, r"size_list' must be list.*128"),
    (["train", *GYM, WRAPPER], 1, r"env_wrapper: 'frame_stack'.*'n'.*it takes"),
    (["train", *GYM, HUGE], 1, r"replay_buffer_size' = 10,000,000,000,000.*not enough memory"),
    (["train", *GYM, "on_policy=True"], 1, r"on_policy = True.*leave it out"),
    (["train", *GYM, "learn.threads=1000"], 1, r"policy\.learn\.threads = 1000.*between"),
    (["train", *GYM, "other.eps.start=0.1", "other.eps.end=0.9"], 1, r"eps\.end = 0\.9"),
    (["train", *GYM, "env.n_evaluator_episode=0"], 1, r"n_evaluator_episode' must be at least 1"),
    (["train", *GYM, "--exp-name", "a_file"], 1, r"'a_file' is a file, not a directory"),
    (["train", *GYM, "--exp-name", "a_file/run"], 1, r"'a_file/run': cannot make this directory"),
    (["train", "binary.yaml"], 1, r"binary\.yaml: not valid YAML"),
    (["train", "twice.yaml"], 1, r"twice\.yaml:3: .*'exp_name' stands twice"),
    ([*MODE, "--profile", "a_file"], 1, r"--profile a_file: .*is a file"),
    ([*MODE, "-s", "0", "1", "2"], 2, r"repeat the option: -s 0 -s 1 -s 2"),
    (["--resume", "nothere"], 1, r"'nothere' does not exist as the directory of a run"),
    (["-m", "eval", "--exp-name", "nothere"], 1, r"'nothere' does not exist as"),
    (["-m", "eval"], 1, r"what to evaluate\?"),
    ([*EVAL, "--replay-path", "a_file"], 1, r"--replay-path a_file: .*is a file"),
    ([*MODE[:4], "-p", "cql"], 1, r"unknown policy 'cql'; valid: a2c, .*vdn"),
    (["train", "highway-v0", "dqn"], 1, r"'highway-v0'.*an id of any other package is 'package:"),
    (["eval", "nothere"], 1, r"nothing at 'nothere'"),
    (["eval", "nothere", "--video-dir", "x"], 2, r"--video-dir goes with --video N"),
    (["eval", "nothere", "--video", "11"], 2, r"--video 11: there are 10 episodes"),
    (["play", "nothere"], 1, r"nothing at 'nothere'"),
    (["resume", "nothere"], 1, r"nothing to resume: there is no 'nothere'"),
    (["export", "nothere", "x.txt"], 2, r"'x\.txt': the file ends in"),
    (["export", "nothere", "a_file"], 2, r"'a_file'"),
    (["plot", "nothere"], 1, r"'nothere' has no result\.json"),
    (["list", "polices"], 2, r"did you mean 'policies'"),
    (["list", "runs"], 1, r"there are no runs"),
    (["help", "dqnn"], 2, r"did you mean 'dqn'"),
    (["help", "ppo", "learn.batchsize"], 1, r"did you mean 'learn\.batch_size'"),
    (["config", "nothere.py"], 1, r"no config file 'nothere\.py'"),
    (["check", "CartPol-v1"], 2, r"did you mean 'CartPole-v1'"),
]


@pytest.mark.parametrize(
    ("argv", "code", "pattern"), COMMANDS, ids=[" ".join(c[0]) for c in COMMANDS]
)
def test_bad_command(argv: list[str], code: int, pattern: str, capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("x")
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    (tmp_path / "twice.yaml").write_text("main_config:\n  exp_name: a\n  exp_name: b\n")
    refused(argv, pattern, capsys, tmp_path, code)


FILES = [
    ("cfg.txt", "x", r"\.py or \.yaml"),
    ("cfg.py", "main_config = dict(\n", r"cfg\.py:1"),
    ("cfg.py", "x = 1", r"does not define main_config and create_config"),
    ("cfg.py", "main_config = {}", r"does not define create_config"),
    ("cfg.py", "main_config = 3\ncreate_config = 4", r"main_config must be a dict"),
    ("cfg.py", "main_config = {}\ncreate_config = {}", r"names no policy type"),
    ("cfg.py", "x = 1 / 0", r"cfg\.py:1.*division by zero"),
    ("cfg.py", "import no_such_module", r"cfg\.py:1.*no_such_module"),
    (
        "cfg.py",
        "main_config = {}\ncreate_config = dict(policy=dict(type='dqn', import_names=['no_mod']))",
        r"no_mod|required",
    ),
    ("cfg.yaml", "main_config: [", r"cfg\.yaml:1"),
    ("cfg.yaml", "- 1", r"cfg\.yaml"),
]


@pytest.mark.parametrize(("name", "text", "pattern"), FILES, ids=[f[1] for f in FILES])
def test_bad_file(name: str, text: str, pattern: str, capsys: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    refused(["-m", "serial", "-c", name, *LIMIT], pattern, capsys, tmp_path)


def bad_checkpoints(directory: Path) -> dict[str, tuple[Path, str]]:
    good = directory / "good.pth.tar"
    torch.save({"model": {"weight": torch.zeros(3)}}, good)
    (directory / "cut.pth.tar").write_bytes(good.read_bytes()[:-200])
    (directory / "text.pth.tar").write_text("hello, this is not a checkpoint\n" * 20)
    (directory / "empty.pth.tar").write_bytes(b"")
    torch.save([1, 2], directory / "list.pth.tar")
    torch.save({"weights": torch.zeros(3)}, directory / "other.pth.tar")
    torch.save({"model": Path()}, directory / "object.pth.tar")
    messages = {
        "good": "does not fit the model",
        "cut": "damaged, truncated",
        "text": "damaged, truncated",
        "empty": "damaged, truncated",
        "list": "holds a list",
        "other": "no 'model'",
        "object": "damaged, truncated or not a checkpoint",
    }
    return {name: (directory / f"{name}.pth.tar", text) for name, text in messages.items()}


@pytest.mark.parametrize("mode", ["serial", "eval"])
@pytest.mark.parametrize("name", ["good", "cut", "text", "empty", "list", "other", "object"])
def test_bad_checkpoint(mode: str, name: str, capsys: Any, tmp_path: Path) -> None:
    path, pattern = bad_checkpoints(tmp_path)[name]
    config = config_file(tmp_path)
    limit = LIMIT if mode == "serial" else []
    argv = ["-m", mode, "-c", str(config), "--load-path", str(path), *limit]
    refused(argv, pattern, capsys, tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(value: float, capsys: Any, tmp_path: Path) -> None:
    with Run(pair("dqn"), 0) as run:
        state = deepcopy(run.policy.eval_mode.state_dict())
    name = next(iter(state["model"]))
    state["model"][name].view(-1)[0] = value
    save_checkpoint(tmp_path / "diverged.pth.tar", state)
    argv = ["-m", "eval", "-c", str(config_file(tmp_path)), "--load-path", "diverged.pth.tar"]
    pattern = rf"'diverged\.pth\.tar'.*{re.escape(name)}.*an older checkpoint"
    refused(argv, pattern, capsys, tmp_path)


NAN_ENV = """
import gymnasium as gym
import numpy as np
from ding.envs import BaseEnv, BaseEnvTimestep
from ding.utils.registry import ENV_REGISTRY

@ENV_REGISTRY.register("nan_env_{where}", force=True)
class NanEnv(BaseEnv):
    _observation_space = gym.spaces.Box(-1, 1, (2,), dtype=np.float32)
    _action_space = gym.spaces.Discrete(2)
    _reward_space = gym.spaces.Box(-1, 1, (1,), dtype=np.float32)

    def reset(self):
        return np.full(2, np.nan if "{where}" == "reset" else 0.0, dtype=np.float32)

    def step(self, action):
        obs = np.full(2, np.nan if "{where}" == "step" else 0.0, dtype=np.float32)
        return BaseEnvTimestep(obs, float("nan") if "{where}" == "reward" else 1.0, True, {{}})

    def close(self):
        pass
"""


@pytest.mark.parametrize("where", ["reset", "step", "reward"])
def test_env_with_nan(where: str, capsys: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"nan_{where}.py").write_text(NAN_ENV.format(where=where))
    env = dict(type=f"nan_env_{where}", import_names=[f"nan_{where}"])
    path = config_file(tmp_path, changes={"env.env_id": None})
    before = path.read_text().split("create_config = ")[0]
    path.write_text(before + f"create_config = dict(env={env!r}, policy=dict(type='dqn'))\n")
    assert main(["-m", "serial", "-c", str(path), *LIMIT]) == 1
    error = capsys.readouterr().err
    what = "reward is NaN" if where == "reward" else "obs is NaN"
    assert re.search(f"ding: error: .*{what}.*ding -m replay", error) and "Traceback" not in error
    assert len(list(tmp_path.glob("**/flight/env0_*.json"))) == 1
