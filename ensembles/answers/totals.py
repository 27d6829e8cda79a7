"""Totals of each file, and of each rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import SMALL_PART, PlainAnswer
from ensembles.model.calls import STORAGE
from ensembles.model.statement import Statement, Table
from ensembles.model.units import count_text
from ensembles.passes.summary import ignoring_run
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.run.tables import file_table, rank_table, sums_of_totals, totals_by_file, totals_by_rank
from ensembles.structure.libraries import LIBRARIES
from ensembles.summaries.layer_traffic import LayerTraffic

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Filters, Selection
    from ensembles.run.tables import Order, Totals


def answer_files(run: Run, selection: Selection, by: Order, filters: Filters) -> PlainAnswer:
    """Add up the calls on each file; see `ensembles.run.tables.totals_by_file`."""
    files = totals_by_file(run, by, **filters)
    refuse_nothing(run, selection, len(files))
    # The row of calls without a file does not count as a file.
    named = sum(bool(file.path) for file in files)
    return _answer(run, files, by, file_table(files), named, {}, _above_storage(run, selection))


def _above_storage(run: Run, selection: Selection) -> list[Statement]:
    """Say whose the bytes are where libraries moved far fewer below, as they compress or keep them."""
    formats = LIBRARIES.keys() - {"mpiio"}  # which moves bytes as they are, and perhaps beside the call
    if not any(call.layer in formats for call in run.calls):
        return []
    traffic = run.summarize(ignoring_run(LayerTraffic), selection=selection.for_run(run))
    said = []
    for op, word in (("read", "read"), ("write", "written")):
        taken = sum(each.bytes for key, each in traffic.outer.items() if key[0] in formats and key[1] == op)
        inner = [(key, each.bytes) for key, each in traffic.inner.items() if key[0] in formats]
        below = sum(moved for (_, _, by, what), moved in inner if by in STORAGE and what == op)
        if taken > 2 * below > 0:
            said.append(Statement("files.above", {"word": word, "taken": taken, "below": below}))
    return said


def answer_ranks(run: Run, selection: Selection, by: Order, filters: Filters) -> PlainAnswer:
    """Add up the calls of each rank; see `ensembles.run.tables.totals_by_rank`."""
    ranks = totals_by_rank(run, by, **filters)
    refuse_nothing(run, selection, len(ranks))
    of_rows_s = sum(row.wait_s for row in ranks)
    more_s = 0.0 if filters else waiting_s(run) - of_rows_s
    if more_s < 1e-9 * of_rows_s:
        more_s = 0.0  # rounding
    said = [Statement("ranks.waiting")] if of_rows_s else []
    if more_s > SMALL_PART * of_rows_s:
        said.append(Statement("ranks.messages", {"time_s": more_s}))
    more = {"wait_of_messages_s": None if filters else more_s}
    return _answer(run, ranks, by, rank_table(ranks), len(ranks), more, said)


def _answer(
    run: Run,
    rows: Sequence[Totals],
    by: Order,
    table: Table,
    count: int,
    more: Mapping[str, Any],
    said: Sequence[Statement] = (),
) -> PlainAnswer:
    """Put sums, table and statements together."""
    sums = sums_of_totals(rows)
    moved = (sums[name] for name in ("bytes_read", "bytes_written"))
    read, written = ("unknown" if count is None else count or None for count in moved)
    whole = {"count": count_text(count, table.noun), "calls": sums["calls"], "io_time_s": sums["io_time_s"]}
    wrong = {"is_wrong": not run.reading.implausible.keys().isdisjoint(("io_time_s", "bytes"))}
    head = Statement("totals.sums", {**whole, **wrong, "read": read, "written": written})
    values = {
        "run": run.path,
        "sort": by,
        f"{table.noun}s": [row.to_json() for row in rows],
        "total": sums,
        **more,
        "complete": not run.notes,
        "notes": run.notes,
    }
    return PlainAnswer(f"{table.noun}s", ((head,), table, tuple(said)), values, tuple(run.notes))


def waiting_s(run: Run) -> float:
    """Return the time of all ranks in calls that wait for others, messages included."""
    import numpy as np

    if not run.reading.has_summary:
        return 0.0
    cells = run.summary.cells
    waits = np.array([call.waits_for_tasks for call in run.summary.calls], bool)[cells["call"]]
    return float((cells["time_ns"] - cells["inner_ns"])[waits].sum()) * 1e-9
