"""The schema of a whole run: the parts' own declarations in their places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ding.config.parts import PLACES
from ding.config.schema import ABSENT, REQUIRED, Leaf, Schema, Section, fill, schema_of
from ding.config.tree import MISSING, lookup

ON_POLICY = "whether only fresh data are trained on; for example policy=dict(on_policy=False, ...)"
STOP_VALUE = "the mean return that ends training; for example env=dict(stop_value=195, ...)"
EVAL_EPISODES = "episodes per evaluation; for example env=dict(n_evaluator_episode=5, ...)"
_RUN: Schema = {
    "": Section(),
    "exp_name": Leaf("default_experiment", str, "directory that the run writes to"),
    "seed": Leaf(0, int, "seed of envs, policy and sampling"),
    "checkpoint_seconds": Leaf(60.0, float, "seconds between checkpoints of the run"),
}
_NAMING: Schema = {
    "type": Leaf(ABSENT, str | None, "registered name of the class"),
    "import_names": Leaf(ABSENT, list[str] | str | None, "modules to import beforehand"),
}


def layout(classes: Mapping[str, Any], user: Mapping[str, Any], *, settled: bool) -> Schema:
    """What may be configured. `settled`: nothing is assumed that only the user can know."""
    schema = dict(_RUN)
    for part, template in (("env", _env_template(settled)), ("policy", _policy_template(settled))):
        fill(schema, schema_of(classes.get(part)), part)
        fill(schema, template, part, settles_open=False)
    for part, place in PLACES.items():
        if part not in ("env", "policy"):
            fill(schema, schema_of(classes.get(part)), place)
    for place in (*PLACES.values(), "policy.model"):
        fill(schema, _NAMING, place)
    if lookup(user, "policy.model.type") not in (MISSING, None):
        schema["policy.model"] = Section(open=True)
    return schema


def _env_template(settled: bool) -> Schema:
    owner = "the env section"
    stop = Leaf(REQUIRED if settled else int(1e10), int | float, STOP_VALUE, owner)
    return {
        "manager": Section(),
        "stop_value": stop,
        "n_evaluator_episode": Leaf(REQUIRED if settled else 4, int, EVAL_EPISODES, owner),
        "collector_env_num": Leaf(8, int, "envs that collect side by side", owner),
        "evaluator_env_num": Leaf(ABSENT, int, "envs that evaluate side by side", owner),
    }


def _policy_template(settled: bool) -> Schema:
    owner = "the policy section"
    unroll_len = Leaf(ABSENT, int, "length of the sequences to train on", owner)
    steps = Leaf(None, int | None, "steps per collect; set it or n_episode", owner)
    episodes = Leaf(None, int | None, "episodes per collect; set it or n_sample", owner)
    return {
        "on_policy": Leaf(REQUIRED if settled else ABSENT, bool, ON_POLICY, owner),
        "unroll_len": unroll_len,
        "model": Section(open=True),
        "learn": Section(),
        "learn.learner": Section(),
        "collect": Section(),
        "collect.n_sample": steps,
        "collect.n_episode": episodes,
        "collect.unroll_len": unroll_len,
        "collect.collector": Section(),
        "eval": Section(),
        "eval.evaluator": Section(),
        "other": Section(),
        "other.replay_buffer": Section(),
        "other.commander": Section(),
    }
