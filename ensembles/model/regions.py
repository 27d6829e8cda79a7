"""Phases and regions that programs name through ``ensio.h``, as NumPy columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.units import count_text

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas

KINDS = ("phase", "region")
"""Kinds of occurrences. `RegionTable.kind` is an index into this tuple."""

COLUMNS: dict[str, np.dtype] = {
    "rank": np.dtype("u4"),
    "thread": np.dtype("u2"),
    "kind": np.dtype("u1"),
    "name": np.dtype("u4"),
    "start": np.dtype("i8"),
    "duration": np.dtype("i8"),
    "ended": np.dtype("u1"),
}
"""Name and type of each column."""

COLUMN_MEANINGS: dict[str, tuple[str, str]] = {
    "rank": ("", "task"),
    "thread": ("", "thread of the task that began it, numbered from 0"),
    "kind": ("", "0: a phase of a process, 1: a region of a thread"),
    "name": ("", "index into the names"),
    "start": ("ns", "begin, since the origin of the run"),
    "duration": ("ns", "time to the end; without a recorded end, to the last record of the process"),
    "ended": ("", "1: the end was recorded; for the last phase: the process ended in order"),
}
"""Unit and meaning of each column. Trace files store them as attributes."""


class RegionTable:
    """Occurrences of phases and regions: one NumPy array per column, all of length n.

    Rows are sorted by rank and start. Times are integer nanoseconds. A run returns its table as
    `Run.regions`. Boolean masks, slices and arrays of positions select rows.

    `columns`: the columns by name, in any order of rows.
    `ValueError`: the columns have different lengths.

    Examples
    --------
    One task is in the phase "write" for 5 ms, and 1 ms later in the phase "read" for 3 ms.

    >>> from ensembles.model.regions import RegionTable
    >>> columns = {
    ...     "rank": [0, 0],
    ...     "thread": [0, 0],
    ...     "kind": [0, 0],
    ...     "name": [0, 1],
    ...     "start": [0, 6_000_000],
    ...     "duration": [5_000_000, 3_000_000],
    ...     "ended": [1, 1],
    ... }
    >>> phases = RegionTable(columns, ["write", "read"])
    >>> phases
    RegionTable: 2 phases and regions, 2 names in 1 task
    >>> phases.named("read").duration / 1e9  # nanoseconds to seconds
    array([0.003])
    """

    __slots__ = (*COLUMNS, "names")

    rank: npt.NDArray[np.uint32]
    """Task. Shape (n,)."""
    thread: npt.NDArray[np.uint16]
    """Thread of the task that began it, numbered from 0. Shape (n,)."""
    kind: npt.NDArray[np.uint8]
    """Index into `KINDS`. 0: a phase of a process, 1: a region of a thread. Shape (n,)."""
    name: npt.NDArray[np.uint32]
    """Index into `names`. Shape (n,)."""
    start: npt.NDArray[np.int64]
    """Begin: nanoseconds since the origin of the run. Shape (n,)."""
    duration: npt.NDArray[np.int64]
    """Nanoseconds to the end; where none was recorded, to the last record of the process. Shape (n,)."""
    ended: npt.NDArray[np.uint8]
    """1: the end was recorded; of a last phase, the process ended in order. Shape (n,)."""
    names: tuple[str, ...]
    """The names that the ``name`` column indexes."""

    def __init__(self, columns: Mapping[str, np.ndarray], names: Sequence[str]) -> None:
        order = np.lexsort((columns["start"], columns["rank"]))
        for name, dtype in COLUMNS.items():
            column = np.asarray(columns[name], dtype=dtype)
            if column.shape != order.shape:
                raise ValueError(f"column {name!r} has the shape {column.shape}, not {order.shape}")
            setattr(self, name, column[order])
        self.names = tuple(names)

    @classmethod
    def empty(cls) -> RegionTable:
        """Make a table without rows."""
        return cls({name: np.empty(0, dtype) for name, dtype in COLUMNS.items()}, ())

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    def __len__(self) -> int:
        return len(self.rank)

    def __getitem__(self, index: Any) -> RegionTable:
        """Select rows by a mask, a slice or an array of positions."""
        if isinstance(index, (int, np.integer)):
            index = slice(index, index + 1 or None)
        return RegionTable({name: column[index] for name, column in self.columns.items()}, self.names)

    def named(self, *names: str, kind: str | None = None) -> RegionTable:
        """Select the phases and regions with these names.

        `kind`: select only rows of this kind.
        """
        wanted = np.array([name in names for name in self.names], bool)
        mask = wanted[self.name] if len(wanted) else np.zeros(len(self), bool)
        return self[mask if kind is None else mask & (self.kind == KINDS.index(kind))]

    def spans(self) -> Spans:
        """Return the times at which each rank was in at least one row."""
        return Spans(self.rank, self.start, self.start + self.duration)

    def to_pandas(self) -> pandas.DataFrame:
        """Convert to a DataFrame with the same columns.

        A row per occurrence, times in ns. ``name`` and ``kind`` are categories, ``ended`` is bool.
        """
        from ensembles.model.pandas_frame import pd

        frame = pd.DataFrame(self.columns)
        frame["kind"] = pd.Categorical.from_codes(self.kind, list(KINDS))
        frame["name"] = pd.Categorical.from_codes(self.name, list(self.names))
        frame["ended"] = self.ended.astype(bool)
        return frame

    def __repr__(self) -> str:
        if not len(self):
            return "RegionTable: no phase and no region"
        ranks, names = len(np.unique(self.rank)), len(np.unique(self.name))
        return (
            f"RegionTable: {len(self):,} phases and regions, {count_text(names, 'name')} in "
            f"{count_text(ranks, 'task')}"
        )


class Spans:
    """Spans of time of each rank; overlapping spans are merged.

    `rank`: task of each span.
    `start`, `end`: limits of each span, ns. The end is excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.model.regions import Spans
    >>> spans = Spans(np.array([0, 0, 1]), np.array([0, 5, 0]), np.array([8, 10, 4]))
    >>> spans.joined()
    (array([0, 1]), array([0, 0]), array([10,  4]))
    >>> spans.hold(np.array([0, 1]), np.array([9, 9]))
    array([ True, False])
    """

    def __init__(self, rank: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        order = np.lexsort((start, rank))
        rank, start, end = rank[order], start[order], end[order]
        self._ranks, group = np.unique(rank, return_inverse=True)
        # The latest end so far within each rank. Adding len(end) per rank to the position of each end makes
        # positions of later ranks larger, so that one running maximum serves all ranks.
        sorted_ends = np.sort(end)
        place = np.searchsorted(sorted_ends, end) + group * len(end)
        reach = sorted_ends[np.maximum.accumulate(place) - group * len(end)]
        begins = np.ones(len(rank), bool)
        begins[1:] = (group[1:] != group[:-1]) | (start[1:] > reach[:-1])
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(rank))[: len(first)] - 1
        self._start, self._end = start[first], reach[last]
        self._first = np.searchsorted(group[first], np.arange(len(self._ranks) + 1))

    def hold(self, rank: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Test which times lie in a span of their rank.

        `rank`: fastest if equal ranks are contiguous.
        `time`: ns.
        """
        inside = np.zeros(len(rank), bool)
        edges = np.flatnonzero(np.diff(rank.astype(np.int64))) + 1
        if len(edges) > len(self._ranks) + 4096:  # unordered ranks: sort once
            order = np.argsort(rank, kind="stable")
            inside[order] = self.hold(rank[order], time[order])
            return inside
        for low, high in zip([0, *edges], [*edges, len(rank)], strict=True):
            if high > low and (spans := self._of(int(rank[low]))) is not None:
                starts, ends = self._start[spans], self._end[spans]
                at = np.searchsorted(starts, time[low:high], side="right") - 1
                inside[low:high] = (at >= 0) & (time[low:high] < ends[at])
        return inside

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the merged spans, sorted by rank and start.

        `rank`, `start`, `end`: times in ns.
        """
        return np.repeat(self._ranks, np.diff(self._first)), self._start, self._end

    def _of(self, rank: int) -> slice | None:
        """Locate the spans of a rank; None: there are none."""
        at = int(np.searchsorted(self._ranks, rank))
        if at == len(self._ranks) or self._ranks[at] != rank:
            return None
        return slice(int(self._first[at]), int(self._first[at + 1]))
