"""`ding eval` and `ding play`: episodes of a trained policy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ding.entry.commands.options import count, import_from_here, number_of, videos_of, whole
from ding.entry.commands.table import Say
from ding.utils.errors import UsageError
from ding.utils.files import check_can_write


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "run", metavar="RUN", help="directory of a run, a checkpoint (.pth.tar) or a bundle (.ding)"
    )
    p.add_argument("--episodes", type=count, default=10, metavar="N", help="how many (10)")
    p.add_argument("-s", "--seed", type=whole, default=0, metavar="K", help="of the env (0)")
    p.add_argument("--video", type=count, metavar="N", help="record the first N episodes")
    p.add_argument("--video-dir", metavar="DIR", help="where to (videos/ of the run)")


def run(args: argparse.Namespace, say: Say) -> int:
    import numpy as np

    from ding.entry.evaluation import own_env_run
    from ding.worker.episode_returns import besides_return

    if args.video_dir and not args.video:
        raise UsageError("--video-dir goes with --video N, the number of episodes to record")
    if args.video and args.video > args.episodes:
        raise UsageError(f"--video {args.video}: there are {args.episodes} episodes (--episodes N)")
    import_from_here()
    own = own_env_run(Path(args.run))
    if own is None:
        say(summary_line(_of_agent(args, say)))
        return 0
    returns = _of_run(own, args, say)
    say(summary_line(np.array(returns)) + besides_return(returns.summary(), 2))
    return 0


def _of_agent(args: argparse.Namespace, say: Say) -> Any:
    """Returns of an agent in a Gymnasium env."""
    import numpy as np

    from ding.agent import load

    agent = load(args.run)
    n_video = args.video or 0
    returns = np.empty(args.episodes)
    if n_video:
        returns[:n_video] = _recorded(agent, args, say)
    if n_video < args.episodes:
        rest = args.episodes - n_video
        returns[n_video:] = agent.evaluate(episodes=rest, seed=args.seed + n_video)
    return returns


def _of_run(own: Any, args: argparse.Namespace, say: Say) -> Any:
    """Returns in the env of the run itself."""
    if not args.video:
        return own.evaluate(args.episodes, args.seed)
    directory = _video_dir(args)
    returns = own.evaluate(args.video, args.seed, directory)
    say(f"{args.video} videos in {directory}")
    rest = args.episodes - args.video
    return returns.joined(own.evaluate(rest, args.seed + args.video)) if rest else returns


def summary_line(returns: Any) -> str:
    """Returns of episodes in one line of at most 80 columns."""
    import numpy as np

    return (
        f"{len(returns)} episodes: return mean {returns.mean():.2f}, std {returns.std():.2f}, "
        f"median {np.median(returns):.2f},\nmin {returns.min():.2f}, max {returns.max():.2f}"
    )


def _recorded(agent: Any, args: argparse.Namespace, say: Say) -> Any:
    from ding.agent.play import play_episodes

    directory = _video_dir(args)
    env = agent.card.make_env("rgb_array")
    try:
        returns = play_episodes(agent, env, args.video, args.seed, video=directory)
    finally:
        env.close()
    say(f"{number_of(args.video, 'video')} in {directory}")
    return returns


def _video_dir(args: argparse.Namespace) -> Path:
    directory = Path(args.video_dir) if args.video_dir else videos_of(Path(args.run))
    check_can_write(directory, "--video-dir")
    return directory
