"""Barriers: moments at which all ranks wait for each other.

Events do not record the communicator of a call. But no rank leaves a synchronising collective call before the
last rank has entered it: the latest entry comes before the earliest exit. Ranks that all meet in a call are
therefore all in it at one moment. Ranks of smaller communicators are so only at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.distinct import distinct
from ensembles.model.events import Call, Events, of_calls
from ensembles.model.levels import NEARLY_ALL
from ensembles.passes.summary import ANY_ORDER, Summary

_DATA = {"MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter_block"}
_UNEQUAL = {"MPI_Allgatherv", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Reduce_scatter"}
ENDS = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize"}
"""Calls that bound the I/O of a run, and do not divide it."""

SYNCHRONISING = frozenset({"MPI_Barrier", "MPI_Comm_split"} | _DATA | _UNEQUAL | ENDS)
"""Calls that no rank leaves before the last rank has entered. Other collective calls (``MPI_Bcast``,
``MPI_Reduce``) may release some ranks earlier."""


NO_BARRIERS = (
    "there is no collective call of all ranks among the events: record the layer mpisync (ENSIO_LAYERS), or "
    "leave the rule out"
)


class Barriers(Summary):
    """A mergeable summary: the synchronising calls of a run, 32 bytes each.

    Calls inside an I/O call are left out: HDF5 lets tasks meet in the middle of a write, which goes on.
    """

    columns = ("call", "depth", "duration", "rank", "requested", "start")
    requires = ANY_ORDER
    results = ("_calls", "_parts")

    def __init__(self) -> None:
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._calls: tuple[Call, ...] = ()

    def add(self, chunk: Events) -> None:
        """Add events of one run."""
        self._calls = chunk.calls
        known = np.array([call.name in SYNCHRONISING for call in chunk.calls], bool)
        mine = (
            np.flatnonzero(known[chunk.call] & (chunk.depth == 0)) if known.any() else np.empty(0, np.int64)
        )
        if len(mine):
            part = (chunk.rank, chunk.start, chunk.end, chunk.call, chunk.requested)
            self._parts.append(tuple(column[mine] for column in part))

    def merge(self, other: Barriers) -> None:
        """Add the calls of another part of the run."""
        self._calls = self._calls or other._calls
        self._parts += other._parts

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``rank``, ``start``, ``end``, ``call`` and ``requested`` of each call."""
        names = ("rank", "start", "end", "call", "requested")
        if not self._parts:
            return {name: np.empty(0, np.int64) for name in names}
        columns = zip(*self._parts, strict=True)
        return {name: np.concatenate(parts) for name, parts in zip(names, columns, strict=True)}

    def __bool__(self) -> bool:
        """Whether there are any calls but those at the beginning and the end of MPI."""
        at_ends = np.array([call.name in ENDS for call in self._calls], bool)
        return any(not at_ends[part[3]].all() for part in self._parts)

    def meetings(self, ranks: int, clock_error_ns: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Find the moments as `moments_ns`, and which of them are barriers, which move no data."""
        found = self._moments_by_kind(ranks, clock_error_ns)
        moments = distinct(np.concatenate([each for _, each in found])) if found else np.empty(0, np.int64)
        barriers = [each for name, each in found if name not in _DATA | _UNEQUAL]
        return moments, np.isin(moments, np.concatenate(barriers)) if barriers else np.zeros(
            len(moments), bool
        )

    def moments_ns(self, ranks: int, clock_error_ns: int = 0) -> np.ndarray:
        """Find the moments at which (nearly) all ranks were in one collective call.

        Moments in ns since the origin, rising. It is empty if the calls of too few ranks were recorded, or if
        only the calls at the beginning and the end of MPI were calls of all ranks.
        """
        return self.meetings(ranks, clock_error_ns)[0]

    def first_exits_ns(self, ranks: int, clock_error_ns: int = 0) -> np.ndarray:
        """Find when the first rank left each of the meetings that `moments_ns` finds.

        The meetings of a few ranks are those of all. Their moments may be earlier, because other ranks came
        later; but between one of these exits and the next there is one moment at which all ranks met.
        """
        moments = self.moments_ns(ranks, clock_error_ns)
        if not len(moments):
            return moments
        columns = self.to_arrays()
        start, end = columns["start"], columns["end"]
        meeting = np.searchsorted(moments, start, side="left")
        inside = (meeting < len(moments)) & (moments[np.minimum(meeting, len(moments) - 1)] <= end)
        left = np.full(len(moments), np.iinfo(np.int64).max)
        np.minimum.at(left, meeting[inside], end[inside])
        return distinct(np.where(left < np.iinfo(np.int64).max, left, moments))

    def _moments_by_kind(self, ranks: int, clock_error_ns: int) -> list[tuple[str, np.ndarray]]:
        """Find the moments at which (nearly) all ranks met in calls of a kind, with the function's name."""
        if not self._parts:
            return []
        rank, start, end, call, requested = self.to_arrays().values()
        members, place = np.unique(rank, return_inverse=True)
        if len(members) < NEARLY_ALL * ranks:
            return []
        sized = np.array([known.name in _DATA for known in self._calls], bool)
        at_ends = np.array([known.name in ENDS for known in self._calls], bool)
        _, kind = np.unique(
            np.stack([call.astype(np.uint64), np.where(sized[call], requested, 0)], axis=1),
            axis=0,
            return_inverse=True,
        )
        by_kind = np.argsort(kind.reshape(-1), kind="stable")
        found: list[tuple[str, np.ndarray]] = []
        within = False
        for mine in np.split(by_kind, np.cumsum(np.bincount(kind.reshape(-1)))[:-1]):
            moments = _common_moments(place[mine], start[mine], end[mine], len(members), clock_error_ns)
            within = within or (len(moments) > 0 and not at_ends[call[mine[0]]])
            found.append((self._calls[call[mine[0]]].name, moments))
        return found if within else []


def _common_moments(
    place: np.ndarray, start: np.ndarray, end: np.ndarray, ranks: int, clock_error_ns: int
) -> np.ndarray:
    """Find the moments at which nearly all ranks were in a call of one kind.

    If (nearly) all ranks make equally many such calls, the n-th calls of all belong together. Otherwise, or
    if some of these do not overlap, some of the calls are of smaller communicators.
    """
    need = int(np.ceil(NEARLY_ALL * ranks))
    of_rank = np.bincount(place, minlength=ranks)
    usual = int(np.median(of_rank))
    alike = of_rank == usual
    if usual and np.count_nonzero(alike) >= need:
        mine = alike[place]
        order = np.lexsort((start[mine], place[mine]))
        entries = start[mine][order].reshape(-1, usual).max(axis=0)
        exits = end[mine][order].reshape(-1, usual).min(axis=0)
        if (entries <= exits + 2 * clock_error_ns).all():
            # As late as clocks allow: what a rank does before it leaves belongs to the step before.
            latest: np.ndarray = np.maximum((entries + exits) // 2, exits - clock_error_ns)
            return latest
    start, end = start - clock_error_ns, end + clock_error_ns
    # First all, then nearly all: while each half of the ranks waits for its last one, nearly all wait too.
    moments = _moments_of_overlap(start, end, ranks)
    if not len(moments):
        moments = _moments_of_overlap(start, end, need)
    return moments + clock_error_ns


def _moments_of_overlap(start: np.ndarray, end: np.ndarray, need: int) -> np.ndarray:
    """Find the moments at which `need` calls overlap, all new since the one before."""
    n = len(start)
    time = np.concatenate([start, end])
    change = np.repeat([1, -1], n)
    order = np.lexsort((-change, time))  # a call that ends when another begins overlaps it
    time, inside = time[order], np.cumsum(change[order])
    enough = inside >= need
    first = np.flatnonzero(enough & ~np.concatenate([[False], enough[:-1]]))
    if not len(first):
        return np.empty(0, np.int64)
    # The latest entry with most ranks inside: a rank may still be inside since the meeting before.
    among = np.flatnonzero(enough)
    stretch = np.searchsorted(first, among, side="right") - 1
    order = np.lexsort((-among, -inside[among], stretch))
    moments = time[among[order[np.searchsorted(stretch, np.arange(len(first)))]]]
    true_moments: np.ndarray = moments[_left_before_the_next(moments, start, end)]
    return true_moments


def _left_before_the_next(moments: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Compute which moments are true meetings: bool, shape (m,).

    Some ranks may wait in the call of all ranks while others are still in a call of a few. Or a rank may
    leave late while the others are already in their next call. Then the waiting ranks are still there at the
    next moment, which is the true one. After a true meeting (nearly) all ranks leave.
    """
    keep = np.ones(len(moments), bool)
    from_moment = np.searchsorted(moments, start, side="left")
    to_moment = np.searchsorted(moments, end, side="right") - 1
    several = to_moment > from_moment
    from_moment, to_moment = from_moment[several], to_moment[several]
    shared = np.zeros(len(moments) + 1, np.int64)
    np.add.at(shared, from_moment, 1)
    np.add.at(shared, to_moment, -1)
    doubtful = np.cumsum(shared)[:-1] > 0
    inside = np.searchsorted(np.sort(start), moments, side="right") - np.searchsorted(
        np.sort(end), moments, side="left"
    )
    for number in np.flatnonzero(doubtful)[::-1].tolist():
        following = number + 1 + int(np.argmax(keep[number + 1 :]))  # the last is never doubtful
        staying = np.count_nonzero((from_moment <= number) & (to_moment >= following))
        keep[number] = staying <= (1 - NEARLY_ALL) * inside[number]
    return keep


MESSAGE_LAYER = "mpimsg"

_NO_MESSAGES = {
    "MPI_Barrier",
    "MPI_Ibarrier",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Comm_split",
}
"""Calls in which tasks meet, and exchange no data of the program."""


@of_calls
def is_message_of_calls(calls: Sequence[Call]) -> np.ndarray:
    """Return which traced functions exchange data with other tasks: bool, shape (len(calls),)."""
    return np.array([call.waits_for_tasks and call.name not in _NO_MESSAGES for call in calls], bool)


@of_calls
def _is_of_layer(calls: Sequence[Call]) -> np.ndarray:
    return np.array([call.layer == MESSAGE_LAYER for call in calls], bool)


def has_message_layer(chunk: Events) -> bool:
    """Check whether any of these events are of the layer mpimsg, which is recorded on request only."""
    return bool(_is_of_layer(chunk.calls)[chunk.call].any())


class MessageStarts(Summary):
    """A mergeable summary: when calls began that exchange data with other tasks, 8 bytes each.

    `has_layer`: whether there are calls of the layer mpimsg, which is recorded on request only.
    """

    columns = ("call", "start")
    requires = ANY_ORDER
    results = ("has_layer", "_parts")
    added_up = ("has_layer", "_parts")

    def __init__(self) -> None:
        self.has_layer = False
        self._parts: list[np.ndarray] = []

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.has_layer = self.has_layer or has_message_layer(chunk)
        mine = is_message_of_calls(chunk.calls)[chunk.call]
        if mine.any():
            self._parts.append(chunk.start[mine])

    @property
    def start(self) -> np.ndarray:
        """Start of each call in ns since the origin of the run; none if the layer was not recorded."""
        if not self.has_layer or not self._parts:
            return np.empty(0, np.int64)
        return np.concatenate(self._parts)


def steps_of_messages(
    cuts_ns: np.ndarray, is_barrier: np.ndarray, io_ns: np.ndarray, messages_ns: np.ndarray
) -> np.ndarray:
    """Choose the moments that divide a run into steps of I/O and of messages.

    A collective call that exchanges data is a moment at which all tasks meet, and often one of several in a
    step. So it divides I/O, but no step without I/O: only barriers do.

    Examples
    --------
    >>> from ensembles.structure.phases.barriers import steps_of_messages
    >>> cuts, is_barrier = np.array([10, 20, 30, 40]), np.array([True, False, True, False])
    >>> steps_of_messages(cuts, is_barrier, np.array([35]), np.array([11, 21]))
    array([10, 30, 40])
    """
    if not len(messages_ns):
        return cuts_ns
    has_io = np.bincount(np.searchsorted(cuts_ns, io_ns, side="right"), minlength=len(cuts_ns) + 1) > 0
    chosen: np.ndarray = cuts_ns[is_barrier | has_io[:-1] | has_io[1:]]
    return chosen
