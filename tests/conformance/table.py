"""The claims as a table in `docs/algorithms.md`: `python -m tests.conformance.table` writes it."""

from __future__ import annotations

from pathlib import Path

from .claims import ACTIONS, CLAIMS, OBSERVATIONS, Claim

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
_COLUMNS = (
    "algorithm",
    *OBSERVATIONS,
    *ACTIONS,
    "action mask",
    "recurrent",
    "bootstraps",
    "own rewards",
)
_YES = "✓"


def table() -> str:
    """Markdown, one row per algorithm."""
    head = [_row([name.replace("_", " ") for name in _COLUMNS]), _row(["---"] * len(_COLUMNS))]
    rows = [_row([f"`{name}`", *_marks(claim)]) for name, claim in CLAIMS.items()]
    return "\n".join([*head, *rows])


def _marks(claim: Claim) -> list[str]:
    claimed = [
        *(kind in claim.observations for kind in OBSERVATIONS),
        *(kind in claim.actions for kind in ACTIONS),
        *(claim.masks, claim.recurrent, claim.bootstraps, claim.own_rewards),
    ]
    return [_YES if yes else "" for yes in claimed]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def with_table(page: str) -> str:
    """The page with the table of now between its two marks."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
