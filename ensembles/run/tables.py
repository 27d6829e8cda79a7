"""Tables of a run: totals of each file and of each rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar, Unpack, overload

import numpy as np

from ensembles.faces.html import answer_html
from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.statement import Column, Table
from ensembles.model.units import S_PER_NS
from ensembles.passes.group import SummaryRequest
from ensembles.passes.spec import summarize_chunks
from ensembles.passes.summary import ignoring_run
from ensembles.run.filter_arguments import filtered, with_filters
from ensembles.run.selection import Filters
from ensembles.summaries.runtotals import DIRECTIONS
from ensembles.summaries.totals_by import KeyTotals, TotalsBy

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.summaries.bysite import SiteTotals
    from ensembles.summaries.ranktable import RankTable

T = TypeVar("T")

_PATH_LENGTHS = (28, 24, 20, 16)
_UNITS = {"calls": "count", "read": "bytes", "written": "bytes", "I/O time": "s", "share": "share to 0.1 %"}
_LAST_UNITS = {"longest": "s", "waiting": "s"}


class Rows(list[T]):
    """A list that notebooks show as a table."""

    def __init__(self, rows: Iterable[T], table: Callable[[Sequence[T]], Table]) -> None:
        super().__init__(rows)
        self._table = table

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Rows[T]: ...
    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return Rows(found, self._table) if isinstance(at, slice) else found

    def _repr_html_(self) -> str:
        return answer_html([self._table(self)], 20, "list()")


def file_table(files: Sequence[FileTotals]) -> Table:
    """Tabulate the totals of files."""
    rows = [(file.path or "(no file)", file.tasks, *_cells(file)) for file in files]
    table = Table.of_rows("file", {"file": "", "tasks": "count", **_UNITS, **_LAST_UNITS}, rows)
    narrower: list[dict[str, Column | None]] = [{"longest": None, "waiting": None}]
    narrower += [{"file": _cut(table.columns[0], length)} for length in _PATH_LENGTHS if rows]
    return replace(table, narrower=narrower)


def rank_table(ranks: Sequence[RankTotals]) -> Table:
    """Tabulate the totals of ranks."""
    rows = [(rank.rank, rank.host, *_cells(rank)) for rank in ranks]
    units = {"rank": "count", "node": "", **_UNITS, **_LAST_UNITS}
    return Table.of_rows("rank", units, rows, narrower=[{"node": None}])


def site_table(sites: Sequence[SiteTotals]) -> Table:
    """Tabulate the totals of call sites."""
    units = {"site": "", "calls": "", "bytes": "bytes", "exclusive": "s", "slowest": "s"}
    rows = [
        (
            site.place,
            site.operations,
            site.bytes or None,
            site.exclusive_ns * S_PER_NS,
            site.max_ns * S_PER_NS,
        )
        for site in sites
    ]
    return Table.of_rows("site", units, rows)


def _cells(row: Totals) -> tuple[Any, ...]:
    moved = ("unknown" if count is None else count or None for count in (row.bytes_read, row.bytes_written))
    return (row.calls, *moved, row.io_time_s, row.share, row.longest_s, row.wait_s or None)


def _cut(paths: Column, most: int) -> Column:
    """Return the ends of paths, of so many characters at most."""
    cut = (path if len(path) <= most else f"...{path[3 - most :]}" for path in paths.values)
    return replace(paths, values=tuple(cut))


Order = Literal["time", "bytes", "calls"]
ORDERS: tuple[Order, ...] = ("time", "bytes", "calls")
"""What a table can be sorted by, largest first."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of some calls."""

    # calls, errors: Number of calls, and of failed calls.
    calls: int
    errors: int
    # bytes_read, bytes_written: Bytes moved; those of inner calls count once. None: unknown.
    bytes_read: int | None
    bytes_written: int | None
    # read_bytes_per_s, write_bytes_per_s: Rate while data moved: bytes by the time in which at least one of
    # these calls moved bytes. None: no bytes moved, or the times of the calls are not known.
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    # io_time_s, wait_s: Exclusive time in I/O, and in calls that wait for other tasks, summed over tasks and
    # threads.
    io_time_s: float
    wait_s: float
    share: float  # Share of the I/O time of the whole table
    longest_s: float | None  # Longest I/O call; None: unknown
    # start_s, end_s: First entry into a call and last return from one, since the origin of the run; None:
    # unknown.
    start_s: float | None
    end_s: float | None
    ops: dict[str, int]  # Number of calls by operation

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)

    def order(self, by: Order) -> float:
        """Return the value that tables are sorted by."""
        if by == "calls":
            return self.calls
        return self.io_time_s if by == "time" else (self.bytes_read or 0) + (self.bytes_written or 0)


@dataclass(frozen=True, slots=True)
class FileTotals(Totals):
    """Totals of the calls on one file."""

    path: str  # Absolute path; ``""``: calls that used no file, or an unknown one
    tasks: int  # Number of ranks that used the file


@dataclass(frozen=True, slots=True)
class RankTotals(Totals):
    """Totals of the calls of one rank."""

    rank: int  # Number of the task
    host: str  # Node of its first process; ``""``: unknown


@with_filters
def totals_by_file(run: Run | Events, by: Order = "time", **filters: Unpack[Filters]) -> list[FileTotals]:
    """Compute the totals of each file of a run, or of events; see `ensembles.run.run.Run.by_file`."""
    if isinstance(run, Events):
        return files_from_sums(run, _totals_of_events(run, "file", filters), by)
    run.reading.need(Holds.ALL_CALLS, "its sums are not by file (ensio info has what is known of files)")
    return files_from_sums(run, _totals(run, "file", filters).totals(), by)


def files_from_sums(run: Run | Events, found: Sequence[KeyTotals], by: Order = "time") -> list[FileTotals]:
    """Make the totals of files from the sums of a pass, `ensembles.summaries.totals_by.TotalsBy` by file."""
    whole_ns = sum(each.io_ns for each in found) or 1
    paths = run.files
    rows = [FileTotals(**_values(each, whole_ns), path=paths[each.key], tasks=each.tasks) for each in found]
    return sorted(rows, key=lambda row: (-row.order(by), row.path))


@with_filters
def totals_by_rank(run: Run | Events, by: Order = "time", **filters: Unpack[Filters]) -> list[RankTotals]:
    """Compute the totals of each rank of a run, or of events, whose nodes are not known."""
    if isinstance(run, Events):
        return ranks_from_sums(run, _totals_of_events(run, "rank", filters), by)
    found = _totals(run, "rank", filters)
    if found is None:
        return _rank_rows(run, _values_of_table(run.reading.ranks), by)
    return ranks_from_sums(run, found.totals(), by)


def ranks_from_sums(run: Run | Events, found: Sequence[KeyTotals], by: Order = "time") -> list[RankTotals]:
    """Make the totals of ranks from the sums of a pass, `ensembles.summaries.totals_by.TotalsBy` by rank."""
    whole_ns = sum(each.io_ns for each in found) or 1
    return _rank_rows(run, [(each.key, _values(each, whole_ns)) for each in found], by)


def _rank_rows(
    run: Run | Events, values: Sequence[tuple[int, dict[str, Any]]], by: Order
) -> list[RankTotals]:
    hosts: dict[int, str] = {}
    for process in () if isinstance(run, Events) else run.info.processes:
        hosts.setdefault(process.rank, process.host)
    rows = [RankTotals(**each, rank=rank, host=hosts.get(rank, "")) for rank, each in values]
    return sorted(rows, key=lambda row: (-row.order(by), row.rank))


def _totals(run: Run, key: Literal["file", "rank"], filters: Filters) -> Any:
    return run.summarize(ignoring_run(partial(TotalsBy, key)), selection=filtered(run, **filters))


def _totals_of_events(events: Events, key: Literal["file", "rank"], filters: Filters) -> list[KeyTotals]:
    if filters:
        raise ValueError("filters are of runs: select the events first")
    requests = {"totals": SummaryRequest(ignoring_run(partial(TotalsBy, key)))}
    found: list[KeyTotals] = summarize_chunks(requests, iter([events]), events)["totals"].totals()
    return found


def _values(each: KeyTotals, whole_ns: int) -> dict[str, Any]:
    """Return the attributes of `Totals`."""
    active = each.active_ns or {}
    rates = [
        each.bytes[op] / (active[op] * S_PER_NS) if each.bytes[op] and active.get(op) else None
        for op in DIRECTIONS
    ]
    return {
        "calls": sum(each.ops.values()),
        "errors": each.errors,
        "bytes_read": each.bytes["read"],
        "bytes_written": each.bytes["write"],
        "read_bytes_per_s": rates[0],
        "write_bytes_per_s": rates[1],
        "io_time_s": each.io_ns * S_PER_NS,
        "wait_s": each.wait_ns * S_PER_NS,
        "share": each.io_ns / whole_ns,
        "longest_s": each.longest_ns * S_PER_NS,
        "start_s": each.start_ns * S_PER_NS,
        "end_s": each.end_ns * S_PER_NS,
        "ops": each.ops,
    }


def _values_of_table(table: RankTable) -> list[tuple[int, dict[str, Any]]]:
    """Return the attributes of `Totals` of each rank, from sums by function.

    Where several layers move bytes, these sums do not say which bytes are those of inner calls.
    """
    io = np.array([not call.waits_for_tasks for call in table.calls], bool)
    exclusive_ns = table.time_ns - table.inner_ns
    whole_ns = int(exclusive_ns[io[table.call]].sum()) or 1
    found = []
    ranks, first = np.unique(table.rank, return_index=True)
    for rank, (begin, end) in zip(ranks.tolist(), pairwise([*first.tolist(), len(table)]), strict=True):
        rows = list(range(begin, end))
        ops: Counter[str] = Counter()
        moved: dict[str, Counter[str]] = {op: Counter() for op in DIRECTIONS}
        for row in rows:
            call = table.calls[table.call[row]]
            ops[call.op] += int(table.count[row])
            if call.op in moved and table.moved[row]:
                moved[call.op][call.layer] += int(table.moved[row])
        bytes_of = [sum(of_layer.values()) if len(of_layer) < 2 else None for of_layer in moved.values()]
        of_io = [row for row in rows if io[table.call[row]]]
        longest_ns = max((int(table.max_ns[row]) for row in of_io), default=0)
        io_ns = int(exclusive_ns[of_io].sum())
        values = {
            "calls": int(table.count[rows].sum()),
            "errors": int(table.errors[rows].sum()),
            "bytes_read": bytes_of[0],
            "bytes_written": bytes_of[1],
            "read_bytes_per_s": None,
            "write_bytes_per_s": None,
            "io_time_s": io_ns * S_PER_NS,
            "wait_s": (int(exclusive_ns[rows].sum()) - io_ns) * S_PER_NS,
            "share": io_ns / whole_ns,
            "longest_s": None if longest_ns < 0 else longest_ns * S_PER_NS,
            "start_s": None,
            "end_s": None,
            "ops": dict(ops),
        }
        found.append((rank, values))
    return found


def sums_of_totals(rows: Sequence[Totals]) -> dict[str, Any]:
    """Add up a table: calls, errors, bytes and times."""
    known = all(row.bytes_read is not None and row.bytes_written is not None for row in rows)
    return {
        "calls": sum(row.calls for row in rows),
        "errors": sum(row.errors for row in rows),
        "bytes_read": sum(row.bytes_read or 0 for row in rows) if known else None,
        "bytes_written": sum(row.bytes_written or 0 for row in rows) if known else None,
        "io_time_s": sum(row.io_time_s for row in rows),
        "wait_s": sum(row.wait_s for row in rows),
    }
