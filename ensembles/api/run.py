"""`open`, `Run` and `Events`: a run whose questions are methods.

The rooms below take the classes from which these derive, and answer the questions in functions.

In notebooks, a run shows what ``ensio info`` prints, and a small histogram.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Unpack

from ensembles.model import events
from ensembles.model.errors import EnsioError
from ensembles.model.notebook_html import facts_html, notes_html
from ensembles.model.units import count_text
from ensembles.passes.executors import Executor
from ensembles.run import run
from ensembles.run.filter_arguments import with_filters
from ensembles.run.open import open_as
from ensembles.run.selection import Filters, Selection

if TYPE_CHECKING:
    from ensembles.answers.ordinals import RunOrdinals
    from ensembles.answers.rate import RunRates
    from ensembles.api.ensemble import Ensemble
    from ensembles.ensemble.from_run import Per
    from ensembles.model.filters import Quantity
    from ensembles.run.tables import FileTotals, Order, RankTotals
    from ensembles.summaries.bysite import SiteTotals


class Events(events.Events):
    """Completed I/O calls as NumPy columns; see `ensembles.model.events.Events`."""

    __slots__ = ()

    @classmethod
    def _of(cls, found: events.Events) -> Events:
        """Make these events of those that a run holds; the columns are the same arrays."""
        mine = cls.partly(found.columns, found.calls, found.files, found.sites)
        mine.clock_step_s = found.clock_step_s
        return mine.derived_as(found)

    def ensemble(self, per: Literal["call", "MiB"] = "call") -> Ensemble:
        """Make an ensemble of the durations of these calls.

        Parameters
        ----------
        per : {"call", "MiB"}
            "call": seconds of each call. "MiB": seconds per MiB that the call moved; calls that moved
            nothing are left out.

        Returns
        -------
        Ensemble
            Durations in seconds, or in seconds per MiB.
        """
        from ensembles.api.ensemble import Ensemble

        return Ensemble.from_events(self, per)


Events.__doc__ = events.Events.__doc__


class Run(run.Run):
    """The record of one job; events are read when they are needed.

    `ensembles.open` makes runs. Facts about the job and its record are in `info`. Events come in four ways:
    `events` holds all of them, `select` those that filters match, `chunks` reads them in bounded memory, and
    `summarize` fills mergeable summaries in one pass. `reading` has what readers, writers and executors need.

    Parameters
    ----------
    path : str
        Path of the files, used in messages and by worker processes.
    source : EventSource
        Reads the events (`ensembles.readers`).

    Attributes
    ----------
    path : str
        Path from which the run was read.
    info : RunInfo
        Where and how the job ran, what was recorded, and what may be missing.
    reading : RunReading
        How the events are read.

    Examples
    --------
    >>> run = en.open("ensio-ior")
    >>> run.tasks
    8
    >>> len(run.events), int(run.events.ordinal.max())
    (336, 20)
    >>> writes = run.select(op="write", rank="0-3")
    >>> len(writes), int(writes.moved.sum())
    (80, 83886080)
    >>> run.phases.rule, run.phases.count
    ('steps', 12)
    """

    @cached_property
    def events(self) -> Events:
        """All events, sorted by (rank, start), in memory: 57 bytes an event."""
        return Events._of(super().events)

    def chunks(self, max_events: int = 1 << 20, columns: Sequence[str] | None = None) -> Iterator[Events]:
        """Iterate over the events in chunks, in bounded memory.

        Chunks come in the order of ranks. The calls of one thread come in the order of completion, so that an
        inner call precedes the call around it.

        Parameters
        ----------
        max_events : int
            Largest number of events in a chunk.
        columns : sequence of str, optional
            Columns to read; a reader may read more. Default: all.

        Yields
        ------
        Events

        Raises
        ------
        ValueError
            `max_events` is less than 1.
        EnsioError
            A file cannot be read any more.

        Examples
        --------
        >>> run = en.open("ensio-ior")
        >>> sum(int(chunk.duration.sum()) for chunk in run.chunks(64)) == int(run.events.duration.sum())
        True
        """
        return map(Events._of, super().chunks(max_events, columns))

    def _repr_html_(self) -> str:
        return _answer_html(self)

    @with_filters
    def select(self, **filters: Unpack[Filters]) -> Events:
        """Read the events that match filters.

        An event must match every filter that is given. A filter takes a text as on the command line, a
        number, or a list of these, of which one must match.

        Parameters
        ----------
        **filters
            See `ensembles.run.selection.Selection.parse` for the syntax of each:

            * ``op``: operations, such as ``"write"``; ``call``: functions, such as ``"pread,pwrite"``;
              ``layer``: layers, such as ``"posix"``
            * ``file``: glob for absolute paths
            * ``rank``: ranges of ranks, such as ``"0-63"``
            * ``size``: requested bytes, such as ``"1MiB..4MiB"``
            * ``time``: start of the call in seconds since the origin of the run, such as ``"10..20"``
            * ``duration``: time that the call took, such as ``"0.5..2"`` (seconds) or ``"10ms.."``
            * ``offset``: where in its file the call begins, such as ``"1GiB..2GiB"``
            * ``rate``: bytes moved per second of the call, such as ``"..10MiB"``
            * ``failed``: True selects calls that failed
            * ``error``: the errors of failed calls, such as ``"ENOSPC,EIO"``
            * ``region``: name of a phase or region of the program
            * ``site``: call site, such as ``"restart.f90:212"``, a source file or a function
            * ``phase``, ``ordinal``: ranges of phase numbers and of call indices, such as ``"4-8"``
            * ``per_byte``: True selects calls that moved bytes

        Returns
        -------
        Events
            Sorted by (rank, start).

        Raises
        ------
        EnsioError
            A filter is malformed or names what the run does not have, or a file cannot be read any more.

        Examples
        --------
        >>> run = en.open("ensio-ior")
        >>> writes = run.select(op="write", rank="0-3", size="1MiB")
        >>> len(writes)
        80
        >>> round(float(np.median(writes.duration)) * 1e-9, 3)  # seconds
        0.011
        >>> len(run.select(op=["read", "write"], phase="2-3"))
        64
        >>> len(run.select(op="read", ordinal="4-8"))
        40
        """
        return Events._of(super().select(**filters))

    @with_filters
    def ensemble(
        self, per: Per = "call", quantity: Quantity = "duration", **filters: Unpack[Filters]
    ) -> Ensemble:
        """Make an ensemble of the calls that match filters.

        Where filters leave open layer, operation or size, the outermost calls of the layer, operation and
        size class that took most time are taken; a note tells the rest. ``size="0.."`` takes all sizes.

        Parameters
        ----------
        per : {"call", "MiB"}
            Durations in seconds a call, or in seconds per MiB that the call moved.
        quantity : {"duration", "flight"}
            "flight": of non-blocking requests, the time from the post to the observed completion.
        **filters
            As for `select`.

        Returns
        -------
        Ensemble

        Raises
        ------
        EnsioError
            A filter is malformed or matches no call, or the run does not record what it asks for.

        Examples
        --------
        >>> en.open("ensio-ior").ensemble(op="write").n
        160
        """
        from ensembles.api.ensemble import Ensemble
        from ensembles.ensemble.main_ensemble import ensemble_of

        return Ensemble._of(ensemble_of(self, per, quantity, **filters))

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
        from ensembles.passes.summary import ignoring_run
        from ensembles.run.tables import Rows, site_table
        from ensembles.summaries.bysite import BySite

        selection = Selection.parse(**filters).for_run(self)
        label = self.info.label_of_site
        sites = self.summarize(ignoring_run(BySite), selection=selection).grouped(label)
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
        from ensembles.run.tables import Rows, file_table, totals_by_file

        return Rows(totals_by_file(self, by, **filters), file_table)

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
        from ensembles.run.tables import Rows, rank_table, totals_by_rank

        return Rows(totals_by_rank(self, by, **filters), rank_table)

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
        from ensembles.answers.rate import compute_rates

        return compute_rates(self, Selection.parse(**filters))

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
        from ensembles.answers.ordinals import durations_by_ordinal

        return durations_by_ordinal(self, Selection.parse(**filters), within)

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
        >>> en.open("ensio-ior").report("report.html") > 100_000
        True
        """
        from ensembles.viz.report.page import write_report

        return write_report(self, path)


def open(
    path: str | os.PathLike[str], workers: int | str | Executor | None = None, memory_bytes: int | None = None
) -> Run:
    """Open a recorded run.

    The format is detected from the content, not from the name. Known are ensio's run directories, spools, job
    files and ``trace.h5``, and the traces of other tools (`ensembles.readers.foreign`): OTF2 archives,
    Darshan logs, DFTracer traces and strace logs. Opening reads the metadata only; events are read when
    they are needed.

    Parameters
    ----------
    path : path-like
        A file or a directory. If a directory holds no record but exactly one run directory, that run is
        opened, and the logger ``ensembles`` reports it (by default on standard error). If several launches
        recorded into a directory, ``DIRECTORY#2`` is the second of them.
    workers : int, str or Executor, optional
        What makes the passes over the events: a number of processes on this machine, or the address of a Dask
        scheduler (``"tcp://…"``). Default: threads of this process.
    memory_bytes : int, optional
        Memory in bytes that the analysis may take, including worker processes on this machine. Default: a
        quarter of the memory of the machine or control group.

    Returns
    -------
    Run

    Raises
    ------
    EnsioError
        `path` does not exist, is not of a known format, cannot be read, or holds several runs; or there is no
        Dask scheduler at the given address.

    Examples
    --------
    >>> run = en.open("ensio-ior")
    >>> run.tasks, len(run.events)
    (8, 336)

    Two worker processes read the same run. Counts are equal to the last bit:

    >>> en.open("ensio-ior", workers=2).summary.count
    336
    """
    return open_as(Run, path, workers, memory_bytes)


def _answer_html(run: Run) -> str:
    """Return the answer of ``ensio info`` and the durations of the main calls; of long runs, what ran."""
    from ensembles.answers.info import answer_info
    from ensembles.ensemble.display import durations_svg
    from ensembles.ensemble.main_ensemble import ensemble_of
    from ensembles.run.headline import MOST_EVENTS

    if run.reading.most_events > MOST_EVENTS:
        text = f"up to {count_text(run.reading.most_events, 'call')}: ensio info reads them all"
        return run.info._repr_html_() + facts_html([("recorded", text)])
    try:
        shown = answer_info(run)._repr_html_()
    except EnsioError as error:
        return run.info._repr_html_() + facts_html([("not read", str(error))])
    try:
        ensemble = ensemble_of(run)
    except EnsioError:  # No calls, or no durations, as in counters of other tools: there is no histogram.
        return shown
    return shown + durations_svg(ensemble) + notes_html(ensemble.left_out)
