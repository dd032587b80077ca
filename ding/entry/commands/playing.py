"""`ding play`: watch a trained policy."""

from __future__ import annotations

import argparse
from pathlib import Path

from ding.entry.commands.options import count, import_from_here, whole
from ding.entry.commands.table import Say
from ding.utils.files import check_can_write


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "run", metavar="RUN", help="directory of a run, a checkpoint (.pth.tar) or a bundle (.ding)"
    )
    p.add_argument("--episodes", type=count, default=1, metavar="N", help="how many (1)")
    p.add_argument("-s", "--seed", type=whole, default=0, metavar="K", help="of the env (0)")
    p.add_argument("--video-dir", metavar="DIR", help="write mp4 files there, without a screen")


def run(args: argparse.Namespace, say: Say) -> int:
    from ding.agent import load

    import_from_here()
    agent = load(args.run)
    if args.video_dir is not None:
        check_can_write(args.video_dir, "--video-dir")
    directory = None if args.video_dir is None else Path(args.video_dir)
    for episode in range(args.episodes):
        reached = agent.play(video=directory, seed=args.seed + episode)
        say(f"episode {episode + 1} of {args.episodes}: return {reached:.2f}")
    if directory is not None:
        say(f"{args.episodes} videos in {directory}")
    return 0
