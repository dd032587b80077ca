"""Opponents by their names in a config: 'random', a function, a checkpoint or a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.config import compile_config, override, read_config
from ding.policy import create_policy
from ding.policy.acting import random_allowed
from ding.utils.batch import ByEnv, stacked_of, take
from ding.utils.checkpoint import load_checkpoint
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.seed import new_generator

logger = logging.getLogger(__name__)

RANDOM = "random"
BotFunction = Callable[[Any, np.random.Generator], Any]
_ILLEGAL = -1
_CONFIG = "total_config.py"


class Bot:
    """Eval mode made of a function `(obs of one seat, generator) -> action`.

    What the function raises forfeits its game, by a move that no game allows.
    """

    def __init__(self, function: BotFunction, rng: np.random.Generator | None = None) -> None:
        self._function = function
        self._rng = new_generator() if rng is None else rng
        self.failures: list[str] = []
        """What the function raised."""

    def forward(self, data: Mapping[int, Any], **kwargs: Any) -> ByEnv:
        seats, obs = stacked_of(data)
        return ByEnv(
            seats, {"action": np.array([self._move(take(obs, k)) for k in range(len(seats))])}
        )

    def _move(self, obs: Any) -> Any:
        try:
            return self._function(obs, self._rng)
        except Exception as error:
            if repr(error) not in self.failures:
                logger.warning("an opponent raised %r: its game is forfeited", error)
            self.failures.append(repr(error))
            return _ILLEGAL

    def reset(self, data_id: Sequence[int] | None = None) -> None:
        """A function remembers nothing."""

    def get_attribute(self, name: str) -> Any:
        raise NotImplementedError(f"a bot has no {name}")


class RandomBot(Bot):
    """Draws from the legal moves."""

    def __init__(self, space: Any, rng: np.random.Generator | None = None) -> None:
        super().__init__(lambda obs, rng: space.sample(), rng)
        self._space = space

    def forward(self, data: Mapping[int, Any], **kwargs: Any) -> ByEnv:
        seats, obs = stacked_of(data)
        if isinstance(obs, dict) and "action_mask" in obs:
            return ByEnv(seats, {"action": random_allowed(obs["action_mask"], self._rng)})
        if isinstance(self._space, spaces.Discrete):
            return ByEnv(seats, {"action": self._rng.integers(0, self._space.n, len(seats))})
        return super().forward(data)


def opponents_of(given: Mapping[str, Any], path: str, space: Any, like: Any) -> dict[str, Any]:
    """Modes of the opponents by name; `path` is where the config has them."""
    found = {}
    for name, one in given.items():
        try:
            found[name] = opponent_of(one, space, like)
        except (CheckpointError, ConfigError) as error:
            raise type(error)(f"{path}.{name}: {error}") from error
    return found


def opponent_of(given: Any, action_space: Any, like: Any = None) -> Any:
    """The mode that plays for this entry of a config; `like`: policy section of the learner."""
    if not isinstance(given, (str, Path)) and not callable(given) and not hasattr(given, "forward"):
        raise ConfigError(
            f"{given!r} is no opponent: give 'random', a function or its 'module:function', the "
            "directory of a run, or a checkpoint"
        )
    if callable(given):
        return Bot(given)
    if hasattr(given, "forward"):
        return given
    if given == RANDOM:
        return RandomBot(action_space)
    path = Path(str(given))
    if ":" in str(given) and not path.exists():
        return Bot(_function(str(given)))
    return frozen(path, like)


def _function(name: str) -> BotFunction:
    module, _, attribute = name.partition(":")
    try:
        function: BotFunction = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"opponent '{name}': {error}; give module:function") from error
    if not callable(function):
        raise ConfigError(
            f"opponent '{name}': it is {function!r}, no function (obs, rng) -> action"
        )
    return function


def frozen(path: Path, like: Any = None, *, sample: bool = False) -> Any:
    """Eval mode of a checkpoint, or of the best one of a run; it must be of the same game.

    `sample`: it draws its actions as it did when it collected last.
    """
    checkpoint = path / "ckpt" / "ckpt_best.pth.tar" if path.is_dir() else path
    state = load_checkpoint(checkpoint)
    policy = _policy_of(checkpoint, like, ["collect", "command"] if sample else ["eval"])
    if not sample:
        policy.eval_mode.load_state_dict(state)
        return policy.eval_mode
    policy.collect_mode.load_state_dict(state)
    progress = {"learner_step": state.get("last_iter", 0), "envstep": state.get("last_step", 0)}
    return Sampled(policy.collect_mode, policy.command_mode.get_setting_collect(progress))


def _policy_of(checkpoint: Path, like: Any, fields: list[str]) -> Any:
    config = checkpoint.absolute().parents[1] / _CONFIG
    if not config.is_file():
        raise CheckpointError(f"checkpoint '{checkpoint}' has no {_CONFIG} in the directory above")
    main, create = read_config(config)
    main = override(main, {"policy.cuda": False, "policy.multi_gpu": False})
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False, seed=main["seed"])
    if like is not None:
        _check_same_game(checkpoint, cfg.policy.model, like["model"])
    return create_policy(cfg.policy, enable_field=fields)


class Sampled:
    """Collect mode that only acts, with the same settings each time."""

    def __init__(self, mode: Any, settings: Mapping[str, Any]) -> None:
        self._mode, self._settings = mode, dict(settings)
        self.reset, self.get_attribute = mode.reset, mode.get_attribute

    def forward(self, data: Any, **kwargs: Any) -> Any:
        return self._mode.forward(data, **self._settings)


def _check_same_game(path: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    for key in ("obs_shape", "action_shape"):
        if theirs.get(key) != ours.get(key):
            raise CheckpointError(
                f"checkpoint '{path}' is of another game: its {key} is {theirs.get(key)}, here it "
                f"is {ours.get(key)}"
            )
