"""What answers show of the steps of collective calls."""

from __future__ import annotations

from collections.abc import Iterator

from ensembles.model.statement import Paragraph, Statement, Table
from ensembles.structure.collective_steps import CollectiveStepTable

_UNITS = {"collective call": "", "calls": "count", "tasks": "count", "time": "s"}
_UNITS |= dict.fromkeys(("communication", "storage", "entry", "others"), "share to 0.1 %")


def step_parts(steps: CollectiveStepTable | None) -> Iterator[Table | Paragraph]:
    """Tabulate where the tasks of collective calls spent their time; nothing if there are no such calls."""
    if steps is None:
        return
    if steps.rows:
        rows = [
            (
                row.call.removeprefix("MPI_File_"),
                row.collective_calls,
                row.tasks,
                row.time_s,
                *row.to_json()["shares"].values(),
            )
            for row in steps.rows
        ]
        yield Table.of_rows("function", _UNITS, rows)
    yield tuple(_statements(steps))


def _statements(steps: CollectiveStepTable) -> Iterator[Statement]:
    """Explain the table, and count the calls that it leaves out."""
    if steps.refused:
        yield Statement("steps.refused", {"why": steps.refused})
    if steps.rows:
        yield Statement("steps.legend")
        if steps.crowded:
            yield Statement("steps.crowded", {"tasks": steps.crowded})
    independent = sum(row.independent_calls for row in steps.rows)
    if independent:
        yield Statement("steps.independent", {"calls": independent})
    if steps.unmatched_calls:
        yield Statement("steps.unmatched", {"calls": steps.unmatched_calls})
