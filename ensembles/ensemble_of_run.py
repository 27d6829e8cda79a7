"""The ensemble of a run: from its events, in one pass if they are many, or from the recorder's summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ensembles.ensemble import Ensemble
from ensembles.ensemble_of_summary import ensemble_of_summary
from ensembles.errors import EnsioError
from ensembles.events import OPS, Events
from ensembles.gathering import Here
from ensembles.statistics.sample import Sample
from ensembles.structure.ordinals import ordinal_of
from ensembles.structure.phases import Phases, find_phases
from ensembles.summaries.kernels import THREADS
from ensembles.summaries.phasecounts import PhaseCounts

if TYPE_CHECKING:
    from ensembles.run import Run
    from ensembles.selection import Selection

Per = Literal["call", "MiB"]

IN_MEMORY = 4_000_000
"""Of runs with more events, only the histogram and the calls of some ranks are held."""

SOME_EVENTS = 1_000_000
"""About so many events, of whole ranks, tell the phases of a run with more than `IN_MEMORY`, and how
successive calls hang together."""

MOST_PHASES = 8192
"""More phases than these are put together in a row while counting: 15 KiB each."""

CHUNK = 1 << 19
"""Events that are in memory at a time, for each thread."""

_LEAST_RANKS = 2
_BEFORE_NS = 2_000_000
_MOST_ACROSS = 0.1


def ensemble_of(run: Run, selection: Selection, per: Per = "call") -> Ensemble:
    """The calls of a run that a selection chooses.

    Raises
    ------
    EnsioError
        The run does not tell what the selection asks for.
    """
    if run.keeps_all_calls:
        if run.most_events <= min(IN_MEMORY, run.budget.held_events):
            return run.chosen_by(selection).ensemble(per)
        return _in_one_pass(run, selection, per)
    try:
        return ensemble_of_summary(run, selection, per)
    except EnsioError:
        if run.mode in ("profile", "tail") or selection.ordinals is not None:
            raise
    ensemble = run.chosen_by(selection).ensemble(per)
    ensemble.notes.append(
        f"{run.dropped_events:,} calls of this run are not among its events, and those of them that the "
        "filters mean are not in this ensemble"
    )
    return ensemble


def _in_one_pass(run: Run, selection: Selection, per: Per) -> Ensemble:
    some = run.some_ranks(min(SOME_EVENTS, run.budget.held_events // 4), _LEAST_RANKS)
    phases = find_phases(some, run.regions, run.clock_error_ns)
    if phases.rule in ("steps", "gaps"):
        phases = replace(phases, cuts_ns=_late(phases.cuts_ns, some))
    run.budget.check(run.path)
    cuts, number, key = _groups_of(phases)
    columns = {*selection.columns, "start", "duration"}
    columns |= {"rank"} if phases.named is not None else set()
    columns |= {"moved"} if per == "MiB" or selection.per_byte else set()
    within = selection.without_phases()
    make = partial(_empty_counts, cuts, within, key, per)
    if isinstance(run.workers, Here) and within.ordinals is None:
        found = _counted(run, tuple(columns), make)
    else:
        found = run.gather(make, *((columns, None) if within.ordinals is None else (None, within)))
    if phases.rule in ("steps", "gaps"):
        found, number = _true_cuts(found, number, run.tasks)
    sample = Sample.of_phase_counts(found, number)
    if selection.phases is not None:
        chosen = np.zeros(len(sample.phase), bool)
        for low, high in selection.phases:
            chosen |= (sample.phase >= low) & (sample.phase <= high)
        sample = sample.chosen(chosen)
    theirs = some.told_by(
        lambda name: _phase_in(phases, found, number, some) if name == "phase" else ordinal_of(some)
    )
    part = selection.of(theirs).ensemble(per)
    ranks = len(np.unique(some.rank))
    notes = [f"phases were found in the calls of {ranks:,} of {run.tasks:,} ranks ({phases.sentence})"]
    if phases.count > MOST_PHASES:
        notes.append(f"{phases.count:,} phases were put together to {MOST_PHASES:,}")
    doubts = [note for note in part.notes if note not in notes]
    return Ensemble.of_sample(sample, per, part.name, part.op, notes + doubts, part.successive)


def _late(cuts_ns: np.ndarray, some: Events) -> np.ndarray:
    """Cuts moved to the end of the gap in which they lie: ranks that were not looked at may be at work for
    long after those that were, but all go on soon after a barrier."""
    start = np.sort(some.start[some.op != OPS.index("wait")])
    following = np.searchsorted(start, cuts_ns, side="left")
    gap_ns = np.where(following < len(start), start[np.minimum(following, len(start) - 1)] - cuts_ns, 0)
    return cuts_ns + np.maximum(gap_ns - np.minimum(gap_ns // 2, _BEFORE_NS), 0)


def _groups_of(
    phases: Phases,
) -> tuple[np.ndarray, np.ndarray, Callable[[Events], np.ndarray] | None]:
    """Cuts of the keys by which calls are counted, the phase of each group, and the keys (None: starts)."""
    if phases.named is not None:
        count = min(phases.count, MOST_PHASES)
        return np.arange(1, count + 1), np.append(-1, np.arange(1, count + 1)), partial(_named_phase, phases)
    cuts, number = phases.cuts_ns, phases.number
    if len(cuts) > MOST_PHASES:
        kept = np.unique(np.linspace(0, len(cuts) - 1, MOST_PHASES).astype(int))
        cuts = cuts[kept]
        number = np.arange(1, len(cuts) + 2)
    return cuts, number, None


def _named_phase(phases: Phases, events: Events) -> np.ndarray:
    """The phase of each call, -1: none; too many are put together, several that follow each other to one."""
    number = phases.of(events)
    if phases.count > MOST_PHASES:
        number = np.where(number > 0, (number - 1) * MOST_PHASES // phases.count + 1, -1)
    return number


def _empty_counts(
    cuts: np.ndarray,
    selection: Selection,
    key: Callable[[Events], np.ndarray] | None,
    per: Per,
    _: Any = None,
) -> PhaseCounts:
    # Ordinals are looked at before, in the pass itself.
    wanted = replace(selection, ordinals=None)
    return PhaseCounts(cuts, partial(_choose, wanted, per=per), key, per_mib=per == "MiB")


def _choose(selection: Selection, chunk: Events, per: Per) -> np.ndarray:
    mask = selection.mask(chunk)
    return mask & (chunk.moved > 0) if per == "MiB" else mask


def _counted(run: Run, columns: tuple[str, ...], make: Callable[[], PhaseCounts]) -> PhaseCounts:
    """All events of a run in one pass, counted by several threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        parts = run.parts(THREADS, CHUNK, columns)
        if len(parts) > 1:
            counts = list(pool.map(_counted_part, parts, [make() for _ in parts]))
        else:
            counts = _counted_behind(parts[0] if parts else iter(()), [make() for _ in range(THREADS)], pool)
    for other in counts[1:]:
        counts[0].merge(other)
    return counts[0]


def _counted_part(chunks: Iterator[Events], counts: PhaseCounts) -> PhaseCounts:
    for chunk in chunks:
        counts.add(chunk)
    return counts


def _counted_behind(
    chunks: Iterator[Events], counts: list[PhaseCounts], pool: ThreadPoolExecutor
) -> list[PhaseCounts]:
    """Chunks are counted while the next ones are read."""
    pending: list[Future | None] = [None] * len(counts)
    for turn, chunk in enumerate(chunks):
        place = turn % len(counts)
        if (busy := pending[place]) is not None:
            busy.result()
        pending[place] = pool.submit(counts[place].add, chunk)
    for busy in pending:
        if busy is not None:
            busy.result()
    return counts


def _true_cuts(found: PhaseCounts, number: np.ndarray, tasks: int) -> tuple[PhaseCounts, np.ndarray]:
    """Without the cuts that lie within the calls of many ranks: those that were looked at were idle by
    chance."""
    dropped = found.arrays["across"][:-1] > _MOST_ACROSS * tasks
    if not dropped.any():
        return found, number
    kept = found.without_cuts(dropped)
    return kept, np.arange(1, len(kept.cuts) + 2)


def _phase_in(phases: Phases, found: PhaseCounts, number: np.ndarray, events: Events) -> np.ndarray:
    if phases.named is not None:
        return _named_phase(phases, events)
    return number[np.searchsorted(found.cuts, events.start, side="right")]
