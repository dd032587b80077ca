"""One env that feeds several policies: the samples of each player are those of the env's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ding.envs import BaseEnvManager, create_env_manager
from ding.policy import DQNPolicy, PPOPolicy
from ding.utils.batch import ByEnv, columns_of, stacked_of
from ding.utils.errors import ConfigError
from ding.worker import PlayersCollector
from worker.agent_fakes import (
    AgentNetwork,
    AgentsPolicy,
    K,
    M,
    PlayersEnv,
    logged_steps,
    makers,
)
from worker.async_fakes import CountingManager, OutOfTurnManager, ScriptedManager
from worker.fakes import NstepPolicy

GAMMA = 0.9
EXPLORE = {"first": {"eps": 0.5}, "second": {"eps": 0.3}}


def dqn(nstep: int = 1, kind: Any = NstepPolicy, **cfg: Any) -> DQNPolicy:
    model = dict(obs_shape=K, action_shape=M, encoder_hidden_size_list=[8])
    return kind(dict(type="dqn", model=model, nstep=nstep, discount_factor=GAMMA, **cfg))


def ppo(n_sample: int = 12) -> PPOPolicy:
    model = dict(obs_shape=K, action_shape=M, encoder_hidden_size_list=[8])
    learn = dict(batch_size=4, epoch_per_collect=1)
    return PPOPolicy(dict(type="ppo", model=model, learn=learn, collect=dict(n_sample=n_sample)))


class Script:
    """A bot with the functions of a collect mode: its action is the step of the episode."""

    def __init__(self) -> None:
        self.resets: list[Any] = []

    def forward(self, data: Mapping[int, Any], **kwargs: Any) -> dict[int, Any]:
        return {i: {"action": np.int64(obs[2]) % M} for i, obs in reversed(list(data.items()))}

    def process_transition(self, obs: Any, output: Any, step: Any) -> dict[str, Any]:
        return {
            "obs": obs,
            "next_obs": step.obs,
            "action": output["action"],
            "reward": step.reward,
        }

    def get_train_sample(self, steps: Sequence[Any]) -> Sequence[Any]:
        return steps

    def reset(self, data_id: Sequence[int] | None = None) -> None:
        self.resets.append(data_id)


class Opponent:
    """A bot that only acts."""

    def forward(self, data: Mapping[int, Any], **kwargs: Any) -> ByEnv:
        env_id = stacked_of(data)[0]
        return ByEnv(env_id, {"action": np.full(len(env_id), 2, dtype=np.int64)})

    def reset(self, data_id: Sequence[int] | None = None) -> None: ...


def seat_log(folder: Path, position: int) -> list[list[dict[str, Any]]]:
    """Steps of this position as each env wrote them down, without those after its death."""
    logs = []
    for log in logged_steps(folder):
        steps = []
        for step in log:
            if not step["obs"]["alive"][position]:
                continue
            lives = bool(step["next_obs"]["alive"][position])
            steps.append(
                {
                    "obs": step["obs"]["agent_state"][position],
                    "next_obs": step["next_obs"]["agent_state"][position],
                    "action": step["action"][position],
                    "reward": step["reward"][position],
                    "done": step["done"] or not lives,
                    "truncated": step["truncated"] and lives,
                    "episode": step["episode"],
                }
            )
        logs.append(steps)
    return logs


def expected_samples(folder: Path, position: int, nstep: int = 1) -> dict[Any, dict[str, Any]]:
    """n-step samples by a plain loop, of those whose steps are all there."""
    samples = {}
    for log in seat_log(folder, position):
        for t, first in enumerate(log):
            steps = []
            for step in log[t : t + nstep]:
                steps.append(step)
                if step["done"]:
                    break
            last = steps[-1]
            if len(steps) < nstep and not last["done"]:
                continue
            terminated = last["done"] and not last["truncated"]
            samples[tuple(first["obs"])] = {
                "obs": first["obs"],
                "action": first["action"],
                "reward": sum(GAMMA**k * step["reward"] for k, step in enumerate(steps)),
                "next_obs": last["next_obs"],
                "discount": 0.0 if terminated else GAMMA ** len(steps),
            }
    return samples


def assert_samples(samples: Any, folder: Path, position: int, nstep: int = 1) -> set[Any]:
    """Every number is the env's own, and none came twice; returns which ones came."""
    logged = expected_samples(folder, position, nstep)
    came = []
    for sample in samples:
        obs = sample["obs"]["agent_state"] if isinstance(sample["obs"], dict) else sample["obs"]
        after = sample["next_obs"]
        after = after["agent_state"] if isinstance(after, dict) else after
        step = logged[tuple(obs.tolist())]
        came.append(tuple(obs.tolist()))
        assert after.tolist() == step["next_obs"]
        assert int(sample["action"]) == step["action"]
        assert float(sample["reward"]) == pytest.approx(step["reward"], rel=1e-6)
        if "discount" in sample:
            assert float(sample["discount"]) == pytest.approx(step["discount"], rel=1e-6)
    assert len(set(came)) == len(came)
    return set(came)


def collector_of(env: Any, players: Any, tmp_path: Path, **cfg: Any) -> PlayersCollector:
    return PlayersCollector(cfg, env=env, policy=players, exp_name=str(tmp_path / "exp"))


MANAGERS = ["base", "subprocess", "async_subprocess", "scripted", "counting", "out_of_turn"]
SCRIPTED = {
    "scripted": ScriptedManager,
    "counting": CountingManager,
    "out_of_turn": OutOfTurnManager,
}


def manager_of(kind: str, folder: Path, n: int = 3, cfg: Any = None, **kwargs: Any) -> Any:
    envs = makers(n, folder, **{"kind": PlayersEnv, **kwargs})
    if kind in SCRIPTED:
        return SCRIPTED[kind](envs, cfg or {})
    # Without a number of envs per worker, envs are tried out first, and write that down, too.
    workers = {} if kind == "base" else {"envs_per_worker": 1}
    return create_env_manager(dict(type=kind, **workers, **(cfg or {})), envs)


@pytest.mark.parametrize("kind", MANAGERS)
@pytest.mark.parametrize("nstep", [1, 3])
def test_each_player_gets_its_own_samples(kind: str, nstep: int, tmp_path: Path) -> None:
    players = dict(first=dqn().collect_mode, second=dqn(nstep).collect_mode)
    with collector_of(manager_of(kind, tmp_path), players, tmp_path) as collector:
        got: dict[str, list[Any]] = {"first": [], "second": []}
        for k in range(5):
            samples = collector.collect(14, train_iter=k, policy_kwargs=EXPLORE)
            assert list(samples) == ["first", "second"]
            for name, part in samples.items():
                assert len(part) >= 14
                assert set(part.columns["collect_iter"].tolist()) == {k}
                got[name] += part
        collector.state_dict()  # takes in the steps that are under way
        assert_samples(got["first"], tmp_path, 0)
        assert_samples(got["second"], tmp_path, 1, nstep)
        assert collector.envstep == sum(map(len, logged_steps(tmp_path)))
        for sampler in collector._samplers.values():
            sampler.make(0)
        # Nothing is lost: the rest is in the collector.
        for name, position, steps in (("first", 0, 1), ("second", 1, nstep)):
            left = collector._samplers[name].available
            assert len(got[name]) + left == len(expected_samples(tmp_path, position, steps))


def test_players_may_be_scripts(tmp_path: Path) -> None:
    script, policy = Script(), dqn()
    players = dict(first=script, second=policy.collect_mode)
    with collector_of(manager_of("base", tmp_path), players, tmp_path) as collector:
        samples = collector.collect(40, policy_kwargs=EXPLORE)
        for position, part in enumerate(samples.values()):
            assert len(assert_samples(part, tmp_path, position)) >= 40
        columns = samples["first"].columns
        assert columns["action"].tolist() == (columns["obs"][:, 2] % M).tolist()
        # Everyone is told whose episodes are over.
        n_done = sum(s["done"] for log in logged_steps(tmp_path) for s in log)
        assert sum(len(ids) for ids in script.resets if ids is not None) >= n_done


def test_a_player_that_only_acts_has_no_samples(tmp_path: Path) -> None:
    players = dict(first=dqn().collect_mode, second=Opponent())
    with collector_of(manager_of("base", tmp_path), players, tmp_path) as collector:
        samples = collector.collect(30, policy_kwargs={"first": {"eps": 0.5}})
        assert list(samples) == ["first"]
        assert_samples(samples["first"], tmp_path, 0)
        assert {step["action"][1] for log in logged_steps(tmp_path) for step in log} == {2}
        assert list(collector.recent_returns) == ["first"]
    with (
        collector_of(manager_of("base", tmp_path), dict(a=Opponent(), b=Opponent()), tmp_path) as c,
        pytest.raises(RuntimeError, match="nothing to collect"),
    ):
        c.collect(4)


@pytest.mark.parametrize("kind", ["base", "scripted"])
@pytest.mark.parametrize("deaths", [{1: 2}, {0: 1, 1: 3}])
def test_episodes_of_players_may_differ_in_length(
    kind: str, deaths: dict[int, int], tmp_path: Path
) -> None:
    """A player that is out of the game has no samples until the next episode."""
    names = ("first", "second")
    policies = {name: AgentsPolicy({}, model=AgentNetwork()) for name in names}
    modes = {name: policy.collect_mode for name, policy in policies.items()}
    envs = makers(3, tmp_path, deaths=deaths)
    env = BaseEnvManager(envs, {}) if kind == "base" else ScriptedManager(envs, {})
    with collector_of(env, modes, tmp_path) as collector:
        got: dict[str, list[Any]] = {name: [] for name in names}
        for _ in range(3):
            for name, part in collector.collect(20).items():
                assert len(part) >= 20
                got[name] += part
        collector.state_dict()
        for position, name in enumerate(names):
            came = assert_samples(got[name], tmp_path, position)
            collector._samplers[name].make(0)
            logged = expected_samples(tmp_path, position)
            assert len(came) + collector._samplers[name].available == len(logged)
            done = {tuple(s["obs"]): s for log in seat_log(tmp_path, position) for s in log}
            for sample in got[name]:
                step = done[tuple(sample["obs"]["agent_state"].tolist())]
                assert bool(sample["done"]) == step["done"]
                assert bool(sample["truncated"]) == step["truncated"]
            totals: dict[Any, float] = {}
            over = set()
            for i, log in enumerate(seat_log(tmp_path, position)):
                for step in log:
                    key = (i, step["episode"])
                    totals[key] = totals.get(key, 0.0) + step["reward"]
                    over |= {key} if step["done"] else set()
            mean = np.mean([totals[key] for key in over])
            assert collector.recent_returns[name] == pytest.approx(mean)


@pytest.mark.parametrize("kind", ["base", "scripted"])
@pytest.mark.parametrize("event", ["abnormal", "raise"])
def test_an_abnormal_step_drops_the_episode_of_both(kind: str, event: str, tmp_path: Path) -> None:
    cfg = {"max_retry": 2, "retry_waiting_time": 0.0}
    env = manager_of(kind, tmp_path, cfg=cfg, lengths=(6,), truncate=(), events={(1, 3): event})
    players = dict(first=dqn(3).collect_mode, second=dqn(3).collect_mode)
    with collector_of(env, players, tmp_path) as collector:
        samples = collector.collect(70, policy_kwargs=EXPLORE)
        for part in samples.values():
            obs, after = part.columns["obs"], part.columns["next_obs"]
            # No three steps of the broken episodes were there before they broke.
            assert not (obs[:, 1] == 1).any()
            assert (obs[:, 1] == after[:, 1]).all()
            assert (obs[:, 1] == 2).any()
        assert collector.dropped_steps == 9
        assert collector.envstep == sum(env.total for env in collector._env._envs)
        broken = [s for log in logged_steps(tmp_path) for s in log if s["abnormal"]]
        assert len(broken) == (3 if event == "abnormal" else 0)


@pytest.mark.parametrize("n_sample", [7, 12])
def test_resumed_state_continues_exactly(n_sample: int, tmp_path: Path) -> None:
    def run(split: bool) -> list[Any]:
        torch.manual_seed(0)
        np.random.seed(0)
        folder = tmp_path / str(split)
        folder.mkdir()
        policies = dict(first=dqn(), second=dqn(3))
        for policy in policies.values():
            policy.rng.bit_generator.state = np.random.default_rng(3).bit_generator.state
        modes = {name: policy.collect_mode for name, policy in policies.items()}
        collector = collector_of(manager_of("base", folder), modes, folder)
        got = [collector.collect(n_sample, policy_kwargs=EXPLORE)]
        if split:
            state = collector.state_dict()
            collector.close()
            collector = collector_of(manager_of("base", folder), modes, folder)
            collector.load_state_dict(state)
        got += [collector.collect(n_sample, policy_kwargs=EXPLORE) for _ in range(3)]
        counts = (collector.envstep, collector.episode_count, collector.recent_returns)
        collector.close()
        return [
            counts,
            [
                {
                    n: [
                        columns_of(part)[key].tolist()
                        for key in ("obs", "action", "reward", "discount")
                    ]
                    for n, part in samples.items()
                }
                for samples in got
            ],
        ]

    assert run(split=True) == run(split=False)


def test_one_policy_at_both_positions(tmp_path: Path) -> None:
    """Self-play: it is asked once for all its seats, and each seat is a trajectory."""
    policy, asked = dqn(3), []
    mode = policy.collect_mode

    def forward(data: Any, **kwargs: Any) -> Any:
        asked.append(stacked_of(data)[0].tolist())
        return mode.forward(data, **kwargs)

    players = dict(main=mode._replace(forward=forward))
    env = manager_of("base", tmp_path)
    with collector_of(env, players, tmp_path, seats=["main", "main"]) as collector:
        samples = collector.collect(60, policy_kwargs={"main": {"eps": 0.5}})["main"]
        assert all(sorted(ids) == list(range(6)) for ids in asked)
        for position in (0, 1):
            own = [s for s in samples if int(s["obs"][3]) == position]
            assert len(assert_samples(own, tmp_path, position, 3)) > 20


def test_links_of_steps_are_by_seat(tmp_path: Path) -> None:
    """Replay that sums rewards on drawing must not join steps of different seats."""
    mode = dqn(3, DQNPolicy).collect_mode
    env = manager_of("base", tmp_path)
    with collector_of(env, dict(main=mode), tmp_path, seats=["main", "main"]) as collector:
        collector.number_episodes_from(1000)
        columns = collector.collect(60, policy_kwargs={"main": {"eps": 0.5}})["main"].columns
        seats: dict[int, set[Any]] = {}
        for episode, obs in zip(columns["episode_id"].tolist(), columns["obs"], strict=True):
            seats.setdefault(episode, set()).add((obs[0], obs[1], obs[3]))
        assert min(seats) == 1000
        assert all(len(seat) == 1 for seat in seats.values())
        assert columns["episode_step"].tolist() == columns["obs"][:, 2].tolist()


@pytest.mark.parametrize("kind", MANAGERS)
def test_on_policy_beside_off_policy(kind: str, tmp_path: Path) -> None:
    players = dict(first=ppo().collect_mode, second=dqn(3).collect_mode)
    with collector_of(manager_of(kind, tmp_path), players, tmp_path) as collector:
        got: list[Any] = []
        before: set[Any] = set()
        for _ in range(12):
            taken = {tuple(s["obs"]) for log in seat_log(tmp_path, 0) for s in log}
            samples = collector.collect(12, policy_kwargs={"second": {"eps": 0.5}})
            got += samples["second"]
            came = {tuple(obs) for obs in samples["first"].columns["obs"].tolist()}
            assert len(came) == len(samples["first"]) >= 12
            assert not came & taken, "a step of an earlier policy"
            assert not came & before
            before |= came
        assert_samples(got, tmp_path, 1, 3)
        # Steps under way are drained, or else dropped together with what they would continue.
        assert (collector.stale_steps > 0) == (kind == "out_of_turn")


def test_statistics_are_those_of_each_player(tmp_path: Path) -> None:
    players = dict(first=dqn().collect_mode, second=dqn(obs_norm=True).collect_mode)
    with collector_of(manager_of("base", tmp_path), players, tmp_path) as collector:
        samples = collector.collect(30, policy_kwargs=EXPLORE)["second"].columns
        statistics = collector.take_statistics()
        assert list(statistics) == ["second"]
        policy = dqn(obs_norm=True)
        policy.learn_mode.set_attribute("statistics", statistics["second"])
        obs = samples["obs"]
        expected = (obs - obs.mean(0)) / np.maximum(obs.std(0), 1e-6)
        varied = obs.std(0) > 0
        normalised = policy._normalisers.seen(obs)
        assert normalised[:, varied] == pytest.approx(
            expected[:, varied].clip(-3, 3), rel=1e-3, abs=1e-3
        )


def test_other_players_and_envs(tmp_path: Path) -> None:
    modes = [dqn().collect_mode for _ in range(3)]
    with collector_of(manager_of("base", tmp_path), dict(a=modes[0], b=modes[1]), tmp_path) as c:
        c.collect(20)
        seen = {tuple(s["obs"]) for log in seat_log(tmp_path, 1) for s in log}
        c.reset_policy(dict(a=modes[0], c=modes[2]))
        samples = c.collect(20)
        assert list(samples) == ["a", "c"]
        assert not seen & assert_samples(samples["c"], tmp_path, 1)
        other = tmp_path / "other"
        other.mkdir()
        c.reset_env(manager_of("base", other, n=5))
        for position, part in enumerate(c.collect(30).values()):
            assert len(assert_samples(part, other, position)) >= 30


def test_misuse(tmp_path: Path) -> None:
    mode = dqn(collect=dict(n_sample=None)).collect_mode
    with pytest.raises(RuntimeError, match="env"):
        PlayersCollector(policy=dict(a=mode))
    env = manager_of("base", tmp_path)
    with PlayersCollector(env=env, exp_name=str(tmp_path)) as collector:
        with pytest.raises(RuntimeError, match="policy"):
            collector.collect(4)
        with pytest.raises(TypeError, match="collect mode"):
            collector.reset_policy(mode)
        collector.reset_policy(dict(a=mode, b=mode))
        with pytest.raises(RuntimeError, match="how many"):
            collector.collect()
        with pytest.raises(ConfigError, match="n_sample = 0"):
            collector.collect(0)
    with pytest.raises(ConfigError, match="every player needs"):
        PlayersCollector(
            dict(seats=["a", "c"]), env=manager_of("base", tmp_path), policy=dict(a=mode, b=mode)
        )
