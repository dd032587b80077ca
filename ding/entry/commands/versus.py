"""`ding versus`: games between players, or against a person, and what they are worth."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ding.entry.commands.options import count, import_from_here, whole
from ding.entry.commands.table import Say
from ding.utils.errors import UsageError

if TYPE_CHECKING:
    from ding.worker.battle import Game

_ENVS = 16
_MOST_STEPS = 10_000
_NAME_WIDTH = 26
_DEFAULT_GAMES = 100


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("game", metavar="GAME", help="of the zoo, module:Class, a config or a run")
    p.add_argument(
        "players",
        nargs="+",
        metavar="PLAYER",
        help="run, checkpoint, LEAGUE:ID, module:function, 'random' or 'human'",
    )
    p.add_argument(
        "--games",
        type=count,
        metavar="N",
        help="of each pair (100; with a person 2), seats by turn",
    )
    p.add_argument("-s", "--seed", type=whole, default=0, metavar="K", help="of all chance (0)")
    p.add_argument("--all", action="store_true", help="ratings of everybody also for two players")
    p.add_argument("--sample", action="store_true", help="policies draw their actions")
    p.add_argument("--max-moves", type=count, metavar="N", help="longer games are draws")


def run(args: argparse.Namespace, say: Say) -> int:
    from ding.entry.versus import HUMAN
    from ding.utils.seed import set_pkg_seed

    if len(args.players) < 2:
        raise UsageError("a game has two players: ding versus GAME PLAYER PLAYER")
    import_from_here()
    set_pkg_seed(args.seed)
    person = HUMAN in args.players
    args.games = args.games or (2 if person else _DEFAULT_GAMES)
    games, code, said = _played(args, 1 if person else min(_ENVS, args.games), say)
    _report(args, games, said, say)
    return code


def _played(args: argparse.Namespace, n_env: int, say: Say) -> tuple[list[Game], int, Any]:
    """The games; those that ended before a person left, and the exit code."""
    from ding.entry.versus import drawing_of, failures_of, game_env, labels_of, pairs_of, player_of
    from ding.worker.battle.games import Table
    from ding.worker.battle.human import Human, Quit
    from ding.worker.battle.match import Match

    env = game_env(args.game, n_env, args.seed, args.max_moves)
    games: list[Game] = []
    code = 0
    try:
        env.launch()
        names = labels_of(args.players, _NAME_WIDTH)
        modes = {
            name: player_of(given, env, sample=args.sample, say=say, ask=_asked)
            for name, given in zip(names, args.players, strict=True)
        }
        people = {name for name, mode in modes.items() if isinstance(mode, Human)}
        drawn = drawing_of(env)

        def ended(game: Game, seen: Any) -> None:
            games.append(game)
            if people:
                _tell_person(game, seen, people, drawn, say)

        table = Table(modes, env, lambda env_id: (names[0], names[1]))
        most = args.max_moves or _MOST_STEPS
        match = Match(env, table, pairs_of(names, args.games), ended=ended, max_steps=most)
        try:
            match.play()
        except Quit:
            say("\nthe input has ended")
        except KeyboardInterrupt:
            say("\ninterrupted")
            code = 130
    finally:
        env.close()
    return games, code, (names, failures_of(modes))


def _asked(prompt: str) -> str:
    sys.stdout.write(prompt)
    sys.stdout.flush()
    return sys.stdin.readline()


def _tell_person(game: Game, seen: Any, people: set[str], drawn: Any, say: Say) -> None:
    """The last position as a person sees it, and the result."""
    for seat, name in enumerate(game.seats):
        if name in people:
            said = {"wins": "you win", "draws": "a draw", "losses": "you lose"}[game.result[seat]]
            points = f" ({game.returns[seat]:+g})" if abs(game.returns[seat]) > 1 else ""
            why = f": {game.reason}" if game.reason else ""
            say(f"\n{drawn.text(seen['obs'][seat])}\n\n{said}{points}{why}")
            return


def _report(args: argparse.Namespace, games: Sequence[Game], said: Any, say: Say) -> None:
    from ding.entry.versus_table import duel, notes, tournament
    from ding.league.standings import counts_of

    names, failures = said
    if not games:
        say("no game was played to its end")
        return
    counts = counts_of(games, names)
    head = f"{len(games)} games of {args.game}, seed {args.seed}"
    two = len(names) == 2 and not args.all
    say("\n".join([head, "", *(duel if two else tournament)(names, counts)]))
    for line in notes(games, names, failures):
        say(textwrap.fill(line, 79, subsequent_indent="  "))
