"""The schema of a whole run: the parts' own declarations in their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ding.config.parts import OPTIONAL, PLACES
from ding.config.schema import ABSENT, REQUIRED, Leaf, Schema, Section, fill, schema_of
from ding.config.tree import MISSING, lookup

_RUN: Schema = {
    "": Section(),
    "exp_name": Leaf("default_experiment", str, "directory that the run writes to"),
    "seed": Leaf(0, int, "seed of envs, policy and sampling"),
    "checkpoint_seconds": Leaf(60.0, float, "seconds between checkpoints of the run"),
    "callbacks": Leaf([], list[str], "callbacks of the run, each as 'module:name'"),
}
_NAMING: Schema = {
    "type": Leaf(ABSENT, str | None, "registered name of the class"),
    "import_names": Leaf(ABSENT, list[str] | str | None, "modules to import beforehand"),
}
_UNROLL_LEN = Leaf(ABSENT, int, "length of the sequences to train on", "the policy section")
_TEMPLATES: dict[str, Schema] = {
    "env": {
        "manager": Section(),
        "stop_value": Leaf(
            REQUIRED,
            int | float,
            "the mean return that ends training; for example env=dict(stop_value=195, ...)",
            "the env section",
        ),
        "n_evaluator_episode": Leaf(
            REQUIRED,
            int,
            "episodes per evaluation; for example env=dict(n_evaluator_episode=5, ...)",
            "the env section",
        ),
        "collector_env_num": Leaf(8, int, "envs that collect side by side", "the env section"),
        "evaluator_env_num": Leaf(ABSENT, int, "envs that evaluate side by side"),
    },
    "policy": {
        "on_policy": Leaf(
            REQUIRED,
            bool,
            "whether only fresh data are trained on; for example policy=dict(on_policy=False, ...)",
            "the policy section",
        ),
        "unroll_len": _UNROLL_LEN,
        "model": Section(open=True),
        "learn": Section(),
        "collect": Section(),
        "collect.n_sample": Leaf(None, int | None, "steps per collect; set it or n_episode"),
        "collect.n_episode": Leaf(None, int | None, "episodes per collect; set it or n_sample"),
        "collect.unroll_len": _UNROLL_LEN,
        "eval": Section(),
        "other": Section(),
    },
}
"""Part to what every one of its kind has, beside what its class declares."""
_ASSUMED = {"env.stop_value": int(1e10), "env.n_evaluator_episode": 4, "policy.on_policy": ABSENT}
"""Values that hold where the user has not said otherwise and need not."""


def layout(classes: Mapping[str, Any], user: Mapping[str, Any], *, settled: bool) -> Schema:
    """What may be configured. `settled`: nothing is assumed that only the user can know."""
    schema = dict(_RUN)
    for part, template in _TEMPLATES.items():
        fill(schema, schema_of(classes.get(part)), part)
        fill(schema, template, part, settles_open=False)
    places = {p: place for p, place in PLACES.items() if p in classes or p not in OPTIONAL}
    for part, place in places.items():
        if part not in _TEMPLATES:
            fill(schema, schema_of(classes.get(part)), place)
    for place in (*places.values(), "policy.model"):
        fill(schema, _NAMING, place)
    if lookup(user, "policy.model.type") not in (MISSING, None):
        schema["policy.model"] = Section(open=True)
    for path, value in () if settled else _ASSUMED.items():
        leaf = schema[path]
        if isinstance(leaf, Leaf) and leaf.default is REQUIRED:
            schema[path] = replace(leaf, default=value)
    return schema
