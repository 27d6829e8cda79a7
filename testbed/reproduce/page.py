"""The page of all rows: docs/reference/reproduction.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from testbed.reproduce.figure import HEADERS, Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "reproduction.md"

_HEAD = """# Numbers of the papers and of simulated runs

    ./dev reproduce
    ./dev reproduce --case ior --seeds 3

`./dev reproduce --write` writes this page. The models were simulated with {seeds} seeds. A row has a
number of a paper, the median of the simulated ones, and the range of 90 % of the seeds or more, from the
value of one seed to that of another. It is met if the median is within the tolerance. That is ± 30 %,
unless the row has another. Some numbers are in a paper in words only, such as "narrower" or "similar".
Their tolerance excludes the contrary. The model of TAPIOCA draws nothing, so that its rows have no range.

| kind | meaning |
|---|---|
| predicted | the paper's words define what is compared, and no number or rule was chosen with it in view |
| fitted | a number or a rule of a model was chosen so that this one comes out |
| by construction | it follows from a number or a cause that the paper states and the model takes over |

A number that another row has in other units has no row. Rates of IOR with two, four and eight calls are
compared as decreases of the phase time. Within 30 % of each rate is also that splitting a call changes
nothing.

"""

_FITTED = """## What is fitted

Keys of the files in `testbed/models` and `testbed/tapioca/machines`, where a comment says to what each is
fitted, and rules of a model.

"""


class Kept(NamedTuple):
    """A row of the page."""

    case: str
    what: str
    kind: str
    is_met: bool


def kept(row: Row) -> Kept:
    """Return what the page says of a row."""
    return Kept(*row.name, row.first.kind, row.met)


def write_page(
    rows: Sequence[Row],
    sentences: Sequence[str],
    named: Sequence[str],
    missed: Sequence[tuple[str, str, str]],
    seeds: range,
) -> None:
    """Write the page."""
    table = [f"| {' | '.join(HEADERS)} |", "|---|---|---|---:|---:|---|---:|---|---|"]
    table += [f"| {' | '.join(row.cells())} |" for row in rows]
    parts = [
        _HEAD.format(seeds=len(seeds)) + "\n".join(table),
        "## Sums\n\n" + "\n".join(f"* {sentence}" for sentence in sentences),
        _FITTED + "\n".join(f"* {sentence}" for sentence in named),
        "## Not reproduced\n\n" + "\n".join(f"* {case}, {what}: {why}" for case, what, why in missed),
    ]
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
