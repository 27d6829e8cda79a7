"""The critical path: how long a run was, and how much of that it had to wait for I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events, is_io_of_calls, of_calls
from ensembles.model.levels import NEARLY_ALL
from ensembles.passes.summary import ANY_ORDER, Summary
from ensembles.structure.phases.barriers import ENDS, MESSAGE_LAYER, SYNCHRONISING
from ensembles.structure.phases.detect import detect_phases
from ensembles.structure.phases.result import TOGETHER, Phases, phases_of_calls, tasks_meet
from ensembles.summaries.active_time import IoUnion
from ensembles.summaries.held_calls import HeldCalls
from ensembles.summaries.keyed_sums import KeyedSums, groups_of_rows, sum_by_keys

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun


@dataclass(frozen=True)
class CriticalPath:
    """How long a run was, and how long it had to wait for I/O: the answer of every face.

    In each phase, the path goes through the task that takes longest by what it does itself: a task that
    waited for others in barriers inside the phase may return last, but none waited for it. Where nothing
    shows who waits for whom, the path may go around I/O that takes place while other tasks compute: the I/O
    of those tasks that live one after the other with most of it is the least, and the time in which any
    thread is in I/O is the most.

    Attributes
    ----------
    run_s : float
        Length of the run (`ensembles.run.run.Run.length_s`).
    io_s, low_s : float
        Time in I/O on the path, at most and at least, as recorded.
    is_of_run : bool
        False: the record does not show which tasks wait for which, and `low_s` is of the task with most I/O.
    is_of_calls : bool
        The record has the time of each call, and not only sums of them.
    untraced_s : float
        The part of `io_s` in calls that only counters of another tool hold.
    """

    run_s: float
    io_s: float
    low_s: float
    is_of_run: bool
    is_of_calls: bool = True
    untraced_s: float = 0.0

    @property
    def share(self) -> float | None:
        """Share of `io_s` of the run; None: the run took no time."""
        return self.io_s / self.run_s if self.run_s > 0 else None

    def to_json(self) -> dict[str, Any]:
        """Return ``io_s``, and ``io_low_s`` if it is less."""
        return {"io_s": self.io_s} | ({} if self.low_s == self.io_s else {"io_low_s": self.low_s})


@of_calls
def _is_waiting(calls: Sequence[Call]) -> np.ndarray:
    return np.array([call.waits_for_tasks and call.layer != MESSAGE_LAYER for call in calls], bool)


_NEVER = np.int64(1) << 62
"""Start of a row that only has time to take off, and, negative, its end."""


class CriticalIo(Summary):
    """A mergeable summary: the I/O of each thread in each phase, and where it waited for others inside.

    The time of outermost I/O calls counts, without what tasks wait for others inside them, as in a barrier
    that HDF5 makes. Outermost waits are held one by one (`HeldCalls`), 48 bytes each; those of the layer
    mpimsg, in which tasks exchange data, do not count.

    Parameters
    ----------
    phases : Phases or None
        None: the run is one.
    meets : bool
        Whether the run shows that tasks wait for each other at the ends of phases.
    unions : bool
        Whether to find the time in which any thread is in I/O.
    tasks : int
        How many tasks the run has; 0: those with I/O in a phase are all.
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")
    requires = ANY_ORDER
    results: tuple[str, ...] = ("_threads", "_names", "_waits", "_union")
    result_types: tuple[type, ...] = (KeyedSums,)
    meaning = 4

    def __init__(
        self, phases: Phases | None, meets: bool = True, unions: bool = False, tasks: int = 0
    ) -> None:
        self._phases, self._meets, self._tasks = phases, meets, tasks
        sums = ("io_ns", "wait_ns")
        self._threads = KeyedSums(("phase", "rank", "thread"), sums, ("start_ns",), ("end_ns",))
        self._names: tuple[str, ...] = ()
        self._waits = HeldCalls("phase", "rank", "thread", "call", "start_ns", "end_ns")
        self._union = IoUnion() if unions else None

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        if self._union is not None:
            self._union.add(chunk)
        self._names = self._names or tuple(call.name for call in chunk.calls)
        phase = phases_of_calls(self._phases, chunk) + (self._phases is None)
        is_io, inner, end = is_io_of_calls(chunk.calls)[chunk.call], chunk.depth != 0, chunk.end
        outer, waits = is_io & ~inner, ~is_io & inner
        sums = {
            "io_ns": np.where(outer, chunk.duration, 0),
            "wait_ns": np.where(waits, chunk.duration, 0),
        }
        keys: dict[str, np.ndarray] = {"phase": phase, "rank": chunk.rank, "thread": chunk.thread}
        first, last = np.where(outer, chunk.start, _NEVER), np.where(outer, end, -_NEVER)
        taken = is_io | inner
        self._threads.add_summed(sum_by_keys(keys, sums, {"start_ns": first}, {"end_ns": last}, taken))
        mine = np.flatnonzero(_is_waiting(chunk.calls)[chunk.call] & ~inner & (phase > 0))
        self._waits.add(
            *(each[mine] for each in (phase, chunk.rank, chunk.thread, chunk.call, chunk.start, end))
        )

    def merge(self, other: CriticalIo) -> None:
        """Add the calls of another part of the run."""
        self._names = self._names or other._names
        self._threads.merge(other._threads)
        self._waits.merge(other._waits)
        if self._union is not None and other._union is not None:
            self._union.merge(other._union)

    def condense(self) -> None:
        """Join the rows of each phase and thread."""
        self._threads.condense()
        if self._union is not None:
            self._union.condense()

    @property
    def is_complete(self) -> bool:
        """Whether all waits are held."""
        return self._waits.is_complete

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return a row for each phase and thread with I/O calls: the keys and times."""
        rows = self._threads.columns()
        has_io = rows["start_ns"] < _NEVER
        rows = {name: column[has_io] for name, column in rows.items()}
        return rows | {"io_ns": np.maximum(rows["io_ns"] - rows["wait_ns"], 0)}

    def inside(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the outermost waits, and how long each waits inside its phase.

        None of them waits, if there are too many.
        """
        rows, spans = self._waits.to_arrays(), self.to_arrays()
        names = ("phase", "rank", "thread")
        key, first = groups_of_rows([np.concatenate([spans[name], rows[name]]) for name in names])
        of_spans, of_waits = key[: len(spans["phase"])], key[len(spans["phase"]) :]
        last_ns = np.full(len(first), np.iinfo(np.int64).min)
        np.maximum.at(last_ns, of_spans, spans["end_ns"])
        size = max(int(each.max(initial=0)) for each in (spans["phase"], rows["phase"])) + 1
        first_ns = np.full(size, np.iinfo(np.int64).max)
        np.minimum.at(first_ns, spans["phase"], spans["start_ns"])
        begin = np.maximum(rows["start_ns"], first_ns[rows["phase"]])
        # A call that ends after the last I/O of its thread is the wait at the end of the phase.
        is_before = rows["end_ns"] <= last_ns[of_waits]
        waited_ns: np.ndarray = np.where(is_before, np.maximum(rows["end_ns"] - begin, 0), 0)
        return rows, waited_ns

    def name_of(self, call: int) -> str:
        """Return the name of a function."""
        return self._names[call]

    @property
    def in_io_s(self) -> float:
        """Time in which at least one thread is in I/O; infinite: not known."""
        return np.inf if self._union is None else self._union.time_s

    def tasks(self) -> dict[str, np.ndarray]:
        """Return a row for each phase and task with I/O: its span, time in I/O, and time waited inside."""
        rows = self.to_arrays()
        rows["time_ns"] = rows["io_ns"].astype(np.float64)
        cell, first = groups_of_rows([rows["phase"], rows["rank"]])
        waits, waited_ns = self.inside()
        names = ("phase", "rank")
        both = [np.concatenate([rows[name][first], waits[name][waited_ns > 0]]) for name in names]
        of_waits = groups_of_rows(both)[0][len(first) :]
        waits_ns = np.concatenate([waited_ns[waited_ns > 0], rows["wait_ns"]]).astype(np.float64)
        waited = np.bincount(np.concatenate([of_waits, cell]), waits_ns, len(first))
        start, end = rows["start_ns"][first], rows["end_ns"][first]
        np.minimum.at(start, cell, rows["start_ns"])
        np.maximum.at(end, cell, rows["end_ns"])
        busy = Busy(rows, cell, len(first))
        busy.in_io_ns = 1e9 * self.in_io_s
        found = {name: rows[name][first] for name in names} | {"start_ns": start, "end_ns": end}
        return found | {"busy_ns": busy.most_ns(rows["time_ns"]), "waited_ns": waited}

    @property
    def path_s(self) -> tuple[float, float]:
        """The most and the least time in I/O on the critical path, s."""
        return self._path_s() if self._kept_s is None else self._kept_s

    @path_s.setter
    def path_s(self, kept_s: tuple[float, float]) -> None:
        self._kept_s = kept_s

    _kept_s: tuple[float, float] | None = None

    def _path_s(self) -> tuple[float, float]:
        if not len(self.to_arrays()["phase"]):
            return 0.0, 0.0
        tasks = self.tasks()
        busy, phase = tasks["busy_ns"], tasks["phase"]
        if not self._meets:
            io_s = min(self.in_io_s, 1e-9 * float(busy.sum()))
            low_s = min(1e-9 * in_turn(tasks["start_ns"], tasks["end_ns"], busy)[0], io_s)
            return io_s, io_s if low_s >= NEARLY_ALL * io_s or len(busy) == 1 else low_s
        if not self.is_complete:  # too many waits to know which task each phase waited for
            order = np.lexsort((busy, phase))
            ends = np.append(np.diff(phase[order]) != 0, True)
            # The task that a phase waited for may be one without I/O in it.
            are_all = np.diff(np.flatnonzero(ends), prepend=-1) >= self._tasks
            least_ns = busy[order[np.roll(ends, 1)]] * are_all
            sums_ns = busy[order[ends]].sum(), least_ns.sum()
            most_s, least_s = (min(1e-9 * float(each), self.in_io_s) for each in sums_ns)
            return most_s, least_s
        begin = np.full(int(phase.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(begin, phase, tasks["start_ns"])
        whole_ns = tasks["end_ns"] - begin[phase]
        arrival = np.maximum(whole_ns - tasks["waited_ns"], np.minimum(busy, whole_ns))
        order = np.lexsort((-tasks["rank"], arrival, phase))
        last = order[np.append(np.diff(phase[order]) != 0, True)]
        # A task may be in the next phase already: that begins when the one before has ended.
        end = np.full(len(begin), np.iinfo(np.int64).min)
        np.maximum.at(end, phase, tasks["end_ns"])
        by_end = last[np.lexsort((end[phase[last]], phase[last] == 0))]
        ends = end[phase[by_end]]
        begun = np.maximum(begin[phase[by_end]], np.append(begin.min(), ends[:-1]))
        length = ends - begun
        if phase[by_end[-1]] == 0:  # calls outside of all phases, which lie around these
            inside = np.minimum(ends[:-1], ends[-1]) - np.maximum(begun[:-1], begin[0])
            length[-1] = ends[-1] - begin[0] - np.maximum(inside, 0).sum()
        io_s = min(1e-9 * float(np.minimum(busy[by_end], length).sum()), self.in_io_s)
        return io_s, io_s


class CriticalTime(CriticalIo):
    """A mergeable summary: the time in I/O on the critical path alone, which the files of a run keep.

    Named phases are divided further where all tasks meet: the path may go through another task from there on.
    """

    results = ("path_s",)
    result_types = ()
    meaning = 6


class Busy:
    """Bounds of the time in which at least one of a group's calls was under way.

    The calls of a row lie between its first start and its last end. Where such spans overlap, as those of
    threads, the time is at most the length of their union, and at most the sum.

    Attributes
    ----------
    in_io_ns : float
        Time in which at least one thread was in an I/O call: the bound of any calls; infinite: not known.
    """

    def __init__(self, rows: Mapping[str, np.ndarray], group: np.ndarray, groups: int) -> None:
        self._group, self._groups = group, groups
        both = np.concatenate((rows["start_ns"], rows["end_ns"]))
        self._times, place = np.unique(both, return_inverse=True)
        # On one axis, on which each group lies behind the one before.
        self._first, self._last = place.reshape(2, -1) + group * len(self._times)
        self._order = np.argsort(self._first, kind="stable")
        self._own_ns = rows.get("time_ns")
        self.in_io_ns = np.inf

    def most_ns(self, time_ns: np.ndarray) -> np.ndarray:
        """Bound the time of calls that take `time_ns` in each row: shape (groups,).

        What is beyond the calls themselves, as a loop around them, is not in I/O.
        """
        found = self._of_spans_ns(time_ns)
        if self._own_ns is not None and np.isfinite(self.in_io_ns):
            beyond_ns = self._of_spans_ns(np.maximum(time_ns - self._own_ns, 0))
            found = np.minimum(found, self.in_io_ns + beyond_ns)
        return found

    def _of_spans_ns(self, time_ns: np.ndarray) -> np.ndarray:
        mine = self._order[time_ns[self._order] > 0]
        if not len(mine):
            return np.zeros(self._groups)
        start, end = self._first[mine], np.maximum.accumulate(self._last[mine])
        first = np.flatnonzero(np.append(True, start[1:] > end[:-1]))
        ends = end[np.append(first[1:], len(mine)) - 1]
        length = self._times[ends % len(self._times)] - self._times[start[first] % len(self._times)]
        sums = np.add.reduceat(np.asarray(time_ns, np.float64)[mine], first)
        most: np.ndarray = np.bincount(self._group[mine[first]], np.minimum(sums, length), self._groups)
        return most


def in_turn(start_ns: np.ndarray, end_ns: np.ndarray, time_ns: np.ndarray) -> tuple[float, list[int]]:
    """Find the tasks that live one after the other and have most of some time: its sum, and who."""
    order = np.argsort(end_ns, kind="stable")
    before = np.searchsorted(end_ns[order], start_ns[order], side="right").tolist()
    most_ns, ends_with = [0.0], [-1]  # of the tasks that have ended first
    for place, mine_ns in enumerate(time_ns[order].tolist()):
        taken_ns = most_ns[min(before[place], place)] + mine_ns
        ends_with.append(place if taken_ns > most_ns[-1] else ends_with[-1])
        most_ns.append(max(taken_ns, most_ns[-1]))
    place, found = ends_with[-1], []
    while place >= 0:
        found.append(int(order[place]))
        place = ends_with[min(before[place], place)]
    return most_ns[-1], found


def critical_io(of: type[CriticalIo], run: RecordedRun) -> CriticalIo:
    """Make the summary of the critical path of a run, of which every call is an event.

    Its phases are those at whose ends tasks wait for each other.
    """
    meets = tasks_meet(run.info, run.phases)
    phases = _between_meetings(run) if of is CriticalTime and may_meet_inside(run) else run.phases
    windows = phases if meets and phases is not None and phases.rule in TOGETHER else None
    return of(windows, meets, not meets or run.info.most_threads > 1, run.info.tasks)


def may_meet_inside(run: RecordedRun) -> bool:
    """Check whether tasks may meet inside phases, which the program named."""
    named = run.phases is not None and run.phases.rule == "named"
    return named and any(call.name in SYNCHRONISING - ENDS for call in run.calls)


def _between_meetings(run: RecordedRun) -> Phases | None:
    """Find the phases between barriers; those of the run if there are none of all tasks."""
    try:
        return detect_phases(run, "barriers")
    except EnsioError:
        return run.phases


def critical_path(run: RecordedRun, found: CriticalIo | None) -> CriticalPath | None:
    """Find the critical path of a run of any kind of record; None: it does not show one.

    `found`: filled summary of `critical_io`. None: not every call is an event; then the time of the slowest
    task is taken, as its sums or what another tool counted give it.
    """
    counters, run_s, is_of_run, untraced_s = run.counters, run.length_s, False, 0.0
    if found is not None:
        io_s, low_s = found.path_s
        is_of_run = low_s == io_s
        untraced_s = 0.0 if counters.overlaps else max(counters.slowest_task_s - io_s, 0.0)
    elif counters.slowest_task_s > 0:
        io_s = low_s = counters.slowest_task_s
        if counters.overlaps or run_s <= 0:
            return None
    elif run.summary.durations_known and (ranks := run.reading.known_ranks) is not None and len(ranks):
        each_s = 1e-9 * ranks.io_time_ns(run.tasks)
        is_of_run = bool(np.count_nonzero(each_s) == 1)
        low_s = float(each_s.max())
        io_s = low_s if tasks_meet(run.info, None) else float(each_s.sum())
    else:
        return None
    most_s = min(io_s + untraced_s, run_s)
    least_s, is_of_run = min(low_s + untraced_s, most_s), is_of_run and not untraced_s
    return CriticalPath(run_s, most_s, least_s, is_of_run, found is not None, untraced_s)
