"""The `ding` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ding import __version__
from ding.entry import cli_demo, cli_dist
from ding.entry.commands import table
from ding.entry.commands.options import count, import_from_here, seconds
from ding.utils.errors import DingError, UsageError, nearest
from ding.utils.files import check_can_write

MODES = (
    *("serial", "serial_onpolicy", "serial_reward_model", "serial_bc", "selfplay", "league"),
    *("serial_gail", "serial_sqil", "serial_dqfd", "serial_r2d3"),
    *("parallel", "dist", "eval", "replay"),
)
_PLATFORMS = ("local",)
_TRAIN_ONLY = ("train_iter", "env_step", "resume")
_REPLAY_ONLY = ("timeout", "trust")
# Options that cannot take effect in a mode; those not named here are trainings.
_IDLE = {
    "eval": (*_TRAIN_ONLY, *_REPLAY_ONLY),
    "serial_bc": ("env_step", *_REPLAY_ONLY),
    "replay": (*_TRAIN_ONLY, "config", "env", "policy", "seed", "exp_name"),
}


class _Parser(argparse.ArgumentParser):
    def format_help(self) -> str:
        """Help with the commands before the modes."""
        return f"{table.overview()}\n\n{super().format_help()}"


def parser() -> argparse.ArgumentParser:
    p = _Parser(
        prog="ding",
        usage="ding -m MODE [options]",
        description="The same by modes, for scripts; -m parallel and -m dist are here alone.",
        epilog="example: ding -m serial -e cartpole -p dqn -s 0",
        allow_abbrev=False,
    )
    p.add_argument("-v", "--version", action="version", version=f"ding {__version__}")
    p.add_argument("-q", "--query-registry", metavar="NAME", help="list what a registry knows")
    p.add_argument("-m", "--mode", help=f"what to do: {', '.join(MODES)}")
    p.add_argument("-c", "--config", metavar="FILE", help="config file, .py or .yaml")
    p.add_argument("-e", "--env", help="without -c: env of the zoo or any Gymnasium id")
    p.add_argument("-p", "--policy", help="without -c: policy by its registered name")
    p.add_argument("-P", "--platform", help="with -m parallel and dist: local, slurm or k8s")
    p.add_argument(
        "-s", "--seed", type=int, action="append", help="seed; repeat it for several runs"
    )
    p.add_argument("--train-iter", type=count, metavar="N", help="most updates, e.g. 1e5")
    p.add_argument("--env-step", type=count, metavar="N", help="most env steps, e.g. 1e6")
    p.add_argument("--exp-name", help="name of the directory for the results")
    p.add_argument("--load-path", metavar="CKPT", help="checkpoint to start from or to evaluate")
    p.add_argument("--replay-path", metavar="DIR", help="with -m eval: save videos there")
    p.add_argument(
        "--resume",
        nargs="?",
        const=True,
        default=False,
        metavar="DIR",
        help="go on with the newest run of this name, or with the run in DIR",
    )
    p.add_argument("file", nargs="*", metavar="FILE", help="with -m replay: flight file of an env")
    p.add_argument("--timeout", type=seconds, metavar="S", help="with -m replay: limit of a step")
    p.add_argument(
        "--trust", action="store_true", help="with -m replay: run code that the file names"
    )
    p.add_argument("--profile", metavar="DIR", help="write where the time goes into DIR")
    cli_dist.add_options(p)
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; bad input ends in one message and exit code 1 (2 for bad options)."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(words)
    except DingError as error:
        table.show(f"ding: error: {error}")
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        _say("ding: interrupted", sys.stderr)
        return 130


def _run(words: list[str]) -> int:
    """The first word decides: a command, or options of the modes."""
    if not words:
        _say(table.overview(), sys.stdout)
        return 0
    if words[0] == cli_demo.WORD:
        return cli_demo.run(words[1:], _tell_result)
    if not words[0].startswith("-") and not {"-m", "--mode"} & set(words):
        return table.run(words, _tell_result)
    args = parser().parse_args(words)
    return _profiled(args) if args.profile else _dispatch(args)


def _dispatch(args: argparse.Namespace) -> int:
    if args.query_registry:
        return _query(args.query_registry)
    _check_options(args)
    if args.mode == "replay":
        return _replay(args)
    if args.mode == "eval":
        return _eval(args)
    if args.mode == "dist":
        return cli_dist.run(args, _limits(args), _configs, _tell_result)
    return _train(args)


def _check_options(args: argparse.Namespace) -> None:
    args.file = _one_file(args.file, args.seed)
    args.mode = _checked_mode(args.mode, resumed=isinstance(args.resume, str))
    _check_platform(args)
    if args.config and (args.env or args.policy):
        raise DingError("give either -c or -e and -p, not both")
    if args.replay_path and args.mode != "eval":
        raise DingError("--replay-path takes effect with -m eval only")
    if args.file and args.mode != "replay":
        raise DingError(f"'{args.file}': a file without an option goes with -m replay only")
    for name in _IDLE.get(args.mode, _REPLAY_ONLY):
        if getattr(args, name):
            raise DingError(f"--{name.replace('_', '-')} has no effect with -m {args.mode}")


def _one_file(words: list[str], seeds: list[int] | None) -> str | None:
    if seeds and words and all(word.isdigit() for word in words):
        several = " ".join(f"-s {seed}" for seed in (*seeds, *words))
        raise UsageError(f"-s {seeds[0]} {' '.join(words)}: repeat the option: {several}")
    if len(words) > 1:
        raise UsageError(f"'{words[1]}': one FILE at most goes without an option")
    return words[0] if words else None


def _check_platform(args: argparse.Namespace) -> None:
    if args.mode == "dist":
        cli_dist.check_options(args)
        return
    if args.mode == "parallel":
        _check_parallel(args)
    if given := [name for name in cli_dist.OPTIONS if getattr(args, name) is not None]:
        raise DingError(f"--{given[0].replace('_', '-')} takes effect with -m dist only")
    if args.mode != "parallel" and args.platform:
        raise DingError("--platform takes effect with -m parallel and -m dist only")


def _check_parallel(args: argparse.Namespace) -> None:
    """In this mode -p is where to run, and not the policy."""
    platform, args.policy = args.platform or args.policy or "local", None
    if platform in cli_dist.PLATFORMS[1:]:
        raise DingError(
            f"-m parallel -p {platform}: this mode runs on one machine; on several it is ding -m "
            f"dist --module config -p {platform} -c FILE"
        )
    if platform not in _PLATFORMS:
        raise DingError(
            f"-p {platform}: with -m parallel -p is the platform{nearest(platform, _PLATFORMS)}; "
            "the policy comes with the config: -c FILE"
        )
    if args.env:
        raise DingError("-m parallel takes a config: -c FILE instead of -e and -p")


def _checked_mode(mode: str | None, resumed: bool) -> str:
    if mode is None and resumed:
        return "serial"
    if mode is None:
        raise DingError(f"what to do? give a mode: -m {' | '.join(MODES)} (ding -h for help)")
    if mode not in MODES:
        raise DingError(f"unknown mode '{mode}'{nearest(mode, MODES)}")
    return mode


def _configs(args: argparse.Namespace) -> list[Any]:
    """main_config with the options of the command line on top, create_config, system_config."""
    from ding.config import override, read_config, read_config_with_system
    from ding.entry.predefined import predefined_config

    import_from_here()
    system: Any = {}
    if args.config:
        main, create, system = read_config_with_system(args.config, required=False)
        if args.mode not in ("parallel", "dist"):
            from ding.entry.parallel_config import in_one_process

            main, create = in_one_process(main, create, system)
    elif isinstance(args.resume, str) and not args.env:
        main, create = read_config(_config_of(args.resume))
    elif args.env and args.policy:
        main, create = predefined_config(args.env, args.policy, args.env_step, table.show)
    elif args.mode == "eval" and args.exp_name:
        main, create = read_config(_config_of(args.exp_name))
    elif args.mode == "eval":
        raise DingError("what to evaluate? give --exp-name RUN, -c FILE, or -e ENV and -p POLICY")
    else:
        raise DingError("what to train? give -c FILE, or -e ENV and -p POLICY")
    given = {"exp_name": args.exp_name, "policy.load_path": args.load_path}
    return [override(main, {k: v for k, v in given.items() if v is not None}), create, system]


def _config_of(run: str) -> Path:
    """Config file of a run."""
    file = Path(run) / "total_config.py"
    if not file.is_file():
        what = "has no total_config.py, so it is not" if Path(run).exists() else "does not exist as"
        raise DingError(f"'{run}' {what} the directory of a run (ding list runs shows them)")
    return file


def _limits(args: argparse.Namespace) -> Any:
    from ding.utils.limits import Limits

    unlimited = Limits()
    return Limits(args.train_iter or unlimited.train_iter, args.env_step or unlimited.env_step)


def _train(args: argparse.Namespace) -> int:
    from ding.entry.seeds import train_one

    configs, limits = _configs(args), _limits(args)
    seeds = args.seed or [configs[0].get("seed", 0)]
    if len(seeds) > 1 and args.mode == "league":
        raise DingError("-m league takes one seed: a league has several policies as it is")
    if len(seeds) > 1:
        return _train_seeds(args, configs, limits)
    result = train_one(configs, seeds[0], limits, args.resume, args.mode)
    return 130 if result["interrupted"] else 0


def _train_seeds(args: argparse.Namespace, configs: list[Any], limits: Any) -> int:
    from ding.entry.seeds import train_seeds
    from ding.utils.terminal import wrapped

    if isinstance(args.resume, str):
        raise DingError("--resume DIR goes with one seed; with several use --resume alone")
    name = Path(args.config).stem if args.config else f"{args.env}_{args.policy}"
    directory = Path(args.exp_name or f"{name.replace('/', '_')}_result")
    done, text = train_seeds(
        configs,
        args.seed,
        directory,
        limits,
        resume=args.resume,
        mode=args.mode,
    )
    _say(wrapped(text) if sys.stdout.isatty() else text, sys.stdout)
    return 0 if done else 130


def _eval(args: argparse.Namespace) -> int:
    import numpy as np

    from ding.entry.evaluation import evaluate
    from ding.worker.episode_returns import besides_return

    configs = _configs(args)
    for seed in args.seed or [configs[0].get("seed", 0)]:
        own = [_of_seed(configs[0], seed, args), *configs[1:]]
        result = evaluate(own, seed, load_path=args.load_path, replay_path=args.replay_path)
        returns = np.asarray(result.reward)
        _say(
            f"seed {seed}: {len(returns)} episodes, return mean {returns.mean():.2f}, "
            f"std {returns.std():.2f}, median {np.median(returns):.2f}, "
            f"min {returns.min():.2f}, max {returns.max():.2f}"
            f"{besides_return(result.reward.summary(), 2)}; "
            f"stop value {'reached' if result.stop else 'not reached'}",
            sys.stdout,
        )
        if args.replay_path:
            _say(f"videos in {args.replay_path}", sys.stdout)
    return 0


def _of_seed(main: Any, seed: int, args: argparse.Namespace) -> Any:
    """The config of the run of this seed, if there is one; else as it is."""
    from ding.config import override
    from ding.pipeline.naming import name_with_seed

    name = name_with_seed(main.get("exp_name", ""), seed)
    own = args.seed and not args.exp_name and Path(name).is_dir()
    return override(main, {"exp_name": name}) if own else main


def _replay(args: argparse.Namespace) -> int:
    from ding.entry.replay import replay

    path = args.file or args.load_path
    if not path or (args.file and args.load_path):
        raise DingError("which flight? give one file: ding -m replay FILE")
    return replay(path, _tell_result, timeout=args.timeout, trust=args.trust)


def _query(name: str) -> int:
    from ding.utils.registry import REGISTRIES

    if name not in REGISTRIES:
        raise DingError(f"unknown registry '{name}'{nearest(name, REGISTRIES)}")
    for key, (file, line) in REGISTRIES[name].query_details().items():
        _say(f"{key}: {file}:{line}", sys.stdout)
    return 0


def _profiled(args: argparse.Namespace) -> int:
    import cProfile
    import pstats

    directory = Path(args.profile)
    check_can_write(directory, "--profile")
    directory.mkdir(parents=True, exist_ok=True)
    profile = cProfile.Profile()
    try:
        return profile.runcall(_dispatch, args)
    finally:
        profile.dump_stats(directory / "profile.prof")
        with (directory / "profile.txt").open("w", encoding="utf-8") as file:
            pstats.Stats(profile, stream=file).sort_stats("cumulative").print_stats(60)


def _tell_result(text: str) -> None:
    _say(text, sys.stdout)


def _say(text: str, stream: Any) -> None:
    stream.write(text + "\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
