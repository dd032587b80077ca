"""What a policy asks of the workers that collect for it, as one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ding.envs.base_env import VecStep


@dataclass(frozen=True, kw_only=True)
class Needs:
    n_sample: int | None = None
    """Samples of a collect; None leaves that to the caller, as with `n_episode`."""
    n_episode: int | None = None
    unroll_len: int = 1
    """Steps of one env that belong together in a sample."""
    nstep: int = 1
    """Steps that a sample waits for: its own and those after it."""
    on_policy: bool = False
    """Samples of an older policy are of no use."""
    traj_len_inf: bool = False
    """Samples are made of whole episodes only."""
    takes_all_envs: bool = False
    """Steps of all envs come to `get_train_sample` at once instead of one piece after the other."""
    process_rows: bool = False
    """Steps come to `process_transition` one env at a time."""
    links_steps: bool = False
    """Every step says which episode it is of, and which step there."""
    statistics_observer: Callable[[Any, VecStep], None] | None = None
    """Called with stacked observations and their steps."""

    @classmethod
    def of(cls, mode: Any) -> Needs:
        """Those of a policy's mode; one that users put together may name only some of them."""
        needs = attribute_of(mode, "needs", None)
        if isinstance(needs, Needs):
            return needs
        named = {field.name: attribute_of(mode, field.name, None) for field in fields(cls)}
        return cls(**{name: value for name, value in named.items() if value is not None})


def attribute_of(policy: Any, name: str, default: Any) -> Any:
    """Attribute of the policy, or the default if a mode that users put together lacks it."""
    try:
        return policy.get_attribute(name)
    except (NotImplementedError, AttributeError):
        return default
