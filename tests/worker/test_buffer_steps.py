"""n-step samples, sequences and episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ding.rl_utils.adder import nstep_transitions
from ding.utils.batch import Rows, take
from ding.utils.errors import ConfigError
from ding.worker.buffer import (
    AdvancedReplayBuffer,
    EpisodeReplayBuffer,
    NaiveReplayBuffer,
    SequenceReplayBuffer,
)
from ding.worker.buffer.relabelling import Drawn


def steps_of(lengths: list[list[int]], n: int, truncated: bool = False) -> dict[str, Any]:
    """`n` steps of each env in turn; env e runs episodes of the given lengths. obs is unique."""
    rows: dict[str, list[Any]] = {
        k: [] for k in ("obs", "next_obs", "reward", "done", "episode_id")
    }
    clock = [[0, 0] for _ in lengths]  # episode, step
    for _ in range(n):
        for env, episodes in enumerate(lengths):
            episode, step = clock[env]
            done = step + 1 == episodes[episode % len(episodes)]
            obs = 10000 * env + 100 * episode + step
            values = (obs, obs + 1, float(obs % 7), done, env)
            for key, value in zip(rows, values, strict=True):
                rows[key].append(value)
            clock[env] = [episode + 1, 0] if done else [episode, step + 1]
    columns = {key: np.array(values) for key, values in rows.items()}
    columns["reward"] = columns["reward"].astype(np.float32)
    return {**columns, "truncated": columns["done"] & truncated}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=3),
    st.integers(2, 5),
    st.integers(1, 11),
    st.booleans(),
)
def test_nstep_is_that_of_whole_trajectories(
    lengths: list[list[int]], nstep: int, chunk: int, truncated: bool
) -> None:
    """Over ring edges, with envs mixed: as the reference makes them of each env's steps."""
    steps = steps_of(lengths, 20, truncated)
    total, size = len(steps["obs"]), 17
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=size, nstep=nstep, discount_factor=0.9))
    for start in range(0, total, chunk):
        buffer.push(Rows(take(steps, slice(start, start + chunk))))
    expected = {}
    for env in range(len(lengths)):
        own = take(steps, steps["episode_id"] == env)
        own["end"] = own["done"].copy()
        made = nstep_transitions(own, nstep, 0.9)
        for i, obs in enumerate(own["obs"].tolist()):
            expected[obs] = [made[k][i] for k in ("reward", "next_obs", "done", "discount")]
    drawn: Any = buffer.sample(buffer.count())
    assert len(drawn) == min(size, total)
    found = drawn.columns
    for i, obs in enumerate(found["obs"].tolist()):
        reward, next_obs, done, discount = expected[obs]
        assert found["reward"][i] == pytest.approx(reward, rel=1e-5)
        assert found["next_obs"][i] == next_obs
        assert found["done"][i] == done
        assert found["discount"][i] == pytest.approx(discount)


def test_nstep_with_priorities_and_restored() -> None:
    cfg = dict(replay_buffer_size=10, nstep=3, discount_factor=0.5)
    buffer = AdvancedReplayBuffer(cfg)
    steps = steps_of([[4]], 12)
    buffer.push(Rows(take(steps, slice(0, 11))))
    other = AdvancedReplayBuffer({**cfg, "replay_buffer_size": 16})
    other.load_state_dict(buffer.state_dict())
    for target in (buffer, other):
        target.push(Rows(take(steps, slice(11, 12))))  # the open episode goes on
        found: dict[int, float] = {}
        while 201 not in found:  # draws leave some out
            drawn: Any = target.sample(10)
            found |= zip(drawn.columns["obs"].tolist(), drawn.columns["discount"], strict=True)
        assert found[201] == 0  # 3 steps to the end of the episode
        assert found.get(202, 0) == found.get(203, 0) == 0
    assert other.count() == 11


def test_sequences_never_cross_an_episode() -> None:
    buffer = SequenceReplayBuffer(dict(replay_buffer_size=60, unroll_len=3, burn_in=2))
    steps = steps_of([[7], [4, 9]], 40)
    state = np.arange(80)
    for start in range(0, 80, 6):
        part = take({**steps, "prev_state": {"h": state}}, slice(start, start + 6))
        buffer.push(Rows(part))
    drawn: Any = buffer.sample(60)
    columns = drawn.columns
    assert columns["obs"].shape == columns["mask"].shape == (60, 5)
    assert columns["burn_in"].tolist() == [2] * 60
    by_obs = {int(obs): i for i, obs in enumerate(steps["obs"])}
    for obs, mask, h in zip(
        columns["obs"], columns["mask"], columns["prev_state"]["h"], strict=True
    ):
        real = obs[mask == 1]
        assert np.diff(real).tolist() == [1] * (len(real) - 1)  # one after the other
        assert (obs[len(real) :] == real[-1]).all()
        assert h == state[by_obs[int(obs[0])]]
        last = by_obs[int(real[-1])]
        assert len(real) == 5 or steps["done"][last] or last >= 78
    assert sorted(columns["obs"][:, 0].tolist()) == sorted(steps["obs"][20:].tolist())


def test_only_whole_sequences() -> None:
    cfg = dict(replay_buffer_size=40, unroll_len=4, padding=False)
    buffer = SequenceReplayBuffer(cfg)
    buffer.push(Rows(steps_of([[5, 3]], 16)))  # episodes of 5, 3, 5, 3: two starts in each of 5
    drawn: Any = buffer.sample(4)
    assert drawn.columns["mask"].all()
    assert sorted(drawn.columns["obs"][:, 0].tolist()) == [0, 1, 200, 201]
    assert buffer.sample(5) is None
    longer: Any = buffer.sample(2, sequence=5)
    assert longer.columns["obs"].shape == (2, 5)
    with pytest.raises(ConfigError, match="nstep"):
        SequenceReplayBuffer(dict(nstep=2))
    with pytest.raises(ConfigError, match="unroll_len = 0"):
        SequenceReplayBuffer(dict(unroll_len=0))


def test_episodes(tmp_path: Any) -> None:
    buffer = EpisodeReplayBuffer(dict(replay_buffer_size=3))
    for n in (2, 5, 3):
        buffer.push([[{"obs": np.full(2, n), "t": t} for t in range(n)]])
    assert buffer.episode_len == [2, 5, 3]
    buffer.push(Rows({"obs": np.full((4, 2), 4), "t": np.arange(4)}))  # one episode
    buffer.push([{"obs": np.full(2, 1), "t": 0}])
    assert buffer.episode_len == [3, 4, 1]
    assert buffer.count() == 3
    buffer.save_data(tmp_path / "data")
    other = EpisodeReplayBuffer(dict(replay_buffer_size=3))
    other.load_data(tmp_path / "data")
    drawn: Any = other.sample(3)
    assert sorted(len(episode) for episode in drawn) == [1, 3, 4]
    longest = max(drawn, key=len)
    assert [int(step["t"]) for step in longest] == [0, 1, 2, 3]
    longest[0]["obs"].fill_(9)
    again: Any = other.sample(3)
    assert max(again, key=len)[0]["obs"].tolist() == [4, 4]
    with pytest.raises(ConfigError, match="storage"):
        EpisodeReplayBuffer(dict(storage="mmap"))


def test_a_step_that_is_missing_ends_a_chain() -> None:
    """Chunks of remote collectors may be lost; the steps around a hole are no neighbours."""
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=20, nstep=3, discount_factor=0.5))
    steps = steps_of([[50]], 9)
    columns = {**steps, "episode_step": np.arange(9)}
    columns["reward"] = np.ones(9, np.float32)
    buffer.push(Rows(take(columns, slice(0, 4))))
    buffer.push(Rows(take(columns, slice(6, 9))))
    found = buffer.sample(7).columns  # type: ignore[union-attr]
    sums = dict(zip(found["obs"].tolist(), found["reward"].tolist(), strict=True))
    assert sums == {0: 1.75, 1: 1.75, 2: 1.5, 3: 1.0, 6: 1.75, 7: 1.5, 8: 1.0}
    assert "episode_id" not in found and "episode_step" not in found


@pytest.mark.parametrize("nstep", [1, 3])
@pytest.mark.parametrize("kind", [NaiveReplayBuffer, AdvancedReplayBuffer])
def test_relabelling_sees_single_steps(kind: Any, nstep: int) -> None:
    """Rewards that a model gives are summed after it has seen each step by itself."""
    buffer = kind(dict(replay_buffer_size=40, nstep=nstep, discount_factor=0.5))
    steps = steps_of([[5], [3]], 12)
    buffer.push(Rows(steps))
    seen: list[int] = []

    def relabel(batch: dict[str, Any]) -> dict[str, Any]:
        assert batch["next_obs"].tolist() == (batch["obs"] + 1).tolist()
        seen.append(len(batch["obs"]))
        return {**batch, "reward": (batch["obs"] % 100).astype(np.float32)}

    found = buffer.sample(16, relabel=relabel).columns
    assert seen == [16 * nstep]
    for obs, reward in zip(found["obs"].tolist(), found["reward"].tolist(), strict=True):
        step, length = obs % 100, 5 if obs < 10000 else 3
        last = min(step + nstep, length, 12 - (obs % 10000) // 100 * length)
        assert reward == sum(0.5**k * (step + k) for k in range(last - step))


def test_an_end_that_relabelling_sets_cuts_the_chain() -> None:
    """Three steps of -1; the goal is reached at the first: no reward and no value after it."""
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=4, nstep=3, discount_factor=0.5))
    steps = steps_of([[4]], 4)
    buffer.push(Rows(steps))

    def reached_at_once(batch: dict[str, Any]) -> dict[str, Any]:
        first = batch["obs"] == batch["obs"].min()
        reward = np.where(first, -1.0, -7.0).astype(np.float32)
        return {**batch, "reward": reward, "done": batch["done"] | first}

    found = buffer.sample(4, relabel=reached_at_once).columns  # type: ignore[union-attr]
    row = int(np.argmin(found["obs"]))
    assert (found["reward"][row], found["discount"][row], found["done"][row]) == (-1, 0, True)
    assert found["next_obs"][row] == found["obs"][row] + 1


def test_further_reward_columns_have_a_gamma_of_their_own() -> None:
    cfg = dict(replay_buffer_size=4, nstep=2, discount_factor=0.5, reward_gammas=dict(novelty=0.9))
    buffer = NaiveReplayBuffer(cfg)
    buffer.push(Rows(steps_of([[4]], 4)))

    def novel(batch: dict[str, Any]) -> dict[str, Any]:
        ones = np.ones(len(batch["obs"]), np.float32)
        return {**batch, "reward": ones, "novelty": 10 * ones}

    found = buffer.sample(4, relabel=novel).columns  # type: ignore[union-attr]
    last = found["obs"] == found["obs"].max()
    assert found["reward"].tolist() == np.where(last, 1, 1.5).tolist()
    assert np.allclose(found["novelty"], np.where(last, 10, 19))
    assert np.allclose(found["novelty_discount"][~last & ~found["done"]], 0.81)
    assert (found["novelty_discount"][found["done"]] == 0).all()


class Neighbours:
    """Relabelling that notes what it sees of other steps."""

    def __init__(self) -> None:
        self.drawn: list[Drawn] = []

    def relabel(self, drawn: Drawn) -> dict[str, Any]:
        self.drawn.append(drawn)
        return drawn.steps


@pytest.mark.parametrize("kind", [NaiveReplayBuffer, AdvancedReplayBuffer])
@pytest.mark.parametrize("nstep", [1, 3])
def test_relabelling_finds_other_steps_of_the_episode(kind: Any, nstep: int) -> None:
    """Two envs with episodes of 5 and 3 steps in a ring that has forgotten the first rows."""
    buffer = kind(dict(replay_buffer_size=20, nstep=nstep, discount_factor=0.5, links=True))
    columns = steps_of([[5], [3]], 14)
    for start in range(0, 28, 3):
        buffer.push(Rows(take(columns, slice(start, min(start + 3, 28)))))
    again = kind(dict(replay_buffer_size=20, nstep=nstep, discount_factor=0.5, links=True))
    again.load_state_dict(buffer.state_dict())
    stored = set(columns["obs"][8:].tolist())
    for one in (buffer, again):
        part = Neighbours()
        one.sample(20, relabel=part)
        (drawn,) = part.drawn
        obs = drawn.steps["obs"]
        assert drawn.exist.shape == (20, nstep) and drawn.source == "buffer"
        for row, number in enumerate(obs.tolist()):
            length = 5 if number < 10000 else 3
            step, first = number % 100, number - number % 100
            later = [n for n in range(number + 1, first + length) if n in stored]
            earlier = [n for n in range(first, first + step) if n in stored]
            assert drawn.left[row] == len(later)
            assert drawn.passed[row] == len(earlier)
        ends = drawn.later(drawn.left, ["obs"])["obs"]
        begins = drawn.later(-drawn.passed)["obs"]
        assert (ends == obs + drawn.left).all() and (begins == obs - drawn.passed).all()


def test_every_draw_has_its_discount() -> None:
    """Single steps and sequences; of what terminated 0, of what a limit cut short not."""
    done, truncated = np.array([False, True, True, False]), np.array([False, False, True, False])
    steps = {"obs": np.arange(4.0), "reward": np.ones(4), "done": done, "truncated": truncated}
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=4, discount_factor=0.5))
    buffer.push(Rows(steps))
    wanted = np.array([0.5, 0.0, 0.5, 0.5], np.float32)
    found = buffer.sample(4).columns  # type: ignore[union-attr]
    assert (found["discount"] == wanted[found["obs"].astype(int)]).all()
    relabelled = buffer.sample(4, relabel=Ended()).columns  # type: ignore[union-attr]
    assert (relabelled["discount"] == 0).all()
    origin = {"episode_id": np.zeros(4, int), "step_id": np.arange(4)}
    for gamma in (None, 0.5):
        sequences = SequenceReplayBuffer(dict(unroll_len=2, discount_factor=gamma))
        sequences.push(Rows({**steps, **origin}))
        found = sequences.sample(4).columns  # type: ignore[union-attr]
        assert ("discount" in found) == (gamma is not None)
    assert (found["discount"] == wanted[found["obs"].astype(int)]).all()
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=4, discount_factor=0.5))
    buffer.push(Rows({**steps, "value_gamma": np.full(4, 0.25)}))
    assert set(buffer.sample(4).columns["discount"].tolist()) == {0.0, 0.25}  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match=r"nstep = 2, .* without discount_factor"):
        NaiveReplayBuffer(dict(nstep=2))


class Ended:
    """Relabelling that ends the episode at every step."""

    def relabel(self, drawn: Drawn) -> dict[str, Any]:
        ends = {"done": np.ones(len(drawn.steps["obs"]), bool)}
        return {**drawn.steps, **ends, "truncated": ~ends["done"]}


def test_a_buffer_without_links_says_what_to_set() -> None:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=4))
    buffer.push(Rows(steps_of([[4]], 4)))
    part = Neighbours()
    buffer.sample(2, relabel=part)
    with pytest.raises(ConfigError, match=r"replay_buffer\.links = True"):
        part.drawn[0].left  # noqa: B018
