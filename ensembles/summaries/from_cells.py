"""Other summaries of a run, derived from the recorded one.

They are exact, except for request sizes, which the recorded summary keeps by classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from ensembles.model.distinct import distinct
from ensembles.passes.summary import Summary
from ensembles.summaries.bins import BIN_COUNT, size_range_bytes
from ensembles.summaries.calltable import CallTable, CallTotals, find_slowest_calls, operations_of_transfers
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments, CentralMoments
from ensembles.summaries.runtotals import RunTotals
from ensembles.summaries.sizes import SizeTable

_TRANSFERS = ("read", "write")


def _calls_in_order(summary: CellSummary) -> list[int]:
    """List the functions that occurred, in the order of their first call."""
    call, start_ns = summary.cells["call"], summary.cells["start_ns"]
    numbers = distinct(call)
    first_ns = [int(start_ns[call == number].min()) for number in numbers]
    return [int(number) for _, number in sorted(zip(first_ns, numbers.tolist(), strict=True))]


def histogram_from_cells(summary: CellSummary) -> LogHistogram:
    """Make the histogram of each function from a recorded summary."""
    histogram = LogHistogram()
    cell, bins, counts = summary.histogram
    call = summary.cells["call"][cell]
    for number in _calls_in_order(summary):
        mine = call == number
        if mine.any():
            dense = np.zeros(BIN_COUNT, np.int64)
            np.add.at(dense, bins[mine], counts[mine])
            histogram.counts[summary.calls[number]] = dense
    return histogram


def moments_from_cells(summary: CellSummary) -> CallMoments:
    """Make the moments of each function from a recorded summary, if it has sums of powers."""
    moments = CallMoments()
    if not summary.durations_known:
        return moments
    cells = summary.cells
    for number in _calls_in_order(summary):
        mine = np.flatnonzero(cells["call"] == number)
        rows = [
            CentralMoments(
                int(cells["count"][i]),
                float(cells["mean_ns"][i]),
                (float(cells["m2"][i]), float(cells["m3"][i]), float(cells["m4"][i])),
                int(cells["min_ns"][i]),
                int(cells["max_ns"][i]),
            )
            for i in mine
        ]
        moments.moments[summary.calls[number]] = sum(rows[1:], start=rows[0])
    return moments


def table_from_cells(summary: CellSummary, files: Sequence[str]) -> CallTable:
    """Make the call table from a recorded summary."""
    table = CallTable()
    table.durations_known = summary.durations_known
    cells = summary.cells
    for number in _calls_in_order(summary):
        mine, call = cells["call"] == number, summary.calls[number]
        table.totals[call] = CallTotals(
            count=int(cells["count"][mine].sum()),
            errors=int(cells["errors"][mine].sum()),
            bytes=int(cells["moved"][mine].sum()) if call.op in _TRANSFERS else 0,
            time_ns=int(cells["time_ns"][mine].sum()),
            max_ns=int(cells["max_ns"][mine].max()),
        )
    if len(summary):
        table.start_ns, table.end_ns = int(cells["start_ns"].min()), int(cells["end_ns"].max())
        table.files = set(files[1:])
    table.slowest = find_slowest_calls(summary.longest[1])
    return table


def totals_from_cells(summary: CellSummary) -> RunTotals:
    """Make the run totals from a recorded summary."""
    totals = RunTotals()
    cells = summary.cells
    for number in _calls_in_order(summary):
        mine, call = cells["call"] == number, summary.calls[number]
        totals.layers.calls[call] = int(cells["count"][mine].sum())
        totals.layers.time_ns[call] = int(cells["time_ns"][mine].sum())
        totals.layers.inner_ns[call] = int(cells["inner_ns"][mine].sum())
        moved = int(cells["outer_moved"][mine].sum())
        totals.bytes_read += moved if call.op == "read" else 0
        totals.bytes_written += moved if call.op == "write" else 0
    return totals


def add_summed_calls(
    table: CallTable, totals: RunTotals, summary: CellSummary, functions: Collection[str]
) -> int:
    """Replace the totals of functions that are events only in part by those of the recorded summary."""
    recorded, layers = table_from_cells(summary, ("",)), totals_from_cells(summary).layers
    found = 0
    for call, sums in recorded.totals.items():
        if call.name not in functions:
            continue
        found += sums.count - (table.totals[call].count if call in table.totals else 0)
        table.totals[call] = sums
        for mine, theirs in (
            (totals.layers.calls, layers.calls),
            (totals.layers.time_ns, layers.time_ns),
            (totals.layers.inner_ns, layers.inner_ns),
        ):
            mine[call] = theirs[call]
    if found:
        table.start_ns, table.end_ns = recorded.start_ns, recorded.end_ns
    return found


def sizes_from_cells(summary: CellSummary, by_operation: bool = False) -> SizeTable:
    """Make the size table from a recorded summary, as exactly as possible.

    Counts of sizes are exact: in their size classes, every cell has calls of one size only. Other size
    classes are in `SizeTable.classes`.
    """
    table = SizeTable()
    classes: dict[str, list[tuple[int, int, int]]] = {}
    cells = summary.cells
    names = [f"{call.layer} {call.op}" if by_operation else call.layer for call in summary.calls]
    layers = np.array(names, dtype=object)
    transfers = np.array([call.op in _TRANSFERS for call in summary.calls], dtype=bool)
    if not len(summary):
        return table
    chosen = transfers[cells["call"]]
    for layer in dict.fromkeys(layers[cells["call"][chosen]]):
        for number in distinct(cells["size_class"][chosen & (layers[cells["call"]] == layer)]).tolist():
            mine = chosen & (layers[cells["call"]] == layer) & (cells["size_class"] == number)
            least, most = cells["min_requested"][mine], cells["max_requested"][mine]
            counts = cells["count"][mine]
            if (least == most).all():
                for size in distinct(least):
                    table.add_counts(layer, np.array([size]), np.array([counts[least == size].sum()]))
            else:
                low, high = size_range_bytes(number)
                found = max(int(least.min()), low), min(int(most.max()), high)
                classes.setdefault(layer, []).append((*found, int(counts.sum())))
        if layer in classes:
            classes[layer].sort(key=lambda entry: -entry[2])
            table.add_counts(layer, np.empty(0, np.uint64), np.empty(0, np.int64))
    told: dict[str, list[tuple[int, int, int]]] = {}
    for (layer, op), sizes in summary.told_sizes.items():
        told.setdefault(f"{layer} {op}" if by_operation else layer, []).extend(sizes)
    table.classes = classes | {name: _joined(sizes) for name, sizes in told.items()}
    return table


def _joined(sizes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Add up equal classes of reads and writes; the most frequent comes first."""
    counts: dict[tuple[int, int], int] = {}
    for low, high, count in sizes:
        counts[low, high] = counts.get((low, high), 0) + count
    return sorted(((low, high, count) for (low, high), count in counts.items()), key=lambda entry: -entry[2])


def from_sums(empty: Summary, summary: CellSummary, files: Sequence[str]) -> Summary | None:
    """Return what the sums of a recorder know of a summary of all calls; None: nothing."""
    if isinstance(empty, CallTable):
        return table_from_cells(summary, files)
    if isinstance(empty, SizeTable):
        return sizes_from_cells(summary, empty.keys is operations_of_transfers)
    make = _BY_KIND.get(type(empty))
    return empty.without_events() if make is None else make(summary)


_BY_KIND: dict[type, Callable[[CellSummary], Summary]] = {
    RunTotals: totals_from_cells,
    LogHistogram: histogram_from_cells,
    CallMoments: moments_from_cells,
}
