"""Our simple_spread gives the very numbers of mpe2's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from ding.envs.pettingzoo_env import PettingZooEnv
from ding.envs.simple_spread import SimpleSpread

simple_spread_v3 = pytest.importorskip("mpe2.simple_spread_v3")


def actions_of(kind: str, seen: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    if kind == "numbers":
        return {agent: rng.random(5).astype(np.float32) for agent in seen}
    if kind == "choices":
        return {agent: int(rng.integers(5)) for agent in seen}
    # To the middle, left or right and then up or down, where they run into each other.
    axis = int(rng.integers(2))
    return {agent: 2 * axis + (2 if x[2 + axis] < 0 else 1) for agent, x in seen.items()}


@pytest.mark.parametrize("kind", ["choices", "numbers", "together"])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_the_same_bits(kind: str, count: int) -> None:
    settings = dict(N=count, max_cycles=20, continuous_actions=kind == "numbers", local_ratio=0.3)
    theirs, ours = simple_spread_v3.parallel_env(**settings), SimpleSpread(**settings)
    rng, hits = np.random.default_rng(0), 0
    for seed in (0, 1, None):  # None goes on with the generator
        seen, _ = theirs.reset(seed=seed)
        again, _ = ours.reset(seed=seed)
        for _ in range(20):
            assert {k: x.tobytes() for k, x in seen.items()} == {
                k: x.tobytes() for k, x in again.items()
            }
            action = actions_of(kind, seen, rng)
            seen, *told, _ = theirs.step(action)
            again, *told_again, _ = ours.step(action)
            assert list(map(dict, told)) == told_again
            hits += len(set(told[0].values())) > 1
        assert all(told_again[2].values())
    assert kind != "together" or count == 1 or hits > 10, "agents touched each other"
    for agent in ours.possible_agents:
        assert ours.observation_space(agent) == theirs.observation_space(agent)
        assert ours.action_space(agent) == theirs.action_space(agent)


def test_the_adapter_takes_it_where_it_does_the_same() -> None:
    base = dict(env_family="mpe", env_id="simple_spread_v3", obs_agent_id=True)
    ours, theirs = (PettingZooEnv({**base, "fast": fast}) for fast in (True, False))
    for env in (ours, theirs):
        env.seed(3, dynamic_seed=False)
    np.testing.assert_equal(ours.reset(), theirs.reset())
    assert isinstance(ours._env, SimpleSpread) and not isinstance(theirs._env, SimpleSpread)
    one, other = (env.step(np.array([1, 2, 3])) for env in (ours, theirs))
    np.testing.assert_equal(tuple(one), tuple(other))
    special = PettingZooEnv({**base, "env_kwargs": dict(terminate_on_success=True)})
    special.reset()
    assert not isinstance(special._env, SimpleSpread)


def test_a_running_episode_can_be_saved() -> None:
    env = PettingZooEnv(dict(env_family="mpe", env_id="simple_spread_v3"))
    env.seed(0)
    env.reset()
    env.step(np.array([1, 2, 3]))
    again = pickle.loads(pickle.dumps(env))
    one, other = (e.step(np.array([1, 1, 1])) for e in (env, again))
    np.testing.assert_equal(tuple(one), tuple(other))
