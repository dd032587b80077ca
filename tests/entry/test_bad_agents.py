"""Mistakes with several agents: each gets one line that says what is wrong and what fits."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import BaseEnv, ParallelAgentsEnv
from ding.utils import ENV_REGISTRY
from ding.utils.errors import DingError
from dizoo.micro_battle.envs.micro_battle_env import MicroBattleEnv

from .test_bad_input import refused


class Game:
    """Two agents with spaces as asked for; the first is out after a step, then masks are empty."""

    possible_agents = ("left", "right")

    def __init__(self, *actions: gym.Space[Any], stuck: bool = False) -> None:
        self._actions, self._stuck = dict(zip(self.possible_agents, actions, strict=True)), stuck

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Box(-1, 1, (2,), np.float32)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._actions[agent]

    def reset(self, seed: Any = None) -> Any:
        return dict.fromkeys(self.possible_agents, np.zeros(2)), self.masks()

    def masks(self) -> dict[str, Any]:
        return {"right": {"action_mask": [0, 0, 0]}} if self._stuck else {}

    def step(self, actions: dict[str, Any]) -> Any:
        def each(value: Any) -> dict[str, Any]:
            return dict.fromkeys(self.possible_agents, value)

        return each(np.zeros(2)), each(0.0), {"left": True, "right": False}, each(False), {}


THREE, FIVE = gym.spaces.Discrete(3), gym.spaces.Discrete(5)
ONE, TWO = (gym.spaces.Box(-1, 1, (n,), np.float32) for n in (1, 2))
KINDS = dict(stuck=(THREE, THREE, True), choices=(THREE, FIVE, False), numbers=(ONE, TWO, False))


@ENV_REGISTRY.register("bad_agents")
class BadAgentsEnv(ParallelAgentsEnv):
    config: ClassVar[dict[str, Any]] = {**ParallelAgentsEnv.config, "kind": "stuck"}

    def _new_env(self) -> Any:
        *actions, stuck = KINDS[self._cfg["kind"]]
        return Game(*actions, stuck=stuck)


TWO_STEP = dict(type="matrix_game", import_names=["dizoo.matrix_games.envs.matrix_game_env"])
SPREAD = dict(type="pettingzoo", env_id="simple_spread_v3")
NUMBERS = dict(**SPREAD, continuous_actions=True)
OWN = dict(type="bad_agents")
BLIND = dict(agent_obs_only=True)
NEEDS = r"needs a global state.*'global_state' \(agent_obs_only = False\)"

TABLE: list[tuple[str, str, dict[str, Any], str]] = [
    # A policy of one agent where there are several, and the policy that fits.
    ("one", "dqn", TWO_STEP, r"'dqn' is for discrete .* discrete_agents.*; use .* 'qmix'"),
    ("one", "ppo", TWO_STEP, r"'ppo' is for .* discrete_agents.*; use .* 'mappo'"),
    ("one", "discrete_sac", TWO_STEP, r"discrete_agents.*; use for example 'masac'"),
    ("one", "sac", NUMBERS, r"continuous_agents.*; use for example 'continuous_masac'"),
    ("one", "ddpg", NUMBERS, r"continuous_agents.*; use for example 'maddpg'"),
    ("one", "td3", NUMBERS, r"continuous_agents.*; use for example 'matd3'"),
    # Agents with different spaces where weights are shared.
    ("differ", "qmix", {**OWN, "kind": "choices"}, r"\(3\), Discrete\(5\)\].*env.pad_agents = Tr"),
    (
        "differ",
        "maddpg",
        {**OWN, "kind": "numbers"},
        r"numbers can't be filled up .*give all the same space",
    ),
    # A mask that allows nothing.
    *(
        ("mask", name, OWN, r"action_mask of agent 1 in env 0 allows no action; allow one at least")
        for name in ("qmix", "idqn", "mappo", "happo", "coma", "masac")
    ),
    # No global state for a mixer or a central critic.
    ("state", "qmix", {**TWO_STEP, **BLIND}, rf"MonotonicMixer {NEEDS}, or .* policy 'vdn'"),
    ("state", "wqmix", {**TWO_STEP, **BLIND}, rf"{NEEDS}, or .* policy 'vdn'"),
    ("state", "qplex", {**TWO_STEP, **BLIND}, rf"DuplexMixer {NEEDS}, or .* policy 'vdn'"),
    ("state", "qtran", {**TWO_STEP, **BLIND}, rf"QTran {NEEDS}, or .* policy 'vdn'"),
    ("state", "mappo", {**TWO_STEP, **BLIND}, rf"MAVAC {NEEDS}, or .* policy 'ippo'"),
    ("state", "happo", {**TWO_STEP, **BLIND}, rf"{NEEDS}"),
    ("state", "coma", {**TWO_STEP, **BLIND}, rf"COMA {NEEDS}"),
    ("state", "masac", {**TWO_STEP, **BLIND}, rf"DiscreteMAQAC {NEEDS}"),
    *(
        ("state", name, {**NUMBERS, **BLIND}, rf"ContinuousMAQAC {NEEDS}")
        for name in ("maddpg", "matd3", "continuous_masac")
    ),
    ("state", "collaq", TWO_STEP, r"lacks 'agent_alone_state'.*env.obs_alone = True, or .* 'qmix'"),
]


def config(policy: str, env: dict[str, Any]) -> str:
    """A config file; its sizes suit on- and off-policy algorithms."""
    sizes = dict(collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1, stop_value=1e6)
    settings: dict[str, Any] = dict(learn=dict(batch_size=8), collect=dict(n_sample=16))
    if policy in ("qmix", "idqn"):
        settings["collect"]["unroll_len"] = 1
    if policy in ("sac", "discrete_sac", "masac", "continuous_masac", "maddpg", "matd3"):
        settings["random_collect_size"] = 16
    own = {key: value for key, value in env.items() if key not in ("type", "import_names")}
    main = dict(exp_name="run", env={**sizes, **own}, policy=settings)
    named = {key: value for key, value in env.items() if key in ("type", "import_names")}
    create = dict(env=named, env_manager=dict(type="base"), policy=dict(type=policy))
    return f"main_config = {main!r}\ncreate_config = {create!r}\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("what", "policy", "env", "message"), TABLE, ids=[f"{row[0]}-{row[1]}" for row in TABLE]
)
def test_a_run_is_refused(
    what: str, policy: str, env: dict[str, Any], message: str, capsys: Any, tmp_path: Path
) -> None:
    if env["type"] == "pettingzoo":
        pytest.importorskip("mpe2")
    Path("cfg.py").write_text(config(policy, env))
    refused(["-m", "serial", "-c", "cfg.py", "--env-step", "400"], message, capsys, tmp_path)


@pytest.mark.parametrize(
    ("env", "policy", "message"),
    [
        ("CartPole-v1", "qmix", r"'qmix' is for discrete_agents actions.*; use for example 'ppo'"),
        ("CartPole-v1", "idqn", r"'idqn' is for discrete_agents .*; use for example 'dqn'"),
        ("CartPole-v1", "mappo", r"'mappo' is for .* \(Discrete\(2\)\); use for example 'ppo'"),
        ("Pendulum-v1", "continuous_masac", r"; use for example 'sac'"),
        ("Pendulum-v1", "maddpg", r"'maddpg' is for continuous_agents .*; use for example 'ddpg'"),
        ("two_step", "dqn", r"no config for -e two_step -p dqn; it has .*mappo, masac, qmix.*-c"),
    ],
)
def test_a_policy_of_agents_for_one_and_the_reverse(
    env: str, policy: str, message: str, capsys: Any, tmp_path: Path
) -> None:
    refused(["train", env, policy, "--steps", "100"], message, capsys, tmp_path)


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mpe2", None)
    message = r"env 'simple_spread_v3' needs mpe2; install it with: pip install .*\[pettingzoo\]'"
    argv = ["-m", "serial", "-e", "simple_spread", "-p", "qmix"]
    refused(argv, message, capsys, tmp_path)
    message = r"'smac' needs StarCraft II .* package smac of oxwhirl.*'micro_battle' has the same"
    smac = dict(type="smac", import_names=["dizoo.smac.envs.smac_env"])
    Path("cfg.py").write_text(config("qmix", smac))
    refused(["-m", "serial", "-c", "cfg.py"], message, capsys, tmp_path)


def fallen(kind: str) -> tuple[BaseEnv, int]:
    """An env in which this agent is dead."""
    if kind == "battle":
        battle = MicroBattleEnv(dict(map_name="3m"))
        battle.seed(0)
        battle.reset()
        battle.battles.state["health"][0, 1] = 0
        return battle, 1
    env = ParallelAgentsEnv(lambda: Game(THREE, THREE))
    env.reset()
    env.step(np.array([1, 1]))
    return env, 0


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "agents",
            r"agent 'left' of .* is dead, but takes action 1; .* 'alive' is 0 take action 0",
        ),
        ("battle", r"action 1 of agent 1 is not available: its action_mask allows \[0\]"),
    ],
)
def test_an_agent_that_acts_after_its_death(kind: str, message: str) -> None:
    env, dead = fallen(kind)
    action = env.random_action()
    assert action[dead] == 0, "what is drawn at random is allowed"
    action[dead] = 1
    with pytest.raises(DingError) as caught:
        env.step(action)
    assert re.search(message, str(caught.value)) and "\n" not in str(caught.value)
