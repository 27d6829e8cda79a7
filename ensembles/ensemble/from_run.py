"""The ensemble of a run: from its events, in one pass if they are many, or from the recorder's summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ensembles.ensemble.call_scale import note_on_waits, step_of, with_quantity
from ensembles.ensemble.ensemble import Ensemble
from ensembles.ensemble.from_summary import SumsError, ensemble_from_summary
from ensembles.ensemble.inputs import call_name, op_name
from ensembles.model.events import Events
from ensembles.model.filters import within_ranges
from ensembles.model.holds import Holds
from ensembles.model.units import HELD_EVENTS
from ensembles.passes.group import SummaryRequest
from ensembles.passes.summary import ignoring_run
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.structure.ordinals.numbering import compute_ordinals
from ensembles.structure.phases.detect import MOST_EVENTS, Phases
from ensembles.structure.phases.sampled_ranks import ExtraSummary, sample_ranks
from ensembles.summaries.phasecounts import CountsOfSeveral, PhaseCounts

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

Per = Literal["call", "MiB"]

SOME_EVENTS = MOST_EVENTS // 2
"""Events of whole ranks that are sampled from a run with more than `HELD_EVENTS`. They show where to look for
phases (`phases_of_run` takes as many) and how consecutive calls are correlated.
"""

_COLUMNS = ("rank", "call", "depth", "moved", "start", "duration", "flight")
"""Columns of events that `Ensemble.from_events` and phases need."""

MOST_PHASES = 8192
"""More phases than these are merged with their successors while counting: each takes 15 KiB."""


def is_long(run: Run) -> bool:
    """Whether a run has too many events to hold them all in memory."""
    return run.reading.most_events > min(HELD_EVENTS, run.reading.budget.held_events)


def has_single_calls(run: Run) -> bool:
    """Whether a run has all of its calls, and not too many to hold them."""
    return not is_long(run) and run.info.has(Holds.CALL_ORDER)


def single_calls(run: Run, selection: Selection, columns: Sequence[str] | None = None) -> Events | None:
    """Read the selected calls; None: the run has too many to hold them, or its record lacks some."""
    return run.reading.chosen_by(selection, columns) if has_single_calls(run) else None


def _is_passed_over(run: Run) -> bool:
    """Whether the calls of an ensemble are counted in passes over the events."""
    return is_long(run) and run.info.has(Holds.CALL_ORDER)


def ensemble_from_run(run: Run, selection: Selection, per: Per = "call") -> Ensemble:
    """Make the ensemble of the calls that a selection chooses."""
    ensemble = _of_selection(run, selection, per)
    ensemble.crowded = run.info.crowded_text
    return ensemble


def _of_selection(run: Run, selection: Selection, per: Per) -> Ensemble:
    events = single_calls(run, selection, _COLUMNS)
    if events is not None:
        ensemble = with_nodes(Ensemble.from_events(events, per, selection.quantity), run)
        ensemble.notes += note_on_waits(run, selection, events)
        return ensemble
    if _is_passed_over(run):
        return _in_one_pass(run, [selection], per)[0]
    try:
        if selection.quantity == "duration":
            return ensemble_from_summary(run, selection, per)
    except SumsError as error:
        if selection.ordinals is not None:
            raise
        run.reading.need(Holds.UNBIASED_CALLS, error.why)
    ensemble = Ensemble.from_events(run.reading.chosen_by(selection), per, selection.quantity)
    ensemble.notes.append(
        f"{run.info.dropped_events:,} calls of this run are not among its events: those that the filters "
        "choose are missing in this ensemble"
    )
    return ensemble


def with_nodes(ensemble: Ensemble, run: Run) -> Ensemble:
    """Add the node of each call to an ensemble, if each task ran on one known node."""
    hosts: dict[int, set[str]] = {}
    for process in run.info.processes:
        if process.rank >= 0 and process.host:
            hosts.setdefault(process.rank, set()).add(process.host)
    if ensemble.rank is None or not ensemble.n or any(len(names) > 1 for names in hosts.values()):
        return ensemble
    node = np.full(int(ensemble.rank.max()) + 1, -1, np.int64)
    numbers = {name: number for number, name in enumerate(sorted({min(names) for names in hosts.values()}))}
    for rank, names in hosts.items():
        if rank < len(node):
            node[rank] = numbers[min(names)]
    node_of_call = node[ensemble.rank]
    if (node_of_call >= 0).all():
        ensemble.node = node_of_call
    return ensemble


def ensembles_from_run(
    run: Run, selections: Sequence[Selection], per: Per = "call", counts: CountsOfSeveral | None = None
) -> list[Ensemble]:
    """Make the ensembles of several selections, in one pass where possible."""
    found = _of_selections(run, selections, per, counts)
    for ensemble in found:
        ensemble.crowded = run.info.crowded_text
    return found


def _of_selections(
    run: Run, selections: Sequence[Selection], per: Per, counts: CountsOfSeveral | None
) -> list[Ensemble]:
    if _are_counted_together(run, selections):
        return _in_one_pass(run, selections, per, counts)
    return [ensemble_from_run(run, selection, per) for selection in selections]


def request_of_counts(run: Run, selections: Sequence[Selection]) -> SummaryRequest | None:
    """Return the request for the counts that `ensembles_from_run` needs, to join it to another pass.

    Phases are detected if they are not known.
    """
    if not _are_counted_together(run, selections) or run.phases is None:
        return None
    return SummaryRequest(*_made_between(selections, "call", run.phases, _groups_of(run.phases)))


def _are_counted_together(run: Run, selections: Sequence[Selection]) -> bool:
    return (
        bool(selections)
        and _is_passed_over(run)
        and not any(each.needs_whole_run or each.ranks is not None for each in selections)
    )


def _in_one_pass(
    run: Run, selections: Sequence[Selection], per: Per, counts: CountsOfSeveral | None = None
) -> list[Ensemble]:
    """Make the ensembles of one selection, or of several without phases and ordinals."""
    most_events = min(SOME_EVENTS, run.reading.budget.held_events // 4)
    among = selections[0].read_ranks if len(selections) == 1 else None
    some = sample_ranks(run, most_events, among)
    run.reading.budget.check(run.path)
    if counts is not None and run.phases is not None:
        phases, found, number = run.phases, counts, _groups_of(run.phases)[1]
    else:
        phases, found, number = _phases_and_counts(run, selections, per, some if among is None else None)
    return [
        _ensemble_of_counts(
            run, selection, per, some, phases, CountedDurations.from_phase_counts(counts, number)
        )
        for selection, counts in zip(selections, found.each, strict=True)
    ]


def _ensemble_of_counts(
    run: Run, selection: Selection, per: Per, some: Events | None, phases: Phases, sample: CountedDurations
) -> Ensemble:
    if selection.phases is not None and phases.count <= MOST_PHASES:
        sample = sample.chosen(within_ranges(sample.phase, selection.phases))
    notes = [f"phases: {phases.sentence}"]
    if phases.count > MOST_PHASES:
        notes.append(f"{phases.count:,} phases were merged to {MOST_PHASES:,}")
    if some is None:
        notes.append(
            "the correlation of consecutive calls of a task is unknown: each task made too many to keep in "
            "memory"
        )
        used = [call for call in run.calls[1:] if selection.wants_call(call)]
        named = with_quantity((call_name(used), op_name(used), notes), selection.quantity)
        return Ensemble.from_sample(sample, per, *named, resolution_s=step_of(run.info.clock_step_s, per))
    theirs = selection.apply(
        some.with_derived(
            lambda name: phases.phase_index(some) if name == "phase" else compute_ordinals(some)
        )
    )
    part = Ensemble.from_events(theirs, per, selection.quantity)
    doubts = [note for note in part.notes if note not in notes]
    return Ensemble.from_sample(
        sample,
        per,
        part.name,
        part.op,
        notes + doubts,
        part.successive,
        resolution_s=step_of(run.info.clock_step_s, per),
    )


def _phases_and_counts(
    run: Run, selections: Sequence[Selection], per: Per, some: Events | None
) -> tuple[Phases, CountsOfSeveral, np.ndarray]:
    """Return the phases of a run, the counts of each selection, and the phase of each group of counts."""
    selection, per_mib = selections[0], per == "MiB"
    chosen, columns = _chosen_and_columns(selections, per)
    if not run.reading.knows_phases and selection.ordinals is None:
        beside = ExtraSummary(columns, partial(_counts_beside, chosen, per_mib, selection.quantity))
        found = run.reading.find_phases(some, beside)
        if beside.found is not None and len(found.cuts_ns) < MOST_PHASES:
            # As the request below: the next command finds the phases, and asks for these counts.
            counts = partial(_counts_between, chosen, None, per_mib, selection.quantity, found.cuts_ns)
            request = SummaryRequest(ignoring_run(counts), tuple(columns))
            run.reading.kept.put({request: beside.found}, _limiting(run, selections))
            return found, beside.found, found.number
    phases = run.phases
    assert phases is not None  # all calls are among the events
    groups = _groups_of(phases)
    make, needed = _made_between(selections, per, phases, groups)
    if selection.ordinals is not None:
        return phases, run.summarize(make, selection=selection.without_phases()), groups[1]
    return phases, run.summarize(make, needed, _limiting(run, selections)), groups[1]


def _chosen_and_columns(selections: Sequence[Selection], per: Per) -> tuple[list[Any], set[str]]:
    """Return functions that choose the calls of each selection, and the columns that counts of them need."""
    # The pass itself applies the filter of ordinals.
    chosen = [partial(_choose, replace(each.without_phases(), ordinals=None), per) for each in selections]
    columns = {*(name for each in selections for name in each.columns), "start", "duration"}
    columns |= {"moved"} if per == "MiB" or any(each.per_byte for each in selections) else set()
    return chosen, columns


def _made_between(
    selections: Sequence[Selection], per: Per, phases: Phases, groups: _Groups
) -> tuple[Callable[[Any], CountsOfSeveral], tuple[str, ...]]:
    """Return what makes the counts of selections by groups of calls (`_groups_of`), and their columns."""
    chosen, columns = _chosen_and_columns(selections, per)
    cuts, _, key = groups
    columns |= {"rank"} if phases.named is not None else set()
    selection = selections[0]
    if selection.phases is not None and phases.count > MOST_PHASES:
        chosen = [partial(_choose_of_phases, choose, phases, selection.phases) for choose in chosen]
    make = partial(_counts_between, chosen, key, per == "MiB", selection.quantity, cuts)
    return ignoring_run(make), tuple(columns)


def _limiting(run: Run, selections: Sequence[Selection]) -> Selection | None:
    """Return a selection with which readers skip what is not wanted; None: all events are needed."""
    if len(selections) > 1 or run.reading.is_read_whole(selections[0]):
        return None
    return selections[0]


def _counts_beside(
    chosen: Sequence[Callable[[Events], np.ndarray]], per_mib: bool, quantity: str, cuts: np.ndarray
) -> CountsOfSeveral:
    return CountsOfSeveral(
        [PhaseCounts(cuts, choose, None, per_mib, keep_odd=True, quantity=quantity) for choose in chosen]
    )


def _counts_between(
    chosen: Sequence[Callable[[Events], np.ndarray]],
    key: Callable[[Events], np.ndarray] | None,
    per_mib: bool,
    quantity: str,
    cuts: np.ndarray,
) -> CountsOfSeveral:
    return CountsOfSeveral([PhaseCounts(cuts, choose, key, per_mib, quantity=quantity) for choose in chosen])


_Groups: TypeAlias = tuple[np.ndarray, np.ndarray, Callable[[Events], np.ndarray] | None]


def _groups_of(phases: Phases) -> _Groups:
    """Return cuts, phases and keys of the groups in which calls are counted."""
    if phases.named is not None:
        first = np.arange(1, phases.count + 1)
        if phases.count > MOST_PHASES:
            first = first[np.unique(np.linspace(0, phases.count - 1, MOST_PHASES).astype(int))]
        return first, np.append(-1, first), phases.phase_index
    cuts, number = phases.cuts_ns, phases.number
    if len(cuts) > MOST_PHASES:
        kept = np.unique(np.linspace(0, len(cuts) - 1, MOST_PHASES).astype(int))
        first = np.minimum.reduceat(np.where(number > 0, number, phases.count + 1)[1:], kept)
        number = np.concatenate([number[:1], np.where(first > phases.count, -1, first)])
        cuts = cuts[kept]
    return cuts, number, None


def _choose(selection: Selection, per: Per, chunk: Events) -> np.ndarray:
    mask = selection.mask(chunk)
    return mask & (chunk.moved > 0) if per == "MiB" else mask


def _choose_of_phases(
    choose: Callable[[Events], np.ndarray], phases: Phases, wanted: Sequence[tuple[int, int]], chunk: Events
) -> np.ndarray:
    mask: np.ndarray = choose(chunk) & within_ranges(phases.phase_index(chunk), wanted)
    return mask
