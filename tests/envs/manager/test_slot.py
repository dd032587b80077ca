"""The state machine of one env, its counts and its seeds."""

from __future__ import annotations

from typing import Any

import pytest

from ding.envs import EnvState
from ding.envs.manager.slot import SlotTable
from ding.utils.plain import from_plain, to_plain

VOID, INIT, RUN, RESET, DONE, ERROR, NEED_RESET = EnvState
ALLOWED = {
    VOID: {INIT},
    INIT: {RESET},
    RESET: {RUN, ERROR},
    RUN: {RESET, NEED_RESET, DONE, ERROR},
    NEED_RESET: {RESET},
    DONE: {RESET},
    ERROR: {RESET},
}


def table(count: int = 2, **cfg: Any) -> SlotTable:
    made = SlotTable(count, {"episode_num": float("inf"), "auto_reset": True, **cfg})
    made.is_open = True
    return made


def running(**cfg: Any) -> SlotTable:
    made = table(**cfg)
    for slot in made:
        for state in (INIT, RESET, RUN):
            made.enter(slot, state)
    return made


@pytest.mark.parametrize("state", EnvState)
def test_only_documented_transitions_are_possible(state: EnvState) -> None:
    for following in EnvState:
        slots = table()
        slots[0].state = state
        if following in ALLOWED[state] or following is state:
            slots.enter(slots[0], following)
            assert slots[0].state is following
        else:
            with pytest.raises(RuntimeError, match=f"is {state.name} and cannot become"):
                slots.enter(slots[0], following)


def test_columns_follow_the_slots() -> None:
    slots = running(count=3)
    assert slots.ready_ids() is slots.all_ids
    slots.enter(slots[1], RESET)
    assert slots.ready_ids().tolist() == [0, 2]
    assert slots.n_reset == 1
    slots.busy[1] = True
    slots.enter(slots[1], RUN)  # Its last step is not handed out yet.
    assert slots.ready_ids().tolist() == [0, 2]
    assert slots.n_reset == 0


@pytest.mark.parametrize(
    ("cfg", "abnormal", "expected"),
    [
        ({}, False, RESET),
        ({"auto_reset": False}, False, NEED_RESET),
        ({"episode_num": 1}, False, DONE),
        ({"episode_num": 1}, True, RESET),
        ({"episode_num": 1, "auto_reset": False}, True, NEED_RESET),
    ],
)
def test_end_of_an_episode(cfg: Any, abnormal: bool, expected: EnvState) -> None:
    slots = running(**cfg)
    assert slots.goes_on(slots[0], abnormal) is (expected is RESET)
    assert slots.episode_ended(slots[0], abnormal=abnormal) is (expected is RESET)
    assert slots[0].state is expected
    assert slots[0].episodes == (not abnormal)


def test_seeds_of_instances_differ_and_repeat() -> None:
    slots = table(count=2, spare_envs=True)
    slots.seed(7, False)
    first, spare = slots[1].instances
    assert (first.number, spare.number) == (1, 3)
    assert slots[1].seed_of(first) == 8
    spare_seed = slots[1].seed_of(spare)
    slots[1].renewed(first)
    slots[1].renewed(spare)
    seeds = [8, spare_seed, slots[1].seed_of(first), slots[1].seed_of(spare)]
    assert len(set(seeds)) == 4
    slots[1].repeat_static_seed()
    assert slots[1].seed_of(first) == 8
    assert slots[1].seed_of(spare) == spare_seed
    slots[1].draw_new_seeds()
    assert slots[1].seed_of(first) == 8  # A static seed stays.
    slots.seed({1: 7}, None)
    slots[1].draw_new_seeds()
    assert slots[1].seed_of(first) != 7


def test_plain_data_bring_the_slots_back() -> None:
    slots = running(spare_envs=True)
    slots.seed(3, None)
    slots.enter(slots[1], DONE)
    slots[1].episodes, slots[0].failures, slots[0].playing = 4, 1, 1
    slots[0].reset_kwargs = {"level": 2}
    saved = from_plain(to_plain(slots.state_dict()))
    other = table(spare_envs=True)
    other[0].replay_path = "here"
    other.load_state_dict(saved)
    assert [slot.state for slot in other] == [RUN, DONE]
    assert other.ready_ids().tolist() == [0]
    assert other.any_failures
    assert other[0].instance.number == 2
    assert other[0].replay_path == "here"
    assert other.state_dict()[1] == slots.state_dict()[1]
    with pytest.raises(ValueError, match="another setting of spare_envs"):
        table().check_state(saved)


def test_what_outlives_a_close() -> None:
    slots = running()
    slots.seed(3, None)
    slots[0].episodes, slots[0].replay_path = 2, "here"
    slots.clear()
    assert [slot.state for slot in slots] == [VOID, VOID]
    assert (slots[0].seed, slots[0].replay_path, slots[0].episodes) == (3, "here", 0)
    assert not slots.waiting.any()
