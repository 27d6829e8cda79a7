"""Durations by call index, and their trend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.faces.answer import PlainAnswer
from ensembles.model.statement import Statement, Table

if TYPE_CHECKING:
    from ensembles.run.ordinals import RunOrdinals


def answer_ordinals(found: RunOrdinals, notes: Sequence[str] = ()) -> PlainAnswer:
    """Show the durations of calls by their index.

    Parameters
    ----------
    found : RunOrdinals
    notes : sequence of str
        Of the run.
    """
    unit = "s/MiB" if found.per == "MiB" else "s"
    units = {"ordinal": "count", "calls": "count", "tasks": "count"}
    units |= dict.fromkeys(("median", "p90", "max"), unit)
    rows = [
        (
            entry.ordinal if entry.ordinal == entry.to else f"{entry.ordinal:,} to {entry.to:,}",
            entry.n,
            entry.tasks,
            entry.median_s,
            entry.p90_s,
            entry.max_s,
        )
        for entry in found.totals
    ]
    where = "in each phase" if found.within == "phase" else "on each file"
    sizes = None if found.size is None else found.what
    head = Statement("ordinals.what", {"op": found.op, "where": where, "sizes": sizes, "is_none": not rows})
    trend = (Statement("ordinals.trend", {"trend": found.trend.sentence}),) if rows else ()
    values = found.to_json() | {"complete": not notes, "notes": [*notes, *found.notes]}
    parts = ((head,), Table.of_rows("row", units, rows), trend)
    return PlainAnswer("ordinals", parts, values, (*notes, *found.notes))
