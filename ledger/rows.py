"""All rows of the ledger: what the zoo's configs reach, and what defaults do."""

from ledger.defaults import DEFAULTS
from ledger.tasks import TASKS, Task

ROWS: tuple[Task, ...] = (*TASKS, *DEFAULTS)
