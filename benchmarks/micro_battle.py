"""`python -m benchmarks.micro_battle`: joint steps per second of micro battles, on one thread.

`core` is the battles alone, `vector` adds masks, observations, rewards and resets, `manager` is
that behind the env manager `gym_vector`, `single` one battle in an env of its own. Prints a table
and writes benchmarks/micro_battle.json. Processor time, the best of several turns; a scripted
player acts, whose own time does not count. With `--wins` it tells what share of 256 battles the
scripted players win instead, with `--duel` how fast battles of two teams are stepped on 3m.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import HERE, stamp
from ding.envs.manager import BaseEnvManager
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.utils.batch import ByEnv
from dizoo.micro_battle.envs import MAPS, Battles, MicroBattleEnv, MicroBattleVector
from dizoo.micro_battle.envs.duel_env import DuelEnv
from dizoo.micro_battle.envs.players import focus_fire, random_actions, win_rate

GOAL = 20_000.0
"""Joint steps per second of `vector` on 3m."""
Act = Callable[[np.ndarray], Any]


def rate(battles: Battles, act: Act, steps: int, turns: int) -> float:
    """Most joint steps per second of processor time."""
    best = 0.0
    for _ in range(turns):
        spent = 0.0
        for _ in range(steps):
            actions = focus_fire(battles)
            start = time.process_time()
            act(actions)
            spent += time.process_time() - start
        best = max(best, steps * battles.count / spent)
    return best


def core(name: str, count: int) -> tuple[Battles, Act]:
    battles = Battles(MAPS[name], count)
    rngs = [np.random.default_rng(i) for i in range(count)]
    battles.reset(range(count), rngs)

    def act(actions: np.ndarray) -> None:
        over = np.flatnonzero(battles.step(actions).over).tolist()
        if over:
            battles.reset(over, [rngs[i] for i in over])

    return battles, act


def vector(name: str, count: int) -> tuple[Battles, Act]:
    envs = MicroBattleVector({"map_name": name}, count)
    envs.reset(seed=list(range(count)))

    def act(actions: np.ndarray) -> None:
        over = np.logical_or(*envs.step(actions)[2:4])
        if over.any():
            envs.reset(options={"reset_mask": over})

    return envs._arena.battles, act


def managed(name: str, count: int) -> tuple[Battles, Act]:
    manager: Any = GymVectorEnvManager([partial(MicroBattleEnv, {"map_name": name})] * count)
    manager.seed(0)
    manager.launch()

    def act(actions: np.ndarray) -> None:
        manager.step(ByEnv(manager.ready_obs.ids, actions))

    return manager._simulators.vector._arena.battles, act


def one_by_one(name: str, turns: int) -> float:
    """Joint steps per second of one battle in an env of its own."""
    env = MicroBattleEnv({"map_name": name})
    env.seed(0)

    def act(actions: np.ndarray) -> None:
        if env.step(actions[0]).done:
            env.reset()

    env.reset()
    return rate(env.battles, act, 200, turns)


def duels(kind: Any, count: int, steps: int) -> float:
    """Env steps per second of battles of two teams, both of which act at random."""
    manager = kind([partial(DuelEnv, {"map_name": "3m"})] * count)
    manager.seed(0)
    manager.launch()
    rng, spent = np.random.default_rng(0), 0.0
    for _ in range(steps):
        obs = manager.ready_obs
        allowed = obs.stacked["action_mask"] > 0
        actions = np.where(allowed, rng.random(allowed.shape), -1.0).argmax(axis=-1)
        start = time.process_time()
        manager.step(ByEnv(obs.ids, actions))
        spent += time.process_time() - start
    manager.close()
    return steps * count / spent


def print_duels(count: int, steps: int, turns: int) -> None:
    for kind in (BaseEnvManager, GymVectorEnvManager):
        found = max(duels(kind, count, steps) for _ in range(turns))
        print(f"{kind.__name__:<22}{count:>4} battles{found:>10,.0f} env steps per second")


def print_wins() -> None:
    players = {
        "random": partial(random_actions, rng=np.random.default_rng(0)),
        "focus_fire": focus_fire,
        "pull_back": partial(focus_fire, pull_back=True),
    }
    print(f"{'map':<10}" + "".join(f"{name:>12}" for name in players))
    for name, battle_map in MAPS.items():
        shares = [win_rate(battle_map, player) for player in players.values()]
        print(f"{name:<10}" + "".join(f"{share:>12.2f}" for share in shares))


def main(argv: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m benchmarks.micro_battle", description=__doc__)
    p.add_argument("--battles", type=int, default=64)
    p.add_argument("--steps", type=int, default=100, help="joint steps of a turn, each of all")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--wins", action="store_true", help="wins of scripted players instead")
    p.add_argument("--duel", action="store_true", help="speed of battles of two teams instead")
    args = p.parse_args(argv)
    if args.wins:
        print_wins()
        return 0
    if args.duel:
        print_duels(args.battles, args.steps, args.turns)
        return 0
    sides = {"core": core, "vector": vector, "manager": managed}
    rows = []
    print(f"joint steps per second, {args.battles} battles at once, one thread")
    print(f"{'map':<10}" + "".join(f"{side:>10}" for side in (*sides, "single")))
    for name in MAPS:
        found = {
            side: rate(*make(name, args.battles), args.steps, args.turns)
            for side, make in sides.items()
        }
        found["single"] = one_by_one(name, args.turns)
        rows.append({"map": name, **found})
        print(f"{name:<10}" + "".join(f"{value:>10,.0f}" for value in found.values()))
    met = rows[0]["vector"] >= GOAL
    print(f"goal on 3m (vector): {GOAL:,.0f}: {'met' if met else 'MISSED'}")
    about = {"battles": args.battles, **stamp(), "rows": rows}
    (HERE / "micro_battle.json").write_text(json.dumps(about, indent=1) + "\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
