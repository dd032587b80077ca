"""The rows of the ledger."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ding.config import override

FRESH_EPISODES = 100
"""Episodes that judge the final checkpoint; none of them was seen in training."""
FRESH_SEED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Expert:
    """Whose episodes a task learns from: those of another task's seed 0, as it was left behind."""

    task: str
    n_episode: int
    key: str = "policy.other.demonstrations.path"
    """Where the config names their file."""


@dataclass(frozen=True, kw_only=True)
class OwnMeasure:
    """How a task is judged that trains to its limit, by a function of `ledger.measures`."""

    function: str
    title: str
    """What its number says."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Train until the config's stop value; then the mean of fresh episodes has to be `goal`.

    With a measure of its own: train to the limit; then that has to be `goal`. A config with a
    `league` trains its players.
    """

    name: str
    title: str
    module: str
    goal: float
    limit: int
    """Most env steps."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    expert: Expert | None = None
    measure: OwnMeasure | None = None

    @property
    def judged_by(self) -> str:
        return self.measure.title if self.measure else f"return of {FRESH_EPISODES} fresh episodes"

    def shown(self, mean: float) -> str:
        return f"{mean:.3f}" if self.measure else f"{mean:.1f}"

    @property
    def probe_name(self) -> str:
        """What `ledger/probe.py` knows it by."""
        return self.module

    def configs(self, directory: Path) -> tuple[Any, dict[str, Any]]:
        """main_config with its results in `directory`, and create_config."""
        loaded = import_module(self.module)
        places = {"exp_name": str(directory)}
        if self.expert is not None:
            places[self.expert.key] = str(expert_file(directory.parents[1], self.expert))
        return override(loaded.main_config, places), loaded.create_config

    def digest(self) -> str:
        """Changes with whatever makes the results of an older run incomparable."""
        loaded = import_module(self.module)
        parts = [loaded.main_config, loaded.create_config, self.goal, self.limit]
        parts += [asdict(self.measure)] if self.measure else []
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def expert_file(root: Path, expert: Expert) -> Path:
    """Where the trainings below `root` have an expert's episodes."""
    return root / "experts" / f"{expert.task}_{expert.n_episode}.hdf5"


def _task(
    folder: str, env: str, policy: str, title: str, goal: float, limit: int, n_seed: int = 5
) -> Task:
    """The task of the config `<env>_<policy>_config` in a folder of the zoo."""
    name = f"{env}_{policy}"
    return Task(
        name=name,
        title=title,
        module=f"dizoo.{folder}.config.{name}_config",
        goal=goal,
        limit=limit,
        seeds=tuple(range(n_seed)),
    )


def _cartpole(policy: str, name: str, limit: int) -> Task:
    title = f"{name}, CartPole-v1"
    return _task("classic_control.cartpole", "cartpole", policy, title, 475.0, limit)


def _blind_cartpole(policy: str, name: str) -> Task:
    title = f"{name}, CartPole-v1 without velocities"
    folder = "classic_control.cartpole"
    return _task(folder, "cartpole_no_velocity", policy, title, 475.0, 300_000)


def _pendulum(policy: str, name: str, limit: int, goal: float = -180.0) -> Task:
    title = f"{name}, Pendulum"
    return _task("classic_control.pendulum", "pendulum", policy, title, goal, limit)


def _lander(policy: str, name: str, limit: int, n_seed: int) -> Task:
    title = f"{name}, LunarLander"
    return _task("box2d.lunarlander", "lunarlander", policy, title, 200.0, limit, n_seed)


def _mountain_car(policy: str, name: str, limit: int) -> Task:
    title = f"{name}, MountainCar"
    folder = "classic_control.mountain_car"
    return _task(folder, "mountain_car", policy, title, -110.0, limit, n_seed=3)


def _deep_sea(policy: str, name: str, n_seed: int) -> Task:
    title = f"{name}, deep sea of size 20"
    return _task("toy.deep_sea", "deep_sea", policy, title, 0.98, 300_000, n_seed)


def _sparse_car(policy: str, name: str, n_seed: int) -> Task:
    title = f"{name}, MountainCar rewarded at the goal alone"
    folder = "classic_control.mountain_car"
    return _task(folder, "mountain_car_sparse", policy, title, 0.95, 200_000, n_seed)


def _minigrid(env: str, policy: str, room: str, limit: int) -> Task:
    names = {"ppo": "PPO", "rnd_ppo": "PPO with RND", "icm_ppo": "PPO with ICM"}
    title = f"{names[policy]}, MiniGrid-{room}"
    return _task("minigrid", f"minigrid_{env}", policy, title, 0.95, limit, n_seed=3)


def _spread(policy: str, name: str, goal: float = -65.0, n_seed: int = 3) -> Task:
    """Joint env steps; returns are 3 G + C, of which `docs/multi_agent.md` tells."""
    title = f"{name}, simple_spread with 3 agents"
    return _task("petting_zoo", "simple_spread", policy, title, goal, 1_000_000, n_seed)


def _speaker(policy: str, name: str) -> Task:
    """Joint env steps; returns are those of one agent."""
    title = f"{name}, speaker_listener"
    return _task("petting_zoo", "speaker_listener", policy, title, -13.0, 1_000_000, 1)


def _battle(units: str, policy: str, name: str, n_seed: int) -> Task:
    """Joint env steps; the return is 1 for a battle that is won."""
    title = f"{name}, micro battle {units}"
    return _task("micro_battle", f"micro_battle_{units}", policy, title, 0.9, 1_000_000, n_seed)


def _imitation(policy: str, title: str, goal: float, expert: Expert) -> Task:
    return Task(
        name=f"cartpole_{policy}",
        title=title if "CartPole" in title else f"{title}, CartPole-v1",
        module=f"dizoo.classic_control.cartpole.config.cartpole_{policy}_config",
        goal=goal,
        limit=200_000 if "gail" in policy else 50_000,
        seeds=(0, 1, 2),
        expert=expert,
    )


def _pong(policy: str, name: str, limit: int) -> Task:
    """Hours each; where the goal was not reached the limit is how far the stored training went."""
    return _task("atari", "pong", policy, f"{name}, Pong", 16.0, limit, n_seed=1)


_TICTACTOE = OwnMeasure(
    function="tictactoe",
    title="wins as the first against random, less 1 for each loss in 4,000 games",
)
_CONNECT_FOUR = OwnMeasure(
    function="connect_four", title="wins against random in 2,000 games, half of them as the second"
)
_EXPLOITABILITY = OwnMeasure(
    function="exploitability", title="exploitability of the average, negative"
)
_OLDER_HALF = OwnMeasure(
    function="older_half",
    title="least rate of winning of the main player against a copy of the league's first half",
)


_FOLDERS = {"kuhn_poker": "poker", "leduc_poker": "poker", "micro_duel_3m": "micro_battle"}


def _game(env: str, policy: str, title: str, goal: float, limit: int, measure: OwnMeasure) -> Task:
    """Env steps are moves of both players."""
    folder = _FOLDERS.get(env, "board_games")
    return replace(_task(folder, env, policy, title, goal, limit, n_seed=3), measure=measure)


_AT_THE_LIMIT = OwnMeasure(function="fresh_return", title="return of 100 fresh episodes")


def _mujoco(env: str, policy: str, title: str, goal: float, limit: int) -> Task:
    """Judged after so many steps: published curves go on for ten times as many."""
    task = _task("mujoco", env, policy, title, goal, limit, n_seed=1)
    return replace(task, measure=_AT_THE_LIMIT)


TASKS = (
    Task(
        name="cartpole_dqn",
        title="DQN, CartPole with 200 steps",
        module="dizoo.classic_control.cartpole.config.cartpole_dqn_config",
        goal=195.0,
        limit=3_000,
    ),
    Task(
        name="cartpole_v1_dqn",
        title="DQN, CartPole-v1",
        module="dizoo.classic_control.cartpole.config.cartpole_v1_dqn_config",
        goal=475.0,
        limit=50_000,
    ),
    Task(
        name="cartpole_discrete_sac",
        title="discrete SAC, CartPole with 200 steps",
        module="dizoo.classic_control.cartpole.config.cartpole_discrete_sac_config",
        goal=195.0,
        limit=20_000,
    ),
    _cartpole("averaged_dqn", "Averaged DQN", 100_000),
    _cartpole("c51", "C51", 100_000),
    _cartpole("qrdqn", "QR-DQN", 100_000),
    _cartpole("iqn", "IQN", 100_000),
    _cartpole("fqf", "FQF", 100_000),
    _cartpole("rainbow", "Rainbow", 100_000),
    _cartpole("mdqn", "Munchausen DQN", 100_000),
    _cartpole("sql", "soft Q-learning", 100_000),
    _cartpole("sqn", "SQN", 100_000),
    _cartpole("r2d2", "R2D2", 100_000),
    _cartpole("r2d2_gtrxl", "R2D2 with GTrXL", 100_000),
    _cartpole("ngu", "NGU without intrinsic reward", 300_000),
    _cartpole("ppo", "PPO", 100_000),
    _cartpole("ppo_offpolicy", "off-policy PPO", 100_000),
    _cartpole("ppg", "PPG", 500_000),
    _cartpole("pg", "policy gradient", 500_000),
    _cartpole("a2c", "A2C", 500_000),
    _cartpole("impala", "IMPALA", 500_000),
    _cartpole("acer", "ACER", 500_000),
    _blind_cartpole("r2d2", "R2D2"),
    _blind_cartpole("ppo_recurrent", "recurrent PPO"),
    _pendulum("sac", "SAC", 20_000),
    _pendulum("ddpg", "DDPG", 30_000),
    _pendulum("td3", "TD3", 30_000),
    _pendulum("d4pg", "D4PG", 30_000),
    _pendulum("ppo", "PPO", 200_000, goal=-250.0),
    _task("gym_hybrid", "gym_hybrid", "pdqn", "P-DQN, gym-hybrid Moving", 1.7, 50_000),
    _task("gym_hybrid", "gym_hybrid", "paddpg", "PADDPG, gym-hybrid Moving", 1.7, 60_000),
    _task("gym_hybrid", "gym_hybrid", "hppo", "PPO, gym-hybrid Moving", 1.7, 200_000),
    _task("toy.lattice", "lattice", "bdq", "BDQ, Lattice", -2.1, 50_000),
    _task("toy.lattice", "lattice", "ppo", "PPO, Lattice", -2.1, 100_000),
    _task("classic_control.acrobot", "acrobot", "dqn", "DQN, Acrobot", -100.0, 60_000),
    _task("classic_control.acrobot", "acrobot", "ppo", "PPO, Acrobot", -100.0, 100_000),
    _mountain_car("dqn", "DQN", 150_000),
    _mountain_car("ppo", "PPO", 1_000_000),
    _task("bitflip", "bitflip", "her_dqn", "DQN with HER, bitflip of 15", 0.95, 150_000, n_seed=3),
    _task(
        "bitflip", "bitflip", "pure_dqn", "DQN without HER, bitflip of 15", 0.95, 150_000, n_seed=1
    ),
    _task(
        "bitflip", "bitflip20", "her_dqn", "DQN with HER, bitflip of 20", 0.95, 1_500_000, n_seed=1
    ),
    _task("toy.reach", "reach", "her_sac", "SAC with HER, Reach", -9.0, 15_000, n_seed=3),
    _task("toy.reach", "reach", "her_td3", "TD3 with HER, Reach", -9.0, 15_000, n_seed=3),
    _deep_sea("rnd_dqn", "DQN with RND", n_seed=3),
    _deep_sea("dqn", "DQN", n_seed=1),
    _sparse_car("rnd_dqn", "DQN with RND", n_seed=3),
    _sparse_car("dqn", "DQN", n_seed=1),
    *(_minigrid("empty", policy, "Empty-8x8", 100_000) for policy in ("ppo", "rnd_ppo", "icm_ppo")),
    *(_minigrid("doorkey", p, "DoorKey-6x6", 1_000_000) for p in ("ppo", "rnd_ppo", "icm_ppo")),
    _spread("qmix", "QMIX"),
    _spread("vdn", "VDN"),
    _spread("mappo", "MAPPO"),
    _spread("maddpg", "MADDPG", -90.0, 1),
    _spread("masac", "MASAC", -90.0, 1),
    _spread("happo", "HAPPO", -90.0, 1),
    _spread("coma", "COMA", -90.0, 1),
    _spread("collaq", "CollaQ", -90.0, 1),
    _speaker("mappo", "MAPPO"),
    _speaker("qmix", "QMIX"),
    _battle("3m", "qmix", "QMIX", 3),
    _battle("3m", "mappo", "MAPPO", 3),
    _battle("3m", "vdn", "VDN", 1),
    _battle("8m", "qmix", "QMIX", 3),
    _battle("8m", "mappo", "MAPPO", 3),
    _battle("2s3z", "qmix", "QMIX", 1),
    _battle("2s3z", "mappo", "MAPPO", 1),
    _task(
        "classic_control.cartpole",
        "cartpole_fixed",
        "ppo",
        "PPO, CartPole of 200 steps that never ends early",
        190.0,
        100_000,
        1,
    ),
    _imitation(
        "sqil_dqn", "SQIL by DQN, 5 episodes", 475.0, Expert(task="cartpole_ppo", n_episode=5)
    ),
    _imitation("dqfd", "DQfD, 2 episodes", 475.0, Expert(task="cartpole_ppo", n_episode=2)),
    _imitation("r2d3", "R2D3, 2 episodes", 475.0, Expert(task="cartpole_ppo", n_episode=2)),
    _imitation(
        "fixed_gail_ppo",
        "GAIL with PPO, 5 episodes, CartPole that never ends early",
        186.0,
        Expert(task="cartpole_fixed_ppo", n_episode=5, key="reward_model.data_path"),
    ),
    _game("tictactoe", "ppo", "PPO by self-play, tic-tac-toe", 0.95, 600_000, _TICTACTOE),
    _game("connect_four", "ppo", "PPO by self-play, Connect Four", 0.95, 1_000_000, _CONNECT_FOUR),
    _game(
        "kuhn_poker", "ppo", "PPO by fictitious play, Kuhn poker", -0.1, 200_000, _EXPLOITABILITY
    ),
    _game(
        "leduc_poker", "ppo", "PPO by fictitious play, Leduc poker", -0.5, 400_000, _EXPLOITABILITY
    ),
    _game("micro_duel_3m", "league_mappo", "MAPPO in a league, duel 3m", 0.6, 900_000, _OLDER_HALF),
    _lander("ppo", "PPO", 1_000_000, n_seed=3),
    _lander("dqn", "DQN", 1_000_000, n_seed=3),
    _lander("rainbow", "Rainbow", 1_000_000, n_seed=3),
    _lander("sac", "SAC with continuous engines", 500_000, n_seed=2),
    _lander("td3", "TD3 with continuous engines", 500_000, n_seed=2),
    _mujoco("hopper", "ppo", "PPO, Hopper-v5", 1_000.0, 300_000),
    _mujoco("halfcheetah", "ppo", "PPO, HalfCheetah-v5", 800.0, 300_000),
    _mujoco("hopper", "sac", "SAC, Hopper-v5", 2_000.0, 200_000),
    _mujoco("halfcheetah", "sac", "SAC, HalfCheetah-v5", 3_000.0, 100_000),
    _pong("ppo", "PPO", 3_000_000),
    _pong("impala", "IMPALA", 1_150_000),
    _pong("dqn", "DQN", 450_000),
)
