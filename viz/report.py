"""The report: one HTML file about one run, that needs nothing but a browser."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from bokeh.document import Document
from bokeh.embed import components
from bokeh.resources import Resources
from jinja2 import Environment

from ensembles import __version__
from ensembles.diagnosis.diagnose import Examination
from ensembles.diagnosis.finding import Diagnosis
from ensembles.diagnosis.gathered import Gathered
from ensembles.errors import EnsioError
from ensembles.events import Events
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.from_cells import histogram_of, moments_of, sizes_of, table_of, totals_of
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import RunTotals
from ensembles.summaries.sizes import SizeTable
from ensembles.summaries.together import Together
from ensembles.viz.figures import time_range
from ensembles.viz.histogram import histogram
from ensembles.viz.moments import moments
from ensembles.viz.rate import rate
from ensembles.viz.report_ensembles import Shown, shown_ensembles
from ensembles.viz.report_tables import call_colours, call_table, facts, headline, missing, size_tables
from ensembles.viz.trace_diagram import trace_diagram
from ensembles.writers.readership import readership_of
from ensembles.writers.wholefile import whole_file

_COLUMNS = ("rank", "thread", "call", "depth", "carried", "file", "requested", "moved", "start", "duration")


@dataclass
class Summaries:
    """All that a report shows of a run, filled in one pass over its events.

    Attributes
    ----------
    table, totals, sizes, histogram, moments, rate, raster
        The summaries.
    size_classes : dict of str to list of (int, int, int)
        By layer: sizes that are known only as a range (least, largest), and how many calls had them.
    events : int or None
        Single calls that `rate` and `raster` show; None: all of them.
    durations_known : bool
        False: of the durations only sums are known.
    """

    table: CallTable
    totals: RunTotals
    sizes: SizeTable
    histogram: LogHistogram
    moments: CallMoments
    rate: RateCurve
    raster: Raster
    size_classes: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    events: int | None = None
    durations_known: bool = True

    @classmethod
    def of(cls, chunks: Iterable[Events], tasks: int) -> Summaries:
        """Go through the events once.

        Parameters
        ----------
        chunks : iterable of Events
            As `Run.chunks` gives them.
        tasks : int
            Number of tasks of the run.
        """
        summaries = cls.empty(tasks)
        for chunk in chunks:
            summaries.add(chunk)
        return summaries

    @classmethod
    def empty(cls, tasks: int) -> Summaries:
        """Those of no events, of a run with so many tasks."""
        return cls(
            CallTable(), RunTotals(), SizeTable(), LogHistogram(), CallMoments(), RateCurve(), Raster(tasks)
        )

    def add(self, chunk: Events) -> None:
        """Add events."""
        for part in vars(self).values():
            if hasattr(part, "add"):
                part.add(chunk)

    def merge(self, other: Summaries) -> None:
        """Add those of other ranks."""
        for name, part in vars(self).items():
            if hasattr(part, "add"):
                part.merge(getattr(other, name))

    @classmethod
    def of_run(cls, run: Any) -> Summaries:
        """Those of a run: where its events are not all calls, what the recorder's own summary tells of
        all."""
        return cls.with_examination(run, Examination(run, ()))[0]

    @classmethod
    def with_examination(cls, run: Any, examination: Examination) -> tuple[Summaries, Gathered]:
        """As `of_run`, and in the same pass what is to be examined."""
        of_all = run.has_all_events
        columns = {*_COLUMNS, *examination.columns} if of_all else None
        makes = (_of_no_events if of_all else _OverTime, examination.make)
        found, gathered = run.gather(partial(Together, makes), columns).each
        return found if of_all else cls._beside_recorded(run, found), gathered

    @classmethod
    def _beside_recorded(cls, run: Any, shown: _OverTime) -> Summaries:
        cells = run.summary
        sizes, classes = sizes_of(cells)
        table, totals = table_of(cells, run.files), totals_of(cells)
        return cls(
            table,
            totals,
            sizes,
            histogram_of(cells),
            moments_of(cells),
            shown.rate,
            shown.raster,
            classes,
            shown.events,
            cells.durations_known,
        )


def _of_no_events(run: Any) -> Summaries:
    return Summaries.empty(run.tasks)


class _OverTime:
    """What single calls show, where the recorder's summary has the rest."""

    def __init__(self, run: Any) -> None:
        self.rate, self.raster, self.events = RateCurve(), Raster(run.tasks), 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.rate.add(chunk)
        self.raster.add(chunk)
        self.events += len(chunk)

    def merge(self, other: _OverTime) -> None:
        """Add those of other ranks."""
        self.rate.merge(other.rate)
        self.raster.merge(other.raster)
        self.events += other.events


def write_report(run: Any, path: str | os.PathLike[str], chunks: Iterable[Events] | None = None) -> int:
    """Write the report of a run: under a temporary name first, renamed when it is whole.

    Parameters
    ----------
    run : Run
    path : path-like
        The HTML file; one that is there is replaced.
    chunks : iterable of Events, optional
        The events to show; default: all of the run.

    Returns
    -------
    int
        Size of the file in bytes.

    Raises
    ------
    EnsioError
        The file cannot be written, or a file of the run cannot be read any more.
    """
    path = os.fspath(path)
    if not path:
        raise EnsioError("the report has no name: give one with -o")
    if os.path.isdir(path):
        raise EnsioError(
            f"{path} is a folder: name a file in it, such as {os.path.join(path, 'report.html')}"
        )
    try:
        # A place that cannot be written to is found out before the work is done, not after it.
        with whole_file(path, readership_of(run.path)) as descriptor:
            page = _page_of_run(run) if chunks is None else report_html(run, Summaries.of(chunks, run.tasks))
            with open(descriptor, "wb", closefd=False) as file:
                return file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        sentence = f"{path} cannot be written ({error.strerror}): choose another place with -o"
        raise EnsioError(sentence) from error


def _page_of_run(run: Any) -> str:
    examination = Examination(run)
    summaries, gathered = Summaries.with_examination(run, examination)
    # The ensembles come first: phases, which findings may name, are found in one pass with them.
    shown = shown_ensembles(run, summaries.table)
    return report_html(run, summaries, shown, examination.of(gathered))


def _embedded(pictures: dict[str, Any]) -> tuple[str, dict[str, str]]:
    document = Document()
    # Otherwise everything that all pictures are made of is looked for again with each of them.
    with document.models.freeze():
        for picture in pictures.values():
            document.add_root(picture)
    return components(pictures)


def report_html(
    run: Any, summaries: Summaries, shown: Sequence[Shown] = (), diagnosis: Diagnosis | None = None
) -> str:
    """The page as text.

    Parameters
    ----------
    run : Run
    summaries : Summaries
    shown : sequence of Shown
        Ensembles; and
    diagnosis : Diagnosis or None
        What is known only where the summaries are of all calls.
    """
    x_range = time_range(*summaries.raster.extent_ns)
    pictures: dict[str, Any] = {"histogram": histogram(summaries.histogram)}
    for number, ensemble in enumerate(shown):
        pictures |= {f"{name}_{number}": figure for name, figure in ensemble.pictures.items()}
    if summaries.events != 0:
        pictures["trace"] = trace_diagram(summaries.raster, x_range=x_range)
        pictures["rate"] = rate(summaries.rate, x_range=x_range)
    script, divisions = _embedded(pictures)
    library = Resources(mode="inline", components=["bokeh", "bokeh-widgets"])
    template = files("ensembles.viz").joinpath("report.html").read_text(encoding="utf-8")
    return (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(
            headline=headline(run),
            version=__version__,
            colours=call_colours(summaries),
            simulated=run.simulated,
            notes=run.notes,
            facts=facts(run, summaries),
            calls=call_table(summaries),
            missing=missing(run, summaries),
            single_calls=summaries.events != 0,
            diagnosis=diagnosis,
            sizes=size_tables(summaries.sizes, summaries.size_classes),
            ensembles=shown,
            moments=moments((summaries.moments, summaries.histogram)),
            bokeh=library.render_js(),
            script=script,
            divisions=divisions,
        )
    )
