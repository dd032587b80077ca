"""QMIX and MAPPO in the style of EPyMARL, written for `benchmarks.agents`. Prints one JSON line.

As there, a runner plays whole episodes into padded tensors, (E, T + 1, ...), a controller is asked
step by step, also in learning, and learners see batches of whole episodes. Cheaper than there: envs
are stepped in this process, and nothing is logged. Letters in shapes: E episodes, T steps, A
agents, K numbers that an agent sees, M actions, S of the global state.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from copy import deepcopy
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from mpe2 import simple_spread_v3
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import agents_work as spec
from benchmarks.agents_work import EPISODE, N_AGENT, job_of
from benchmarks.work import NOTHING, Turns, Work, now

Episodes = dict[str, Tensor]


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Runner:
    """Plays an episode in each env."""

    def __init__(self, n_env: int) -> None:
        make = simple_spread_v3.parallel_env
        self._envs = [make(N=N_AGENT, max_cycles=EPISODE) for _ in range(n_env)]
        first = self._envs[0]
        agent = first.possible_agents[0]
        self.n_seen = first.observation_space(agent).shape[0]
        self.n_action = int(first.action_space(agent).n)
        self._seed = 0

    def play(self, agents: Any) -> Episodes:
        count = len(self._envs)
        data: Episodes = {
            "obs": torch.zeros(count, EPISODE + 1, N_AGENT, self.n_seen),
            "state": torch.zeros(count, EPISODE + 1, N_AGENT * self.n_seen),
            "allowed": torch.zeros(count, EPISODE + 1, N_AGENT, self.n_action),
            "action": torch.zeros(count, EPISODE, N_AGENT, 1, dtype=torch.int64),
            "reward": torch.zeros(count, EPISODE),
        }
        self._seed += count
        seen = [env.reset(seed=self._seed + i)[0] for i, env in enumerate(self._envs)]
        self._note(data, seen, 0)
        for t in range(EPISODE):
            action = agents.act(data["obs"][:, t], data["allowed"][:, t])
            data["action"][:, t, :, 0] = action
            steps = [
                env.step(dict(zip(env.possible_agents, chosen, strict=True)))
                for env, chosen in zip(self._envs, action.tolist(), strict=True)
            ]
            data["reward"][:, t] = torch.tensor([sum(step[1].values()) for step in steps])
            self._note(data, [step[0] for step in steps], t + 1)
        return data

    def _note(self, data: Episodes, seen: list[dict[str, np.ndarray]], t: int) -> None:
        obs = np.array([list(one.values()) for one in seen], dtype=np.float32)
        data["obs"][:, t] = torch.from_numpy(obs)
        data["state"][:, t] = torch.from_numpy(obs.reshape(len(obs), -1))
        data["allowed"][:, t] = 1


class Mixer(nn.Module):
    def __init__(self, n_state: int, embed: int, hypernet: int = 64) -> None:
        super().__init__()
        self._embed = embed
        self._w1 = mlp(n_state, hypernet, N_AGENT * embed)
        self._b1 = nn.Linear(n_state, embed)
        self._w2 = mlp(n_state, hypernet, embed)
        self._value = mlp(n_state, embed, 1)

    def forward(self, q: Tensor, state: Tensor) -> Tensor:
        """(E, T, A), (E, T, S) -> (E, T)."""
        s = state.reshape(-1, state.shape[-1])
        w1 = self._w1(s).abs().view(-1, N_AGENT, self._embed)
        hidden = F.elu(torch.bmm(q.reshape(-1, 1, N_AGENT), w1) + self._b1(s).unsqueeze(1))
        w2 = self._w2(s).abs().unsqueeze(-1)
        return (torch.bmm(hidden, w2).squeeze(-1) + self._value(s)).view(q.shape[:2])


class QMix:
    def __init__(self, job: Work, n_seen: int, n_action: int) -> None:
        self._job, self._steps = job, 0
        agents = mlp(n_seen, *job.hidden, n_action)
        self.model = nn.ModuleList([agents, Mixer(N_AGENT * n_seen, spec.MIXING)])
        self._target = deepcopy(self.model)
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=job.learning_rate)
        self._stored: list[Episodes] = []

    @torch.no_grad()
    def act(self, obs: Tensor, allowed: Tensor) -> Tensor:
        q = self.model[0](obs).masked_fill(allowed == 0, -1e9)
        left = max(1 - self._steps / spec.EPS_STEPS, 0.0)
        eps = spec.EPS_END + (1 - spec.EPS_END) * left
        self._steps += len(obs)
        drawn = torch.multinomial(allowed.flatten(0, 1), 1).view(allowed.shape[:2])
        return torch.where(torch.rand(drawn.shape) < eps, drawn, q.argmax(-1))

    def learn(self, episodes: Episodes) -> int:
        """Store the episodes and update; gives the number of updates."""
        self._stored += _split(episodes)
        del self._stored[: -spec.BUFFER // EPISODE]
        for _ in range(self._job.epochs):
            self._update(self._drawn())
        return self._job.epochs

    def _drawn(self) -> Episodes:
        count = self._job.batch_size // EPISODE
        picked = np.random.choice(len(self._stored), count, replace=False)
        return {k: torch.stack([self._stored[i][k] for i in picked]) for k in self._stored[0]}

    def _update(self, batch: Episodes) -> None:
        q = self._unrolled(self.model[0], batch)
        taken = q[:, :-1].gather(3, batch["action"]).squeeze(3)
        with torch.no_grad():
            best = q.masked_fill(batch["allowed"] == 0, -1e9).argmax(3, keepdim=True)
            following = self._unrolled(self._target[0], batch).gather(3, best).squeeze(3)
            value = self._target[1](following[:, 1:], batch["state"][:, 1:])
            target = batch["reward"] + spec.GAMMA * value
        loss = (self.model[1](taken, batch["state"][:, :-1]) - target).square().mean()
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), spec.CLIP_NORM)
        self._optimizer.step()
        with torch.no_grad():
            pairs = zip(self._target.parameters(), self.model.parameters(), strict=True)
            for old, new in pairs:
                old.lerp_(new, spec.TARGET_THETA)

    @staticmethod
    def _unrolled(agents: nn.Module, batch: Episodes) -> Tensor:
        """(E, T + 1, A, M), one step after the other."""
        return torch.stack([agents(obs) for obs in batch["obs"].unbind(1)], dim=1)


class MAPPO:
    def __init__(self, job: Work, n_seen: int, n_action: int) -> None:
        self._job = job
        actor = mlp(n_seen, *job.hidden, n_action)
        critic = mlp(N_AGENT * n_seen, *job.hidden, N_AGENT)
        self.model = nn.ModuleList([actor, critic])
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=job.learning_rate)
        self._stored: list[Episodes] = []

    @torch.no_grad()
    def act(self, obs: Tensor, allowed: Tensor) -> Tensor:
        logit = self.model[0](obs).masked_fill(allowed == 0, -1e9)
        return torch.distributions.Categorical(logits=logit).sample()

    def learn(self, episodes: Episodes) -> int:
        """Keep the episodes until there are enough, then update; gives the number of updates."""
        self._stored += _split(episodes)
        if len(self._stored) * EPISODE < self._job.rollout:
            return 0
        batch = {k: torch.stack([one[k] for one in self._stored]) for k in self._stored[0]}
        self._stored = []
        with torch.no_grad():
            value = self.model[1](batch["state"])  # (E, T + 1, A)
            batch["advantage"] = _gae(batch["reward"], value)
            batch["return"] = batch["advantage"] + value[:, :-1]
            batch["log_prob"] = self._distribution(batch).log_prob(batch["action"].squeeze(3))
        parts = [part for _ in range(self._job.epochs) for part in self._shuffled(batch)]
        for part in parts:
            self._update(part)
        return len(parts)

    def _shuffled(self, batch: Episodes) -> Iterator[Episodes]:
        order = torch.randperm(len(batch["reward"]))
        for index in order.split(self._job.batch_size // EPISODE):
            yield {k: column[index] for k, column in batch.items()}

    def _distribution(self, batch: Episodes) -> Any:
        steps = [self.model[0](obs) for obs in batch["obs"][:, :-1].unbind(1)]
        logit = torch.stack(steps, dim=1).masked_fill(batch["allowed"][:, :-1] == 0, -1e9)
        return torch.distributions.Categorical(logits=logit)

    def _update(self, batch: Episodes) -> None:
        drawn = self._distribution(batch)
        ratio = (drawn.log_prob(batch["action"].squeeze(3)) - batch["log_prob"]).exp()
        advantage = batch["advantage"]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = ratio.clamp(1 - spec.CLIP, 1 + spec.CLIP)
        policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
        value_loss = (self.model[1](batch["state"][:, :-1]) - batch["return"]).square().mean()
        loss = policy_loss + 0.5 * value_loss - spec.ENTROPY_WEIGHT * drawn.entropy().mean()
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), spec.CLIP_NORM)
        self._optimizer.step()


def _gae(reward: Tensor, value: Tensor) -> Tensor:
    """(E, T), (E, T + 1, A) -> (E, T, A); episodes are cut off, not over."""
    delta = reward.unsqueeze(-1) + spec.GAMMA * value[:, 1:] - value[:, :-1]
    advantage, following = torch.zeros_like(delta), torch.zeros_like(delta[:, 0])
    for t in reversed(range(delta.shape[1])):
        following = delta[:, t] + spec.GAMMA * spec.GAE_LAMBDA * following
        advantage[:, t] = following
    return advantage


def _split(episodes: Episodes) -> list[Episodes]:
    return [
        {k: column[i] for k, column in episodes.items()} for i in range(len(episodes["reward"]))
    ]


LEARNERS = {"qmix": QMix, "mappo": MAPPO}


def train(name: str, job: Work, turns: Turns) -> dict[str, Any]:
    torch.manual_seed(0)
    np.random.seed(0)
    runner = Runner(job.n_env)
    learner = LEARNERS[name](job, runner.n_seen, runner.n_action)
    turns.wait(0)
    start, waited, steps, updates = now(), NOTHING, 0, 0
    while steps < job.env_steps:
        waited += turns.wait(steps) or NOTHING
        updates += learner.learn(runner.play(learner))
        steps += job.n_env * EPISODE
    spent = now() - start - waited
    return {
        "seconds": spent.wall,
        "cpu_seconds": spent.cpu,
        "env_steps": steps,
        "updates": updates,
        "n_parameter": sum(p.numel() for p in learner.model.parameters()),
        "versions": {package: version(package) for package in ("torch", "numpy", "mpe2")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(LEARNERS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", action="store_true", help="take turns, see work.Turns")
    args = parser.parse_args()
    torch.set_num_threads(1)
    job = job_of(args.name, args.quick)
    print(json.dumps(train(args.name, job, Turns(job, args.turns))))


if __name__ == "__main__":
    main()
