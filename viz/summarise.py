"""The summary behind a picture, from whatever data a picture was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ensembles.ensemble import Ensemble
from ensembles.errors import EnsioError
from ensembles.events import Call, Events
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.from_cells import histogram_of, moments_of, table_of, totals_of
from ensembles.summaries.histogram import LogHistogram
from ensembles.summaries.moments import CallMoments
from ensembles.summaries.runtotals import RunTotals

Summary = TypeVar("Summary")

_FROM_CELLS: dict[type, Callable[[Any], Any]] = {
    LogHistogram: lambda run: histogram_of(run.summary),
    CallMoments: lambda run: moments_of(run.summary),
    CallTable: lambda run: table_of(run.summary, run.files),
    RunTotals: lambda run: totals_of(run.summary),
}
"""Summaries that the recorder's own is enough for."""


def summarise(data: Any, kind: type[Summary], make: Callable[[], Summary]) -> Summary:
    """Fill a summary.

    Parameters
    ----------
    data : Run, Events, or a summary of this kind
        A summary is returned as it is. A histogram may be that of an Ensemble, too.
    kind : type
    make : callable
        Makes an empty summary.

    Raises
    ------
    TypeError
        `data` is none of these.
    EnsioError
        It takes single calls, and the run was recorded without.
    """
    if isinstance(data, kind):
        return data
    if isinstance(data, Ensemble) and kind is LogHistogram:
        return _histogram_of_ensemble(data)
    if not getattr(data, "has_all_events", True):
        if kind in _FROM_CELLS:
            return _FROM_CELLS[kind](data)
        if data.mode == "profile":
            raise EnsioError(
                f"{data.path} was recorded in mode profile, without single calls: what is to be drawn of it "
                "is its histogram; record again with ensio run --mode trace for the rest"
            )
    summary = make()
    if isinstance(data, Events):
        chunks = [data]
    elif hasattr(data, "chunks"):
        chunks = data.chunks()
    else:
        raise TypeError(f"a run, events or a {kind.__name__} is needed, not {type(data).__name__}")
    for chunk in chunks:
        summary.add(chunk)
    return summary


def _histogram_of_ensemble(ensemble: Ensemble) -> LogHistogram:
    histogram = LogHistogram()
    if len(ensemble):
        name = ensemble.name or "calls"
        call = Call(name if ensemble.per == "call" else f"{name} per MiB", "", ensemble.op or "meta")
        histogram.counts[call] = ensemble.sample.counts.copy()
    return histogram


def tasks_of(data: Any) -> int:
    """Number of tasks of a run; of events, those up to the largest rank."""
    if isinstance(data, Events):
        return int(data.rank.max()) + 1 if len(data) else 1
    return getattr(data, "tasks", 1)
