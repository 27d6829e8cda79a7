"""Phases of long runs: detected in some ranks, refined by the calls of all."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ensembles import _compiled
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events, is_io_of_calls, of_calls
from ensembles.model.levels import FEW, MOST_PIECES, NEARLY_ALL
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.reading import Ranges, sample_size
from ensembles.passes.summary import ANY_ORDER, Summary, ignoring_run
from ensembles.structure.phases.barriers import (
    NO_BARRIERS,
    Barriers,
    has_message_layer,
    is_message_of_calls,
    steps_of_messages,
)
from ensembles.structure.phases.gap_occupancy import GapOccupancy
from ensembles.structure.phases.gap_rule import TopLevelCalls, cuts_in, infer_phases
from ensembles.structure.phases.result import Phases
from ensembles.summaries.phasecounts import CountsOfSeveral

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun

Search = Generator[dict[str, SummaryRequest], SummaryGroup, Phases]
"""A search for phases: it yields requests of passes, is sent their results, and returns phases."""

LARGEST_PART = 4
"""Whole ranks are held only if `FEW` of them have at most this many times the wanted events."""

_COLUMNS = ("rank", "call", "depth", "start", "duration", "requested")
"""Columns of the sampled ranks in which phases are searched."""


def sample_ranks(
    run: RecordedRun, most_events: int, among: Ranges | None = None, columns: tuple[str, ...] | None = None
) -> Events | None:
    """Read the calls of some whole ranks, evenly spaced among all ranks."""
    if not _may_hold(run.tasks, run.reading.most_events, most_events):
        return None
    return run.reading.some_ranks(most_events, min(FEW, run.tasks), among, columns)


def is_sample_of(run: RecordedRun, most_events: int, events: int, ranks: int) -> bool:
    """Check whether a sample is of so many events and ranks, which a source may have expected otherwise."""
    known = run.reading.source.rank_sizes().rank
    return len(known) == ranks and all(
        _may_hold(run.tasks, whole, most_events // 2)
        and sample_size(ranks, whole, most_events // 2, min(FEW, run.tasks))
        == sample_size(ranks, events, most_events // 2, min(FEW, run.tasks))
        for whole in (run.reading.most_events, events)
    )


def _may_hold(tasks: int, events: int, most_events: int) -> bool:
    return min(FEW, tasks) * events <= LARGEST_PART * most_events * max(tasks, 1)


class ExtraSummary:
    """Counts by phase that are made in the pass that searches the gaps of all ranks.

    `make`: makes empty `CountsOfSeveral` that keep the calls of groups with odd numbers, given the cuts.
    `found`: the counts between the cuts of the phases; None: they were not made.
    """

    def __init__(self, columns: Iterable[str], make: Callable[[np.ndarray], CountsOfSeveral]) -> None:
        self.columns, self.make = tuple(columns), make
        self.found: CountsOfSeveral | None = None


def search_in_sample(
    run: RecordedRun,
    rule: str | None,
    most_events: int,
    some: Events | None = None,
    beside: ExtraSummary | None = None,
) -> Search:
    """Search phases without names in some ranks, and refine them by the calls of all.

    Steps are found in the calls of some whole ranks. Of each gap between them, the part counts in which no
    other rank is in I/O either. If more than a tenth of all ranks are in I/O throughout a gap, it is dropped.
    Memory is proportional to the calls of the sampled ranks and to the collective calls. The caller makes the
    passes over all events, of which there is at least one.
    """
    if some is None:
        some = sample_ranks(run, most_events // 2, columns=_COLUMNS)
    if some is None:
        return replace(
            (yield from _one_phase()),
            sentence=f"phases were not detected: the calls of {FEW} tasks must fit into memory, and "
            f"{run.reading.most_events:,} calls of {run.tasks:,} tasks are too many",
        )
    meetings, calls = Barriers(), TopLevelCalls()
    meetings.add(some)
    calls.add(some)
    ranks = len(np.unique(some.rank))
    del some  # the passes need its memory
    if rule in (None, "barriers"):
        if meetings:
            near_ns = meetings.first_exits_ns(calls.ranks, run.info.clock_error_ns)
            starts_of = ignoring_run(partial(CallStarts, near_ns))
            found = yield {
                "met": SummaryRequest(ignoring_run(Barriers)),
                "starts": SummaryRequest(starts_of),
            }
            met, starts = found["met"], found["starts"]
            cuts_ns, is_barrier = met.meetings(_ranks_with_io(run, ranks, calls), run.info.clock_error_ns)
            if len(cuts_ns):
                return (yield from _between_barriers(cuts_ns, is_barrier, calls, starts))
        if rule == "barriers":
            raise EnsioError(NO_BARRIERS)
    if not calls.total:
        return (yield from _one_phase())
    rank, start, end, op = calls.transfers
    steps = infer_phases(rank, start, end, op)
    looked_at = f"; detected in {ranks:,} of {run.tasks:,} tasks"
    before = np.searchsorted(np.sort(start), steps.gap_to, side="left")
    expected, starts = np.diff(before, prepend=0) * (run.tasks / ranks), calls.start
    has_barriers = bool(meetings)
    del rank, start, end, op, calls, meetings
    found = yield _gaps_and_counts(steps.gap_from, steps.gap_to, beside)
    gaps, counts = found["gaps"], found.summaries.get("counts")
    cuts_ns = cuts_in(*gaps.found(int((1 - NEARLY_ALL) * run.tasks + 1e-9), expected))
    if beside is not None and counts is not None and counts.all_kept:
        beside.found = counts.parted(cuts_ns)
    # Between two gaps of the sampled ranks there is I/O of these ranks.
    rule = steps.rule if len(cuts_ns) else "none"
    share = steps.share if len(cuts_ns) else 0.0
    return Phases.between(rule, share, cuts_ns, [starts], looked_at, None, has_barriers)


def _gaps_and_counts(
    gap_from: np.ndarray, gap_to: np.ndarray, beside: ExtraSummary | None
) -> dict[str, SummaryRequest]:
    ends = np.stack([gap_from, gap_to], axis=1).reshape(-1)
    make = ignoring_run(partial(GapOccupancy, gap_from, gap_to))
    requests = {"gaps": SummaryRequest(make)}
    if beside is not None and len(gap_from) <= MOST_PIECES and (np.diff(ends) >= 0).all():
        requests["counts"] = SummaryRequest(ignoring_run(partial(beside.make, ends)), beside.columns)
    return requests


def _begun(cuts_ns: np.ndarray) -> dict[str, SummaryRequest]:
    return {"begun": SummaryRequest(ignoring_run(partial(_StartCounts, cuts_ns)))}


def _one_phase() -> Search:
    nowhere = np.empty(0, np.int64)
    found = yield _begun(nowhere)
    begun = found["begun"]
    if not begun.used.any():
        return Phases.without_io()
    return Phases.between("none", 0.0, nowhere, [_examples_ns(nowhere, begun.used)])


def _ranks_with_io(run: RecordedRun, looked_at: int, calls: TopLevelCalls) -> int:
    """Estimate the number of ranks that do I/O from those that were looked at."""
    return round(run.tasks * calls.ranks / max(looked_at, 1))


def _between_barriers(
    cuts_ns: np.ndarray, is_barrier: np.ndarray, calls: TopLevelCalls, starts: CallStarts
) -> Search:
    if calls.total:
        of_some = Phases.between("barriers", 1.0, cuts_ns, [calls.start])
        if of_some.count == len(cuts_ns) + 1:
            return of_some
    begun = starts.begun(cuts_ns)
    if begun is None:
        counts = (yield _begun(cuts_ns))["begun"]
        begun = counts.used, counts.with_messages & counts.has_layer
    io_ns, messages_ns = (_examples_ns(cuts_ns, with_calls) for with_calls in begun)
    steps_ns = steps_of_messages(cuts_ns, is_barrier, io_ns, messages_ns)
    return Phases.between("barriers", 1.0, steps_ns, [io_ns], messages=messages_ns)


def _examples_ns(cuts_ns: np.ndarray, with_calls: np.ndarray) -> np.ndarray:
    """Return a moment in each part between the cuts in which calls begin."""
    examples: np.ndarray = np.concatenate([[np.iinfo(np.int64).min], cuts_ns])[with_calls]
    return examples


class _StartCounts(Summary):
    """A mergeable summary: between which cuts I/O calls begin, waiting excluded, and messages."""

    columns = ("call", "start")
    requires = ANY_ORDER
    results = ("used", "with_messages", "has_layer")
    added_up = ("used", "with_messages", "has_layer")

    def __init__(self, cuts_ns: np.ndarray) -> None:
        self._cuts_ns = cuts_ns
        self.used = np.zeros(len(cuts_ns) + 1, bool)
        self.with_messages = np.zeros(len(cuts_ns) + 1, bool)
        self.has_layer = False

    def add(self, chunk: Events) -> None:
        self.used |= self._begun(chunk.start[is_io_of_calls(chunk.calls)[chunk.call]])
        self.with_messages |= self._begun(chunk.start[is_message_of_calls(chunk.calls)[chunk.call]])
        self.has_layer = self.has_layer or has_message_layer(chunk)

    def _begun(self, start: np.ndarray) -> np.ndarray:
        parts = np.searchsorted(self._cuts_ns, start, side="right")
        begun: np.ndarray = np.bincount(parts, minlength=len(self.used)) > 0
        return begun


_IO, _MESSAGES = range(2)
_NEVER = np.iinfo(np.int64).max


@of_calls
def _kinds_of_calls(calls: Sequence[Call]) -> np.ndarray:
    kinds = is_io_of_calls(calls).astype(np.uint8) << _IO
    kinds |= is_message_of_calls(calls).astype(np.uint8) << _MESSAGES
    return kinds


class CallStarts(Summary):
    """A mergeable summary: the first and the last start of I/O calls, and of messages, between edges.

    Calls that wait for other tasks are not I/O.
    """

    columns = ("call", "start")
    requires = ANY_ORDER
    results = ("has_layer", "_least", "_most")

    def __init__(self, edges_ns: np.ndarray) -> None:
        self._edges_ns = np.ascontiguousarray(edges_ns, np.int64)
        self.has_layer = False
        shape = (2, len(edges_ns) + 1)
        self._least, self._most = np.full(shape, _NEVER), np.full(shape, -_NEVER)

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.has_layer = self.has_layer or has_message_layer(chunk)
        events = np.ascontiguousarray(chunk.start, np.int64), np.ascontiguousarray(chunk.call, np.uint16)
        kinds = _kinds_of_calls(chunk.calls)
        _compiled.mark_starts(*events, kinds, self._edges_ns, self._least, self._most)

    def merge(self, other: CallStarts) -> None:
        """Add the calls of another part of the run."""
        if not np.array_equal(self._edges_ns, other._edges_ns):
            raise ValueError("starts can be merged only if they are between the same edges")
        self.has_layer = self.has_layer or other.has_layer
        np.minimum(self._least, other._least, out=self._least)
        np.maximum(self._most, other._most, out=self._most)

    def begun(self, cuts_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Tell in which parts of the run calls begin.

        `with_io`, `with_messages`: before, between and after the cuts. There are no messages if their layer
        was not recorded. None: of some part it is unclear.
        """
        with_io = self._begun(_IO, cuts_ns)
        with_messages = (
            self._begun(_MESSAGES, cuts_ns) if self.has_layer else np.zeros(len(cuts_ns) + 1, bool)
        )
        return None if with_io is None or with_messages is None else (with_io, with_messages)

    def _begun(self, kind: int, cuts_ns: np.ndarray) -> np.ndarray | None:
        used = self._least[kind] <= self._most[kind]
        low = np.searchsorted(cuts_ns, self._least[kind][used], side="right")
        high = np.searchsorted(cuts_ns, self._most[kind][used], side="right")
        with_calls = np.zeros(len(cuts_ns) + 1, bool)
        with_calls[low] = with_calls[high] = True
        # Calls between the first and the last start of two edges may be in any part between theirs.
        change = np.bincount(low + 1, minlength=len(cuts_ns) + 3) - np.bincount(
            np.maximum(high, low + 1), minlength=len(cuts_ns) + 3
        )
        is_between = np.cumsum(change)[: len(cuts_ns) + 1] > 0
        return None if (is_between & ~with_calls).any() else with_calls
