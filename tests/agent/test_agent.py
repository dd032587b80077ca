"""Acting outside of the run: units, shapes, wrappers, memory, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from ding.agent import Agent, load
from ding.agent.border import Border, split_wrappers
from ding.agent.card import Card, card_of
from ding.config import compile_config
from ding.envs import DingEnvWrapper, get_vec_env_setting, manager_of
from ding.envs.wrappers import create_env_wrapper
from ding.pipeline.spaces import fit_model_to_env
from ding.utils.batch import take, tree_map
from ding.utils.errors import CheckpointError, DingError

TORQUE = spaces.Box(np.array([-4.0, 0.0], np.float32), np.array([4.0, 1.0], np.float32))


class Wheel(gym.Env[Any, Any]):
    """Shows the step and the last action, in float64; the reward is the step."""

    observation_space = spaces.Box(-10, 10, (3,), dtype=np.float64)
    action_space: Any = TORQUE

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n = 0
        return self.seen(np.zeros(2)), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.n += 1
        shown = np.resize(action, 2)
        return self.seen(shown), float(self.n), False, self.n == 5, {}

    def seen(self, shown: Any) -> np.ndarray:
        return np.array([self.n, *shown], np.float64)


class TwoWheels(Wheel):
    action_space = spaces.Discrete(2, start=5)


class Halves(gym.ActionWrapper[Any, Any, Any]):
    """Three torques as a choice."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.action_space = spaces.Discrete(3)

    def action(self, action: Any) -> np.ndarray:
        return np.array([[-4, 0], [0, 0.5], [4, 1]], np.float32)[action]


@pytest.fixture(autouse=True)
def _registered() -> Any:
    torch.manual_seed(0)
    gym.register("Wheel-v0", Wheel)
    gym.register("TwoWheels-v0", TwoWheels)
    yield
    for name in ("Wheel-v0", "TwoWheels-v0"):
        gym.registry.pop(name)


def compiled(policy: str, env_id: str = "Wheel-v0", **env: Any) -> Any:
    section: dict[str, Any] = dict(
        env_id=env_id, collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1, **env
    )
    main = dict(env={**section, "stop_value": 1}, policy={})
    create = dict(policy=dict(type=policy))
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False)
    env_fn, _, cfgs = get_vec_env_setting(cfg.env)
    with manager_of(cfg.env.manager, env_fn, cfgs) as manager:
        fit_model_to_env(cfg.policy, manager)
    return cfg


def agent_of(policy: str, env_id: str = "Wheel-v0", **env: Any) -> Agent:
    return Agent(card_of(compiled(policy, env_id, **env)))


def saturated(agent: Agent, sign: float) -> None:
    """Make the policy's action `sign` in every dimension."""
    weights = agent.policy._model.state_dict()
    for name, weight in weights.items():
        if "mu" in name and name.startswith("actor"):
            weight[:] = 100.0 * sign if name.endswith("bias") else 0.0


@pytest.mark.parametrize(("sign", "wanted"), [(1.0, [4.0, 1.0]), (-1.0, [-4.0, 0.0])])
def test_actions_are_in_the_units_of_the_env(sign: float, wanted: list[float]) -> None:
    agent = agent_of("sac")
    saturated(agent, sign)
    one = agent.act(np.zeros(3))
    assert one.shape == (2,) and one.dtype == np.float32
    np.testing.assert_allclose(one, wanted, atol=1e-5)
    np.testing.assert_allclose(agent.act(np.zeros((4, 3))), [wanted] * 4, atol=1e-5)


def test_without_act_scale_the_policy_speaks_the_units_itself() -> None:
    agent = agent_of("sac", act_scale=False)
    saturated(agent, 1.0)
    np.testing.assert_allclose(agent.act(np.zeros(3)), [1.0, 1.0], atol=1e-5)


def test_a_choice_counts_from_where_the_env_does() -> None:
    agent = agent_of("dqn", "TwoWheels-v0")
    several = agent.act(np.random.default_rng(0).normal(size=(64, 3)) * 9)
    assert set(several.tolist()) == {5, 6}
    assert agent.action_space.contains(agent.act(np.zeros(3)))


def test_lists_and_integers_are_observations_too() -> None:
    agent = agent_of("sac")
    wanted = agent.act(np.array([1.0, 2.0, 3.0], np.float32))
    assert np.array_equal(agent.act([1, 2, 3]), wanted)
    assert np.array_equal(agent.act(np.array([1.0, 2.0, 3.0])), wanted)


def test_drawn_actions_differ_and_repeat_with_their_seed() -> None:
    card = card_of(compiled("sac"))

    def drawn(seed: int) -> list[Any]:
        torch.manual_seed(0)
        agent = Agent(card, seed=seed)
        saturated(agent, 0.0)
        return [agent.act(np.zeros(3), deterministic=False).tolist() for _ in range(3)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len({tuple(one) for one in drawn(1)}) == 3


def seen_by(agent: Agent) -> list[np.ndarray]:
    """Catch what the networks are given."""
    caught: list[np.ndarray] = []
    inner = agent._best

    def forward(data: Any) -> Any:
        caught.append(data.stacked)
        return inner.forward(data)

    agent._best = inner._replace(forward=forward)
    return caught


def stack_of(*steps: float) -> list[list[float]]:
    return [[step] * 3 for step in steps]


def test_frames_are_stacked_for_each_row_and_begin_anew_after_a_reset() -> None:
    stacks = [dict(type="frame_stack", kwargs=dict(n_frames=2))]
    border = Border(Wheel.observation_space, TORQUE, stacks, act_scale=True)
    obs, action = np.zeros((2, 3)), np.zeros((2, 2), np.float32)
    seen = []
    for step in (1.0, 2.0, 3.0):
        obs[:] = step  # one memory, written again for every step
        if step == 3.0:
            border.reset([1])
        seen.append(border.seen(obs))
        assert border.taken(action).tolist() == [[0.0, 0.5]] * 2
    assert seen[1].dtype == np.float32
    assert seen[1].tolist() == [stack_of(1, 2), stack_of(1, 2)]
    assert seen[2].tolist() == [stack_of(2, 3), stack_of(3, 3)]
    border.reset()
    assert border.seen(np.full((1, 3), 7.0)).tolist() == [stack_of(7, 7)]


class Screen(gym.Env[Any, Any]):
    """Noise in colours."""

    observation_space = spaces.Box(0, 255, (40, 30, 3), dtype=np.uint8)
    action_space = spaces.Discrete(3, start=1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.drawn(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.drawn(), float(action), False, False, {}

    def drawn(self) -> np.ndarray:
        return self.np_random.integers(0, 256, (40, 30, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "wrappers",
    [
        ["noop_reset", "max_and_skip", "warp_frame", "scaled_float_frame", "frame_stack"],
        ["flat_obs", dict(type="time_limit", kwargs=dict(max_limit=9)), "rescale_obs"],
        ["clip_reward", "obs_plus_prev_action_reward"],
        [dict(type="delay_reward", kwargs=dict(delay_reward_step=2)), "warp_frame", "frame_stack"],
    ],
    ids=lambda wrappers: "-".join(w if isinstance(w, str) else w["type"] for w in wrappers),
)
def test_the_policy_sees_what_it_saw_in_the_run(wrappers: list[Any]) -> None:
    inside = DingEnvWrapper(Screen, {"env_wrapper": wrappers})
    inside.seed(3, dynamic_seed=False)
    around, within = split_wrappers(wrappers)
    plain: Any = Screen()
    for wrapper in around:
        plain = create_env_wrapper(plain, wrapper)
    border = Border(plain.observation_space, plain.action_space, within, act_scale=True)
    wanted, (obs, _), reward = inside.reset(), plain.reset(seed=3), None
    for choice in (0, 2, 1, 1):
        seen = take(border.seen(tree_map(lambda leaf: leaf[None], obs), reward), 0)
        pairs = zip(*(tree_map(np.asarray, leaves(tree)) for tree in (seen, wanted)), strict=True)
        assert all(np.array_equal(one, other) and one.dtype == other.dtype for one, other in pairs)
        (action,) = border.taken(np.array([choice])).tolist()
        assert action == choice + 1
        obs, reward, *_ = plain.step(action)
        wanted = inside.step(choice).obs


def leaves(tree: Any) -> list[Any]:
    return list(tree.values()) if isinstance(tree, dict) else [tree]


def test_former_actions_and_rewards_are_put_beside_the_observation() -> None:
    agent = agent_of("ngu", env_wrapper=[Halves, "obs_plus_prev_action_reward"])
    seen = seen_by(agent)
    action = agent.act(np.zeros(3))
    with pytest.raises(DingError, match=r"act\(obs, reward=reward\)"):
        agent.act(np.ones(3))
    agent.act(np.ones(3), reward=2.5)
    assert seen[0]["prev_action"].tolist() == [-1]
    (choice,) = seen[1]["prev_action"].tolist()
    assert Halves(Wheel()).action(choice).tolist() == action.tolist()
    assert seen[1]["prev_reward_extrinsic"].tolist() == [[2.5]]


def test_action_wrappers_are_undone() -> None:
    agent = agent_of("dqn", env_wrapper=[Halves])
    actions = agent.act(np.random.default_rng(0).normal(size=(64, 3)) * 9)
    assert {tuple(a) for a in actions.tolist()} <= {(-4.0, 0.0), (0.0, 0.5), (4.0, 1.0)}
    assert len(np.unique(actions, axis=0)) > 1
    assert agent.evaluate(episodes=1).tolist() == [15.0]


def test_wrappers_of_time_stay_around_the_env() -> None:
    agent = agent_of("sac", env_wrapper=[dict(type="max_and_skip", kwargs=dict(skip=2))])
    assert agent.border.wrappers == ()
    env = agent.wrap(Wheel())
    env.reset()
    assert env.step(np.zeros(2, np.float32))[1] == 1.0 + 2.0


class Hasty(gym.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> Any:
        self.env.step(action)
        return self.env.step(action)


def test_a_wrapper_that_steps_by_itself_is_found_out() -> None:
    agent = agent_of("sac", env_wrapper=[Hasty])
    agent.act(np.zeros(3))
    with pytest.raises(DingError, match="several times for one action"):
        agent.act(np.zeros(3))


def test_memory_lasts_until_the_reset() -> None:
    agent = agent_of("r2d2", "TwoWheels-v0")
    memory = agent.policy._evaluator._states  # type: ignore[attr-defined]
    for _ in range(2):
        agent.act(np.ones((2, 3)))
    assert set(memory) == {0, 1}
    agent.reset([0])
    assert set(memory) == {1}


@pytest.mark.parametrize(
    ("obs", "words"),
    [
        (np.zeros(4), r"shape \(4,\).*trained on \(3,\), or \(N, 3\)"),
        (np.zeros((2, 2, 3)), r"shape \(2, 2, 3\)"),
        (["a", "b", "c"], "must be numbers"),
        ({"obs": np.zeros(3)}, "must be numbers"),
    ],
)
def test_a_foreign_observation_is_refused(obs: Any, words: str) -> None:
    with pytest.raises(DingError, match=words):
        agent_of("sac").act(obs)


def test_episodes_are_played_from_their_seeds() -> None:
    agent = agent_of("sac")
    assert agent.evaluate(Wheel(), episodes=2).tolist() == [15.0, 15.0]  # 1 + 2 + 3 + 4 + 5
    assert agent.evaluate(episodes=1).tolist() == [15.0]
    with pytest.raises(DingError, match="action space"):
        agent.evaluate(TwoWheels())
    with pytest.raises(DingError, match="action space"):  # other units
        agent.evaluate(gym.wrappers.RescaleAction(Wheel(), np.float32(-1.0), np.float32(1.0)))
    with pytest.raises(DingError, match="plain_env"):
        agent.evaluate(DingEnvWrapper(Wheel()))
    with pytest.raises(DingError, match="episodes = 0"):
        agent.evaluate(episodes=0)


def test_an_env_that_no_config_names_has_to_be_passed() -> None:
    cfg = compiled("sac")
    card = Card(
        policy=cfg.policy,
        observation_space=Wheel.observation_space,
        action_space=Wheel.action_space,
    )
    with pytest.raises(DingError, match="pass the env"):
        Agent(card).evaluate()


def test_what_is_no_run_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nothing at"):
        load(tmp_path / "none")
    (tmp_path / "many" / "seed0").mkdir(parents=True)
    (tmp_path / "many" / "seed0" / "total_config.py").touch()
    with pytest.raises(CheckpointError, match="the runs in it are seed0"):
        load(tmp_path / "many")


def test_videos_of_an_episode(tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    agent = agent_of("dqn", "CartPole-v1")
    returned = agent.play(video=tmp_path, seed=4)
    (file,) = tmp_path.iterdir()
    assert file.name == "CartPole-v1_episode_0.mp4"
    assert ffmpeg.count_frames_and_secs(str(file))[0] == returned + 1  # every step, and the end
    with pytest.raises(DingError, match="render_mode='rgb_array'"):
        agent.play(gym.make("CartPole-v1"), video=tmp_path)
