"""`ding train`: train a policy, once or with several seeds."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ding.entry.commands.options import count, import_from_here, is_place, object_at, whole
from ding.entry.commands.table import Say, show
from ding.entry.overrides import absolute, parsed, with_overrides
from ding.utils.errors import UsageError

_FILES = (".py", ".yaml", ".yml")


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "words",
        nargs="+",
        metavar="ENV POLICY | FILE",
        help="env: an id of Gymnasium, a name of the zoo (ding list configs) or module:Class; "
        "policy: see ding list policies; or a config file alone",
    )
    p.add_argument("--steps", type=count, metavar="N", help="most env steps, like 1e5")
    p.add_argument("-s", "--seed", type=whole, metavar="K", help="seed of the run (0)")
    p.add_argument("--seeds", type=count, metavar="N", help="train with the seeds 0 to N-1")
    p.add_argument("--jobs", type=count, default=1, metavar="N", help="seeds side by side (1)")
    p.add_argument("--exp-name", metavar="NAME", help="directory for the results")
    p.add_argument("--resume", action="store_true", help="go on with the run of this name")


@dataclass(frozen=True)
class Order:
    """A training as the command line asks for it, without its seed."""

    env: str
    policy: str | None
    steps: int | None
    overrides: dict[str, Any] = field(default_factory=dict)

    def configs(self, say: Say) -> tuple[Any, Any, Any]:
        """main_config, create_config, and what makes the env if no config can."""
        from ding.entry.training import configs_of
        from ding.envs import BaseEnv

        import_from_here()
        env: Any = self.env
        if is_place(env):
            found = object_at(env)
            # A BaseEnv goes by its registered name; any other is found again by this one.
            env = found if isinstance(found, type) and issubclass(found, BaseEnv) else env
        main, create, make_env = configs_of(env, self.policy, self.steps, say)
        given = absolute(self.overrides)
        return (*with_overrides(main, create, given, "command line"), make_env)


def run(args: argparse.Namespace, say: Say) -> int:
    order = _order(args)
    if args.seeds is not None and args.seed is not None:
        raise UsageError("give --seed K for one seed or --seeds N for several, not both")
    main, create, _ = order.configs(show)
    show(_duration(order, main, create))
    if args.seeds is None:
        if args.jobs > 1:
            raise UsageError("--jobs runs several seeds side by side: add --seeds N")
        return _train_one(order, args, main)
    return _train_several(order, args, main, say)


def _order(args: argparse.Namespace) -> Order:
    overrides = parsed(word for word in args.words if "=" in word)
    names = [word for word in args.words if "=" not in word]
    if not names:
        raise UsageError("what to train? for example: ding train CartPole-v1 ppo --steps 1e5")
    env, *rest = names
    if len(rest) > 1:
        raise UsageError(
            f"'{rest[1]}': after env and policy come overrides, KEY=VALUE, like {rest[1]}=1"
        )
    if not rest and not env.endswith(_FILES):
        raise UsageError(f"which policy? for example: ding train {env} dqn (ding list policies)")
    return Order(env, rest[0] if rest else None, args.steps, overrides)


def _duration(order: Order, main: Any, create: Any) -> str:
    from ding.entry.training import goal_of

    goal = goal_of(main, create)
    ends = "" if goal is None else f"until the return reaches {goal:g}"
    if order.steps is not None:
        return f"training for {order.steps:,} env steps{ends and ', or ' + ends}"
    if goal is None:
        raise UsageError("how long? add --steps 1e5, or a return to reach: env.stop_value=200")
    return f"training {ends}, however long it takes (--steps N sets a limit; Ctrl-C stops it)"


def _train_one(order: Order, args: argparse.Namespace, main: Any) -> int:
    from ding.pipeline.naming import name_with_seed

    seed = main.get("seed", 0) if args.seed is None else args.seed
    name = args.exp_name or name_with_seed(main["exp_name"], seed, add=True)
    result = train_seed(order, seed, Path(name), args.resume)
    return 130 if result["interrupted"] else 0


def _train_several(order: Order, args: argparse.Namespace, main: Any, say: Say) -> int:
    from ding.entry.seeds import train_each
    from ding.pipeline.naming import name_without_seed
    from ding.utils.terminal import wrapped

    directory = Path(args.exp_name or name_without_seed(main["exp_name"]))
    train = partial(train_seed, order)
    done, text = train_each(train, range(args.seeds), directory, args.resume, args.jobs)
    say(wrapped(text) if sys.stdout.isatty() else text)
    return 0 if done else 130


def train_seed(
    order: Order, seed: int, directory: Path, resume: Path | bool = False
) -> dict[str, Any]:
    """Train with one seed in a directory; returns the result."""
    from ding.config import override
    from ding.entry.training import train_configs

    main, create, make_env = order.configs(lambda text: None)
    main = override(main, {"exp_name": str(directory)})
    run = train_configs(main, create, order.steps, seed, make_env=make_env, resume=resume)
    return run.result
