"""Events: completed I/O calls as NumPy columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from ensembles.model import extensions

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas

    from ensembles.ensemble.ensemble import Ensemble

T = TypeVar("T")

OPS = ("read", "write", "open", "close", "seek", "sync", "meta", "wait")
"""The kinds of operations; ``Events.op`` indexes this."""

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
}
"""Names and types of the columns, in their order."""

COLUMN_MEANINGS: dict[str, tuple[str, str]] = {
    "rank": ("", "task that made the call"),
    "thread": ("", "thread of the task, numbered from 0"),
    "call": ("", "function that was called: index into the calls"),
    "depth": ("", "recorded calls of the same thread around this one"),
    "carried": ("", "a call around it counts the bytes that are read in it (1), written in it (2)"),
    "file": ("", "file it was about: index into the files; 0: none, or not known"),
    "offset": ("bytes", "from the start of the file; -1: none, or not known"),
    "requested": ("bytes", "asked for"),
    "moved": ("bytes", "moved; -1: the call failed"),
    "error": ("", "errno of a call that failed, else 0"),
    "start": ("ns", "entry into the call, since the origin of the run"),
    "duration": ("ns", "from entry to return"),
}
"""Unit and meaning of each column."""


class Call(NamedTuple):
    """A traced function: its name, its layer (``posix``, ...) and its kind of operation (one of `OPS`)."""

    name: str
    layer: str
    op: str


class Events:
    """Completed calls, one NumPy array a column, all of the same length n.

    Without a ``carried`` column, all calls inside other calls are taken to be carried. Events of which only
    some columns were read (`partly`) have no other column.
    """

    __slots__ = (*COLUMNS, "_ask", "_length", "_remembered", "_told", "calls", "files")

    rank: npt.NDArray[np.uint32]
    """Task that made the call. Shape (n,)."""
    thread: npt.NDArray[np.uint16]
    """Thread of the task, numbered from 0. Shape (n,)."""
    call: npt.NDArray[np.uint16]
    """Function that was called: index into `calls`. Shape (n,)."""
    depth: npt.NDArray[np.uint8]
    """Number of recorded calls of the same thread around this one. Shape (n,)."""
    carried: npt.NDArray[np.uint8]
    """Bytes that a call around this one counts too. 1: those read, 2: those written, 3: both. Shape (n,)."""
    file: npt.NDArray[np.uint32]
    """File that the call used: index into `files`; 0: none, or not known. Shape (n,)."""
    offset: npt.NDArray[np.int64]
    """Bytes from the start of the file; -1: none, or not known. Shape (n,)."""
    requested: npt.NDArray[np.uint64]
    """Bytes that the call asked for. Shape (n,)."""
    moved: npt.NDArray[np.int64]
    """Bytes that the call moved; -1: the call failed. Shape (n,)."""
    error: npt.NDArray[np.uint16]
    """The errno of a call that failed, else 0. Shape (n,)."""
    start: npt.NDArray[np.int64]
    """Entry into the call: nanoseconds since the origin of the run. Shape (n,)."""
    duration: npt.NDArray[np.int64]
    """Nanoseconds from entry to return. Shape (n,)."""
    calls: tuple[Call, ...]
    """The functions that the ``call`` column indexes."""
    files: Sequence[str]
    """Absolute paths, which the ``file`` column indexes; ``files[0]`` is ``""`` (no file)."""

    _length: int
    _ask: Callable[[str], np.ndarray | None] | None
    _told: dict[str, np.ndarray | None]
    _remembered: dict[Any, Any]

    def __init__(
        self, columns: Mapping[str, np.ndarray], calls: Sequence[Call], files: Sequence[str]
    ) -> None:
        length = len(columns["rank"])
        if "carried" not in columns:
            inside = np.asarray(columns["depth"]) > 0
            columns = {**columns, "carried": np.where(inside, np.uint8(3), np.uint8(0))}
        for name, dtype in COLUMNS.items():
            column = np.asarray(columns[name], dtype=dtype)
            if column.shape != (length,):
                raise ValueError(f"column {name!r} has the shape {column.shape}, not ({length},)")
            setattr(self, name, column)
        self.calls = tuple(calls)
        self.files = files
        self._length = length
        self._ask, self._told, self._remembered = None, {}, {}

    @classmethod
    def partly(cls, columns: Mapping[str, np.ndarray], calls: Sequence[Call], files: Sequence[str]) -> Events:
        """Events of which only some columns were read: to ask for another one is an AttributeError. For
        summaries that say which columns they need."""
        events = cls.__new__(cls)
        for name, column in columns.items():
            setattr(events, name, np.asarray(column, dtype=COLUMNS[name]))
            events._length = len(column)
        events.calls, events.files = tuple(calls), files
        events._ask, events._told, events._remembered = None, {}, {}
        return events

    @classmethod
    def empty(cls, calls: Sequence[Call] = (), files: Sequence[str] = ("",)) -> Events:
        """Events without a single call."""
        return cls({name: np.empty(0, dtype) for name, dtype in COLUMNS.items()}, calls, files)

    @classmethod
    def concatenate(cls, parts: Sequence[Events]) -> Events:
        """All calls of `parts` (at least one), which must share their dictionaries."""
        first = parts[0]
        if any(part.calls != first.calls or not _same(part.files, first.files) for part in parts):
            raise ValueError("events of different runs cannot be put together: their calls or files differ")
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
        whole = cls(columns, first.calls, first.files)

        def ask(name: str) -> np.ndarray | None:
            derived = [values for part in parts if (values := part._derived(name)) is not None]
            return np.concatenate(derived) if len(derived) == len(parts) else None

        if all(part._ask is not None for part in parts):
            whole._ask = ask
        return whole

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns by name, in the order of `COLUMNS`."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def end(self) -> npt.NDArray[np.int64]:
        """Return from the call: nanoseconds since the origin of the run. Shape (n,)."""
        return self.start + self.duration

    @property
    def op(self) -> npt.NDArray[np.uint8]:
        """Kind of operation: index into `OPS`. Shape (n,)."""
        return op_of_calls(self.calls)[self.call]

    @property
    def phase(self) -> npt.NDArray[np.int64] | None:
        """Phase of each call (`ensembles.structure.phases.detect`); -1: in none. Shape (n,). None: not known.

        Phases follow from all events of a run together: those of `Run.events` and `Run.select` know them."""
        return self._derived("phase")

    @property
    def ordinal(self) -> npt.NDArray[np.int64] | None:
        """Number of each call among those of its rank, operation and file, from 1. Shape (n,). None: not
        known, as for `phase`."""
        return self._derived("ordinal")

    def _derived(self, name: str) -> np.ndarray | None:
        if name not in self._told:
            self._told[name] = None if self._ask is None else self._ask(name)
        return self._told[name]

    def remembered(self, key: Any, make: Callable[[Events], T]) -> T:
        """What `make` makes of these events: once, however many ask for it by this key."""
        if key not in self._remembered:
            self._remembered[key] = make(self)
        return self._remembered[key]

    def with_derived(self, ask: Callable[[str], np.ndarray | None]) -> Events:
        """These events, which from now on ask `ask` for what only a whole run tells: ``"phase"`` or
        ``"ordinal"`` of each, shape (n,), or None."""
        self._ask = ask
        return self

    def ensemble(self, per: Literal["call", "MiB"] = "call") -> Ensemble:
        """The durations of these calls as an ensemble.

        Parameters
        ----------
        per : {"call", "MiB"}
            Seconds of each call, or seconds per MiB that it moved; then calls that moved nothing are left
            out.
        """
        return extensions.ensemble_from_events(self, per)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Events:
        """The events that a mask, a slice or an array of positions chooses."""
        if isinstance(index, (int, np.integer)):
            index = slice(index, index + 1 or None)
        columns = {name: getattr(self, name)[index] for name in COLUMNS if hasattr(self, name)}
        make = Events if len(columns) == len(COLUMNS) else Events.partly
        chosen = make(columns, self.calls, self.files)

        def ask(name: str) -> np.ndarray | None:
            derived = self._derived(name)
            return None if derived is None else derived[index]

        return chosen if self._ask is None else chosen.with_derived(ask)

    def part(self, low: int, high: int) -> Events:
        """The events from `low` to `high`, with the columns that these have."""
        columns = {name: getattr(self, name)[low:high] for name in COLUMNS if hasattr(self, name)}
        return Events.partly(columns, self.calls, self.files)

    def sorted(self) -> Events:
        """The same events, by rank and then by start."""
        if self._is_sorted():
            return self
        return self[np.lexsort((self.start, self.rank))]

    def _is_sorted(self) -> bool:
        if len(self) < 2:
            return True
        later = self.start[1:] >= self.start[:-1]
        return bool(np.all((self.rank[1:] > self.rank[:-1]) | ((self.rank[1:] == self.rank[:-1]) & later)))

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame with the same columns, ``op`` and ``layer``; names are categories."""
        import pandas as pd

        frame = pd.DataFrame(self.columns)
        frame["op"] = pd.Categorical.from_codes(self.op, list(OPS))
        layers = sorted({call.layer for call in self.calls})
        layer_of_call = np.array([layers.index(call.layer) for call in self.calls], dtype="i2")
        frame["layer"] = pd.Categorical.from_codes(layer_of_call[self.call], layers)
        frame["call"] = _categories(self.call, [call.name for call in self.calls])
        frame["file"] = _categories(self.file, list(self.files))
        return frame

    def __repr__(self) -> str:
        if not len(self):
            return "Events: none"
        ranks = len(np.unique(self.rank))
        span_s = (int(self.end.max()) - int(self.start.min())) * 1e-9
        return f"Events: {len(self):,} calls of {ranks:,} tasks over {span_s:.3f} s"


def of_calls(function: Callable[[Sequence[Call]], T]) -> Callable[[Sequence[Call]], T]:
    """A function of the calls of a run, which is not asked again for those that it was asked for last: all
    chunks of a run have the same."""
    last: tuple[Any, Any] = None, None

    @wraps(function)
    def remembering(calls: Sequence[Call]) -> T:
        nonlocal last
        known, answer = last
        if known is not calls:
            answer = function(calls)
            last = (calls, answer) if isinstance(calls, tuple) else (None, None)
        return answer

    return remembering


@of_calls
def op_of_calls(calls: Sequence[Call]) -> npt.NDArray[np.uint8]:
    """Kind of operation of each call: index into `OPS`, u1, shape (len(calls),); not to be changed."""
    ops = np.array([OPS.index(call.op) for call in calls], dtype=np.uint8)
    ops.flags.writeable = False
    return ops


def _same(files: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two dictionaries of files are equal: quick to tell of the same run's."""
    return files is others or list(files) == list(others)


def _categories(codes: np.ndarray, names: list[str]) -> Any:
    """A pandas categorical of `names[codes]`; names may occur more than once."""
    import pandas as pd

    unique = list(dict.fromkeys(names))
    position = {name: number for number, name in enumerate(unique)}
    return pd.Categorical.from_codes(np.array([position[name] for name in names], dtype="i8")[codes], unique)
