"""Requests of a run by API: sizes of reads and of writes, collective calls, misaligned requests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Call
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.run.filter_arguments import filtered, with_filters
from ensembles.run.selection import Filters
from ensembles.summaries.calltable import CallTable, CallTotals, operations_of_transfers
from ensembles.summaries.sizes import Alignment, SizeTable

if TYPE_CHECKING:
    from ensembles.run.run import Run

MOST_SIZES = 10
"""Sizes of an API that are listed, unless the caller asks for more."""

_COLLECTIVE = ("_all", "_all_begin", "_all_end", "_ordered", "_ordered_begin", "_ordered_end")
_WITH_COLLECTIVE = ("mpiio", "pnetcdf")


@dataclass(frozen=True, slots=True)
class SizeCount:
    """Requests of one size, or of a class of sizes."""

    # low_bytes, high_bytes: The size, twice; or the least and largest size of a class whose sizes are not
    # known one by one
    low_bytes: int
    high_bytes: int
    count: int
    share: float  # Share of the requests of the API and direction


@dataclass(frozen=True, slots=True)
class RequestTotals:
    """The reads or the writes of one API."""

    # layer, op: The API, and ``read`` or ``write``
    layer: str
    op: str
    # count, errors: Number of requests, and of failed ones
    count: int
    errors: int
    bytes: int  # Bytes moved
    time_s: float  # Time in these calls, summed over tasks; calls inside other calls included
    collective: int | None  # Number of collective calls; None: the layer does not show which calls are
    located: int | None  # Requests whose offset and boundary are known; None: not every call is an event
    misaligned: int | None  # Those of them whose offset is not a multiple of the boundary
    crossing: int | None  # Those of them that would fit between two boundaries, and touch both sides of one
    sizes: tuple[SizeCount, ...]  # The most frequent sizes
    uncertainty: int  # Each count of a size may be too low by up to this number
    functions: dict[str, int]  # Number of calls by function

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes, and shares of the located requests."""
        shares = {
            f"{name}_share": count / self.located if count is not None and self.located else None
            for name, count in (("misaligned", self.misaligned), ("crossing", self.crossing))
        }
        return asdict(self) | shares


@with_filters
def requests_of_run(
    run: Run, align_bytes: int | None = None, most: int = MOST_SIZES, **filters: Unpack[Filters]
) -> list[RequestTotals]:
    """Compute the requests of a run by API, reads and writes apart.

    `align_bytes`: boundary for misaligned requests. Default: of each file its Lustre stripe size, else the
    block size of its file system, as far as the run records them.
    """
    if align_bytes is not None and align_bytes < 1:
        raise EnsioError("the boundary of aligned requests must be at least 1 byte")
    wanted = {"table": SummaryRequest(ignoring_run(CallTable)), **transfer_requests(run, align_bytes)}
    return requests_from_sums(run.summarize(wanted, selection=filtered(run, **filters)).summaries, most)


def transfer_requests(run: Run, align_bytes: int | None = None) -> dict[str, SummaryRequest]:
    """Return the requests for the summaries that `requests_from_sums` takes, but for a `CallTable`."""
    boundary = _boundaries(run) if align_bytes is None else align_bytes
    return {
        "transfer_sizes": SummaryRequest(ignoring_run(partial(SizeTable, operations_of_transfers))),
        "alignment": SummaryRequest(ignoring_run(partial(Alignment, boundary))),
    }


def requests_from_sums(found: Mapping[str, Any], most: int = MOST_SIZES) -> list[RequestTotals]:
    """Make the requests of a run."""
    table: CallTable = found["table"]
    sizes: SizeTable = found["transfer_sizes"]
    alignment: Alignment | None = found["alignment"]
    calls: dict[tuple[str, str], dict[Call, CallTotals]] = {}
    for call, totals in table.totals.items():
        if call.op in ("read", "write"):
            calls.setdefault((call.layer, call.op), {})[call] = totals
    rows = [_row(*key, functions, sizes, alignment, most) for key, functions in calls.items()]
    return sorted(rows, key=lambda row: (-row.count, row.layer, row.op))


def _boundaries(run: Run) -> np.ndarray:
    """Return the boundary of each file in bytes; 0: unknown."""
    # Of many files in one folder nothing else is known than where it is mounted.
    points = {mount.point for table in run.info.mounts.values() for mount in table}
    of_folder: dict[str, int] = {}
    found = []
    for path in run.files:
        if not path or path in points or path in run.info.file_facts:
            found.append(boundary_of(run, path))
            continue
        folder = os.path.dirname(path)
        if folder not in of_folder:
            of_folder[folder] = boundary_of(run, path)
        found.append(of_folder[folder])
    return np.array(found, np.int64)


def boundary_of(run: Run, path: str) -> int:
    """Return the Lustre stripe size of a file, else the block size of its file system; 0: unknown."""
    striping = run.info.striping_of(path)
    if striping is not None:
        return striping.stripe_bytes
    mount = run.info.filesystem_of(path) if path else None
    return 0 if mount is None else mount.block_bytes


def _row(
    layer: str,
    op: str,
    functions: Mapping[Call, CallTotals],
    sizes: SizeTable,
    alignment: Alignment | None,
    most: int,
) -> RequestTotals:
    name, count = f"{layer} {op}", sum(totals.count for totals in functions.values())
    entries = [(size, size, n) for size, n in sizes.frequent(name, most)] + sizes.classes.get(name, [])
    entries = sorted(entries, key=lambda entry: (-entry[2], -entry[0]))[:most]
    where: list[int | None] = [None] * 3
    if alignment is not None:
        counted = (alignment.known, alignment.misaligned, alignment.crossing)
        where = [counts.get(name, 0) for counts in counted]
    collective = None
    if layer in _WITH_COLLECTIVE:
        collective = sum(t.count for call, t in functions.items() if call.name.endswith(_COLLECTIVE))
    return RequestTotals(
        layer=layer,
        op=op,
        count=count,
        errors=sum(totals.errors for totals in functions.values()),
        bytes=sum(totals.bytes for totals in functions.values()),
        time_s=sum(totals.time_ns for totals in functions.values()) * 1e-9,
        collective=collective,
        located=where[0],
        misaligned=where[1],
        crossing=where[2],
        sizes=tuple(SizeCount(low, high, n, n / count) for low, high, n in entries),
        uncertainty=sizes.uncertainty.get(name, 0),
        functions={call.name: totals.count for call, totals in functions.items()},
    )
