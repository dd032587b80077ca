"""Players against each other: games, players and opponents by the names of a command line."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym

from ding.config import read_config
from ding.config.schema import to_easydict
from ding.entry.commands.options import is_place, object_at
from ding.entry.predefined import ZOO
from ding.envs import create_env_manager
from ding.envs.base_env import get_env_cls
from ding.envs.packages import register_package
from ding.envs.two_player import OBS, TO_PLAY, SeatsSpace, numbers_text, one_seat
from ding.league.run import players_of
from ding.utils.errors import CheckpointError, DingError, nearest
from ding.utils.registry import ENV_REGISTRY
from ding.worker.battle import Bot, opponent_of
from ding.worker.battle.human import Human
from ding.worker.battle.opponents import RANDOM, frozen

HUMAN = "human"
_CONFIG = "total_config.py"
_LEAGUE = "league.json"
Say = Callable[[str], None]


# --- games -------------------------------------------------------------------------------------


def game_env(name: str, count: int, seed: int, max_moves: int | None = None) -> Any:
    """Manager of `count` envs of a game.

    The name is one of the zoo, of a registered env, 'classic.tictactoe_v3' of PettingZoo,
    `module:Class`, a config file, or the directory of a run.
    """
    cls, cfg = _class_and_cfg(name)
    cfg = {**cfg, "evaluator_env_num": count}
    if max_moves is not None:
        cfg["max_moves"] = max_moves
    cfgs = cls.create_evaluator_env_cfg(to_easydict(cfg))
    manager = create_env_manager({"type": "base"}, [partial(cls, cfg=one) for one in cfgs])
    manager.seed(seed, dynamic_seed=True)
    space = manager.action_space
    if not isinstance(space, SeatsSpace) or space.agent_num != 2:
        manager.close()
        raise DingError(
            f"'{name}' is not a game of two players: its actions are {space}; a game's are a "
            "SeatsSpace (docs/league.md)"
        )
    return manager


def _class_and_cfg(name: str) -> tuple[Any, dict[str, Any]]:
    if name in ZOO:
        module = _config_of_zoo(name)
        return _of_config(module.main_config, module.create_config)
    if name in ENV_REGISTRY:
        return ENV_REGISTRY.get(name), {}
    if is_place(name):
        return object_at(name), {}
    path = Path(name)
    if path.exists():
        return _of_config(*read_config(path / _CONFIG if path.is_dir() else path))
    register_package(name)
    if name in gym.registry:
        return ENV_REGISTRY.get("gym"), {"env_id": name}
    part, dot, _ = name.partition(".")
    if dot and part in ("classic", "atari", "butterfly"):
        return ENV_REGISTRY.get("pettingzoo_game"), {"env_id": name}
    known = [*ZOO, *ENV_REGISTRY.query()]
    raise DingError(f"unknown game '{name}'{nearest(name, known)}")


def _config_of_zoo(name: str) -> Any:
    package = import_module(ZOO[name])
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    own = next(one for one in found if one.startswith(f"{name}_") and one.endswith("_config"))
    return import_module(f"{ZOO[name]}.{own}")


def _of_config(main: Any, create: Any) -> tuple[Any, dict[str, Any]]:
    env = {**main["env"], **create.get("env", {})}
    return get_env_cls(env), env


# --- players -----------------------------------------------------------------------------------


def player_of(given: str, env: Any, *, sample: bool, say: Say, ask: Callable[[str], str]) -> Any:
    """The mode that plays for a word of the command line in the games of this manager."""
    one = env.action_space.one
    if given == RANDOM:
        return opponent_of(RANDOM, one)
    if given == HUMAN:
        return _human(env, say, ask)
    like = _shapes_of(env)
    path, _, player_id = given.rpartition(":")
    if path and (Path(path) / _LEAGUE).is_file():
        return frozen(_league_player(Path(path), player_id), like, sample=sample)
    if is_place(given):
        return Bot(object_at(given))
    if not Path(given).exists():
        raise _unknown(given, path)
    if (Path(given) / _LEAGUE).is_file():
        names = ", ".join(player["player"] for player in players_of(given)[:4])
        raise DingError(
            f"'{given}' is a league: name one of its players, {given}:ID ({names}, ...)"
        )
    return frozen(Path(given), like, sample=sample)


def _shapes_of(env: Any) -> dict[str, Any] | None:
    """Model section of a policy that fits the game, as far as it can be compared."""
    one = one_seat(env)
    seen, space = one.observation_space, one.action_space
    if isinstance(seen, gym.spaces.Dict):
        seen = seen.spaces.get(OBS)
    if seen is None or not isinstance(space, gym.spaces.Discrete):
        return None
    shape = [int(n) for n in seen.shape]
    obs_shape = shape[0] if len(shape) == 1 else shape
    return {"model": {"obs_shape": obs_shape, "action_shape": int(space.n)}}


def _unknown(given: str, path: str) -> DingError:
    if Path(given).suffix or "/" in given or path:
        return CheckpointError(
            f"player '{given}': there is nothing there; give the directory of a run, a checkpoint, "
            "LEAGUE:ID, module:function, 'random' or 'human'"
        )
    runs = [str(file.parent) for file in Path().glob(f"*/{_CONFIG}")]
    return DingError(f"unknown player '{given}'{nearest(given, [RANDOM, HUMAN, *runs])}")


def _league_player(directory: Path, player_id: str) -> Path:
    checkpoints = {p["player"]: p["checkpoint"] for p in players_of(directory)}
    if player_id not in checkpoints:
        raise DingError(
            f"the league '{directory}' has no player '{player_id}'{nearest(player_id, checkpoints)}"
        )
    return directory / "ckpt" / Path(checkpoints[player_id]).name


def _human(env: Any, say: Say, ask: Callable[[str], str]) -> Human:
    space = env.observation_space
    if not (isinstance(space, gym.spaces.Dict) and TO_PLAY in space.spaces):
        raise DingError("a person plays turn by turn; in this game both players move at once")
    drawn = drawing_of(env)
    return Human(drawn.text, drawn.move_name, int(env.action_space.one.n), say, ask)


def drawing_of(env: Any) -> Any:
    """`text` and `move_name` of the game, or plain numbers."""
    game = env.env_ref
    if hasattr(game, "text"):
        return game
    return SimpleNamespace(text=numbers_text, move_name=str)


def labels_of(players: Sequence[str], width: int) -> list[str]:
    """Short names of the players, no two alike."""
    labels: list[str] = []
    for given in players:
        label = _shortened(given, width)
        same = sum(known == label or known.startswith(f"{label} #") for known in labels)
        labels.append(f"{label[: width - 3]} #{same + 1}" if same else label)
    return labels


def _shortened(given: str, width: int) -> str:
    """As many parts of a path or a module as fit, from the end."""
    sign = "." if is_place(given) else "/"
    parts = given.rstrip("/").split(sign)
    fitting = [sign.join(parts[k:]) for k in range(len(parts))]
    return next((one for one in fitting if len(one) <= width), fitting[-1][-width:])


def pairs_of(names: Sequence[str], games: int) -> list[tuple[str, str]]:
    """Everybody against everybody, the seats by turns."""
    return [
        (a, b) if game % 2 == 0 else (b, a)
        for k, a in enumerate(names)
        for b in names[k + 1 :]
        for game in range(games)
    ]


def failures_of(modes: Mapping[str, Any]) -> dict[str, str]:
    """What each player's function raised first."""
    raised = {name: getattr(mode, "failures", []) for name, mode in modes.items()}
    return {name: failures[0] for name, failures in raised.items() if failures}
