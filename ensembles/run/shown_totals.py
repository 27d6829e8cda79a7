"""Totals of files, ranks and call sites as tables of notebooks, with the columns of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.model.shown_rows import Rows
from ensembles.model.units import S_PER_NS, bytes_text, seconds_text, share_text

if TYPE_CHECKING:
    from ensembles.run.tables import FileTotals, RankTotals, Totals
    from ensembles.summaries.bysite import SiteTotals

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
