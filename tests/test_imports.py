"""Imports point one way, cost little, and every public name is there."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ding.entry

ROOT = Path(__file__).parents[1]
BELOW: dict[str, set[str]] = {
    "utils": set(),
    "torch_utils": {"utils"},
    "rl_utils": {"utils", "torch_utils"},
    "envs": {"utils"},
    "env": {"envs"},
    "config": {"utils"},
    "model": {"utils", "torch_utils", "rl_utils"},
    "policy": {"utils", "torch_utils", "rl_utils", "model", "config", "envs"},
    "worker": {"utils", "torch_utils", "rl_utils", "model", "config", "policy", "envs"},
    "data": {"utils", "config", "rl_utils", "worker"},
    "reward_model": {
        *("utils", "config", "torch_utils", "model", "policy", "envs", "worker", "data")
    },
    "pipeline": {"utils", "config", "policy", "envs", "worker", "data", "reward_model"},
    "league": {"utils", "config", "envs", "policy", "worker", "pipeline", "parallel"},
    "parallel": {"utils", "torch_utils", "policy", "envs", "worker", "pipeline"},
    "agent": {"utils", "config", "model", "policy", "envs"},
    "entry": {
        *("utils", "torch_utils", "rl_utils", "model", "config", "policy", "envs", "worker"),
        *("pipeline", "parallel", "data", "agent", "league"),
    },
}
"""Package to what it may import (besides itself)."""


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
            assert all(alias.name != "*" for alias in node.names), f"{path}: star import"
    return names


MODULES = sorted((ROOT / "ding").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=[str(p.relative_to(ROOT)) for p in MODULES])
def test_imports_point_one_way(path: Path) -> None:
    package = path.relative_to(ROOT / "ding").parts[0]
    for name in imported(path):
        head, _, rest = name.partition(".")
        assert head != "dizoo", f"{path} imports {name}"
        if head == "ding" and package not in ("__init__.py", "__main__.py"):
            target = rest.split(".")[0]
            assert target == package or target in BELOW[package] | {"__version__"}, name


def test_every_package_has_its_place() -> None:
    packages = {p.parent.name for p in (ROOT / "ding").glob("*/__init__.py")}
    assert packages <= set(BELOW)


@pytest.mark.parametrize("module", ["ding", "ding.utils", "ding.config", "ding.envs", "ding.env"])
def test_light_packages_do_not_import_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("words", [[], ["help"], ["-h"], ["train", "-h"], ["-v"]])
def test_help_does_not_import_torch(words: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["ding", *{words}]
from ding.__main__ import main
try:
    code = main()
except SystemExit as end:
    code = end.code
sys.exit(code or "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_ctrl_c_while_it_is_still_importing_leaves_quietly(tmp_path: Path) -> None:
    slow = "import time; print('importing', flush=True); time.sleep(600)"
    (tmp_path / "torch.py").write_text(slow)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    line = [sys.executable, "-m", "ding", "train", "CartPole-v1", "dqn", "--steps", "10"]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, env=env, cwd=tmp_path, text=True, **both) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said, said


def test_entries_are_no_modules_of_the_same_name() -> None:
    modules = {path.stem for path in (ROOT / "ding" / "entry").iterdir()}
    assert not modules & set(ding.entry.__all__)
    assert set(ding.entry.__all__) == set(ding.entry._MODULES)


def test_the_package_itself_imports_next_to_nothing() -> None:
    code = "import sys, ding; sys.exit(bool({'numpy', 'torch', 'gymnasium'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


NAMES = {
    "ding": "__version__ load train",
    "ding.agent": "Agent load",
    "ding.envs": """BaseEnv BaseEnvTimestep BaseEnvManager EnvState DingEnvWrapper
        create_env_manager get_env_manager_cls get_vec_env_setting get_env_cls""",
    "ding.env": """BaseEnv BaseEnvTimestep BaseEnvManager DingEnvWrapper create_env_manager
        get_vec_env_setting""",
    "ding.policy": """Policy CommandModePolicy DQNPolicy PPOPolicy SACPolicy DiscreteSACPolicy
        create_policy get_policy_cls register_policy PolicyFactory get_random_policy""",
    "ding.model": """DQN VAC QAC DiscreteQAC model_wrap register_wrapper create_model""",
    "ding.worker": """SampleCollector SampleSerialCollector EpisodeCollector
        EpisodeSerialCollector ISerialCollector create_serial_collector get_serial_collector_cls
        IBuffer NaiveReplayBuffer AdvancedReplayBuffer EpisodeReplayBuffer SequenceReplayBuffer
        ElasticReplayBuffer         create_buffer get_buffer_cls BaseSerialEvaluator
        InteractionSerialEvaluator VectorEvalMonitor create_serial_evaluator BaseLearner
        LearnerHook register_learner_hook create_learner BaseSerialCommander
        BattleEpisodeSerialCollector BattleSampleSerialCollector
        BattleInteractionSerialEvaluator""",
    "ding.data.buffer": "DequeBuffer BufferedData",
    "ding.config": """compile_config read_config read_config_with_system read_config_yaml
        save_config save_config_py save_config_yaml Config deep_merge_dicts""",
    "ding.entry": """serial_pipeline serial_pipeline_onpolicy eval collect_demo_data
        collect_episodic_demo_data episode_to_transitions episode_to_transitions_filter
        offline_data_save_type serial_pipeline_bc""",
    "ding.entry.cli": "main",
    "ding.league": """BaseLeague OneVsOneLeague create_league create_player create_payoff Player
        ActivePlayer HistoricalPlayer NaiveSpPlayer MainPlayer MainExploiter LeagueExploiter pfsp
        uniform BattleRecordDict BattleSharedPayoff LeagueMetricEnv PlayerRating EloCalculator
        get_elo get_elo_array""",
    "ding.utils": """ENV_REGISTRY ENV_MANAGER_REGISTRY ENV_WRAPPER_REGISTRY POLICY_REGISTRY
        MODEL_REGISTRY BUFFER_REGISTRY LEARNER_REGISTRY SERIAL_COLLECTOR_REGISTRY
        SERIAL_EVALUATOR_REGISTRY COMMANDER_REGISTRY Registry import_module set_pkg_seed""",
    "ding.utils.data": "default_collate default_decollate",
    "ding.utils.data.collate_fn": "default_collate default_decollate",
    "ding.torch_utils": "to_tensor to_device to_ndarray to_list to_dtype Adam",
    "ding.torch_utils.data_helper": "to_tensor to_device to_ndarray",
    "ding.rl_utils": """get_epsilon_greedy_fn gae gae_data ppo_error ppo_data
        ppo_error_continuous q_nstep_td_error q_nstep_td_data get_gae get_train_sample
        get_nstep_return_data value_transform value_inv_transform""",
    "ding.rl_utils.adder": "get_gae get_nstep_return_data get_train_sample",
}


@pytest.mark.parametrize(
    ("module", "name"), [(m, name) for m, names in NAMES.items() for name in names.split()]
)
def test_public_name(module: str, name: str) -> None:
    assert getattr(import_module(module), name) is not None


@pytest.mark.parametrize("module", [m for m in NAMES if m.count(".") == 1 and m != "ding.env"])
def test_all_lists_what_is_there(module: str) -> None:
    package = import_module(module)
    assert all(hasattr(package, name) for name in package.__all__)
    assert len(set(package.__all__)) == len(package.__all__)
