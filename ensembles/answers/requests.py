"""Number, sizes and alignment of reads and of writes of each API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ensembles.faces.answer import PlainAnswer
from ensembles.model.statement import Column, Paragraph, Statement, Table
from ensembles.model.units import size_text
from ensembles.run.nothing_selected import refuse_nothing
from ensembles.run.requests import MOST_SIZES, requests_of_run
from ensembles.structure.counters import counted_requests

if TYPE_CHECKING:
    from ensembles.run.requests import RequestTotals
    from ensembles.run.run import Run
    from ensembles.run.selection import Filters, Selection

_UNITS = {"API": "", "op": "", "requests": "count", "bytes": "bytes", "time": "s"}
_UNITS |= {"collective": "count", "misaligned": "part", "crossing": "part"}
_SIZES = {"API": "", "op": "", "request size": "bytes exactly", "count": "count", "share": "share to 0.1 %"}
_COUNTED = {"API": "", "misaligned": "part", "to": "", "common size": "bytes exactly", "count": "count"}


def answer_requests(
    run: Run, selection: Selection, align_bytes: int | None, sizes: int, filters: Filters
) -> PlainAnswer:
    """Find the sizes and the alignment of requests; see `ensembles.run.requests.requests_of_run`."""
    found = requests_of_run(run, align_bytes, max(sizes, MOST_SIZES), **filters)
    refuse_nothing(run, selection, len(found))
    counted = counted_requests(run.info)
    values = {
        "run": run.path,
        "align_bytes": align_bytes,
        "requests": [row.to_json() for row in found],
        **({"counted": counted} if counted else {}),
        "complete": not run.notes,
        "notes": run.notes,
    }
    parts = tuple(request_parts(found, sizes, align_bytes, counted))
    return PlainAnswer("requests", parts, values, tuple(run.notes))


def request_parts(
    found: Sequence[RequestTotals],
    most: int,
    align_bytes: int | None = None,
    counted: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Table | Paragraph]:
    """Show the requests of each API, and so many of its sizes."""
    if not found:
        yield (Statement("requests.none"),)
        return
    yield _totals(found)
    yield Table.of_rows("size", _SIZES, [row for each in found for row in _sizes(each, most)])
    if counted:
        yield (Statement("requests.counted"),)
        yield Table.of_rows("size", _COUNTED, [row for each in counted for row in _counted(each, most)])
    yield tuple(_notes(found, align_bytes, bool(counted)))


def _totals(found: Sequence[RequestTotals]) -> Table:
    """Tabulate number, bytes, time and alignment."""
    rows = [
        (
            row.layer,
            row.op,
            row.count,
            row.bytes,
            row.time_s,
            row.collective,
            _part(row.misaligned, row.located),
            _part(row.crossing, row.located),
        )
        for row in found
    ]
    table = Table.of_rows("API", _UNITS, rows)
    step: dict[str, Column | None] = {} if any(row.collective for row in found) else {"collective": None}
    return replace(table, narrower=[step], key=2)


def _sizes(row: RequestTotals, most: int) -> Iterator[tuple[Any, ...]]:
    """Return the most frequent sizes of an API."""
    for number, size in enumerate(row.sizes[:most]):
        low, high = size.low_bytes, size.high_bytes
        bytes_ = low if low == high else f"{size_text(low)} to {size_text(high)}"
        names = (row.layer, row.op) if number == 0 else ("", "")
        yield (*names, bytes_, size.count, size.share)


def _counted(entry: Mapping[str, Any], most: int) -> Iterator[tuple[Any, ...]]:
    """Return what counters say of the sizes of an API."""
    for number, size in enumerate(entry["common_sizes"][:most] or [{"bytes": None, "count": None}]):
        to = ", ".join(map(size_text, entry["alignment_bytes"]))
        names = (
            (entry["layer"], _part(entry["misaligned"], entry["count"]), to)
            if number == 0
            else ("", None, "")
        )
        yield (*names, size["bytes"], size["count"])


def _part(count: int | None, whole: int | None) -> tuple[int, int] | None:
    """Return a number of requests and that of all; None: unknown."""
    return None if count is None or not whole else (count, whole)


def _notes(found: Sequence[RequestTotals], align_bytes: int | None, counted: bool) -> Iterator[Statement]:
    """Say how exact the numbers are, and what misaligned requests are measured against."""
    uncertain = [f"{row.layer} {row.op} {row.uncertainty:,}" for row in found if row.uncertainty]
    if uncertain:
        yield Statement("requests.uncertain", {"counts": ", ".join(uncertain)})
    is_unknown = any(row.located is None for row in found)
    if is_unknown and not counted:
        yield Statement("requests.no_offsets")
    elif not is_unknown and any(row.located != row.count for row in found):
        yield Statement("requests.located")
    if not is_unknown and any(row.misaligned for row in found):
        boundary = "the stripe or file system's block" if align_bytes is None else size_text(align_bytes)
        yield Statement("requests.boundary", {"boundary": boundary})
