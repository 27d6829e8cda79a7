"""Totals of files, ranks and call sites as tables of notebooks, with the columns of the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from ensembles.model.notebook_html import table_html
from ensembles.model.units import S_PER_NS, bytes_text, seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.run.tables import FileTotals, RankTotals, Totals
    from ensembles.summaries.bysite import SiteTotals

T = TypeVar("T")


class Rows(list[T]):
    """A list that notebooks show as a table.

    Parameters
    ----------
    rows : iterable
    headers : sequence of str
        Headers of the table.
    cells : callable
        Gives the texts of the cells of a row.

    Examples
    --------
    >>> from ensembles.run.shown_totals import Rows
    >>> rows = Rows([("a", 1), ("b", 2)], ("name", "calls"), lambda row: (row[0], str(row[1])))
    >>> rows[1:]._repr_html_().count("<td")
    2
    """

    def __init__(
        self, rows: Iterable[T], headers: Sequence[str], cells: Callable[[T], Sequence[str]]
    ) -> None:
        super().__init__(rows)
        self._headers, self._cells = headers, cells

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Rows[T]: ...
    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return Rows(found, self._headers, self._cells) if isinstance(at, slice) else found

    def _repr_html_(self) -> str:
        return table_html(self._headers, map(self._cells, self))


_TOTALS = ("calls", "read", "written", "I/O time", "share", "longest", "waiting")


def file_rows(rows: Sequence[FileTotals]) -> Rows[FileTotals]:
    """Return the totals of files as a table."""
    return Rows(rows, ("file", "tasks", *_TOTALS), _file_cells)


def rank_rows(rows: Sequence[RankTotals]) -> Rows[RankTotals]:
    """Return the totals of ranks as a table."""
    return Rows(rows, ("rank", "node", *_TOTALS), _rank_cells)


def site_rows(rows: Sequence[SiteTotals]) -> Rows[SiteTotals]:
    """Return the totals of call sites as a table."""
    return Rows(rows, ("site", "calls", "bytes", "exclusive", "slowest"), _site_cells)


def _file_cells(row: FileTotals) -> tuple[str, ...]:
    return row.path or "(none)", f"{row.tasks:,}", *_cells(row)


def _rank_cells(row: RankTotals) -> tuple[str, ...]:
    return str(row.rank), row.host, *_cells(row)


def _site_cells(row: SiteTotals) -> tuple[str, ...]:
    moved = bytes_text(row.bytes) if row.bytes else ""
    times = seconds_text(row.exclusive_ns * S_PER_NS), seconds_text(row.max_ns * S_PER_NS)
    return row.place, row.operations, moved, *times


def _cells(row: Totals) -> tuple[str, ...]:
    moved = [
        "unknown" if value is None else bytes_text(value) if value else ""
        for value in (row.bytes_read, row.bytes_written)
    ]
    longest = "" if row.longest_s is None else seconds_text(row.longest_s)
    times = seconds_text(row.io_time_s), share_text(row.share, 1), longest, seconds_text(row.wait_s)
    return f"{row.calls:,}", *moved, *times
