"""Peers' buffers, run in the interpreter that has them."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np

from benchmarks.replay_work import SHAPES, Batch, measured

ALPHA, BETA = 0.6, 0.4


class Cpprb:
    def __init__(self, kind: str, capacity: int, prioritised: bool = False, n: int = 1) -> None:
        import cpprb

        shape, dtype = SHAPES[kind]
        fields = {
            "obs": {"shape": shape, "dtype": dtype},
            "act": {"dtype": np.int64},
            "rew": {"dtype": np.float32},
            "next_obs": {"shape": shape, "dtype": dtype},
            "done": {"dtype": bool},
            "trunc": {"dtype": bool},
        }
        self._buffer: Any = (
            cpprb.PrioritizedReplayBuffer(capacity, fields, alpha=ALPHA)
            if prioritised
            else cpprb.ReplayBuffer(capacity, fields)
        )

    def prepared(self, batch: Batch) -> Any:
        names = ("obs", "act", "rew", "next_obs", "done", "trunc")
        return dict(zip(names, batch.values(), strict=True))

    def push(self, prepared: Any) -> None:
        self._buffer.add(**prepared)

    def sample(self, n: int) -> Any:
        return self._buffer.sample(n)

    def sample_and_update(self, n: int, priority: np.ndarray) -> None:
        drawn = self._buffer.sample(n, BETA)
        self._buffer.update_priorities(drawn["indexes"], priority)


class Tianshou:
    def __init__(self, kind: str, capacity: int, prioritised: bool = False, n: int = 1) -> None:
        from tianshou import data

        self._data, self._ids = data, np.arange(n)
        total = capacity - capacity % n
        self._buffer: Any = (
            data.PrioritizedVectorReplayBuffer(total, n, alpha=ALPHA, beta=BETA)
            if prioritised
            else data.VectorReplayBuffer(total, n)
        )

    def prepared(self, batch: Batch) -> Any:
        return self._data.Batch(
            obs=batch["obs"],
            act=batch["action"],
            rew=batch["reward"].astype(float),
            terminated=batch["terminated"],
            truncated=batch["truncated"],
            obs_next=batch["next_obs"],
            info=self._data.Batch(),
        )

    def push(self, prepared: Any) -> None:
        self._buffer.add(prepared, buffer_ids=self._ids)

    def sample(self, n: int) -> Any:
        return self._buffer.sample(n)

    def sample_and_update(self, n: int, priority: np.ndarray) -> None:
        _, index = self._buffer.sample(n)
        self._buffer.update_weight(index, priority)


class Sb3:
    def __init__(self, kind: str, capacity: int, prioritised: bool = False, n: int = 1) -> None:
        if prioritised:
            raise NotImplementedError
        from gymnasium import spaces
        from stable_baselines3.common.buffers import ReplayBuffer

        shape, dtype = SHAPES[kind]
        low, high = (0, 255) if kind == "img" else (-np.inf, np.inf)
        space: Any = spaces.Box(low, high, shape, dtype)
        self._buffer = ReplayBuffer(capacity, space, spaces.Discrete(2), device="cpu", n_envs=n)
        self._infos: list[dict[str, Any]] = [{} for _ in range(n)]

    def prepared(self, batch: Batch) -> Any:
        done = batch["terminated"].astype(float)
        obs, next_obs = batch["obs"], batch["next_obs"]
        return obs, next_obs, batch["action"][:, None], batch["reward"], done, self._infos

    def push(self, prepared: Any) -> None:
        self._buffer.add(*prepared)

    def sample(self, n: int) -> Any:
        return self._buffer.sample(n)

    def sample_and_update(self, n: int, priority: np.ndarray) -> None:
        raise NotImplementedError


class TorchRL:
    def __init__(self, kind: str, capacity: int, prioritised: bool = False, n: int = 1) -> None:
        from torchrl import data

        more: dict[str, Any] = {}
        if prioritised:
            try:
                more["sampler"] = data.PrioritizedSampler(capacity, ALPHA, BETA)
            except (ImportError, NameError, RuntimeError) as error:  # needs its own extension
                raise NotImplementedError from error
            more["priority_key"] = "td_error"
        storage = data.LazyTensorStorage(capacity)
        self._buffer = data.TensorDictReplayBuffer(storage=storage, batch_size=64, **more)

    def prepared(self, batch: Batch) -> Any:
        import torch
        from tensordict import TensorDict

        t = {key: torch.from_numpy(value) for key, value in batch.items()}
        after = {"observation": t["next_obs"], "reward": t["reward"][:, None]}
        after |= {key: t[key][:, None] for key in ("terminated", "truncated")}
        content = {"observation": t["obs"], "action": t["action"], "next": after}
        return TensorDict(content, batch_size=[len(t["action"])])

    def push(self, prepared: Any) -> None:
        self._buffer.extend(prepared)

    def sample(self, n: int) -> Any:
        return self._buffer.sample(n)

    def sample_and_update(self, n: int, priority: np.ndarray) -> None:
        import torch

        drawn = self._buffer.sample(n)
        drawn["td_error"] = torch.from_numpy(priority)
        self._buffer.update_tensordict_priority(drawn)


SIDES: dict[str, Any] = {"cpprb": Cpprb, "tianshou": Tianshou, "sb3": Sb3, "torchrl": TorchRL}


def main() -> None:
    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(1)
    name, kind, capacity, seconds = sys.argv[1:5]
    found = measured(SIDES[name], kind, int(capacity), float(seconds))
    print(json.dumps(list(found)))


if __name__ == "__main__":
    main()
