"""Totals of files, ranks and call sites as tables: those of the commands, which notebooks show too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from ensembles.faces.html import answer_html
from ensembles.model.statement import Column, Table
from ensembles.model.units import S_PER_NS

if TYPE_CHECKING:
    from ensembles.run.tables import FileTotals, RankTotals, Totals
    from ensembles.summaries.bysite import SiteTotals

T = TypeVar("T")

_PATH_LENGTHS = (28, 24, 20, 16)
_UNITS = {"calls": "count", "read": "bytes", "written": "bytes", "I/O time": "s", "share": "share to 0.1 %"}
_LAST_UNITS = {"longest": "s", "waiting": "s"}


class Rows(list[T]):
    """A list that notebooks show as a table.

    Parameters
    ----------
    rows : iterable
    table : callable
        Makes the table of such rows.

    Examples
    --------
    >>> from ensembles.run.shown_totals import Rows
    >>> from ensembles.model.statement import Table
    >>> rows = Rows([(1,), (2,)], lambda rows: Table.of_rows("row", {"calls": "count"}, rows))
    >>> rows[1:]._repr_html_().count("<td")
    1
    """

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
