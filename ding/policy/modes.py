"""Modes: what workers see of a policy, plain collections of functions.

Anything with the same functions can stand in for a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


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
