"""How true the ledger is today: what is fresh, confirmed, stale or missing, and what mends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from ledger.fingerprints import at_commit, files_of, fingerprint, here
from ledger.outcome import Outcome
from ledger.report import Stored
from ledger.tasks import Task

DEAR_SECONDS = 1800.0
"""Of a row whose seeds take longer together, one fresh seed is enough."""


class Standing(Enum):
    FRESH = "fresh"
    """Trained with the code of today."""
    CONFIRMED = "confirmed"
    """Trained with other code, which makes the same first updates bit by bit."""
    STALE = "stale"
    MISSING = "missing"


@dataclass(frozen=True)
class Seed:
    task: Task
    number: int
    outcome: Outcome | None
    standing: Standing
    cost: float | None
    """Seconds that training it takes, as far as is known from this row."""

    @property
    def is_due(self) -> bool:
        return self.standing in (Standing.STALE, Standing.MISSING)


def seeds_of(tasks: Iterable[Task], stored: Stored) -> list[Seed]:
    found = []
    for task in tasks:
        outcomes = {o.seed: o for o in stored.get(task.name, [])}
        cost = fmean(o.seconds for o in outcomes.values()) if outcomes else None
        for number in task.seeds:
            outcome = outcomes.get(number)
            found.append(Seed(task, number, outcome, standing_of(task, outcome), cost))
    return found


def standing_of(task: Task, outcome: Outcome | None) -> Standing:
    if outcome is None:
        return Standing.MISSING
    files = files_of(task.name)
    if files is None or code_of(outcome, files) != fingerprint(files, here):
        return Standing.STALE
    return Standing.CONFIRMED if outcome.confirmed else Standing.FRESH


def code_of(outcome: Outcome, files: Sequence[str]) -> str:
    """The fingerprint of what it was trained with; "" where no commit has that."""
    if outcome.code or outcome.commit.endswith("-dirty"):
        return outcome.code
    return fingerprint(files, at_commit(outcome.commit))


def due(seeds: Iterable[Seed]) -> list[Seed]:
    """What to train to make the ledger true, the cheapest first, then the oldest.

    What has never been trained costs nobody knows what: it comes last.
    """
    by_task: dict[str, list[Seed]] = {}
    for seed in seeds:
        by_task.setdefault(seed.task.name, []).append(seed)
    wanted = [seed for row in by_task.values() for seed in _due_of(row)]
    return sorted(wanted, key=lambda s: (_cost(s), s.outcome.date if s.outcome else "", s.number))


def _due_of(row: Sequence[Seed]) -> list[Seed]:
    missing = [seed for seed in row if seed.is_due]
    is_dear = sum(seed.cost or 0.0 for seed in row) > DEAR_SECONDS
    if not is_dear:
        return missing
    return missing[:1] if len(missing) == len(row) else []


def _cost(seed: Seed) -> float:
    return float("inf") if seed.cost is None else seed.cost


def table(seeds: Sequence[Seed]) -> str:
    """A line for each row, and the sum."""
    wanted = {(seed.task.name, seed.number) for seed in due(seeds)}
    lines = [f"{'row':<36} {'seeds':<28} {'to mend':>10}"]
    for task in dict.fromkeys(seed.task for seed in seeds):
        row = [seed for seed in seeds if seed.task == task]
        if row:
            costs = [s.cost for s in row if (task.name, s.number) in wanted]
            lines.append(f"{task.name:<36} {_counts(row):<28} {_hours(costs):>10}")
    costs = [s.cost for s in seeds if (s.task.name, s.number) in wanted]
    return "\n".join([*lines, f"{'all':<36} {_counts(seeds):<28} {_hours(costs):>10}"])


def _counts(seeds: Iterable[Seed]) -> str:
    counts: Mapping[Standing, int] = Counter(seed.standing for seed in seeds)
    return ", ".join(f"{counts[s]} {s.value}" for s in Standing if s in counts)


def _hours(costs: Sequence[float | None]) -> str:
    if not costs:
        return ""
    known = [cost for cost in costs if cost is not None]
    unknown = f" + {len(costs) - len(known)}?" if len(known) < len(costs) else ""
    return f"{sum(known) / 3600:.2f} h{unknown}"
