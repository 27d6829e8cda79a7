"""Totals of a run: its sums over all calls, by function, rank, file and call site."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Unpack, cast

from ensembles.model import extensions
from ensembles.model.units import NS_PER_S, count_text, seconds_text
from ensembles.passes.summary import ignoring_run
from ensembles.run.filter_arguments import with_filters
from ensembles.run.selection import Filters, Selection
from ensembles.run.shown_totals import Rows, file_table, rank_table, site_table
from ensembles.summaries.bysite import BySite, SiteTotals
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

if TYPE_CHECKING:
    from ensembles.run.ordinals import RunOrdinals
    from ensembles.run.rates import RunRates
    from ensembles.run.run import Run
    from ensembles.run.tables import FileTotals, Order, RankTotals

_NON_BLOCKING = ("MPI_File_iread", "MPI_File_iwrite", "aio_read", "aio_write")
_DAY_S = 86_400
_MOST_BUSY = 1.01
"""Time in I/O by the time that threads had: times are rounded to the steps of clocks."""
_LONG_S, _SELDOM_S = 30 * _DAY_S, 600
"""Batch systems end jobs after days: a longer span with fewer than a call in ten minutes is doubted."""


class RunWithTotals:
    """The part of `ensembles.run.run.Run` that adds calls up."""

    @property
    def _run(self) -> Run:
        return cast("Run", self)

    @cached_property
    def summary(self) -> CellSummary:
        """Sums over all calls by function, size class and ordinal class.

        They include calls that are not events: the recorder keeps them in every mode. If the source has no
        summary, it is computed from the events.
        """
        summary = self._run.reading.source.summary()
        return self._run.summarize(_empty_summary) if summary is None else summary

    @cached_property
    def length_s(self) -> float:
        """Length of the run, s: from the start of its first process to the end of its last.

        Severities and shares of the run are parts of it. It is at least the span of its calls: some are made
        after the last reading of the clock, by other threads and in processes that did not end in order, and
        other tools keep times of processes in whole seconds, or not at all.

        Examples
        --------
        >>> en.open("ensio-ior").length_s
        12.0
        """
        processes = self._run.info.processes
        lives = [
            (each.start_unix_ns, each.end_unix_ns)
            for each in processes
            if 0 < each.start_unix_ns < each.end_unix_ns
        ]
        life_ns = max(end for _, end in lives) - min(start for start, _ in lives) if lives else 0
        return max(life_ns, self._run.reading.span_ns) * 1e-9

    @cached_property
    def _implausible(self) -> list[str]:
        """Sentences about what cannot be so.

        In formats without checksums, a changed byte of a time is seen only here.
        """
        from ensembles.summaries.from_cells import table_from_cells, totals_from_cells

        run = self._run
        names = sorted({call.name for call in run.calls if call.name.startswith(_NON_BLOCKING)})
        if run.reading.source.is_checked and (run.info.flights or not names):
            return []
        table = table_from_cells(self.summary, run.files)
        io_s = max(totals_from_cells(self.summary).io_time_ns / NS_PER_S, run.info.counted_io_s)
        span_s, threads = table.span_ns / NS_PER_S, max(run.info.threads, 1)
        notes = []
        if names and not run.info.flights and io_s > span_s * threads:
            notes.append(
                f"the durations of non-blocking requests ({', '.join(names[:3])}) last until their "
                "completion, as an older recorder or another tool stored them: times in I/O include what was "
                "hidden behind other work"
            )
        elif not names and io_s > _MOST_BUSY * run.length_s * threads:
            notes.append(
                f"implausible: {seconds_text(io_s)} in I/O calls of {count_text(threads, 'thread')} within "
                f"{seconds_text(run.length_s)}: a time is damaged, or the record lacks threads; copy it again"
            )
        if span_s > _LONG_S and table.events * _SELDOM_S < span_s:
            notes.append(
                f"implausible: {count_text(table.events, 'call')} in {span_s / _DAY_S:,.0f} days: a time is "
                "probably damaged; copy the record again, or choose the calls by --time"
            )
        return notes

    @with_filters
    def by_site(self, **filters: Unpack[Filters]) -> list[SiteTotals]:
        """Compute the totals of each place in the program that led to calls.

        Parameters
        ----------
        **filters
            As for `select`.

        Returns
        -------
        list of SiteTotals
            The site with the longest exclusive time first; those of one source line are added up. Notebooks
            show a table.

        Raises
        ------
        EnsioError
            A filter is malformed, or a file cannot be read any more.

        Examples
        --------
        >>> [site.count for site in en.open("ensio-ior").by_site(op="write")]
        [160]
        """
        selection = Selection.parse(**filters).for_run(self._run)
        label = self._run.info.label_of_site
        sites = self._run.summarize(ignoring_run(BySite), selection=selection).grouped(label)
        for site in sites:
            site.place = label(site.number)
        return Rows(sites, site_table)

    @with_filters
    def by_file(self, by: Order = "time", **filters: Unpack[Filters]) -> list[FileTotals]:
        """Compute the totals of each file: calls, bytes, rates while data moved, time in I/O.

        Parameters
        ----------
        by : {"time", "bytes", "calls"}
            What to sort by, the largest first.
        **filters
            As for `Run.select`.

        Returns
        -------
        list of FileTotals
            Notebooks show a table.

        Raises
        ------
        EnsioError
            Not every call is an event, a filter is malformed, or a file cannot be read any more.

        Examples
        --------
        >>> [(file.path, file.tasks, file.bytes_written) for file in en.open("ensio-ior").by_file()]
        [('/scratch/synthetic/shared.dat', 8, 167772160)]
        """
        from ensembles.run.tables import totals_by_file

        return Rows(totals_by_file(self._run, by, **filters), file_table)

    @with_filters
    def by_rank(self, by: Order = "time", **filters: Unpack[Filters]) -> list[RankTotals]:
        """Compute the totals of each rank that made calls: calls, bytes, rates, time in I/O and waiting.

        Parameters
        ----------
        by : {"time", "bytes", "calls"}
            What to sort by, the largest first.
        **filters
            As for `Run.select`; none if not every call is an event.

        Returns
        -------
        list of RankTotals
            Notebooks show a table.

        Raises
        ------
        EnsioError
            Filters are given and not every call is an event, a filter is malformed, the file holds no data by
            rank, or it cannot be read any more.

        Examples
        --------
        >>> ranks = en.open("ensio-ior").by_rank(by="bytes", op="write")
        >>> len(ranks), ranks[0].bytes_written
        (8, 20971520)
        """
        from ensembles.run.tables import totals_by_rank

        return Rows(totals_by_rank(self._run, by, **filters), rank_table)

    @with_filters
    def rate(self, **filters: Unpack[Filters]) -> RunRates:
        """Compute the data rates: curve over time, plateaus and bursts of reads and of writes.

        Parameters
        ----------
        **filters
            As for `Run.select`.

        Returns
        -------
        RunRates
            The numbers of ``ensio rate``.

        Raises
        ------
        EnsioError
            Not every call is an event, no read or write is selected, or a file cannot be read any more.

        Examples
        --------
        >>> writes = en.open("ensio-ior").rate(op="write").rates[0]
        >>> (writes.op, writes.bytes)
        ('write', 167772160)
        """
        from ensembles.run.rates import compute_rates

        return compute_rates(self._run, Selection.parse(**filters))

    @with_filters
    def ordinals(self, within: Literal["file", "phase"] = "file", **filters: Unpack[Filters]) -> RunOrdinals:
        """Compute the durations of one kind of calls by call index, and test their trend.

        Parameters
        ----------
        within : {"file", "phase"}
            Count the calls of a task on each file, or in each phase.
        **filters
            As for `Run.select`. Without `op`: of reads and writes, the one that took the most time.

        Returns
        -------
        RunOrdinals
            The numbers of ``ensio ordinals``.

        Raises
        ------
        EnsioError
            Nothing is selected, the run keeps sums that do not know what is asked, or a file cannot be read
            any more.

        Examples
        --------
        >>> ordinals = en.open("ensio-ior").ordinals(op="write")
        >>> len(ordinals.totals), ordinals.totals[0].n
        (20, 8)
        """
        from ensembles.run.ordinals import durations_by_ordinal

        return durations_by_ordinal(self._run, Selection.parse(**filters), within)

    def report(self, path: str | os.PathLike[str]) -> int:
        """Write the report of the run, a page of HTML.

        Parameters
        ----------
        path : path-like
            HTML file; an existing file is replaced.

        Returns
        -------
        int
            Size of the file in bytes.

        Raises
        ------
        EnsioError
            The file cannot be written, or a file of the run cannot be read any more.

        Examples
        --------
        >>> en.open("ensio-ior").report("report.html") > 1_000_000
        True
        """
        return extensions.write_report(self._run, path)


def _empty_summary(run: Run) -> CellSummary:
    return CellSummary(run.calls, run.files)


def empty_ranks(run: Run) -> RankTable:
    """Make the empty sums by rank of a run."""
    return RankTable(run.calls)
