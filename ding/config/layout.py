"""The tree of a whole run's config: the parts' own declarations in their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ding.config.merge import MISSING, lookup
from ding.config.parts import PLACES
from ding.config.schema import (
    ABSENT,
    REQUIRED,
    Leaf,
    Node,
    changed,
    opened,
    schema_of,
    under,
)

ON_POLICY = "whether only fresh data are trained on; for example policy=dict(on_policy=False, ...)"
STOP_VALUE = "the mean return that ends training; for example env=dict(stop_value=195, ...)"
EVAL_EPISODES = "episodes per evaluation; for example env=dict(n_evaluator_episode=5, ...)"
_NAMING = Node(
    {
        "type": Leaf(ABSENT, str | None, "registered name of the class"),
        "import_names": Leaf(ABSENT, list[str] | str | None, "modules to import beforehand"),
    }
)


def layout(classes: Mapping[str, Any], user: Mapping[str, Any], *, settled: bool) -> Node:
    """What may be configured. `settled`: nothing is assumed that only the user can know."""
    root = Node(
        {
            "exp_name": Leaf("default_experiment", str, "directory that the run writes to"),
            "seed": Leaf(0, int, "seed of envs, policy and sampling"),
            "checkpoint_seconds": Leaf(60.0, float, "seconds between checkpoints of the run"),
            "env": under(schema_of(classes.get("env")), _env_template(settled)),
            "policy": under(schema_of(classes.get("policy")), _policy_template(settled)),
        }
    )
    for part, place in PLACES.items():
        optional = part in ("reward_model", "world_model")
        if part in ("env", "policy") or (optional and part not in {*user, *classes}):
            continue
        root = changed(root, place, partial(_placed, part=schema_of(classes.get(part))))
    for place in ("env", "policy", "policy.model"):
        root = changed(root, place, _named)
    if lookup(user, "policy.model.type") not in (MISSING, None):
        root = changed(root, "policy.model", opened)
    return root


def _placed(own: Node, part: Node) -> Node:
    """What a part declares, below the defaults that its owner has for it."""
    return _named(replace(under(own, part), open=part.open) if own.children else part)


def _named(node: Node) -> Node:
    return under(node, _NAMING)


def _env_template(settled: bool) -> Node:
    owner = "the env section"
    stop = Leaf(REQUIRED if settled else int(1e10), int | float, STOP_VALUE, owner)
    return Node(
        {
            "manager": Node(),
            "stop_value": stop,
            "n_evaluator_episode": Leaf(REQUIRED if settled else 4, int, EVAL_EPISODES, owner),
            "collector_env_num": Leaf(8, int, "envs that collect side by side", owner),
            "evaluator_env_num": Leaf(ABSENT, int, "envs that evaluate side by side", owner),
        }
    )


def _policy_template(settled: bool) -> Node:
    owner = "the policy section"
    unroll_len = Leaf(ABSENT, int, "length of the sequences to train on", owner)
    steps = Leaf(None, int | None, "steps per collect; set it or n_episode", owner)
    episodes = Leaf(None, int | None, "episodes per collect; set it or n_sample", owner)
    collect: dict[str, Leaf | Node] = {
        "n_sample": steps,
        "n_episode": episodes,
        "unroll_len": unroll_len,
        "collector": Node(),
    }
    return Node(
        {
            "on_policy": Leaf(REQUIRED if settled else ABSENT, bool, ON_POLICY, owner),
            "unroll_len": unroll_len,
            "model": Node(open=True),
            "learn": Node({"learner": Node()}),
            "collect": Node(collect),
            "eval": Node({"evaluator": Node()}),
            "other": Node({"replay_buffer": Node(), "commander": Node()}),
        }
    )
