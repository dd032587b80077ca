"""An env that logs every step it takes, and policies that pass the data on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep
from ding.policy import DQNPolicy, takes_all_envs
from ding.rl_utils.adder import nstep_transitions
from ding.utils.batch import Rows, columns_of
from ding.utils.data import default_collate, default_decollate


class StepLogEnv(BaseEnv):
    """obs is (env, episode, step); the reward tells every step of every env from all others.

    `lengths` are those of the episodes in turn; those in `truncate` are cut off, not terminated.
    `events`: (episode, step) to 'abnormal' or 'raise'.
    """

    _observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), dtype=np.float32)
    _reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)
    _action_space = gym.spaces.Discrete(2)

    def __init__(
        self,
        env: int = 0,
        lengths: Sequence[int] = (4, 1, 6, 3),
        truncate: Sequence[int] = (1, 2),
        events: dict[tuple[int, int], str] | None = None,
    ) -> None:
        super().__init__({})
        self.env, self.lengths, self.truncate = env, lengths, truncate
        self.events = events or {}
        self.episode, self.total = -1, 0
        self.log: list[dict[str, Any]] = []

    def _obs(self) -> np.ndarray:
        return np.array([self.env, self.episode, self.steps], dtype=np.float32)

    def reset(self) -> np.ndarray:
        self.episode += 1
        self.steps = 0
        return self._obs()

    def step(self, action: Any) -> BaseEnvTimestep:
        obs = self._obs()
        self.steps += 1
        self.total += 1
        event = self.events.get((self.episode, self.steps))
        if event == "raise":
            raise ZeroDivisionError("boom")
        done = self.steps >= self.lengths[self.episode % len(self.lengths)]
        truncated = done and self.episode % len(self.lengths) in self.truncate
        reward = float(1000 * (self.env + 1) + self.total)
        info: dict[str, Any] = {"truncated": True} if truncated else {}
        if done:
            info["eval_episode_return"] = float(self.steps)
        if event == "abnormal":
            info["abnormal"] = True
        self.log.append(
            {
                "obs": obs,
                "action": int(action),
                "reward": reward,
                "next_obs": self._obs(),
                "done": done,
                "truncated": truncated,
                "episode": self.episode,
            }
        )
        return BaseEnvTimestep(self._obs(), reward, done, info)

    def close(self) -> None:
        pass


def manager_of(n: int, cfg: dict[str, Any] | None = None, **kwargs: Any) -> BaseEnvManager:
    makers = []
    for i in range(n):
        # Other lengths in every env: they never end at the same time for long.
        lengths = tuple(length + i for length in kwargs.get("lengths", (4, 1, 6, 3)))
        makers.append(partial(StepLogEnv, i, **{**kwargs, "lengths": lengths}))
    return BaseEnvManager(makers, cfg or {})


class NstepPolicy(DQNPolicy):
    """Sums the rewards of `nstep` steps by itself, as users' own policies do."""

    @takes_all_envs
    def _get_train_sample(self, transitions: Any) -> Any:
        steps = columns_of(transitions)
        return Rows(nstep_transitions(steps, self.cfg.nstep, self.cfg.discount_factor))


def dqn(n_sample: int | None = 8, nstep: int = 1, **policy: Any) -> DQNPolicy:
    cfg = dict(
        type="dqn",
        model=dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8]),
        collect=dict(n_sample=n_sample),
        nstep=nstep,
        discount_factor=0.9,
        **policy,
    )
    return NstepPolicy(cfg)


class RowsPolicy(NstepPolicy):
    """Looks at one env at a time in `_process_transition`."""

    process_rows: ClassVar[bool] = True

    def _process_transition(self, obs: Any, policy_output: Any, timestep: Any) -> dict[str, Any]:
        assert isinstance(timestep.done, bool)
        assert obs.shape == (3,)
        row = super()._process_transition(obs, policy_output, timestep)
        return {**row, "who": float(obs[0])}


class OldStylePolicy(NstepPolicy):
    """Collates and decollates by hand, as users' own policies do."""

    def _forward_collect(self, data: Any, **kwargs: Any) -> Any:
        data_id = list(data.keys())
        batch = default_collate(list(data.values()))
        logit = self._model(batch)["logit"].detach()
        output = {"action": logit.argmax(dim=-1), "logit": logit}
        return dict(zip(data_id, default_decollate(output), strict=True))

    def _process_transition(self, obs: Any, policy_output: Any, timestep: Any) -> dict[str, Any]:
        row = super()._process_transition(obs, policy_output, timestep)
        return {**row, "logit": policy_output["logit"]}


class BackwardsPolicy(NstepPolicy):
    """Answers for the envs in another order than it was asked."""

    def _forward_collect(self, data: Any, **kwargs: Any) -> Any:
        answers = {i: {"action": np.int64(i % 2)} for i in data}
        return dict(reversed(answers.items()))
