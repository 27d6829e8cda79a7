"""Sections of the report about ensembles: modes and tails of the functions with the most time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.from_run import ensembles_from_run, is_long, request_of_counts
from ensembles.ensemble.main_ensemble import ensemble_of, tasks_of
from ensembles.ensemble.main_group import main_group
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call
from ensembles.passes.group import SummaryRequest
from ensembles.passes.progress import advance, announced
from ensembles.passes.summary import ignoring_run
from ensembles.run.run import Run
from ensembles.run.selection import Selection
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.phasecounts import CountsOfSeveral
from ensembles.viz.common.figures import sentence_of
from ensembles.viz.pictures.modes import modes
from ensembles.viz.pictures.tail import tail

_MOST = 2
_LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Shown:
    """The section of a report about one function."""

    name: str  # Name of the function
    pictures: dict[str, Any]  # ``modes`` and ``tail``; empty without an ensemble
    sentences: Sequence[str]  # Data-quality warnings, or the reason why there are no figures


def counts_for_ensembles(run: Run) -> SummaryRequest | None:
    """Return the request for the counts of `shown_ensembles`.

    None: the functions with the most time, or the phases, are not known without a pass.
    """
    table = CallTable()
    if not run.reading.kept.find(SummaryRequest(ignoring_run(CallTable)), table):
        return None
    try:
        return request_of_counts(run, _selections(run, _calls_that_matter(table))[0])
    except EnsioError:  # `shown_ensembles` says why there are no ensembles
        return None


def shown_ensembles(run: Run, table: CallTable, counts: CountsOfSeveral | None = None) -> list[Shown]:
    """Return the sections of the two reads or writes with the most time, and of a call with more time."""
    calls = _calls_that_matter(table)
    found = []
    with announced("finding modes of", run.path, len(calls), "ensembles"):
        ensembles = _ensembles(run, calls, counts)
        for call, each in zip(calls, ensembles, strict=True):
            found.append(_shown(run, call, each))
            advance(1)
    return [*found, *_flights(run)]


def _flights(run: Run) -> list[Shown]:
    """Return the section of the requests with the longest time in flight, if single ones are known."""
    flying = {op: sums.flight_ns for op, sums in run.info.flights.items() if op in ("read", "write")}
    if not flying:
        return []
    try:
        ensemble = ensemble_of(run, op=max(flying, key=lambda op: flying[op]), quantity="flight")
    except EnsioError:  # the sums of the flights are in the information
        return []
    if not ensemble.n:
        return []
    return [_with_pictures(ensemble, ensemble.name, "flight", {"modes": modes(ensemble)})]


def _selections(run: Run, calls: Sequence[Call]) -> tuple[list[Selection], list[list[str]]]:
    """Return the selection of each function, of the size class with most time, and what was left out."""
    selections, notes = [], []
    for call in calls:
        chosen = Selection.parse(call=call.name, layer=call.layer).for_run(run, from_summary=True)
        left_out: list[str] = []
        # Without the recorder's summary, a long run would be read once more for each function.
        if run.reading.has_summary or not is_long(run):
            chosen, left_out = main_group(run, chosen)
        selections.append(chosen)
        notes.append(left_out)
    return selections, notes


def _ensembles(
    run: Run, calls: Sequence[Call], counts: CountsOfSeveral | None
) -> list[Ensemble | EnsioError]:
    """Return the ensemble of each function, or the error that explains why there is none."""
    try:
        selections, notes = _selections(run, calls)
        found = list(ensembles_from_run(run, selections, counts=counts))
    except EnsioError:
        return [_ensemble(run, call) for call in calls]
    for ensemble, left_out in zip(found, notes, strict=True):
        ensemble.notes[:0] = left_out  # below the pictures, not in each of them
    return list(found)


def _ensemble(run: Run, call: Call) -> Ensemble | EnsioError:
    try:
        return ensemble_of(run, call=call.name, layer=call.layer)
    except EnsioError as error:
        return error


def _calls_that_matter(table: CallTable) -> list[Call]:
    """Return the reads and writes with the most time, after a function on which more time was spent."""
    times_ns = {call: each.time_ns for call, each in table.totals.items() if not call.waits_for_tasks}
    ordered = sorted(times_ns, key=lambda call: -times_ns[call])
    moving = [call for call in ordered if call.op in ("read", "write")]
    chosen = moving or ordered
    least_ns = _LEAST_SHARE * max((times_ns[call] for call in chosen), default=0)
    shown = [call for call in chosen if times_ns[call] >= least_ns][:_MOST]
    # Of the first one: a program that spends its time in fsync is not explained by its writes.
    return [call for call in ordered[:1] if call not in shown] + shown


def _shown(run: Run, call: Call, ensemble: Ensemble | EnsioError) -> Shown:
    try:
        if isinstance(ensemble, EnsioError):
            raise ensemble
        pictures = {"modes": modes(ensemble), "tail": tail(ensemble, tasks_of(ensemble, run.tasks))}
    except EnsioError as error:
        return Shown(call.name, {}, [f"{error}."])
    return _with_pictures(ensemble, call.name, f"{call.layer}_{call.name}", pictures)


def _with_pictures(ensemble: Ensemble, name: str, key: str, pictures: dict[str, Any]) -> Shown:
    for kind, figure in pictures.items():
        figure.name = f"{kind}_{key}"  # names are unique on a page
        if kind == "tail":
            figure.title.visible = False  # it is the heading of the folded part
    return Shown(name, pictures, [sentence_of(note) for note in ensemble.notes])
