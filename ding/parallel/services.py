"""Services: the parts of a run, each callable from elsewhere.

Weights and samples travel as NumPy arrays in plain dicts. Every method returns `(large, small)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ding.parallel.sharded_learning import (
    NoLog,
    begin_alike,
    check_shared_config,
    check_shared_policy,
    indivisible,
    own_address,
)
from ding.pipeline.assemble import Parts
from ding.pipeline.batches import CollectedBatches, ReplayBatches
from ding.pipeline.blueprint import Blueprint
from ding.pipeline.evaluation import evaluate
from ding.pipeline.learning import train_on
from ding.pipeline.source import Collected, CollectorSource
from ding.policy import ActingState, Statistics
from ding.torch_utils.distributed import (
    Group,
    GroupError,
    cancel_meeting,
    join_meeting,
    open_meeting,
    use,
)
from ding.utils.batch import Batch, Rows, columns_of, concat, length, take, tree_map
from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.seed import rng_state, set_pkg_seed, set_rng_state

Answer = tuple[Any, Any]


class CollectorService:
    """Envs and a collect mode; nothing in it is worth saving but the episodes under way."""

    def __init__(self, blueprint: Blueprint, index: int, incarnation: int) -> None:
        seed = blueprint.seed_of(index, incarnation)
        self._policy = blueprint.policy("collect", seed)
        env = blueprint.envs(seed, to_evaluate=False)
        self._collector = blueprint.collector(self._policy, env, instance_name=f"collector{index}")
        self._collector.number_episodes_from((index << 16 | incarnation) << 32)
        self._source = CollectorSource(self._collector, self._policy.collect_mode)

    def collect(self, state: ActingState, n_sample: int, settings: Mapping[str, Any]) -> Answer:
        """Samples of the policy in this state, and how many env steps they took."""
        self._policy.load_acting_state(state)
        return _answer(self._source.next(state.version, settings, n_sample=n_sample))

    def collect_episodes(
        self, state: ActingState, n_episode: int, settings: Mapping[str, Any]
    ) -> Answer:
        """The same for whole episodes."""
        self._policy.load_acting_state(state)
        return _answer(self._source.next(state.version, settings, n_episode=n_episode))

    def collect_random(self, n_sample: int) -> Answer:
        return _answer(self._source.next_random(n_sample))

    def close(self) -> None:
        self._collector.close()


class LearnerService:
    """The learner, or number `rank` of `world` that train one policy together.

    Those get the same batches. Each computes with its own share of the rows, and all take the same
    steps by the mean of their gradients: as one learner would with whole batches. Only what a loss
    makes of its batch besides means over rows is of the share: normalised advantages, and the
    number of steps that exist in sequences of different lengths (R2D2, PPO with memory).
    Rank 0 alone writes logs and checkpoints and answers with weights.
    """

    def __init__(
        self, blueprint: Blueprint, rank: int = 0, world: int = 1, in_threads: bool = False
    ) -> None:
        """`in_threads`: all of them live in this process."""
        cfg = blueprint.cfg
        self._rank, self._world, self._in_threads = rank, world, in_threads
        self._group: Group | None = None
        self._meeting = ""
        if world > 1:
            check_shared_config(cfg.policy, world)
        # Seeds of their own: what is drawn at random in the updates differs between the shares.
        self._policy = blueprint.policy("learn", blueprint.seed_of(0, 0, rank))
        place: dict[str, Any] = {}
        if world > 1:
            check_shared_policy(self._policy)
            place = {"dist_info": (rank, world)}
        self._learner = blueprint.learner(self._policy, **place)
        self._parts = self._alike(blueprint) if cfg.policy.on_policy else None
        if rank:
            self._learner.log = NoLog(cfg.exp_name, "learner")

    @staticmethod
    def _alike(blueprint: Blueprint) -> Parts:
        """Parts that are the same in all ranks: each relabels the whole collect."""
        state = rng_state()
        set_pkg_seed(blueprint.seed)
        try:
            return blueprint.parts()
        finally:
            set_rng_state(state)

    def open_group(self) -> Answer:
        """Of rank 0: where all are to meet."""
        cancel_meeting(self._meeting)
        threads = self._in_threads
        self._meeting = open_meeting(self._world, host=own_address(), in_threads=threads)
        return None, {"meeting": self._meeting}

    def join_group(self, meeting: str) -> Answer:
        """Wait for the others there, and begin with the weights of rank 0."""
        if self._group is not None:
            self._group.close()
        self._group = join_meeting(meeting, self._rank, self._world)
        begin_alike(self._policy, self._group)
        return None, {}

    def begin(self, load_path: str) -> Answer:
        """The weights to start with."""
        if load_path:
            self._learner.load_checkpoint(load_path)
        self._learner.call_hook("before_run")
        return self._answer([])

    def learn(
        self, envstep: int, statistics: Sequence[Statistics], batches: Sequence[Batch]
    ) -> Answer:
        """One update for each batch; the new state, and new priorities of what was drawn.

        With other learners these are the priorities of the share that was learned from here.
        """
        shares = (Rows(writable(self._share(batch))) for batch in batches)
        with use(self._joined()):
            infos = train_on(self._learner, shares, envstep, statistics, on_policy=False)
            priorities = [tree_map(np.asarray, info) for info in infos if info]
        return self._answer(priorities)

    def learn_together(
        self, envstep: int, statistics: Sequence[Statistics], *parts: Batch
    ) -> Answer:
        """All that several collectors brought, at once; normalisers stay as they were meanwhile.

        Other learners get all of it, too: advantages of whole episodes are computed anew, and the
        passes cut their minibatches themselves. It is these that the learners share.
        """
        samples = [self._relabelled(Rows(writable(concat(list(parts)))))]
        with use(self._joined()):
            list(train_on(self._learner, samples, envstep, statistics, on_policy=True))
        return self._answer([])

    def _relabelled(self, samples: Rows) -> Sequence[Any]:
        batches = None if self._parts is None else self._parts.batches
        return batches.relabelled(samples) if isinstance(batches, CollectedBatches) else samples

    def merge(self, statistics: Sequence[Statistics]) -> Answer:
        """Take statistics into the normalisers where there is nothing to learn from yet."""
        for gathered in statistics:
            self._learner.merge_statistics(gathered)
        return self._answer([])

    def _joined(self) -> Group | None:
        if self._world > 1 and self._group is None:
            raise GroupError(f"rank {self._rank} of {self._world} learns before `join_group`")
        return self._group

    def _share(self, batch: Batch) -> Batch:
        if self._world == 1:
            return batch
        size, rest = divmod(length(batch), self._world)
        if rest:
            raise indivisible(length(batch), self._world)
        return take(batch, slice(self._rank * size, (self._rank + 1) * size))

    def _answer(self, priorities: list[Any]) -> Answer:
        told = {"train_iter": self._learner.train_iter, "priorities": priorities}
        if self._rank:
            return None, told
        return self._policy.acting_state(self._learner.train_iter), told

    def state(self) -> Answer:
        """All that another learner needs to go on here."""
        return self._whole_state(), {}

    def _whole_state(self) -> dict[str, Any]:
        parts = {} if self._parts is None else self._parts.state_dict()
        return {**self._learner.state_dict(), "parts": parts}

    def restore(self, state: dict[str, Any], updates: int) -> Answer:
        """Go on from there; updates that were lost since keep their numbers."""
        self._learner.load_state_dict({k: v for k, v in state.items() if k != "parts"})
        if self._parts is not None:
            self._parts.load_state_dict(state["parts"])
        self._learner.train_iter = updates
        return self._answer([])

    def save_parts(self, name: str) -> Answer:
        """Write learned rewards under this name, for others to load."""
        if self._parts is not None:
            self._parts.save(name)
        return None, {}

    def checkpoint(self) -> Answer:
        """The policy alone, as it is, for others to load."""
        self._learner.save_checkpoint()
        return None, {}

    def save(self, path: str) -> Answer:
        save_checkpoint(path, self._whole_state())
        return None, {}

    def load(self, path: str, updates: int) -> Answer:
        return self.restore(load_checkpoint(path, trusted=True), updates)

    def finish(self, state: ActingState) -> Answer:
        """Save the policy in this state as what the run has come to."""
        self._learner.train_iter = state.version
        self._policy.load_acting_state(state)
        self._learner.call_hook("after_run")
        return None, {}

    def close(self) -> None:
        cancel_meeting(self._meeting)
        if self._group is not None:
            self._group.close()
        self._learner.close()


class BufferService:
    def __init__(self, blueprint: Blueprint) -> None:
        set_pkg_seed(blueprint.seed)
        self._parts = blueprint.parts()
        assert isinstance(self._parts.batches, ReplayBatches)
        assert self._parts.buffer is not None
        self._batches, self._buffer = self._parts.batches, self._parts.buffer
        self._snapshot: Any = None

    def add(self, envstep: int, *parts: Batch) -> Answer:
        for samples in parts:
            self._batches.add(Rows(samples), envstep)
        return None, {}

    def draw(self, n_batch: int, train_iter: int) -> Answer:
        """As many batches as can be had, `n_batch` at most."""
        progress = SimpleNamespace(train_iter=train_iter)
        batches = []
        for batch in self._batches.draw(n_batch, progress):
            batches.append(columns_of(batch))
            progress.train_iter += 1
        return batches, {"batches": len(batches)}

    def update(self, priorities: Sequence[Mapping[str, Any]]) -> Answer:
        for priority in priorities:
            self._batches.feed_back(priority)
        return None, {}

    def save(self, path: str) -> Answer:
        """Begin to write the buffer as it is now; other parts are small and written at once."""
        if self._parts.named:
            save_checkpoint(_parts_file(path), self._parts.state_dict())
        if hasattr(self._buffer, "snapshot"):
            self._snapshot = self._buffer.snapshot(path)
        else:
            self._buffer.save_data(path)
        return None, {}

    def save_parts(self, name: str) -> Answer:
        """Write learned rewards under this name, for others to load."""
        self._parts.save(name)
        return None, {}

    def is_saved(self) -> Answer:
        if self._snapshot is not None and self._snapshot.done:
            self._snapshot.wait()  # which raises what went wrong
            self._snapshot = None
        return None, {"saved": self._snapshot is None}

    def load(self, path: str) -> Answer:
        self._buffer.load_data(path)
        if self._parts.named:
            self._parts.load_state_dict(load_checkpoint(_parts_file(path), trusted=True))
        return None, {}

    def close(self) -> None:
        self._parts.close()


class EvaluatorService:
    def __init__(self, blueprint: Blueprint) -> None:
        self._policy = blueprint.policy("eval", blueprint.seed)
        env = blueprint.envs(blueprint.seed, to_evaluate=True)
        self._evaluator = blueprint.evaluator(self._policy, env)
        self._directory = Path(blueprint.cfg.exp_name) / "ckpt"

    def evaluate(self, state: ActingState, envstep: int) -> Answer:
        """Returns of the policy in this state; the best one is saved."""
        self._policy.load_acting_state(state)

        def save(name: str) -> None:
            progress = {"last_iter": state.version, "last_step": envstep}
            save_checkpoint(self._directory / name, self._policy.eval_mode.state_dict() | progress)

        return None, evaluate(self._evaluator, save, state.version, envstep)

    def restore(self, state: dict[str, Any]) -> Answer:
        """Go on after another evaluator."""
        self._evaluator.load_state_dict(state)
        return None, {}

    def close(self) -> None:
        self._evaluator.close()


def _parts_file(buffer_file: str) -> Path:
    """Where the parts that belong to a buffer's file are saved."""
    return Path(buffer_file).with_suffix(".parts.bin")


def _answer(collected: Collected) -> Answer:
    samples = columns_of(collected.samples)
    return samples, {
        "env_steps": collected.env_steps,
        "dropped_steps": collected.dropped_steps,
        "samples": length(samples),
        "statistics": collected.statistics,
        "returns": collected.returns,
    }


def writable(columns: Any) -> Any:
    """Arrays that may be changed: those of a store of objects are shared and read-only."""
    return tree_map(lambda leaf: leaf if leaf.flags.writeable else leaf.copy(), columns)
