"""Micro battle: its rules by hand, what is seen of it, and that many battles are many times one."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.envs import BaseEnvManager
from ding.envs.manager.gym_vector import GymVectorEnvManager, has_own_vector
from ding.utils.batch import ByEnv
from ding.utils.errors import ConfigError, DingError
from dizoo.micro_battle.envs import MAPS, Battles, MicroBattleEnv, MicroBattleVector
from dizoo.micro_battle.envs.battle import (
    ATTACK,
    EAST,
    NO_OP,
    NORTH,
    QUIET,
    SIGHT,
    SOUTH,
    STOP,
    WEST,
)
from dizoo.micro_battle.envs.players import focus_fire, random_actions, win_rate
from dizoo.micro_battle.envs.render import _GROUND, _TEAMS, SCALE, picture
from dizoo.micro_battle.envs.rewards import Rewards
from dizoo.micro_battle.envs.units import MARINE, STALKER, ZEALOT, BattleMap, UnitType


def scene(allies: list[UnitType], enemies: list[UnitType], *places: tuple[float, float]) -> Battles:
    """One battle of these units at these places."""
    battles = Battles(BattleMap("scene", tuple(allies), tuple(enemies), limit=100))
    battles.reset([0], [np.random.default_rng(0)])
    x, y = np.array(places, dtype=float).T
    battles.state["x"][0], battles.state["y"][0] = x, y
    return battles


def duel(ally: UnitType, enemy: UnitType, apart: float = 1.5, **state: Any) -> Battles:
    battles = scene([ally], [enemy], (16, 16), (16 + apart, 16))
    for key, values in state.items():
        battles.state[key][0] = values
    return battles


def acted(battles: Battles, *actions: int) -> Any:
    """The outcome of one action."""
    return battles.step(np.array([actions]))


def health(battles: Battles) -> list[float]:
    return battles.state["health"][0].tolist()


def shield(battles: Battles) -> list[float]:
    return battles.state["shield"][0].tolist()


# --- the rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ally", "enemy", "shield_before", "health_after", "shield_after"),
    [
        (MARINE, MARINE, 0, 45 - 6, 0),
        (MARINE, STALKER, 0, 80 - (6 - 1), 0),
        (STALKER, ZEALOT, 50, 100, 50 - 13),
        (STALKER, ZEALOT, 5, 100 - (13 - 5 - 1), 0),
        (STALKER, STALKER, 0, 80 - (13 + 5 - 1), 0),
        (STALKER, STALKER, 80, 80, 80 - 18),
        (ZEALOT, STALKER, 0, 80 - 2 * (8 - 1), 0),
        (ZEALOT, STALKER, 10, 80 - (2 * 8 - 10 - 1), 0),
        (ZEALOT, STALKER, 8, 80 - (8 - 1), 0),
        (ZEALOT, MARINE, 0, 45 - 16, 0),
        # Half a point of the blow is left over: armour can't take that.
        (STALKER, ZEALOT, 12.5, 100 - 0.5, 0),
    ],
)
def test_damage(
    ally: UnitType, enemy: UnitType, shield_before: float, health_after: float, shield_after: float
) -> None:
    apart = ally.radius + enemy.radius + 0.05
    battles = duel(ally, enemy, apart, shield=[ally.shield, shield_before], cooldown=[0, 99])
    outcome = acted(battles, ATTACK)
    assert health(battles)[1] == health_after and shield(battles)[1] == shield_after
    lost = enemy.health + shield_before - health_after - shield_after
    assert outcome.damage[0].tolist() == [0, lost]


def test_blows_of_several_units_use_up_one_shield() -> None:
    places = (16.0, 16.0), (16.0, 19.0), (20.0, 16.0)
    battles = scene([STALKER, STALKER], [ZEALOT], *places)
    battles.state["shield"][0, 2], battles.state["cooldown"][0, 2] = 20, 99
    acted(battles, ATTACK, ATTACK)
    # The first 13 leave 7 of the shield, of the other 13 a 6 gets through, less 1 of armour.
    assert (health(battles)[2], shield(battles)[2]) == (100 - 5, 0)


def test_who_dies_at_the_same_time_shoots_first() -> None:
    battles = duel(MARINE, MARINE, 3, health=[6, 6])
    outcome = acted(battles, ATTACK)
    assert health(battles) == [0, 0] and outcome.died.all()
    assert outcome.over[0] and not outcome.won[0] and not outcome.lost[0]


def test_cooldown_of_a_marine_is_fourteen_game_steps() -> None:
    battles = duel(MARINE, MARINE, 3, cooldown=[0, 1e9])
    found = []
    for _ in range(8):
        acted(battles, ATTACK)
        found.append(health(battles)[1])
    # Shots in the game steps 1, 15, 29, 43 and 57; an action has 8 of them.
    assert found == [39, 33, 33, 27, 27, 21, 21, 15]


def test_nobody_shoots_further_than_the_weapon_reaches_but_goes_there() -> None:
    reach = 5 + 2 * 0.375
    battles = duel(MARINE, MARINE, reach + 0.2, cooldown=[0, 1e9])
    battles.state["health"][0, 1] = 45
    acted(battles, ATTACK)
    # Both come nearer in the first game steps, at most one step further than they must.
    gap = battles.state["x"][0, 1] - battles.state["x"][0, 0]
    assert health(battles)[1] == 39 and reach - 3.15 / 22.4 < gap <= reach
    battles = duel(MARINE, MARINE, SIGHT - 0.1)
    acted(battles, STOP)
    moved = 16 + SIGHT - 0.1 - battles.state["x"][0, 1]
    assert moved == pytest.approx(8 * 3.15 / 22.4)
    assert health(battles) == [45, 45] and battles.state["x"][0, 0] == 16


@pytest.mark.parametrize(
    ("action", "way"), [(NORTH, (0, 1)), (SOUTH, (0, -1)), (EAST, (1, 0)), (WEST, (-1, 0))]
)
def test_moves(action: int, way: tuple[float, float]) -> None:
    battles = scene([MARINE, STALKER], [MARINE], (8, 8), (4, 4), (30, 30))
    acted(battles, action, action)
    state = battles.state
    for i, (x, y, speed) in enumerate([(8, 8, 3.15), (4, 4, 4.13)]):
        stride = 8 * speed / 22.4
        assert state["x"][0, i] == pytest.approx(x + way[0] * stride)
        assert state["y"][0, i] == pytest.approx(y + way[1] * stride)
    assert state["last_action"][0].tolist() == [action, action]


def test_units_do_not_leave_the_field_and_do_not_overlap() -> None:
    battles = scene([MARINE, MARINE], [MARINE], (0.5, 0.5), (0.6, 0.5), (30, 30))
    acted(battles, WEST, SOUTH)
    assert battles.state["x"][0].min() >= 0 and battles.state["y"][0].min() >= 0
    for _ in range(3):
        acted(battles, STOP, STOP)
    assert battles.distances()[0, 0, 1] >= 2 * 0.375 - 1e-6


def test_masks() -> None:
    places = (1.0, 16.0), (16.0, 31.5), (16.0, 16.0), (22.0, 16.0), (16.0, 22.001)
    battles = scene([MARINE] * 3, [MARINE] * 2, *places)
    allowed = battles.available()[0]
    assert np.flatnonzero(allowed[0]).tolist() == [STOP, NORTH, SOUTH, EAST]
    assert np.flatnonzero(allowed[1]).tolist() == [STOP, SOUTH, EAST, WEST]
    # Exactly 6 away can be attacked, a little more can't.
    assert np.flatnonzero(allowed[2]).tolist() == [STOP, NORTH, SOUTH, EAST, WEST, ATTACK]
    battles.state["health"][0, [2, 3]] = 0
    allowed = battles.available()[0]
    assert np.flatnonzero(allowed[2]).tolist() == [NO_OP] and not allowed[:, ATTACK:].any()


def test_the_dead_do_nothing() -> None:
    battles = duel(MARINE, MARINE, 3, health=[45, 6])
    outcome = acted(battles, ATTACK)
    assert outcome.won[0] and outcome.died[0].tolist() == [False, True]
    # The enemy shot in the same game step; from then on nobody does.
    assert health(battles) == [39, 0]
    acted(battles, STOP)
    assert health(battles) == [39, 0]


def test_shields_come_back_after_ten_quiet_seconds() -> None:
    battles = duel(STALKER, STALKER, 15, shield=[10, 80], quiet=[QUIET - 16, QUIET])
    battles.state["cooldown"][0, 1] = 1e9
    for expected in (10, 10 + 16 / 22.4, 10 + 32 / 22.4):
        acted(battles, STOP)
        assert shield(battles)[0] == pytest.approx(expected)
    assert shield(battles)[1] == 80


def test_enemies_march_keep_their_target_and_aim_as_told() -> None:
    battles = scene([MARINE] * 2, [MARINE], (9, 16), (9, 25), (30, 16))
    acted(battles, STOP, STOP)
    assert battles.state["x"][0, 2] < 30 and battles.state["aim"][0].tolist() == [-1]
    for aim, first in (("nearest", 0), ("weakest", 1)):
        battles = scene([MARINE] * 2, [MARINE], (16, 16), (16, 20), (19, 17))
        battles.enemy_aim = aim
        battles.state["health"][0, 1] = 30
        acted(battles, STOP, STOP)
        assert battles.state["aim"][0].tolist() == [first]
        # It stays with its target while that is in range, whoever is nearer or weaker now.
        battles.state["health"][0, first], battles.state["health"][0, 1 - first] = 45, 1
        acted(battles, STOP, STOP)
        assert battles.state["aim"][0].tolist() == [first]


# --- rewards and ends ----------------------------------------------------------------------------


def test_rewards_by_hand() -> None:
    battles = duel(MARINE, MARINE, 3, health=[45, 6])
    outcome = acted(battles, ATTACK)
    # 6 of damage, 10 for the kill, 200 for the win, of 45 + 10 + 200.
    rewards = Rewards()
    assert rewards(battles, outcome) == pytest.approx(20 * 216 / 255)
    assert Rewards(reward_scale=False)(battles, outcome) == 216
    assert Rewards(reward_type="sparse")(battles, outcome) == 1
    full = Rewards(reward_scale=False, reward_only_positive=False)
    assert full(battles, outcome) == 216 - 0.5 * 6
    battles = duel(MARINE, MARINE, 3, health=[6, 45])
    outcome = acted(battles, ATTACK)
    assert Rewards(reward_type="sparse")(battles, outcome) == -1
    assert full(battles, outcome) == 6 - 0.5 * (6 + 10)
    assert Rewards(reward_scale=False, reward_defeat=-7)(battles, outcome) == 6 - 7


@pytest.mark.parametrize("map_name", ["3m", "2s3z"])
def test_a_win_is_worth_twenty(map_name: str) -> None:
    env = MicroBattleEnv({"map_name": map_name})
    env.seed(0)
    wins = 0
    for _ in range(8):
        env.reset()
        total, done = 0.0, False
        while not done:
            _, reward, done, info = env.step(focus_fire(env.battles, pull_back=True)[0])
            total += reward
        assert info["shaped_return"] == pytest.approx(total)
        assert info["eval_episode_return"] == info["win"] == float(info["battle_won"])
        if info["win"]:
            wins += 1
            assert total == pytest.approx(20)
            assert info["dead_enemies"] == env.battles.n_enemy
        else:
            assert total < 20 and info["dead_allies"] == env.battles.n_ally
    assert wins >= 4


def test_the_limit_is_no_end() -> None:
    for limit, expected in ((None, MAPS["3m"].limit), (4, 4)):
        env = MicroBattleEnv({"episode_limit": limit})
        env.seed(0)
        obs, steps = env.reset(), 0
        while True:  # westwards: the enemies come to the start of the allies
            action = np.where(obs["action_mask"][:, WEST] > 0, WEST, STOP)
            action = np.where(obs["alive"] > 0, action, NO_OP)
            env.battles.state["health"][:, :3] = 45
            obs, _, done, info = env.step(action)
            steps += 1
            if done:
                break
        assert steps == expected and info["truncated"] and info["eval_episode_return"] == 0
        assert obs["alive"].all()
        with pytest.raises(DingError, match="no running battle"):
            env.step(action)


# --- what is seen --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("map_name", "agent", "whole", "n_action"),
    [("3m", 42, 48, 9), ("2s3z", 96, 120, 11), ("3s5z", 150, 216, 14)],
)
def test_sizes_are_those_of_smac(map_name: str, agent: int, whole: int, n_action: int) -> None:
    env = MicroBattleEnv({"map_name": map_name})
    obs, space = env.reset(), env.observation_space
    assert obs["agent_state"].shape[1] == agent and obs["global_state"].shape == (whole,)
    assert obs["action_mask"].shape[1] == n_action == env.action_space.one.n
    assert space.contains(obs)


def test_observation_by_hand() -> None:
    env = MicroBattleEnv({"map_name": "3m"})
    env.seed(0)
    env.reset()
    state = env.battles.state
    state["x"][0] = [16, 19, 16, 20.5, 26, 16]
    state["y"][0] = [16, 16, 31.5, 16, 16, 8]
    state["health"][0] = [45, 9, 45, 18, 45, 0]
    state["cooldown"][0], state["last_action"][0] = 0, [STOP, ATTACK + 2, EAST]
    state["cooldown"][0, 1] = env.battles.cooldown[1] / 2
    obs = env._observed()
    expected = [
        *(1, 1, 1, 1),  # open directions
        *(1, 0.5, 0.5, 0, 0.4),  # enemy 0 can be attacked, 4.5 of 9 away
        *(0, 0, 0, 0, 0),  # enemy 1 is out of sight
        *(0, 0, 0, 0, 0),  # enemy 2 is dead
        *(1, 1 / 3, 1 / 3, 0, 0.2),  # agent 1
        *(0, 0, 0, 0, 0),  # agent 2 is out of sight
        *(1, *np.eye(9)[STOP], 1, 0, 0),
    ]
    np.testing.assert_allclose(obs["agent_state"][0], np.float32(expected), rtol=1e-6)
    assert obs["agent_state"][2, :4].tolist() == [0, 1, 1, 1]
    whole = [
        *(1, 0, 0, 0, 0.2, 0.5, 3 / 16, 0, 1, 0, 0, 15.5 / 16),
        *(0.4, 4.5 / 16, 0, 1, 10 / 16, 0, 0, 0, 0),
        *np.eye(9)[[STOP, ATTACK + 2, EAST]].ravel(),
    ]
    np.testing.assert_allclose(obs["global_state"], np.float32(whole), rtol=1e-6)
    state["health"][0, 0] = 0
    obs = env._observed()
    assert not obs["agent_state"][0].any() and obs["alive"].tolist() == [0, 1, 1]


def test_types_and_shields_are_seen_where_there_are_any() -> None:
    env = MicroBattleEnv({"map_name": "2s3z"})
    env.seed(0)
    env.reset()
    state = env.battles.state
    state["x"][0, 5:], state["y"][0, 5:] = state["x"][0, :5] + 6, state["y"][0, :5]
    state["shield"][0, 5] = 20
    row = env._observed()["agent_state"][0]
    np.testing.assert_allclose(row[4:12], [1, 6 / 9, 6 / 9, 0, 1, 0.25, 1, 0], rtol=1e-6)
    assert row[4 + 4 * 8 + 6 : 4 + 5 * 8].tolist() == [0, 1]  # the last enemy is a zealot


def test_states_of_each_agent_and_without_the_others() -> None:
    env = MicroBattleEnv({"special_global_state": True, "obs_alone": True, "death_mask": True})
    env.seed(0)
    obs = env.reset()
    assert env.observation_space.contains(obs)
    own, allies = obs["agent_state"], slice(4 + 3 * 5, 4 + 5 * 5)
    np.testing.assert_array_equal(obs["agent_alone_state"], np.delete(own, allies, axis=1))
    padded = own.copy()
    padded[:, allies] = 0
    np.testing.assert_array_equal(obs["agent_alone_padding_state"], padded)
    assert own[:, allies].any()
    # 4 directions, 5 other units of 5 + 3 numbers, own 1 + 9 + 3, and who it is.
    assert obs["global_state"].shape == (3, 4 + 5 * 8 + 13 + 3)
    enemy = obs["global_state"][0, 4:12]
    state = env.battles.state
    assert enemy[1] == pytest.approx(env.battles.distances()[0, 0, 3] / SIGHT)
    assert enemy[1] > 1 and enemy[7] == 0  # known, not seen
    assert enemy[5] == pytest.approx((state["x"][0, 3] - 16) / 16)
    state["health"][0, 1] = 0
    whole = env._observed()["global_state"]
    assert whole[1].tolist() == [*[0] * 57, 0, 1, 0] and whole[0, :4].all()


def test_unavailable_actions_and_bad_settings_are_errors() -> None:
    env = MicroBattleEnv()
    env.reset()
    with pytest.raises(DingError, match=r"action 6 of agent 1 .* allows \[1, 2, 3, 4, 5\]"):
        env.step([1, 6, 1])
    with pytest.raises(DingError, match="action 9 of agent 0"):
        env.step([9, 1, 1])
    for key, value, told in (
        ("map_name", "3s4z", "did you mean '3s5z'"),
        ("enemy_aim", "weak", "did you mean 'weakest'"),
        ("reward_type", "spars", "did you mean 'sparse'"),
        ("episode_limit", 0, "at least 1"),
        ("reward_scale_rate", -1, "above 0"),
    ):
        with pytest.raises(ConfigError, match=rf"env.{key} = .*{told}"):
            MicroBattleEnv({key: value})


# --- many at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("map_name", MAPS)
def test_many_battles_are_many_times_one_bit_for_bit(map_name: str) -> None:
    n, rng = 5, np.random.default_rng(0)
    many = Battles(MAPS[map_name], n)
    many.reset(range(n), [np.random.default_rng(i) for i in range(n)])
    single = []
    for i in range(n):
        one = Battles(MAPS[map_name])
        one.reset([0], [np.random.default_rng(i)])
        single.append(one)
    for t in range(60):
        script = focus_fire(many)
        actions = np.where(rng.random((n, 1)) < 0.3, random_actions(many, rng), script)
        chosen = np.flatnonzero(rng.random(n) < 0.8) if t % 3 == 0 else np.arange(n)
        outcome = many.step(actions[chosen], None if t % 3 else chosen)
        for k, i in enumerate(chosen):
            alone = single[i].step(actions[i : i + 1])
            for found, expected in zip(outcome, alone, strict=True):
                np.testing.assert_array_equal(found[k : k + 1], expected)
        for i in range(n):
            for key, column in many.state.items():
                np.testing.assert_array_equal(column[i], single[i].state[key][0], key)
    assert (many.state["health"] == 0).any()


def manager_of(kind: Any, n: int = 3, **cfg: Any) -> Any:
    manager = kind([partial(MicroBattleEnv, {"map_name": "2s3z", "episode_limit": 30, **cfg})] * n)
    manager.seed(0)
    manager.launch()
    return manager


def script_of(obs: Any, rng: np.random.Generator) -> np.ndarray:
    """Attacks where possible, else anything."""
    mask = obs["action_mask"]
    return (
        np.where(mask > 0, rng.random(mask.shape), -1) * (1 + np.arange(mask.shape[-1]))
    ).argmax(axis=-1)


def played(manager: Any, n_step: int, seed: int) -> list[Any]:
    rng, steps = np.random.default_rng(seed), []
    for _ in range(n_step):
        obs = manager.ready_obs
        steps.append(manager.step(ByEnv(obs.ids, script_of(obs.stacked, rng))).stacked)
    return steps


def check_same(ours: list[Any], theirs: list[Any]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        for field in ("reward", "done", "truncated", "abnormal", "env_id"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
        for key in one.obs:
            np.testing.assert_array_equal(one.obs[key], other.obs[key])
        for k in np.flatnonzero(one.done):
            assert one.info[k] == other.info[k]


def test_both_managers_run_the_same_battles_and_go_on_from_a_saved_state() -> None:
    with manager_of(BaseEnvManager) as one, manager_of(GymVectorEnvManager) as many:
        assert many.observation_space == one.observation_space
        ours, theirs = played(one, 70, seed=0), played(many, 70, seed=0)
        check_same(ours, theirs)
        assert any(step.truncated.any() for step in ours)
        saved = one.state_dict(), many.state_dict()
        expected = played(one, 40, seed=1)
        check_same(expected, played(many, 40, seed=1))
        for manager, state in zip((one, many), saved, strict=True):
            manager.load_state_dict(state)
            check_same(expected, played(manager, 40, seed=1))


def test_battles_that_are_done_stand_still() -> None:
    vector = MicroBattleVector({"map_name": "3m"}, 3)
    vector.reset(seed=[0, 1, 2])
    before = {key: column.copy() for key, column in vector._arena.battles.state.items()}
    actions = np.full((3, 3), EAST)
    actions[0] = 99  # whoever stands still is not asked
    _, reward, terminated, truncated, infos = vector.step(actions, np.array([1, 2]))
    assert not (terminated.any() or truncated.any() or reward.any() or infos)
    for key, column in vector._arena.battles.state.items():
        np.testing.assert_array_equal(column[0], before[key][0])
    assert (vector._arena.battles.state["x"][1:, :3] > before["x"][1:, :3]).all()
    other = MicroBattleVector({"map_name": "3m"}, 3)
    other.reset()
    other.reset(seed=[None, 1, None], options={"reset_mask": np.array([False, True, False])})
    np.testing.assert_array_equal(other._arena.battles.state["x"][1], before["x"][1])


def test_a_vector_env_of_its_own_is_used_only_where_it_does_the_same() -> None:
    class Other(MicroBattleEnv):
        def step(self, action: Any) -> Any:
            return super().step(action)

    assert has_own_vector(MicroBattleEnv()) and not has_own_vector(Other())
    with pytest.raises(DingError, match="cannot run Other"):
        GymVectorEnvManager([Other] * 2)
    with pytest.raises(ConfigError, match="vector env of its own"):
        GymVectorEnvManager([MicroBattleEnv] * 2, {"vectorization_mode": "sync"})
    with pytest.raises(DingError, match=r"env.map_name is '3m' .* '8m' for env 1"):
        GymVectorEnvManager([MicroBattleEnv, partial(MicroBattleEnv, {"map_name": "8m"})])


def test_a_seed_says_all_and_a_pickled_battle_goes_on() -> None:
    first, second = MicroBattleEnv({"map_name": "3s5z"}), MicroBattleEnv({"map_name": "3s5z"})
    for env in (first, second):
        env.seed(7)
    starts = []
    for _ in range(2):
        a, b = first.reset(), second.reset()
        starts.append(first.battles.state["x"].copy())
        for _ in range(20):
            for key in a:
                np.testing.assert_array_equal(a[key], b[key])
            action = first.random_action()
            np.testing.assert_array_equal(action, second.random_action())
            a, b = first.step(action).obs, second.step(action).obs
            second = pickle.loads(pickle.dumps(second))
    assert (starts[0] != starts[1]).all()


# --- how hard it is ------------------------------------------------------------------------------


def test_chance_wins_nothing_and_a_plan_wins_a_lot() -> None:
    chance = partial(random_actions, rng=np.random.default_rng(0))
    assert [win_rate(MAPS[name], chance, 128) for name in ("3m", "2s3z")] == [0, 0]
    assert win_rate(MAPS["3m"], focus_fire, 128) > 0.6
    assert win_rate(MAPS["3m"], partial(focus_fire, pull_back=True), 128) > 0.8
    assert win_rate(MAPS["2s3z"], focus_fire, 128) > 0.9
    # Fire at one after the other is not enough against one more.
    assert win_rate(MAPS["5m_vs_6m"], focus_fire, 128) < 0.1


# --- pictures ------------------------------------------------------------------------------------


def test_picture() -> None:
    battles = scene([MARINE], [ZEALOT], (8, 24), (24, 8))
    image = picture(battles, 0)
    assert image.shape == (32 * SCALE, 32 * SCALE, 3) and image.dtype == np.uint8
    assert tuple(image[8 * SCALE, 8 * SCALE]) == _TEAMS[0]  # north is at the top
    assert tuple(image[24 * SCALE, 24 * SCALE]) == _TEAMS[1]
    colours = {tuple(c) for c in np.unique(image.reshape(-1, 3), axis=0).tolist()}
    assert {_GROUND, *_TEAMS} < colours
    battles.state["health"][0] = [45, 0]
    after = picture(battles, 0)
    assert not (after == np.array(_TEAMS[1], np.uint8)).all(axis=2).any()
    battles.state["health"][0] = [4.5, 100]
    assert (picture(battles, 0) != image).any()


@pytest.mark.parametrize("kind", [BaseEnvManager, GymVectorEnvManager])
def test_episodes_become_videos(kind: Any, tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    with manager_of(kind, 2, episode_limit=3) as manager:
        manager.enable_save_replay(str(tmp_path / "videos"))
        manager.reset()
        played(manager, 3, seed=0)
    files = sorted(path.name for path in (tmp_path / "videos").iterdir())
    assert files == [f"micro_battle_2s3z_episode_{i}.mp4" for i in range(2)]
    frames = ffmpeg.count_frames_and_secs(str(tmp_path / "videos" / files[0]))[0]
    assert frames == 1 + 3  # the start and three steps
