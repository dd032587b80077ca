"""`ding play`: watch a trained policy."""

from __future__ import annotations

import argparse
from pathlib import Path

from ding.entry.commands.options import count, import_from_here, number_of, videos_of, whole
from ding.entry.commands.table import Say
from ding.utils.files import check_can_write


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "run", metavar="RUN", help="directory of a run, a checkpoint (.pth.tar) or a bundle (.ding)"
    )
    p.add_argument("--episodes", type=count, default=1, metavar="N", help="how many (1)")
    p.add_argument("-s", "--seed", type=whole, default=0, metavar="K", help="of the env (0)")
    p.add_argument(
        "--video-dir",
        metavar="DIR",
        help="write mp4 files there; without a screen they go to videos/ of the run",
    )


def run(args: argparse.Namespace, say: Say) -> int:
    from ding.agent import load
    from ding.envs.video import has_screen

    import_from_here()
    agent = load(args.run)
    directory = None if args.video_dir is None else Path(args.video_dir)
    if directory is None and not has_screen():
        directory = videos_of(Path(args.run))
    if directory is not None:
        check_can_write(directory, "--video-dir")
    for episode in range(args.episodes):
        reached = agent.play(video=directory, seed=args.seed + episode)
        say(f"episode {episode + 1} of {args.episodes}: return {reached:.2f}")
    if directory is not None:
        why = "" if args.video_dir else "no screen (DISPLAY is not set): "
        say(f"{why}{number_of(args.episodes, 'video')} in {directory}")
    return 0
