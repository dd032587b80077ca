"""An env with agents (or players) that writes every step to a file, and policies for them.

A is the number of agents, K of numbers an agent sees, M of its actions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from ding.envs import BaseEnv, BaseEnvTimestep
from ding.policy import Policy
from ding.utils.batch import ByEnv, stacked_of

A, K, M = 2, 4, 3


class AgentsEnv(BaseEnv):
    """Each agent sees (env, episode, step, agent), has a mask of its own and its own reward.

    Episodes have the given lengths in turn. `deaths`: agent to the step after which it is dead,
    while the episode goes on. `events`: (episode, step) to 'abnormal' or 'raise'.
    """

    _observation_space = gym.spaces.Dict(
        agent_state=gym.spaces.Box(-np.inf, np.inf, (A, K), np.float32),
        action_mask=gym.spaces.Box(0, 1, (A, M), np.int8),
        alive=gym.spaces.Box(0, 1, (A,), np.int8),
    )
    _action_space = gym.spaces.MultiDiscrete([M] * A)
    _reward_space = gym.spaces.Box(-np.inf, np.inf, (A,), np.float32)

    def __init__(
        self,
        env: int,
        folder: Path,
        lengths: Sequence[int] = (4, 1, 6, 3),
        truncate: Sequence[int] = (1, 2),
        deaths: Mapping[int, int] | None = None,
        events: Mapping[tuple[int, int], str] | None = None,
    ) -> None:
        super().__init__({})
        self.env, self.path = env, folder / f"{env}.jsonl"
        self.lengths, self.truncate = lengths, truncate
        self.deaths, self.events = deaths or {}, events or {}
        self.episode, self.steps, self.total = -1, 0, 0

    def _obs(self) -> dict[str, np.ndarray]:
        where = [[self.env, self.episode, self.steps, agent] for agent in range(A)]
        mask = np.ones((A, M), np.int8)
        mask[np.arange(A), (self.steps + np.arange(A)) % M] = 0
        alive = [self.steps < self.deaths.get(agent, 10**6) for agent in range(A)]
        return {
            "agent_state": np.array(where, np.float32),
            "action_mask": mask,
            "alive": np.array(alive, np.int8),
        }

    def reset(self) -> dict[str, np.ndarray]:
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
        kind = self.episode % len(self.lengths)
        done = self.steps >= self.lengths[kind]
        truncated = done and kind in self.truncate
        number = 1000 * (self.env + 1) + self.total
        reward = number + np.arange(A) / 2 + np.asarray(action) / 8
        reward = (reward * obs["alive"]).astype(np.float32)
        step = {"obs": obs, "next_obs": self._obs(), "action": np.asarray(action), "reward": reward}
        line = {key: _plain(value) for key, value in step.items()}
        line |= {"done": bool(done), "truncated": bool(truncated), "abnormal": event == "abnormal"}
        with self.path.open("a") as file:
            file.write(json.dumps({**line, "episode": self.episode, "env": self.env}) + "\n")
        info = {"truncated": truncated, "abnormal": event == "abnormal"}
        return BaseEnvTimestep(self._obs(), reward, done, {k: True for k, v in info.items() if v})

    def close(self) -> None:
        pass


class PlayersEnv(AgentsEnv):
    """The same with a plain array: one row of numbers for each player."""

    _observation_space = gym.spaces.Box(-np.inf, np.inf, (A, K), np.float32)

    def reset(self) -> Any:
        return super().reset()["agent_state"]

    def step(self, action: Any) -> BaseEnvTimestep:
        step = super().step(action)
        return step._replace(obs=step.obs["agent_state"])


def _plain(value: Any) -> Any:
    return {k: v.tolist() for k, v in value.items()} if isinstance(value, dict) else value.tolist()


def makers(n: int, folder: Path, **kwargs: Any) -> list[Any]:
    """Envs whose episodes never end at the same time for long."""
    kind, lengths = kwargs.pop("kind", AgentsEnv), kwargs.pop("lengths", (4, 1, 6, 3))
    return [
        partial(kind, i, folder, lengths=tuple(length + i for length in lengths), **kwargs)
        for i in range(n)
    ]


def logged_steps(folder: Path) -> list[list[dict[str, Any]]]:
    """Steps of each env as it wrote them down."""
    paths = sorted(folder.glob("*.jsonl"))
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in paths]


class AgentNetwork(nn.Module):
    """The same values for every agent's state: (..., K) to (..., M)."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(K, M)

    def forward(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        q = self.layer(obs["agent_state"] / 100)
        return q.masked_fill(obs["action_mask"] == 0, -torch.inf)


class AgentsPolicy(Policy):
    """Independent Q-learning of all agents: every column of a batch has an agent axis."""

    config: ClassVar[dict[str, Any]] = dict(
        type="agents", nstep=1, discount_factor=0.9, learn=dict(batch_size=16)
    )

    def _init_learn(self) -> None:
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-9)
        self.seen: list[dict[str, Any]] = []

    def _init_collect(self) -> None: ...

    def _init_eval(self) -> None: ...

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.5) -> Mapping[int, Any]:  # type: ignore[override]
        env_id, obs = stacked_of(data)
        with torch.no_grad():
            greedy = self._model({k: torch.from_numpy(v) for k, v in obs.items()}).argmax(-1)
        allowed = obs["action_mask"] * self.rng.random(obs["action_mask"].shape)
        random = self.rng.random(greedy.shape) < eps
        return ByEnv(env_id, {"action": np.where(random, allowed.argmax(-1), greedy.numpy())})

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        return self._forward_collect(data, eps=0.0)

    def _forward_learn(self, data: Any) -> dict[str, Any]:
        batch = self._batch(data)
        self.seen.append(batch)
        q = self._model(batch["obs"]).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():
            goes_on = batch["discount"].unsqueeze(-1) * batch["next_obs"]["alive"]
            target = batch["reward"] + goes_on * self._model(batch["next_obs"]).amax(-1)
        error = (target - q) * batch["obs"]["alive"]
        loss = error.square().mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return {"total_loss": loss.detach(), "cur_lr": 0.0, "error": error.detach()}
