"""What a report shows of a run: the summaries of one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ensembles.model.events import Events
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.spec import summarize_chunks
from ensembles.passes.summary import Summary
from ensembles.run.information import RunSums, sums_from, sums_requests
from ensembles.run.rasters import drawn_raster, kept_raster
from ensembles.run.requests import RequestTotals, requests_from_sums, transfer_requests
from ensembles.run.run import Run
from ensembles.summaries.bysite import BySite
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.failed_calls import FailedCalls
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.longest_calls import DiagramCalls
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.raster import DrawnRaster, Raster
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import RunTotals
from ensembles.summaries.sizes import Requests, SizeTable
from ensembles.summaries.totals_by import TotalsBy
from ensembles.viz.common.data_for import request_for
from ensembles.viz.pictures.trace_annotations import calls_for_zooms
from ensembles.viz.report.folded import folded_requests

_OF_ALL_CALLS: dict[str, type[Summary]] = {
    "table": CallTable,
    "totals": RunTotals,
    "sizes": SizeTable,
    "histogram": LogHistogram,
    "moments": CallMoments,
    "failed": FailedCalls,
}
_OVER_TIME: dict[str, type[Summary]] = {"rate": RateCurve, "raster": Raster}
_OF_ALL_EVENTS: dict[str, type[Summary]] = {"sites": BySite, "requests": Requests}
_MADE = ("longest", "file", "rank")
"""Summaries that need more than their class to be made."""


@dataclass
class ReportData:
    """The summaries that a report shows, except for ensembles and findings."""

    # table, totals, sizes, histogram, moments, rate, raster: Summaries of the run
    table: CallTable
    totals: RunTotals
    sizes: SizeTable
    histogram: LogHistogram
    moments: CallMoments
    rate: RateCurve
    raster: Raster | DrawnRaster
    # Number of events that `rate` and `raster` show; None: these are some events of a run
    events: int | None = None
    sums: RunSums | None = None  # Totals of the whole run; None: these are some of its events
    sites: BySite | None = None  # Of the calls with events
    # requests, longest, file, rank: None: not every call is an event
    requests: Requests | None = None
    longest: DiagramCalls | None = None
    file: TotalsBy | None = None
    rank: TotalsBy | None = None
    # Reads and writes of each API; empty if these are some of the events
    transfers: Sequence[RequestTotals] = ()
    failed: FailedCalls | None = None  # None: not every call is an event

    @property
    def outlined(self) -> Events | None:
        """The slowest calls, if they are few among all: outlines of many calls would hide the diagram."""
        if self.longest is None:
            return None
        most = min(60, int(self.longest.io_calls * 0.01))
        return self.longest.longest(most) if most else None

    @classmethod
    def from_run(
        cls, run: Run, more: Mapping[str, SummaryRequest] | None = None
    ) -> tuple[Self, SummaryGroup]:
        """Compute the data of a run in one pass.

        If not all calls are events, the tables come from the summary of the recorder.
        """
        requests = report_requests(run) | dict(more or {})
        kept = drawn_raster(run) or kept_raster(run)
        if kept is not None:
            del requests[_PREFIX + "raster"]
        group = run.summarize(requests)
        found = _found(group) | ({} if kept is None else {"raster": kept})
        # Before calls that are not events are added; of counters there are tables already.
        is_counted = found["alignment"] is None and bool(run.counters.modules)
        transfers = () if is_counted else requests_from_sums(found)
        active = None if found["open"] is None else found["rate"].active
        sums = sums_from(run, found | {"active": active})
        own = {name: found[name] for name in (*_OF_ALL_CALLS, *_OVER_TIME, *_OF_ALL_EVENTS, *_MADE)}
        return cls(**own, events=sums.events, sums=sums, transfers=transfers), group

    @classmethod
    def from_chunks(cls, chunks: Iterable[Events], run: Run) -> Self:
        """Compute the data of some events of a run."""
        requests = _requests(_OF_ALL_CALLS | _OVER_TIME)
        return cls(**_found(summarize_chunks(requests, iter(chunks), run)))


_PREFIX = "report."
"""Prefix of the names of the report's summaries, which the rules of findings do not use."""


def report_requests(run: Run) -> dict[str, SummaryRequest]:
    """Return the requests for the summaries of events that a report needs."""
    # The time in which bytes moved is part of the rate.
    others = {_PREFIX + name: request for name, request in sums_requests(run).items() if name != "active"}
    others[_PREFIX + "longest"] = calls_for_zooms(run)
    others |= {
        _PREFIX + key: request for key, request in (folded_requests() | transfer_requests(run)).items()
    }
    return others | _requests(_OF_ALL_CALLS | _OVER_TIME | _OF_ALL_EVENTS)


def _requests(kinds: Mapping[str, type[Summary]]) -> dict[str, SummaryRequest]:
    return {_PREFIX + name: request_for(kind) for name, kind in kinds.items()}


def _found(group: SummaryGroup) -> dict[str, Any]:
    return {
        name.removeprefix(_PREFIX): summary
        for name, summary in group.summaries.items()
        if name.startswith(_PREFIX)
    }
