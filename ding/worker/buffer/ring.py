"""Ring buffer: slots of single samples, with accounts, files and state; the base of buffers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ding.utils.batch import Batch, Rows, columns_of, length, objects, take
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.log import WorkerLog
from ding.utils.seed import new_generator
from ding.worker.buffer import datafile
from ding.worker.buffer.base import IBuffer
from ding.worker.buffer.datafile import Source
from ding.worker.buffer.files import FileKeeper
from ding.worker.buffer.links import ORIGIN, Links
from ding.worker.buffer.memory import memory_of
from ding.worker.buffer.nstep import relabelled_nstep, stored_nstep, with_discount, with_one_step
from ding.worker.buffer.relabelling import Drawn, Relabel, relabelled
from ding.worker.buffer.snapshot import Snapshot
from ding.worker.buffer.store import Store

ITEM = "__item__"
_VERSION = 3


class RingBuffer(IBuffer):
    """First in, first out. A sample has a serial number; its slot is that modulo the size."""

    config: ClassVar[dict[str, Any]] = dict(
        type="",
        import_names=[],
        # Samples that are kept.
        replay_buffer_size=10000,
        # Accepted for older configs: what is pushed or drawn is always a copy.
        deepcopy=False,
        # Remove the file that a sample's `file_path` names together with the sample.
        enable_track_used_data=False,
        # Where samples are kept: 'ram', or 'mmap' for files that may be larger than it.
        storage="ram",
        # Directory for the files of 'mmap'; the system's temporary directory if None.
        storage_path=None,
        # Frames of an obs that is a stack of them, each then kept once; None: look at the data.
        frame_stack=None,
        # Steps of reward in a sample, summed when it is drawn; follows policy.nstep.
        nstep=1,
        # Gamma of those sums and of the column `discount`; follows policy.discount_factor. None:
        # what is drawn has no `discount`, which is then the policy's to add.
        discount_factor=None,
        # Relabelling may look at other steps of an episode, also with nstep = 1.
        links=False,
        # Beside sums over nstep also reward_1, next_obs_1 and discount_1 of the first step.
        one_step=False,
        # Further columns that are summed like rewards, each with the gamma of its own.
        reward_gammas={},
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "buffer",
    ) -> None:
        self._cfg = self._with_defaults(cfg)
        self._size = int(self._cfg.replay_buffer_size)
        if self._size < 1:
            raise ConfigError(f"replay_buffer_size = {self._size}: must be at least 1")
        if self._cfg.nstep < 1:
            raise ConfigError(f"nstep = {self._cfg.nstep}: must be at least 1")
        if self._sums_rewards and self._cfg.discount_factor is None:
            raise ConfigError(
                f"nstep = {self._cfg.nstep}, links = {self._cfg.links} in a buffer without "
                "discount_factor, the gamma of its sums of rewards; set it to that of the policy"
            )
        self._memory = memory_of(self._cfg.storage, self._cfg.storage_path)
        self._rng = new_generator()
        self._log = WorkerLog(exp_name, instance_name, tb_logger)
        self._instance_name = instance_name
        self._files = FileKeeper() if self._cfg.enable_track_used_data else None
        self._envstep = 0
        self._snapshot: Snapshot | None = None
        self._links = self._new_links()
        self._store: Store | None = None
        self._serial = self._oldest = 0
        self._pushed = self._sampled = 0
        self._removed = {"overwritten": 0, "cleared": 0}
        self._logged, self._flow_time = (0, 0), time.monotonic()
        self._flow_due = self._flow_time + self._flow_seconds()

    @property
    def name(self) -> str:
        return self._instance_name

    @property
    def _sums_rewards(self) -> bool:
        """Whether a draw gathers what follows a step in its episode."""
        return self._cfg.nstep > 1 or self._cfg.links or self._cfg.one_step

    def _new_links(self) -> Links | None:
        return Links(self._size, both_ways=self._cfg.links) if self._sums_rewards else None

    # --- slots ---------------------------------------------------------------------------------

    def count(self) -> int:
        return self._serial - self._oldest

    def _slots(self, ages: Any) -> Any:
        """Slots by age, 0 being the oldest sample."""
        return (ages + self._oldest) % self._size

    def _serials(self, slots: np.ndarray) -> np.ndarray:
        """The serial numbers of what is in these slots."""
        newest = self._serial - 1
        return newest - (newest - slots) % self._size

    def accounts(self) -> dict[str, Any]:
        """Where every sample went: pushed = valid + all that were removed."""
        counts = {"pushed": self._pushed, "sampled": self._sampled, "valid": self.count()}
        return {**counts, "removed": dict(self._removed)}

    # --- in ------------------------------------------------------------------------------------

    def push(self, data: Any, cur_collector_envstep: int = 0) -> None:
        """Store one sample (a dict, or any object) or a list of them."""
        self._envstep = cur_collector_envstep
        columns = data.columns if type(data) is Rows else self._columns(data)
        first = next(iter(columns.values()), ())
        n = len(first) if type(first) is np.ndarray else length(columns)
        if n > self._size:
            self._push_last(columns, n - self._size)
        elif n and self._accept(columns, n) >= 0 and time.monotonic() >= self._flow_due:
            self._log_flow()

    def _push_last(self, columns: Batch, lost: int) -> None:
        """More than fit: the first `lost` are overwritten at once."""
        if self._accept(take(columns, slice(lost, None)), self._size) < 0:
            return
        self._pushed += lost
        self._removed["overwritten"] += lost
        if self._files is not None and "file_path" in columns:
            self._files.drop(columns["file_path"][:lost])
        self._log_if_due()

    def _columns(self, data: Any) -> Batch:
        rows = data if isinstance(data, list) else [data]
        if not rows:
            return {}
        if isinstance(rows, Rows) or isinstance(rows[0], dict):
            return columns_of(rows)
        return {ITEM: objects(rows)}

    def _accept(self, columns: Batch, n: int) -> int:
        """Write rows; returns the slot of the first, or -1 if they are refused."""
        origin = columns
        if self._links is not None and "episode_id" in columns:
            columns = {name: column for name, column in columns.items() if name not in ORIGIN}
        store = self._store
        if store is None:
            store = Store.for_rows(self._size, self._memory, columns, self._cfg.frame_stack)
        values = store.values(columns, n)
        self._store = store
        start = self._serial % self._size
        if self._snapshot is not None or self._files is not None:
            self._before_overwriting(start, n)
        store.write(values, start, n)
        if self._links is not None:
            self._links.add(origin, self._serial, n)
        self._serial += n
        self._pushed += n
        lost = self._serial - self._oldest - self._size
        if lost > 0:
            self._oldest += lost
            self._count_overwritten(lost)
        return start

    def _count_overwritten(self, n: int) -> None:
        self._removed["overwritten"] += n

    def _before_overwriting(self, start: int, n: int) -> None:
        slots = (start + np.arange(n)) % self._size
        snapshot = self._active_snapshot()
        if snapshot is not None:
            snapshot.before_change(slots)
            if self._links is not None:
                # The steps before these learn what follows them.
                snapshot.before_change(self._links.tails(), "links")
        if self._files is not None:
            first = slots[: max(0, n + self._serial - self._oldest - self._size)]
            self._drop_files(self._still_valid(first))

    def _still_valid(self, slots: np.ndarray) -> np.ndarray:
        """Those of these slots whose samples have not been removed."""
        return slots

    # --- files ---------------------------------------------------------------------------------

    def _drop_files(self, slots: np.ndarray) -> None:
        paths = self._store.view("file_path") if self._store is not None else None
        if self._files is not None and paths is not None and len(slots):
            self._files.drop(paths[slots])

    def release(self, batch: Any) -> None:
        """A drawn batch is not needed any more, nor are its files. Forgetting it does the same."""
        if self._files is not None:
            self._files.release(batch)

    # --- out -----------------------------------------------------------------------------------

    def _read(
        self, slots: np.ndarray, extra: Batch | None = None, relabel: Relabel | None = None
    ) -> Any:
        """Rows of these slots, relabelled, with more columns."""
        assert self._store is not None
        if self._links is not None:
            columns = self._read_chains(self._store, self._links, slots, relabel)
        else:
            columns = self._store.read(slots)
            if ITEM in columns:
                return list(columns[ITEM])
            if relabel is not None:
                drawn = Drawn(columns, np.ones((len(slots), 1), bool), self._rng, self.name)
                columns = relabelled(relabel, drawn)
            columns = with_discount(columns, self._cfg.discount_factor)
        rows = Rows(columns if extra is None else columns | extra)
        if self._files is not None and "file_path" in columns:
            self._files.lend(rows, columns["file_path"])
        return rows

    def _read_chains(
        self, store: Store, links: Links, slots: np.ndarray, relabel: Relabel | None
    ) -> Batch:
        cfg = self._cfg
        serials, exist = links.chains(self._serials(slots), cfg.nstep)
        if relabel is None and not cfg.one_step:
            return stored_nstep(store, serials % store.size, exist, cfg.discount_factor)
        drawn = self._drawn_chains(store, links, serials, exist)
        window = drawn.steps if relabel is None else relabelled(relabel, drawn)
        gammas = {"reward": cfg.discount_factor, **cfg.reward_gammas}
        columns = relabelled_nstep(window, exist, gammas)
        if not cfg.one_step:
            return columns
        first = take(window, slice(0, None, cfg.nstep))
        return with_one_step(first, columns, cfg.discount_factor)

    def _drawn_chains(
        self, store: Store, links: Links, serials: np.ndarray, exist: np.ndarray
    ) -> Drawn:
        """Single steps (B*n, ...) of chains (B, n), for relabelling."""
        flat = serials.reshape(-1)
        steps = store.read(flat % store.size)
        if not self._cfg.links:
            return Drawn(steps, exist, self._rng, self.name)
        from ding.worker.buffer.stored_episodes import StoredEpisodes

        episodes = StoredEpisodes(store, links, self._oldest)
        return Drawn(steps, exist, self._rng, self.name, flat, episodes)

    # --- log -----------------------------------------------------------------------------------

    def _log_if_due(self) -> None:
        if time.monotonic() >= self._flow_due:
            self._log_flow()

    def _flow(self) -> dict[str, int]:
        """Since the last line in the log."""
        pushed, sampled = self._logged
        return {"pushed": self._pushed - pushed, "sampled": self._sampled - sampled}

    def _flow_seconds(self) -> float:
        return 60.0

    def _log_flow(self) -> None:
        """How much was pushed and sampled since the last time, to text and TensorBoard."""
        seconds = max(time.monotonic() - self._flow_time, 1e-9)
        flow = self._flow()
        rates = ", ".join(f"{name} {n} ({n / seconds:.0f}/s)" for name, n in flow.items())
        gone = ", ".join(f"{n} {why}" for why, n in self._removed.items() if n)
        removed = f"; removed so far: {gone}" if gone else ""
        self._log.info(f"in {seconds:.0f} s: {rates}; {self.count()} stored{removed}")
        values = {**flow, "stored": self.count()}
        values |= {f"removed_{why}": n for why, n in self._removed.items()}
        self._scalars(values, self._envstep)
        self._logged = (self._pushed, self._sampled)
        self._flow_time = time.monotonic()
        self._flow_due = self._flow_time + self._flow_seconds()

    def _scalars(self, values: Mapping[str, float], step: int) -> None:
        self._log.scalars({f"{self._instance_name}_step/{k}": v for k, v in values.items()}, step)

    # --- state ---------------------------------------------------------------------------------

    def clear(self) -> None:
        self._finish_snapshot()
        if self._files is not None:
            self._drop_files(self._valid_slots())
        self._removed["cleared"] += self.count()
        self._reset()

    def _reset(self) -> None:
        self._store = None
        self._links = self._new_links()
        # The next slot is the first again, and no serial number is used twice.
        self._serial += -self._serial % self._size
        self._oldest = self._serial

    def _valid_slots(self) -> np.ndarray:
        return self._still_valid(self._slots(np.arange(self._serial - self._oldest)))

    def _meta(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "size": self._size,
            "serial": self._serial,
            "oldest": self._oldest,
            "pushed": self._pushed,
            "sampled": self._sampled,
            "removed": dict(self._removed),
            "rng": self._rng.bit_generator.state,
            "layout": None if self._store is None else self._store.layout(),
            "open_episodes": None if self._links is None else self._links.plain_tails(),
        }

    def _slot_arrays(self) -> dict[str, np.ndarray]:
        """Everything with a row per slot that is part of the state."""
        arrays = {} if self._store is None else dict(self._store.arrays)
        if self._links is not None:
            arrays["links"] = self._links.next
            if self._links.previous is not None:
                arrays["links_back"] = self._links.previous
        n = min(self._serial - self._oldest, self._size)
        stop = self._size if n and self._oldest % self._size else n
        return {name: array[:stop] for name, array in arrays.items()}

    def _frame_pool(self) -> np.ndarray | None:
        frames = None if self._store is None else self._store.frames
        return None if frames is None else frames.pool[: frames.n_used]

    def state_dict(self) -> dict[str, Any]:
        arrays = {name: array.copy() for name, array in self._slot_arrays().items()}
        pool = self._frame_pool()
        if pool is not None:
            arrays["frames"] = pool.copy()
        return {**self._meta(), "arrays": arrays}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What `state_dict` gave; or only `data`, a list of samples to push."""
        if "version" not in state:
            self._finish_snapshot()
            self._reset()
            self.push(state["data"] if "data" in state else Rows(state["columns"]))
            return
        if state["version"] != _VERSION:
            raise CheckpointError(f"the buffer's state is of version {state['version']}")
        if state["serial"] - state["oldest"] > self._size:
            raise ConfigError(
                f"{state['serial'] - state['oldest']} stored samples do not fit into "
                f"replay_buffer_size = {self._size}"
            )
        self._finish_snapshot()
        self._restore(state)

    def _restore(self, state: dict[str, Any]) -> None:
        self._serial, self._oldest = state["serial"], state["oldest"]
        n, old_size = self._serial - self._oldest, state["size"]
        source = (self._oldest + np.arange(n)) % old_size
        if old_size != self._size:
            self._serial = -(-self._oldest // self._size) * self._size + n
            self._oldest = self._serial - n
        self._pushed, self._sampled = state["pushed"], state["sampled"]
        self._logged = (self._pushed, self._sampled)
        self._removed |= state["removed"]
        self._rng.bit_generator.state = state["rng"]
        arrays, to = state["arrays"], self._slots(np.arange(n))
        self._store = None
        if state["layout"] is not None:
            store = Store.from_layout(self._size, self._memory, state["layout"])
            for name, array in store.arrays.items():
                if name != "frame_ids":
                    array[to] = arrays[name][source]
            if store.frames is not None:
                store.frames.restore(arrays["frames"], arrays["frame_ids"][source], to)
            self._store = store
        if self._links is not None:
            moved = self._oldest - state["oldest"]
            tails = state["open_episodes"] or {}
            self._links.restore(
                (arrays["links"][source], arrays.get("links_back", arrays["links"])[source]),
                to,
                {episode: [serial + moved, step] for episode, (serial, step) in tails.items()},
            )

    # --- to and from files ---------------------------------------------------------------------

    def snapshot(self, file_name: str | Path) -> Snapshot:
        """The buffer as it is now, to a file in the background; `load_data` reads it."""
        self._finish_snapshot()
        frames = None if self._store is None else self._store.frames
        fixed = {}
        if frames is not None:
            frames.limbo = []
            fixed["frames"] = Source.of(frames.pool[: frames.n_used])
        self._snapshot = Snapshot(file_name, self._meta(), self._slot_arrays(), fixed)
        return self._snapshot.start()

    def _active_snapshot(self) -> Snapshot | None:
        if self._snapshot is not None and self._snapshot.done:
            self._finish_snapshot()
        return self._snapshot

    def _finish_snapshot(self) -> None:
        """Wait for a snapshot that is being written; its `wait` tells of errors."""
        if self._snapshot is not None:
            self._snapshot.join()
            self._snapshot = None
            if self._store is not None and self._store.frames is not None:
                self._store.frames.release_limbo()

    def save_data(self, file_name: str | Path) -> None:
        self.snapshot(file_name).wait()

    def load_data(self, file_name: str | Path) -> None:
        """What `save_data` wrote, exactly; only for files of your own, they may hold objects."""
        meta, arrays = datafile.read(file_name)
        self.load_state_dict({**meta, "arrays": arrays})

    def close(self) -> None:
        self._finish_snapshot()
        if any(self._flow().values()) and self._envstep:
            self._log_flow()
        self._log.close()
