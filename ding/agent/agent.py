"""Agent: a trained policy that acts in the env's own units."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ding.agent.border import to_env
from ding.agent.bundle import write_bundle
from ding.agent.card import Card
from ding.agent.play import play_episodes
from ding.agent.spaces import arrays_of, is_batch
from ding.policy import Policy, create_policy
from ding.policy.user_model import fitted_model
from ding.utils.batch import ByEnv, first_leaf, stacked_of, take, tree_map

_FIELDS = ("eval", "collect", "command")
_EXPLORED = {"learner_step": 0, "envstep": 10**10}
"""Acting at random follows the least exploration that the policy ever comes to."""


class Agent:
    """Acts in plain Gymnasium envs, with all that the run put between the env and the policy.

    In envs of several agents it acts for all of them.
    """

    def __init__(self, card: Card, *, model: Any = None, seed: int = 0) -> None:
        self.card = card
        self.border = card.border()
        seen, acted = self.border.seen_space, self.border.action_map.presented
        model = fitted_model(model, card.policy, seen, acted)
        self.policy: Policy = create_policy(card.policy, model=model, enable_field=_FIELDS)
        self.policy.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        self._best, self._drawn = self.policy.eval_mode, self.policy.collect_mode
        self._exploration = self.policy.command_mode.get_setting_collect(_EXPLORED)
        self._row_ids: dict[int, np.ndarray] = {}
        self._by_agent = card.by_agent()

    @property
    def observation_space(self) -> Any:
        return self.card.observation_space

    @property
    def action_space(self) -> Any:
        return self.card.action_space

    def act(
        self, obs: Any, deterministic: bool = True, *, reward: Any = None, infos: Any = None
    ) -> Any:
        """The action for one observation, or those for a batch, in the env's own units and shape.

        With `deterministic=False` it is drawn as at the end of training. Rows of a batch are envs
        that play side by side. `reward`: of the last step, for policies that look at it.

        Of several agents: what the run's env gives, with an action for each, or a dict by agent as
        PettingZoo's parallel envs give it, with a dict of the actions of those that are in it;
        `infos` by agent may hold their masks.
        """
        if self._by_agent is not None and self._by_agent.is_by_agent(obs):
            seen_of_all = self._by_agent.seen_of(obs, infos or {})
            return self._by_agent.actions_of(self.act(seen_of_all, deterministic))
        space = self.card.observation_space
        rows = arrays_of(obs, space)
        batched = is_batch(rows, space)
        if not batched:
            rows = tree_map(_with_axis, rows)
        ids = self._ids(len(first_leaf(rows)))
        seen = ByEnv(ids, self.border.seen(rows, reward))
        if deterministic:
            output = self._best.forward(seen)
        else:
            output = self._drawn.forward(seen, **self._exploration)
        action = self.border.taken(stacked_of(output)[1]["action"])
        return action if batched else tree_map(_array_of_float, take(action, 0))

    def act_on(self, seen: Any) -> Any:
        """Best actions for stacked observations that went through the run's wrappers before."""
        output = self._best.forward(ByEnv(self._ids(len(first_leaf(seen))), seen))
        return to_env(self.border.action_map, stacked_of(output)[1]["action"])

    def export(self, path: str | Path) -> None:
        """Write the agent for torch.export (.pt2) or ONNX (.onnx), without need of `ding`."""
        from ding.agent.export import export

        export(self, path)

    def _ids(self, n: int) -> np.ndarray:
        if n not in self._row_ids:
            self._row_ids[n] = np.arange(n)
        return self._row_ids[n]

    def reset(self, rows: Iterable[int] | None = None) -> None:
        """Forget the episode, or those of these rows: another one begins."""
        ids = None if rows is None else list(rows)
        self._best.reset(ids)
        self._drawn.reset(ids)
        self.border.reset(ids)
        if self._by_agent is not None:
            self._by_agent.begin_anew()

    def wrap(self, env: Any) -> Any:
        """The env with the run's wrappers that step it by themselves: frame skips, no-ops.

        A PettingZoo env becomes one as the run's own.
        """
        return self.card.wrap(env)

    def evaluate(
        self, env: Any = None, episodes: int = 10, seed: int = 0, *, deterministic: bool = True
    ) -> np.ndarray:
        """Returns of episodes, (episodes,); the i-th begins from `reset(seed=seed + i)`."""
        made = self.card.make_env() if env is None else env
        try:
            return play_episodes(self, made, episodes, seed, deterministic=deterministic)
        finally:
            if env is None:
                made.close()

    def play(self, env: Any = None, video: str | Path | None = None, seed: int = 0) -> float:
        """Play one episode and give its return; `video` is a directory for an mp4 file of it."""
        mode = "rgb_array" if video is not None else "human"
        made = self.card.make_env(mode) if env is None else env
        try:
            return float(play_episodes(self, made, 1, seed, video=video)[0])
        finally:
            if env is None:
                made.close()

    def save(self, path: str | Path) -> None:
        """Write the agent to one file, which `ding.load` reads without anything beside it."""
        write_bundle(path, self.card, self.policy.acting_state().parts)

    def __repr__(self) -> str:
        env = self.card.env or {}
        name = env.get("env_id") or env.get("type") or "its own env"
        return f"Agent({self.card.policy['type']} for {name})"


def _array_of_float(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, np.floating) else leaf


def _with_axis(leaf: np.ndarray) -> np.ndarray:
    return leaf[None]
