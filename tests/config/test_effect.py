"""Every key that is accepted is read by something; what can have no effect is refused."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from ding.config import compile_config, override
from ding.config.layout import layout
from ding.config.parts import PLACES
from ding.config.rules import SETTLED
from ding.config.schema import Leaf, schema_of
from ding.entry.parallel_config import check_parallel
from ding.utils.errors import ConfigError
from ding.utils.registry import POLICY_REGISTRY, REGISTRIES
from ding.worker import BaseLearner

from .reads import CONFIG_NAMES, ROOT, Read, modules_below, modules_of, reads_in

PART_PACKAGES = {
    "env": ("ding.envs", "dizoo"),
    "env_manager": ("ding.envs",),
    "policy": ("ding.policy", "ding.torch_utils"),
    "learner": ("ding.worker.learner",),
    "collector": ("ding.worker.collector",),
    "evaluator": ("ding.worker",),
    "replay_buffer": ("ding.worker.buffer", "ding.data"),
    "commander": ("ding.worker",),
    "reward_model": ("ding.reward_model",),
}
"""Part to the packages that its classes may hand their config on to."""
SECTIONS = {"policy": {"policy", "policy_cfg"}, "env_manager": {"manager"}}
"""Names, besides that of the part, that the whole config of a part goes by elsewhere."""
RUNNING = [
    module
    for module in modules_below("ding")
    if not module.startswith(("ding.config", "ding.policy"))
]
"""Those who run the parts: a policy is not read by another policy."""
NAMING = ("type", "import_names")
"""Read by the registries, for every part."""
WITH = {"transition_with_policy_data": {"policy.random_collect_size": 64}}
"""Without these a key of a policy could not matter."""


def unread(part: str, cls: Any) -> list[str]:
    """Declared keys that neither the class nor those who run it read."""
    own = reads_in(modules_of(cls, PART_PACKAGES[part]))
    others = reads_in(RUNNING)
    names = SECTIONS.get(part, {part})
    found = []
    for path, entry in schema_of(cls).items():
        section, _, key = path.rpartition(".")
        place = f"{PLACES[part]}.{section}"
        of_other_part = any(place.startswith(p) for p in PLACES.values() if p != PLACES[part])
        is_settled = f"{PLACES[part]}.{path}" in SETTLED
        if not isinstance(entry, Leaf) or key in NAMING or of_other_part or is_settled:
            continue
        holders = {section.rpartition(".")[2]} if section else names
        own_holders = holders if section and part == "policy" else holders | CONFIG_NAMES
        wanted = {Read(holder, key) for holder in (*own_holders, "key")}
        wanted |= {Read(holder, "*") for holder in holders}
        if not (wanted & own or {Read(holder, key) for holder in holders} & others):
            found.append(path)
    return found


def refused(kind: str, path: str) -> bool:
    """Whether the policy takes no other value than its default."""
    leaf = schema_of(POLICY_REGISTRY.get(kind))[path]
    assert isinstance(leaf, Leaf)
    others = {bool: not leaf.default, str: "another"}
    change = {f"policy.{path}": others.get(type(leaf.default), 0.123)}
    try:
        cfg = compiled(kind, change | WITH.get(path, {}))
        check_parallel(cfg, SimpleNamespace(learner_num=2))  # type: ignore[arg-type]
    except ConfigError as error:
        return f"policy.{path} = " in str(error)
    return False


def registered() -> list[tuple[str, str]]:
    tables = {part: REGISTRIES["buffer" if part == "replay_buffer" else part] for part in PLACES}
    names = [(part, name) for part, table in tables.items() for name in table.query()]
    return [(part, name) for part, name in names if _is_ours(tables[part], name)]


def _is_ours(table: Any, name: str) -> bool:
    """Other tests register classes of their own, in whatever order they are collected."""
    item = table._table[name]
    module = item if isinstance(item, str) else item.__module__
    return module.startswith(("ding", "dizoo"))


@pytest.mark.parametrize(("part", "name"), registered())
def test_every_declared_key_is_read(part: str, name: str) -> None:
    try:
        cls = REGISTRIES["buffer" if part == "replay_buffer" else part].get(name)
    except ImportError as error:
        pytest.skip(str(error))
    paths = unread(part, cls)
    assert [path for path in paths if part != "policy" or not refused(name, path)] == []


def test_a_key_that_nobody_reads_is_found() -> None:
    class Idle(POLICY_REGISTRY.get("dqn")):  # type: ignore[misc]
        config: ClassVar[dict[str, Any]] = dict(
            idle=1, other=dict(eps=dict(still_idle=2)), nstep=3, learn=dict(obs=4)
        )

    assert set(unread("policy", Idle)) - set(unread("policy", Idle.__base__)) == {
        "idle",
        "other.eps.still_idle",
        "learn.obs",
    }


def test_every_key_of_the_run_is_read() -> None:
    """The keys that no part declares, but the layout of every run."""
    reads = reads_in(modules_below("ding"))
    for path, entry in layout({}, {}, settled=True).items():
        section, _, key = path.rpartition(".")
        holders = {section.rpartition(".")[2]} if section else CONFIG_NAMES
        if isinstance(entry, Leaf) and key not in (*NAMING, "seed"):  # the argument `seed` wins
            assert reads & {Read(holder, key) for holder in holders}, path


# --- what can have no effect ---------------------------------------------------------------------

SEVERAL_LEARNERS = (
    "one learner trains on one GPU; several share every batch and average their gradients in a "
    "parallel run: ding -m parallel with policy.learn.learner.learner_num = 2"
)


def compiled(kind: str, changes: dict[str, Any]) -> Any:
    config = zoo_config(kind)
    main = override(config.main_config, changes)
    return compile_config(main, auto=True, create_cfg=config.create_config, save_cfg=False)


def zoo_config(kind: str) -> Any:
    """Some config of the zoo for this policy."""
    names = sorted(
        ROOT.glob(f"dizoo/**/config/*_{kind}_config.py"), key=lambda file: len(file.name)
    )
    for file in names:
        config = import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        if config.create_config["policy"]["type"] == kind:
            return config
    raise AssertionError(f"no config of '{kind}' in the zoo")


REFUSED = [
    ("dqn", {"policy.multi_gpu": True}, f"policy.multi_gpu = True: {SEVERAL_LEARNERS}"),
    ("ppo", {"policy.learn.multi_gpu": True}, f"policy.learn.multi_gpu = True: {SEVERAL_LEARNERS}"),
    (
        "sac",
        {"policy.transition_with_policy_data": True, "policy.random_collect_size": 1000},
        "policy.transition_with_policy_data = True: the warm-up of random_collect_size = 1000 "
        "samples draws its actions at random and stores nothing of the policy's",
    ),
    (
        "dqn",
        {"policy.learn.learner.dataloader.num_workers": 4},
        "'policy.learn.learner.dataloader.num_workers' = 4 can have no effect: the learner gets "
        "its batches from the buffer in its own process; leave it at 0",
    ),
    ("sac", {"policy.learn.learning_rate": 0.1}, "learning_rate = 0.1 has no effect here; set"),
    ("discrete_sac", {"policy.learn.learning_rate": 0.1}, "learning_rate = 0.1 has no effect"),
    ("sqn", {"policy.learn.learning_rate": 0.1}, "set policy.learn.learning_rate_q"),
    (
        "ppo",
        {"policy.learn.update_per_collect": 5},
        "update_per_collect = 5 has no effect in on-policy PPO, which learns from every collect "
        "once; set policy.learn.epoch_per_collect",
    ),
    ("pg", {"policy.learn.update_per_collect": 2}, "in on-policy PG, which learns from every"),
    ("a2c", {"policy.learn.update_per_collect": 2}, "on-policy A2C"),
    ("ppg", {"policy.learn.update_per_collect": 2}, "set policy.learn.actor_epoch_per_collect"),
    ("ppo_recurrent", {"policy.learn.update_per_collect": 2}, "on-policy PPO"),
    ("acer", {"policy.learn.learning_rate": 0.1}, "set policy.learn.learning_rate_actor and"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), REFUSED)
def test_what_can_have_no_effect_is_refused(
    kind: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        compiled(kind, changes)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("dqn", {"policy.multi_gpu": False, "policy.learn.multi_gpu": False}),
        ("sac", {"policy.transition_with_policy_data": True, "policy.random_collect_size": 0}),
        ("dqn", {"policy.learn.learner.log_policy": False}),
        ("dqn", {"policy.learn.learner.dataloader.num_workers": 0}),
        ("dqn", {"policy.other.replay_buffer.deepcopy": True}),
        ("dqn", {"policy.collect.collector.deepcopy_obs": True}),
        ("ppo", {"policy.collect.collector.transform_obs": True}),
    ],
)
def test_established_values_that_hold_anyway_are_taken(kind: str, changes: dict[str, Any]) -> None:
    cfg = compiled(kind, changes)
    for path, value in changes.items():
        section: Any = cfg
        for key in path.split("."):
            section = section[key]
        assert section == value


@pytest.mark.parametrize("wanted", [True, False])
def test_log_policy_writes_the_structure_of_the_policy_first(wanted: bool, tmp_path: Path) -> None:
    policy = POLICY_REGISTRY.get("dqn")(dict(model=dict(obs_shape=4, action_shape=2)))
    learner = BaseLearner(dict(log_policy=wanted), policy.learn_mode, exp_name=str(tmp_path))
    learner.call_hook("before_run")
    learner.log.info("next line")
    learner.close()
    text = (tmp_path / "log" / "learner" / "learner_logger.txt").read_text()
    assert ("training DQNPolicy:" in text and "Linear(in_features=4" in text) == wanted
    assert text.rstrip().endswith("next line")
