"""Modes: what workers see of a policy, plain collections of functions.

Anything with the same functions can stand in for a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar


class LearnMode(NamedTuple):
    forward: Callable[..., Any]
    reset: Callable[..., None]
    info: Callable[[], str]
    monitor_vars: Callable[[], list[str]]
    get_attribute: Callable[[str], Any]
    set_attribute: Callable[[str, Any], None]
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[dict[str, Any]], None]


class CollectMode(NamedTuple):
    forward: Callable[..., Mapping[int, Any]]
    process_transition: Callable[..., dict[str, Any]]
    get_train_sample: Callable[..., Sequence[Any]]
    reset: Callable[..., None]
    get_attribute: Callable[[str], Any]
    set_attribute: Callable[[str, Any], None]
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[dict[str, Any]], None]


class EvalMode(NamedTuple):
    forward: Callable[..., Mapping[int, Any]]
    reset: Callable[..., None]
    get_attribute: Callable[[str], Any]
    set_attribute: Callable[[str, Any], None]
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[dict[str, Any]], None]


class CommandMode(NamedTuple):
    get_setting_learn: Callable[..., dict[str, Any]]
    get_setting_collect: Callable[..., dict[str, Any]]
    get_setting_eval: Callable[..., dict[str, Any]]


Function = TypeVar("Function", bound=Callable[..., Any])


def takes_all_envs(get_train_sample: Function) -> Function:
    """Mark a `_get_train_sample` that wants the steps of all envs at once.

    They come one env after the other, with a column `end` that is True at the last step of each
    piece. Without the mark it is called for every piece on its own.
    """
    get_train_sample.takes_all_envs = True  # type: ignore[attr-defined]
    return get_train_sample


def single_steps(get_train_sample: Function) -> Function:
    """Mark a `_get_train_sample` whose samples are single steps, of all envs at once.

    Replay sums the rewards of `nstep` of them when they are drawn.
    """
    get_train_sample.single_steps = True  # type: ignore[attr-defined]
    return takes_all_envs(get_train_sample)
