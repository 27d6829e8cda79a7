"""Completed I/O calls as NumPy columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.calls import OPS, Call, is_io_of_calls, of_calls, op_of_calls
from ensembles.model.sites import SiteTable
from ensembles.model.units import HALF_INT64, count_text

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas

__all__ = [
    "COLUMNS",
    "COLUMN_MEANINGS",
    "MISSING",
    "OPS",
    "Call",
    "Events",
    "is_io_of_calls",
    "of_calls",
    "op_of_calls",
]

T = TypeVar("T")

COLUMNS: dict[str, np.dtype] = {
    "rank": np.dtype("u4"),
    "thread": np.dtype("u2"),
    "call": np.dtype("u2"),
    "depth": np.dtype("u1"),
    "carried": np.dtype("u1"),
    "file": np.dtype("u4"),
    "offset": np.dtype("i8"),
    "requested": np.dtype("u8"),
    "moved": np.dtype("i8"),
    "error": np.dtype("u2"),
    "start": np.dtype("i8"),
    "duration": np.dtype("i8"),
    "site": np.dtype("u2"),
    "flight": np.dtype("i8"),
    "request": np.dtype("u4"),
}
"""Name and type of each column, in the order of the columns."""

COLUMN_MEANINGS: dict[str, tuple[str, str]] = {
    "rank": ("", "task that made the call"),
    "thread": ("", "thread of the task, numbered from 0"),
    "call": ("", "function that was called"),
    "depth": ("", "nesting depth: recorded calls of the same thread around this one"),
    "carried": (
        "",
        "bytes that an enclosing call counts too; 1: bytes read, 2: bytes written; of a call that opened a "
        "file 16: to read, 32: to write; of a write 64: its descriptor has O_SYNC, O_DSYNC or O_DIRECT; "
        "128: one system call made this event and the one around it",
    ),
    "file": ("", "file that the call used"),
    "offset": ("bytes", "position in the file, from its start; -1: none or unknown"),
    "requested": ("bytes", "bytes requested"),
    "moved": ("bytes", "bytes moved; -1: the call failed"),
    "error": ("", "errno of a failed call, if it has one, else 0"),
    "start": ("ns", "entry into the call, since the origin of the run"),
    "duration": ("ns", "time from entry to return"),
    "site": ("", "call site, the place that led to the call"),
    "flight": ("ns", "time of a non-blocking request from its post to its observed completion; -1: none"),
    "request": ("", "number of a non-blocking request and of the wait that completed it; 0: none"),
}
"""Unit and meaning of each column. Trace files and Parquet files store them as attributes."""

INDICES = {
    "call": "index into the calls",
    "file": "index into the files; 0: none or unknown",
    "site": "index into the sites; 0: unknown",
}
"""What the numbers of these columns are. Parquet files have names in their place."""

MISSING = {"site": 0, "flight": -1, "request": 0}
"""Values of the columns that older files and other programs do not have."""

SAME_CALL = CONSTANTS["ENSIO_SAME_CALL"]
"""In ``carried``: one system call made this event and the one around it, whose time counts."""


class Events:
    """Completed calls: one NumPy array per column, all of the same length n.

    Times are integer nanoseconds, sizes and offsets are bytes. A run returns its events by `Run.events`
    and `Run.select`. Boolean masks, slices and arrays of positions select events, as with an array.

    Parameters
    ----------
    columns : mapping of str to array_like, shape (n,)
        The columns by name, see Attributes. Without ``carried``, every call inside another recorded call
        counts as carried for both reads and writes. Columns of `MISSING` may be missing.
    calls : sequence of Call
        The functions that the column ``call`` indexes.
    files : sequence of str
        The paths that the column ``file`` indexes; the first is ``""``.

    Attributes
    ----------
    rank : ndarray of uint32, shape (n,)
        Task that made the call.
    thread : ndarray of uint16, shape (n,)
        Thread of the task, numbered from 0.
    call : ndarray of uint16, shape (n,)
        Function that was called: index into `calls`.
    depth : ndarray of uint8, shape (n,)
        Nesting depth: the number of recorded calls of the same thread around this one.
    carried : ndarray of uint8, shape (n,)
        Bytes that an enclosing call counts too: a sum over layers leaves them out. 1: bytes read, 2: bytes
        written, 3: both; other bits as in `COLUMN_MEANINGS`.
    file : ndarray of uint32, shape (n,)
        File that the call used: index into `files`. 0: none or unknown.
    offset : ndarray of int64, shape (n,)
        Position in the file in bytes, from its start. -1: none or unknown.
    requested : ndarray of uint64, shape (n,)
        Bytes that the call requested.
    moved : ndarray of int64, shape (n,)
        Bytes that the call moved. -1: the call failed. Calls that transfer no data have 0.
    error : ndarray of uint16, shape (n,)
        The errno of a failed call, 0 if its library names none. Of other calls 0.
    start : ndarray of int64, shape (n,)
        Entry into the call: nanoseconds since the origin of the run, which is
        `RunInfo.origin_unix_ns`.
    duration : ndarray of int64, shape (n,)
        Nanoseconds from entry to return.
    site : ndarray of uint16, shape (n,)
        Place in the program that led to the call: index into `sites`. 0: unknown.
    flight : ndarray of int64, shape (n,)
        Of a non-blocking request: nanoseconds from the entry of the call that posted it to the first moment
        at which the program could observe its completion. -1: none, or unknown. The `duration` of such an
        event is that of the post alone.
    request : ndarray of uint32, shape (n,)
        Number of a non-blocking request in its process, from 1; the call that completed it has the same
        number (that of several requests: the first). 0: none.
    calls : tuple of Call
        The functions that the column ``call`` indexes.
    files : sequence of str
        Absolute paths that the column ``file`` indexes; the first is ``""`` (no file).
    sites : sequence of str
        Call sites that the column ``site`` indexes; the first is ``""`` (unknown).

    Raises
    ------
    ValueError
        The columns have different lengths.

    Examples
    --------
    Two tasks write 1 MiB each; the second task starts 2 ms later and takes three times as long.

    >>> import numpy as np
    >>> from ensembles.model.events import Call, Events
    >>> columns = {
    ...     "rank": [0, 1],
    ...     "thread": [0, 0],
    ...     "call": [0, 0],
    ...     "depth": [0, 0],
    ...     "file": [1, 1],
    ...     "offset": [0, 1 << 20],
    ...     "requested": [1 << 20, 1 << 20],
    ...     "moved": [1 << 20, 1 << 20],
    ...     "error": [0, 0],
    ...     "start": [0, 2_000_000],
    ...     "duration": [1_000_000, 3_000_000],
    ... }
    >>> writes = Events(columns, [Call("pwrite", "posix", "write")], ["", "/scratch/data"])
    >>> writes
    Events: 2 calls of 2 tasks over 0.005 s
    >>> writes.duration / 1e9  # nanoseconds to seconds
    array([0.001, 0.003])
    >>> writes.moved / 2**20 / (writes.duration / 1e9)  # MiB per second of each call
    array([1000.        ,  333.33333333])
    >>> writes[writes.duration > 2_000_000].rank
    array([1], dtype=uint32)
    """

    __slots__ = (
        *COLUMNS,
        "_ask",
        "_length",
        "_remembered",
        "_told",
        "calls",
        "clock_step_s",
        "files",
        "sites",
    )

    rank: npt.NDArray[np.uint32]
    """Task that made the call. Shape (n,)."""
    thread: npt.NDArray[np.uint16]
    """Thread of the task, numbered from 0. Shape (n,)."""
    call: npt.NDArray[np.uint16]
    """Function that was called: index into `calls`. Shape (n,)."""
    depth: npt.NDArray[np.uint8]
    """Nesting depth: recorded calls of the same thread around this one. Shape (n,)."""
    carried: npt.NDArray[np.uint8]
    """Bytes that an enclosing call counts too. 1: read, 2: written, 3: both. Shape (n,)."""
    file: npt.NDArray[np.uint32]
    """File that the call used: index into `files`; 0: none or unknown. Shape (n,)."""
    offset: npt.NDArray[np.int64]
    """Bytes from the start of the file; -1: none or unknown. Shape (n,)."""
    requested: npt.NDArray[np.uint64]
    """Bytes that the call requested. Shape (n,)."""
    moved: npt.NDArray[np.int64]
    """Bytes that the call moved; -1: the call failed. Shape (n,)."""
    error: npt.NDArray[np.uint16]
    """The errno of a failed call, if it has one, else 0. Shape (n,)."""
    start: npt.NDArray[np.int64]
    """Entry into the call: nanoseconds since the origin of the run. Shape (n,)."""
    duration: npt.NDArray[np.int64]
    """Nanoseconds from entry to return. Shape (n,)."""
    site: npt.NDArray[np.uint16]
    """Place in the program that led to the call: index into `sites`; 0: unknown. Shape (n,)."""
    flight: npt.NDArray[np.int64]
    """Nanoseconds from the post of a request to its observed completion; -1: none. Shape (n,)."""
    request: npt.NDArray[np.uint32]
    """Number of a non-blocking request in its process; 0: none. Shape (n,)."""
    calls: tuple[Call, ...]
    files: Sequence[str]
    sites: Sequence[str]

    clock_step_s: float | None
    """Step of the clock of these times, s, as the run states it; None: unknown."""

    _length: int
    _ask: Callable[[str], np.ndarray | None] | None
    _told: dict[str, np.ndarray | None]
    _remembered: dict[Any, Any]

    def __init__(
        self,
        columns: Mapping[str, np.ndarray],
        calls: Sequence[Call],
        files: Sequence[str],
        sites: Sequence[str] = ("",),
    ) -> None:
        length = len(columns["rank"])
        if "carried" not in columns:
            inside = np.asarray(columns["depth"]) > 0
            columns = {**columns, "carried": np.where(inside, np.uint8(3), np.uint8(0))}
        columns = {
            **{name: np.full(length, value, COLUMNS[name]) for name, value in MISSING.items()},
            **columns,
        }
        for name, dtype in COLUMNS.items():
            column = np.asarray(columns[name], dtype=dtype)
            if column.shape != (length,):
                raise ValueError(f"column {name!r} has the shape {column.shape}, not ({length},)")
            setattr(self, name, column)
        self.calls = tuple(calls)
        self.files, self.sites = files, sites
        self.clock_step_s = None
        self._length = length
        self._ask, self._told, self._remembered = None, {}, {}

    @classmethod
    def partly(
        cls,
        columns: Mapping[str, np.ndarray],
        calls: Sequence[Call],
        files: Sequence[str],
        sites: Sequence[str] = ("",),
    ) -> Self:
        """Make events of which only some columns were read.

        Summaries declare the columns that they need, and a reader decodes only these. Access to another
        column raises AttributeError.

        Parameters
        ----------
        columns : mapping of str to array_like, shape (n,)
            At least one column.
        calls : sequence of Call
        files, sites : sequence of str

        Returns
        -------
        Events
        """
        events = cls.__new__(cls)
        for name, column in columns.items():
            setattr(events, name, np.asarray(column, dtype=COLUMNS[name]))
            events._length = len(column)
        events.calls, events.files, events.sites, events.clock_step_s = tuple(calls), files, sites, None
        events._ask, events._told, events._remembered = None, {}, {}
        return events

    @classmethod
    def empty(cls, calls: Sequence[Call] = (), files: Sequence[str] = ("",)) -> Self:
        """Make an object without events.

        Parameters
        ----------
        calls : sequence of Call
        files : sequence of str

        Returns
        -------
        Events
        """
        return cls({name: np.empty(0, dtype) for name, dtype in COLUMNS.items()}, calls, files)

    @classmethod
    def concatenate(cls, parts: Sequence[Events], empties_parts: bool = False) -> Self:
        """Join the events of several parts of one run, with the columns that were read.

        Parameters
        ----------
        parts : sequence of Events
            At least one; all have the same `calls` and `files`.
        empties_parts : bool
            The parts are of no use afterwards: each of their columns is dropped when it has been joined, so
            that not all of them are in memory twice. Phases and ordinals are not joined then.

        Returns
        -------
        Events
            The events in the order of the parts.

        Raises
        ------
        ValueError
            The parts have different `calls` or `files`.
        """
        first = parts[0]
        if any(
            part.calls != first.calls
            or not (_same(part.files, first.files) and _same(part.sites, first.sites))
            for part in parts
        ):
            raise ValueError("events of different runs cannot be joined: their calls or files differ")
        columns = {}
        for name in list(first.columns):
            columns[name] = np.concatenate([getattr(part, name) for part in parts])
            for part in parts if empties_parts else ():
                delattr(part, name)
        make = cls if len(columns) == len(COLUMNS) else cls.partly
        whole = make(columns, first.calls, first.files, first.sites)
        whole.clock_step_s = first.clock_step_s
        if empties_parts:
            return whole

        def ask(name: str) -> np.ndarray | None:
            derived = [values for part in parts if (values := part._derived(name)) is not None]
            return np.concatenate(derived) if len(derived) == len(parts) else None

        if all(part._ask is not None for part in parts):
            whole._ask = ask
        return whole

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns that were read, by name, in the order of `COLUMNS`."""
        return {name: getattr(self, name) for name in COLUMNS if hasattr(self, name)}

    @property
    def end(self) -> npt.NDArray[np.int64]:
        """Return from the call: nanoseconds since the origin of the run. Shape (n,)."""
        return self.start + self.duration

    @property
    def op(self) -> npt.NDArray[np.uint8]:
        """Kind of operation: index into `OPS`. Shape (n,)."""
        return op_of_calls(self.calls)[self.call]

    @property
    def wanted(self) -> npt.NDArray[np.int64]:
        """Bytes that a call asks for; those that it moves, if it names the room for a line. Shape (n,)."""
        requested = np.minimum(self.requested, np.uint64(HALF_INT64)).astype(np.int64)
        names_room = np.array([call.name in ("fgets", "getdelim", "fscanf") for call in self.calls], bool)
        return np.where(names_room[self.call], np.maximum(self.moved, 0), requested)

    @property
    def outermost(self) -> npt.NDArray[np.bool_]:
        """Whether a call is in no other one; both halves of a copy, such as of sendfile, are. Shape (n,)."""
        return self.depth <= self.carried // SAME_CALL

    @property
    def phase(self) -> npt.NDArray[np.int64] | None:
        """Phase of each call; -1: outside of every phase. Shape (n,). None: unknown.

        Phases are computed from all events of a run (`ensembles.structure.phases.detect`). They are known
        for the events that `Run.events` and `Run.select` return.
        """
        return self._derived("phase")

    @property
    def ordinal(self) -> npt.NDArray[np.int64] | None:
        """Number of each call among those of its rank, operation and file, from 1. Shape (n,).

        None: unknown, as for `phase`.
        """
        return self._derived("ordinal")

    def _derived(self, name: str) -> np.ndarray | None:
        if name not in self._told:
            self._told[name] = None if self._ask is None else self._ask(name)
        return self._told[name]

    def remembered(self, key: Any, make: Callable[[Events], T]) -> T:
        """Return `make` of these events, computed once per key.

        Parameters
        ----------
        key : hashable
            Identifies the result.
        make : callable
            Called with these events when the key is new.

        Returns
        -------
        object
            The result of the first call with this key.
        """
        if key not in self._remembered:
            self._remembered[key] = make(self)
        found: T = self._remembered[key]
        return found

    def with_derived(self, ask: Callable[[str], np.ndarray | None]) -> Self:
        """Set the source of columns that are computed from all events of a run, and return these events.

        Parameters
        ----------
        ask : callable
            Called with ``"phase"`` or ``"ordinal"``. Returns the value of each event, shape (n,), or None
            if it is unknown.

        Returns
        -------
        Events
            The same object.
        """
        self._ask = ask
        return self

    def derived_as(self, others: Events) -> Self:
        """Take the columns that are computed from all events of a run from others, and return these events.

        Parameters
        ----------
        others : Events
            The same calls in the same order.

        Returns
        -------
        Events
            The same object.
        """
        self._ask, self._told = others._ask, others._told
        return self

    def slowest(self, most: float = 20) -> Self:
        """Select the calls with the longest durations, without those that wait for other tasks.

        Parameters
        ----------
        most : int or float
            Number of calls; a number below 1 is a share of the calls.

        Returns
        -------
        Events
            The longest first; of equal ones those of the lowest rank, then the earliest.

        Raises
        ------
        ValueError
            `most` is negative or not a number.

        Examples
        --------
        >>> slow = en.open("ensio-ior").select(op="write").slowest(0.05)
        >>> len(slow), bool(slow.duration[0] >= slow.duration[-1])
        (8, True)
        """
        io = np.flatnonzero(is_io_of_calls(self.calls)[self.call])
        wanted = wanted_calls(most, len(io))
        duration = self.duration[io]
        if 0 < wanted < len(io):  # Only as many as can be among them are sorted.
            least = np.partition(duration, len(io) - wanted)[len(io) - wanted]
            io = io[duration >= least]
            duration = self.duration[io]
        order = np.lexsort((self.start[io], self.rank[io], -duration))
        return self[io[order[:wanted]]]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Self:
        """Select events by a mask, a slice or an array of positions."""
        if isinstance(index, (int, np.integer)):
            index = slice(index, index + 1 or None)
        elif isinstance(index, np.ndarray) and index.dtype == bool and index.shape == (self._length,):
            index = np.flatnonzero(index)  # several times quicker for many columns than the mask for each
        columns = {name: column[index] for name, column in self.columns.items()}
        make = type(self) if len(columns) == len(COLUMNS) else self.partly
        chosen = make(columns, self.calls, self.files, self.sites)
        chosen.clock_step_s = self.clock_step_s

        def ask(name: str) -> np.ndarray | None:
            derived = self._derived(name)
            return None if derived is None else derived[index]

        return chosen if self._ask is None else chosen.with_derived(ask)

    def part(self, low: int, high: int) -> Self:
        """Select the events from position `low` to `high`, with the columns that were read.

        Parameters
        ----------
        low, high : int
            The event at `high` is excluded.

        Returns
        -------
        Events
            Views of the columns.
        """
        columns = {name: column[low:high] for name, column in self.columns.items()}
        return self.partly(columns, self.calls, self.files, self.sites)

    def sorted(self) -> Self:
        """Sort the events by rank and then by start.

        Returns
        -------
        Events
            The same object if the events are in this order already.
        """
        if self._is_sorted():
            return self
        return self[np.lexsort((self.start, self.rank))]

    def _is_sorted(self) -> bool:
        if len(self) < 2:
            return True
        later = self.start[1:] >= self.start[:-1]
        return bool(np.all((self.rank[1:] > self.rank[:-1]) | ((self.rank[1:] == self.rank[:-1]) & later)))

    def to_pandas(self) -> pandas.DataFrame:
        """Convert to a DataFrame with the same columns, ``op`` and ``layer``.

        Returns
        -------
        pandas.DataFrame
            A row per call, units as in the columns (ns, bytes). ``op``, ``layer``, ``call``, ``file`` and
            ``site`` are categories.
        """
        from ensembles.model.pandas_frame import make_frame

        return make_frame(self, OPS)

    def __repr__(self) -> str:
        if not len(self):
            return "Events: none"
        ranks = len(np.unique(self.rank))
        span_s = (int(self.end.max()) - int(self.start.min())) * 1e-9
        return f"Events: {count_text(len(self), 'call')} of {count_text(ranks, 'task')} over {span_s:.3f} s"

    def _repr_html_(self) -> str:
        from ensembles.model.notebook_html import events_html

        return events_html(self)


def _same(files: Sequence[str], others: Sequence[str]) -> bool:
    # Chunks of one run share the object: the comparison of long lists is rarely needed.
    if files is others:
        return True
    return files == others if isinstance(files, SiteTable) else list(files) == list(others)


def wanted_calls(most: float, calls: int) -> int:
    """Compute how many calls a number or a share means.

    `most`: number of calls; a number below 1 is a share of them, of which at least one call is taken.
    `ValueError`: `most` is negative, not a number, or neither whole nor a share.

    Examples
    --------
    >>> from ensembles.model.events import wanted_calls
    >>> wanted_calls(20, 160), wanted_calls(0.05, 160), wanted_calls(500, 160)
    (20, 8, 160)
    """
    if not most >= 0 or (most >= 1 and not float(most).is_integer() and math.isfinite(most)):
        raise ValueError(f"{most} is neither a number of calls nor a share of them, such as 20 or 0.01")
    if most >= 1 or most == 0:
        return int(min(most, calls))
    return min(max(round(most * calls), 1), calls)
