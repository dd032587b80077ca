"""What every algorithm claims to work with; `test_conformance.py` holds it to each word.

A new algorithm is one line in `CLAIMS`; `python -m tests.conformance.table` brings the table in
`docs/algorithms.md` into step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

OBSERVATIONS = ("vector", "image", "dict")
ACTIONS = (
    *("discrete", "multi_discrete", "continuous", "hybrid"),
    *("discrete_agents", "continuous_agents"),
)
MASKABLE = ("discrete", "hybrid", "discrete_agents")
"""Kinds of actions that a mask can be for: one choice (of each agent), or the type of a hybrid
action."""
MASKED = ("vector", "dict")
"""Observations that are tried beside a mask."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    actions: tuple[str, ...]
    observations: tuple[str, ...] = OBSERVATIONS
    masks: bool = False
    """Takes only actions that the env's `action_mask` allows, whatever it explores."""
    recurrent: bool = False
    """Remembers what it saw earlier in the episode."""
    bootstraps: bool = True
    """Values the last observation of an episode that a limit cut off."""
    demonstrated: bool = False
    """Needs the steps of an expert."""
    alone: bool = False
    """Needs to see agents without their allies."""
    own_rewards: bool = False
    """Every agent learns from its own rewards, if there are any, not from those of the team."""
    env_wrapper: tuple[str, ...] = ()
    """Wrappers that its envs need."""


_DISCRETE = Claim(actions=("discrete",), masks=True)
_CONTINUOUS = Claim(actions=("continuous",))
_HYBRID = Claim(actions=("hybrid",), masks=True)
_AGENTS = Claim(actions=("discrete_agents",), observations=("vector",), masks=True, recurrent=True)
_ANY_AGENTS = Claim(
    actions=("discrete_agents", "continuous_agents"),
    observations=("vector",),
    masks=True,
    own_rewards=True,
)
_DISCRETE_AGENTS = replace(_ANY_AGENTS, actions=("discrete_agents",))
_CONTINUOUS_AGENTS = replace(_ANY_AGENTS, actions=("continuous_agents",), masks=False)
_OF_ONE = ("discrete", "multi_discrete", "continuous", "hybrid")
_UNTYPED = ("discrete", "multi_discrete", "continuous")

CLAIMS: dict[str, Claim] = {
    # Here it clones its own actions: it looks at no reward and values nothing.
    "bc": Claim(actions=("discrete", "continuous"), masks=True, bootstraps=False),
    "dqn": _DISCRETE,
    "averaged_dqn": _DISCRETE,
    "dqfd": Claim(actions=("discrete",), masks=True, demonstrated=True),
    "c51": _DISCRETE,
    "qrdqn": _DISCRETE,
    "iqn": _DISCRETE,
    "fqf": _DISCRETE,
    "rainbow": _DISCRETE,
    "mdqn": _DISCRETE,
    "sql": _DISCRETE,
    "sqn": _DISCRETE,
    "bdq": Claim(actions=("multi_discrete",)),
    "r2d2": Claim(actions=("discrete",), masks=True, recurrent=True),
    "r2d3": Claim(actions=("discrete",), masks=True, recurrent=True, demonstrated=True),
    "r2d2_gtrxl": Claim(actions=("discrete",), masks=True, recurrent=True),
    "ngu": Claim(
        actions=("discrete",), recurrent=True, env_wrapper=("obs_plus_prev_action_reward",)
    ),
    "ppo": Claim(actions=_OF_ONE, masks=True),
    "ppo_recurrent": Claim(actions=_UNTYPED, masks=True, recurrent=True),
    "ppo_offpolicy": Claim(actions=_OF_ONE, masks=True),
    "ppg": Claim(actions=("discrete",), masks=True),
    # Returns of whole episodes: there is no critic to value a last observation with.
    "pg": Claim(actions=_UNTYPED, masks=True, bootstraps=False),
    "a2c": Claim(actions=_UNTYPED, masks=True),
    "impala": Claim(actions=_UNTYPED, masks=True),
    "acer": Claim(actions=("discrete",), masks=True),
    "ddpg": _CONTINUOUS,
    "td3": _CONTINUOUS,
    "d4pg": _CONTINUOUS,
    "sac": _CONTINUOUS,
    "discrete_sac": _DISCRETE,
    "pdqn": _HYBRID,
    "paddpg": _HYBRID,
    "mappo": _ANY_AGENTS,
    "ippo": _ANY_AGENTS,
    "happo": replace(_ANY_AGENTS, own_rewards=False),
    "coma": _DISCRETE_AGENTS,
    "masac": _DISCRETE_AGENTS,
    "continuous_masac": _CONTINUOUS_AGENTS,
    "maddpg": _CONTINUOUS_AGENTS,
    "matd3": _CONTINUOUS_AGENTS,
    "qmix": _AGENTS,
    "qplex": _AGENTS,
    "wqmix": _AGENTS,
    "qtran": _AGENTS,
    "collaq": replace(_AGENTS, alone=True),
    "vdn": _AGENTS,
    "idqn": replace(_AGENTS, own_rewards=True),
}
OF_AGENTS = [name for name, claim in CLAIMS.items() if "_agents" in claim.actions[0]]


class Cell(NamedTuple):
    """One combination to try."""

    algorithm: str
    observation: str
    action: str
    masked: bool = False

    def __str__(self) -> str:
        return "-".join([*self[:3], *(["masked"] if self.masked else [])])


def cells() -> list[Cell]:
    """All that is claimed."""
    found = []
    for algorithm, claim in CLAIMS.items():
        for action in claim.actions:
            found += [Cell(algorithm, observation, action) for observation in claim.observations]
            if claim.masks and action in MASKABLE:
                masked = [one for one in MASKED if one in claim.observations]
                found += [Cell(algorithm, observation, action, True) for observation in masked]
    return found


def home(algorithm: str) -> Cell:
    """The plainest combination of an algorithm."""
    claim = CLAIMS[algorithm]
    return Cell(algorithm, claim.observations[0], claim.actions[0])


def foreign_cells(others: tuple[str, ...] = ()) -> list[Cell]:
    """Actions that are not claimed; `others` are kinds that nobody claims."""
    return [
        Cell(algorithm, "vector", action)
        for algorithm, claim in CLAIMS.items()
        for action in (*ACTIONS, *others)
        if action not in claim.actions
    ]


def foreign_masks() -> list[Cell]:
    """Masks for algorithms that do not look at them, and for actions that none can be for."""
    return [
        Cell(algorithm, "vector", action, masked=True)
        for algorithm, claim in CLAIMS.items()
        for action in claim.actions
        if not (claim.masks and action in MASKABLE)
    ]
