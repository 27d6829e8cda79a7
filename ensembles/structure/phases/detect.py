"""Detection of the phases of a run.

Phases are found by the first of these rules that applies:

``named``     phases that the program named (``ensio_phase``)
``barriers``  collective calls in which (nearly) all ranks met (`ensembles.structure.phases.barriers`)
``steps``     gaps in the I/O of all ranks by which all have made equally many calls
``gaps``      the widest gaps in the I/O (`ensembles.structure.phases.gap_rule`, as ``steps``)
``none``      the whole run is one phase
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.holds import Holds
from ensembles.model.regions import RegionTable
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.structure.phases.barriers import NO_BARRIERS, Barriers, MessageStarts, steps_of_messages
from ensembles.structure.phases.gap_rule import TopLevelCalls, infer_phases
from ensembles.structure.phases.result import RULES, AnnotatedPhases, KeptPhases, Phases
from ensembles.structure.phases.sampled_ranks import ExtraSummary, Search, search_in_sample

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun

__all__ = ["MOST_EVENTS", "RULES", "Phases", "detect_phases", "find_phases", "phase_index"]

MOST_EVENTS = 1 << 21
"""Phases of runs with more events are detected in some ranks (`ensembles.structure.phases.sampled_ranks`)."""

_BYTES_PER_CALL = 1 << 9
"""Memory that the search for steps takes for a call, temporary arrays included."""


def phase_index(events: Events, regions: RegionTable | None = None) -> np.ndarray:
    """Compute the phase of each call of a run, from 1 in the order of time; -1: in no phase."""
    return find_phases(events, regions).phase_index(events)


def find_phases(
    events: Events,
    regions: RegionTable | None = None,
    clock_error_ns: int = 0,
    rule: str | None = None,
) -> Phases:
    """Find the phases of a run in its events, by a rule or else the most reliable one that applies."""
    if regions is not None and rule in (None, "named") and (named := AnnotatedPhases.from_regions(regions)):
        return Phases.from_annotated(named)
    _refuse_named(rule)
    meetings, calls, messages = Barriers(), TopLevelCalls(), MessageStarts()
    for summary in (meetings, calls, messages):
        summary.add(events)
    return _find(meetings, calls, messages, clock_error_ns, rule)


def detect_phases(
    run: RecordedRun,
    rule: str | None = None,
    most_events: int | None = None,
    some: Events | None = None,
    beside: ExtraSummary | None = None,
) -> Phases:
    """Find the phases of a run in bounded memory, whatever its length.

    `most_events`: in runs with more events, steps are searched in the calls of some ranks, and their gaps in
    the calls of all. Default: `MOST_EVENTS`, or fewer if the memory budget of the run is smaller.
    """
    named = AnnotatedPhases.from_regions(run.regions)
    if not named:
        run.reading.need(Holds.UNBIASED_CALLS, "phase detection needs all calls")
    elif rule in (None, "named"):
        return Phases.from_annotated(named)
    _refuse_named(rule)
    if most_events is None:
        most_events = most_events_held(run)
    request = request_of_phases(rule, most_events)
    known = KeptPhases()
    if run.reading.kept.find(request, known) and known.phases is not None:
        return known.phases
    search = search_phases(run, rule, most_events, some, beside)
    requests = next(search)
    try:
        while True:
            requests = search.send(run.summarize(requests))
    except StopIteration as ended:
        phases: Phases = ended.value
    run.reading.kept.put({request: KeptPhases(phases)})
    return phases


def most_events_held(run: RecordedRun) -> int:
    """Return the number of events above which the phases of a run are detected in some ranks."""
    return min(MOST_EVENTS, run.reading.budget.memory_bytes // _BYTES_PER_CALL)


def request_of_phases(rule: str | None, most_events: int) -> SummaryRequest:
    """Describe a detection of phases, for `ensembles.run.kept`."""
    return SummaryRequest(ignoring_run(partial(_no_phases, rule, most_events)))


def _no_phases(rule: str | None, most_events: int) -> NoReturn:
    """Describe a detection of phases, which is not a summary of one pass."""
    raise NotImplementedError


def search_phases(
    run: RecordedRun,
    rule: str | None,
    most_events: int,
    some: Events | None = None,
    beside: ExtraSummary | None = None,
) -> Search:
    """Search phases without names; the caller makes the passes over all events, of which one is the least."""
    if run.reading.most_events > most_events:
        return (yield from search_in_sample(run, rule, most_events, some, beside))
    wanted = {"meetings": Barriers, "tops": TopLevelCalls, "messages": MessageStarts}
    found = yield {name: SummaryRequest(ignoring_run(kind)) for name, kind in wanted.items()}
    return _find(found["meetings"], found["tops"], found["messages"], run.info.clock_error_ns, rule)


def _refuse_named(rule: str | None) -> None:
    if rule == "named":
        raise EnsioError("the program named no phases: leave the rule out, or see ensio help methods/phases")


def _find(
    meetings: Barriers, calls: TopLevelCalls, messages: MessageStarts, clock_error_ns: int, rule: str | None
) -> Phases:
    """Find phases without names by the rules of `find_phases`."""
    if not calls.total:
        return Phases.without_io()
    if rule in (None, "barriers"):
        cuts_ns, is_barrier = meetings.meetings(calls.ranks, clock_error_ns)
        if len(cuts_ns):
            begun = messages.start
            steps_ns = steps_of_messages(cuts_ns, is_barrier, calls.start, begun)
            return Phases.between("barriers", 1.0, steps_ns, [calls.start], messages=begun)
        if rule == "barriers":
            raise EnsioError(NO_BARRIERS)
    steps = infer_phases(*calls.transfers)
    return Phases.between(steps.rule, steps.share, steps.cuts_ns, [calls.start], "", None, bool(meetings))
