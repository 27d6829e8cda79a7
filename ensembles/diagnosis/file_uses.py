"""What each task does to each file, and why: a mergeable summary for rules about files and libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.evidence import Evidence
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows, extents, numbered_together
from ensembles.model.events import OPS, Call, Events, is_io_of_calls, of_calls, op_of_calls
from ensembles.model.levels import SMALL_BYTES
from ensembles.model.metadata import WAITS_FOR_DEVICE
from ensembles.passes.summary import RANK_ORDER, Summary
from ensembles.structure.phases.result import phases_of_calls
from ensembles.summaries.keyed_sums import KeyedSums, sum_by_keys

if TYPE_CHECKING:
    from ensembles.diagnosis.case import Case
    from ensembles.run.run import Run
    from ensembles.structure.phases.result import Phases


Rows = dict[str, np.ndarray]
"""Columns of one length; ``rank``, ``thread``, ``depth``, ``start`` and ``duration`` are among them."""


class Enclosing:
    """A finder of the calls around calls, over the chunks of a run.

    The calls of a thread come in the order of completion, so that the call around them follows. All chunks of
    a thread must come to the same object, in their order.

    Examples
    --------
    A write inside another call, which completes later:

    >>> from ensembles.diagnosis.file_uses import Enclosing
    >>> rows = {"rank": [0, 0], "thread": [0, 0], "depth": [1, 0], "start": [3, 0]}
    >>> rows = {name: np.array(column) for name, column in rows.items()}
    >>> rows |= {"duration": np.array([4, 10]), "flags": np.array([0, 8])}
    >>> found = Enclosing().complete(rows)
    >>> found["parent"].tolist(), found["around"].tolist(), found["own_ns"].tolist()
    ([1, -1], [8, 0], [4, 6])
    """

    def __init__(self) -> None:
        self._held: Rows | None = None

    @property
    def waits(self) -> bool:
        """Whether calls are held back."""
        return self._held is not None

    def complete(self, rows: Rows, last: bool = False) -> Rows:
        """Return the rows whose enclosing calls are all known, with what was found."""
        if self._held is None and not rows["depth"].any():
            n = len(rows["depth"])
            return rows | {
                "parent": np.full(n, -1),
                "around": np.zeros(n, np.int64),
                "own_ns": rows["duration"],
            }
        if self._held is not None:
            rows = {name: np.concatenate([held, rows[name]]) for name, held in self._held.items()}
        key = (rows["rank"].astype(np.int64) << 16) | rows["thread"]
        order = np.argsort(key, kind="stable")
        rows, key = {name: column[order] for name, column in rows.items()}, key[order]
        found, waits = _find(rows, key)
        # No thread of a rank that is over goes on.
        waits &= (rows["rank"] == rows["rank"].max(initial=0)) & (not last)
        self._held = {name: rows[name][waits] for name in rows} if waits.any() else None
        if not waits.any():
            return rows | found
        place = np.cumsum(~waits) - 1
        found["parent"] = np.where(found["parent"] >= 0, place[found["parent"]], -1)
        return {name: column[~waits] for name, column in (rows | found).items()}


def _find(rows: Rows, key: np.ndarray) -> tuple[Rows, np.ndarray]:
    depth, start = rows["depth"], rows["start"]
    parent, around = np.full(len(key), -1), np.zeros(len(key), np.int64)
    waits = np.zeros(len(key), bool)
    for level in range(1, int(depth.max(initial=0)) + 1):
        inner, outer = np.flatnonzero(depth == level), np.flatnonzero(depth < level)
        if not len(inner):
            continue
        place = np.searchsorted(outer, inner)
        after = outer[np.minimum(place, len(outer) - 1)] if len(outer) else np.zeros(len(inner), np.int64)
        follows = (place < len(outer)) & (key[after] == key[inner])
        waits[inner] = ~follows | waits[after]
        # A call that began later is not around it: that one was not recorded.
        holds = follows & (start[after] <= start[inner])
        parent[inner] = np.where(holds, after, -1)
        around[inner] = np.where(holds, rows["flags"][after] | around[after], 0)
    own = rows["duration"].copy()
    inside = np.flatnonzero(parent >= 0)
    np.subtract.at(own, parent[inside], rows["duration"][inside])
    return {"parent": parent, "around": around, "own_ns": np.maximum(own, 0)}, waits


PLAIN, SIEVED, METADATA, READ_TO_WRITE, READ_IN_WRITE, CACHED = range(6)
"""Kinds of calls. `SIEVED`: a read inside a write of MPI-IO, which then writes the same range. `METADATA`: a
small transfer inside a call of HDF5 that moves no data. `READ_TO_WRITE`: a read inside ``H5Dwrite``.
`READ_IN_WRITE`: another read inside a write of a library. `CACHED`: a write as of metadata, but not as small:
it may be a chunk of data that HDF5 held in its cache (`chunks_from_cache`)."""

NOT_READ_BY_PROGRAM = (SIEVED, READ_TO_WRITE, READ_IN_WRITE)
"""Kinds of reads that a library makes in order to write."""

_SURELY_METADATA_BYTES = 1 << 12
"""Chunks of data are rarely as small."""

_MPI_WRITE, _HDF5, _HDF5_DATA, _HDF5_WRITE, _LIBRARY_WRITE = (1 << bit for bit in range(5))
_READ, _WRITE, _SEEK = (OPS.index(op) for op in ("read", "write", "seek"))

LIBRARY_OPENS = frozenset(["H5Fopen", "MPI_File_open", "fopen", "nc_open", "nc_open_par", "ncmpi_open"])
"""Functions of libraries that open a file: what they do inside belongs to it."""

_IN_OPEN, _WITH_OPEN = range(1, 3)
_OF_LIBRARIES = ("opens", "opening_ns", "with_open_ns", "opening_bytes")

_FAR = np.iinfo(np.int64).max


class FileUses(Summary):
    """A mergeable summary: the calls of each task on each file, by phase, function and kind.

    It has a row for each file and task, as the program uses them.

    Attributes
    ----------
    table : KeyedSums
        By ``file``, ``phase`` (0: none), ``rank``, ``call``, ``kind`` and ``waits``
        (`WAITS_FOR_DEVICE` or 0): ``n``, ``bytes``, ``time_ns``
        (without enclosed calls), ``low`` and ``high`` (extent in the file; calls without an offset have
        none, and seeks only where they went, ``high``), ``start_ns`` and ``end_ns``. Of these calls,
        ``opens`` are opens of libraries inside no other open (`LIBRARY_OPENS`); ``opening_ns`` and
        ``opening_bytes`` (read from the file system) are in such opens, and ``with_open_ns`` is in closes of
        libraries and in opens of what the file holds.
    """

    columns = Evidence.columns
    requires = RANK_ORDER
    results = ("table",)
    meaning = 5

    def __init__(self, phases: Phases | None) -> None:
        self._phases = phases
        self._enclosing = Enclosing()
        self._calls: tuple[Call, ...] = ()
        keys = ("file", "phase", "rank", "call", "kind", "waits")
        sums = ("n", "bytes", "time_ns", *_OF_LIBRARIES)
        self.table = KeyedSums(keys, sums, ("low", "start_ns"), ("high", "end_ns"))

    @classmethod
    def for_run(cls, run: Run) -> FileUses:
        """Make an empty summary for a run."""
        return cls(run.phases)

    def add(self, chunk: Events) -> None:
        """Add events of one run, those of a thread in the order of completion."""
        if not len(chunk):
            return
        self._calls = tuple(chunk.calls)
        rows = {name: getattr(chunk, name) for name in self.columns}
        rows["phase"] = phases_of_calls(self._phases, chunk)
        if self._enclosing.waits or chunk.depth.any():
            rows["flags"] = _flags_of(chunk.calls)[chunk.call]
            self._add_nested({name: column.astype(np.int64) for name, column in rows.items()}, last=False)
        else:
            within = _opens_and_closes(chunk.calls)[chunk.call]
            self._add(rows | {"own_ns": chunk.duration}, np.full(len(chunk), PLAIN), within, within > 0)

    def finalize(self) -> None:
        """Add calls whose enclosing call never came: the program was killed inside it."""
        if self._calls:
            none = np.empty(0, np.int64)
            self._add_nested(dict.fromkeys((*self.columns, "phase", "flags"), none), last=True)

    def merge(self, other: FileUses) -> None:
        """Add the uses of other tasks of the run."""
        self.table.merge(other.table)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of `table`."""
        return self.table.columns()

    def _add_nested(self, rows: Rows, last: bool) -> None:
        """Add events of which some are inside others, once these are known."""
        rows = self._enclosing.complete(rows, last)
        kind = _kinds(rows, op_of_calls(self._calls)[rows["call"]], _is_posix(self._calls)[rows["call"]])
        self._add(rows, kind, *_within(rows, _opens_and_closes(self._calls)[rows["call"]]))

    def _add(self, rows: Rows, kind: np.ndarray, within: np.ndarray, is_outermost: np.ndarray) -> None:
        """Sum events whose kind is known, and which opens and closes of libraries they are within."""
        op, moved = op_of_calls(self._calls)[rows["call"]], np.maximum(rows["moved"], 0)
        placed, opening = (rows["offset"] >= 0) & (moved > 0), within == _IN_OPEN
        keys = {name: rows[name] for name in ("file", "phase", "rank", "call")}
        sums = {"bytes": moved, "time_ns": rows["own_ns"]}
        if within.any():
            reads = np.array([call.layer in STORAGE for call in self._calls])[rows["call"]] & (op == _READ)
            sums |= {
                "opens": opening & is_outermost,
                "opening_ns": rows["own_ns"] * opening,
                "with_open_ns": rows["own_ns"] * (within == _WITH_OPEN),
                "opening_bytes": moved * (opening & reads),
            }
        found = sum_by_keys(
            keys | {"kind": kind, "waits": rows["carried"] & WAITS_FOR_DEVICE},
            sums,
            {"low": np.where(placed, rows["offset"], _FAR), "start_ns": rows["start"]},
            {
                "high": np.where(placed | (op == _SEEK), rows["offset"] + moved, -1),
                "end_ns": rows["start"] + rows["duration"],
            },
            is_io_of_calls(self._calls)[rows["call"]] & (rows["file"] > 0),
        )
        none = np.zeros(len(found["n"]), np.int64)
        self.table.add_summed(dict.fromkeys(_OF_LIBRARIES, none) | found)


def _within(rows: Rows, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find calls in opens and closes of libraries, and the outermost one of them: both of shape (n,)."""
    within, is_outermost = own.copy(), own > 0
    for level in range(1, int(rows["depth"].max(initial=0)) + 1):
        inner = np.flatnonzero((rows["depth"] == level) & (rows["parent"] >= 0))
        around = within[rows["parent"][inner]]
        inner, around = inner[around > 0], around[around > 0]
        within[inner], is_outermost[inner] = around, False
    return within, is_outermost


def _kinds(rows: Rows, op: np.ndarray, posix: np.ndarray) -> np.ndarray:
    """Return the kind of each call."""
    kind = np.zeros(len(op), np.int64)
    around = rows["around"]
    reads, transfers = posix & (op == _READ), posix & ((op == _READ) | (op == _WRITE))
    small = transfers & (rows["requested"] < SMALL_BYTES)
    kind[reads & ((around & _LIBRARY_WRITE) != 0)] = READ_IN_WRITE
    structure = small & ((around & _HDF5) != 0) & ((around & _HDF5_DATA) == 0)
    kind[structure] = METADATA
    kind[structure & (op == _WRITE) & (rows["requested"] >= _SURELY_METADATA_BYTES)] = CACHED
    kind[reads & ((around & _HDF5_WRITE) != 0)] = READ_TO_WRITE
    inside = np.flatnonzero(transfers & ((around & _MPI_WRITE) != 0))
    kind[inside[_written_again(rows, inside, op)]] = SIEVED
    return kind


def _written_again(rows: Rows, inside: np.ndarray, op: np.ndarray) -> np.ndarray:
    """Find the rows ``inside`` whose range the next write of the same enclosing call writes too."""
    count = len(inside)
    writes = op[inside] == _WRITE
    after = np.where(writes, np.arange(count), count)
    after = np.minimum.accumulate(after[::-1])[::-1]
    found: np.ndarray = ~writes & (after < count)
    one, write = inside[found], inside[after[found]]
    same = (rows["parent"][one] == rows["parent"][write]) & (rows["file"][one] == rows["file"][write])
    begin, ahead = rows["offset"][one], rows["offset"][write]
    end, last = begin + rows["requested"][one], ahead + rows["requested"][write]
    same &= ((begin == ahead) & (end >= last)) | ((begin >= ahead) & (end <= last))
    found[found] = same
    return found


@of_calls
def _flags_of(calls: Sequence[Call]) -> np.ndarray:
    """Return what each function means for the calls inside it."""

    def flags(call: Call) -> int:
        writes = call.op == "write"
        if call.layer in STORAGE:
            return 0
        if call.layer != "hdf5":
            return _LIBRARY_WRITE * writes | _MPI_WRITE * (writes and call.layer == "mpiio")
        data = call.name.startswith("H5D") and call.op in ("read", "write")
        return _HDF5 | _LIBRARY_WRITE * writes | _HDF5_DATA * data | _HDF5_WRITE * (data and writes)

    return np.array([flags(call) for call in calls], np.int64)


@of_calls
def _opens_and_closes(calls: Sequence[Call]) -> np.ndarray:
    def state(call: Call) -> int:
        if call.name in LIBRARY_OPENS:
            return _IN_OPEN
        goes_with = call.op == "close" or (call.op == "open" and "create" not in call.name)
        return _WITH_OPEN * (goes_with and call.layer != "posix")

    return np.array([state(call) for call in calls], np.int64)


@of_calls
def _is_posix(calls: Sequence[Call]) -> np.ndarray:
    return np.array([call.layer == "posix" for call in calls])


def chunks_from_cache(table: Rows, calls: Sequence[Call]) -> np.ndarray:
    """Find the rows of `CACHED` writes that are data: ``H5Dwrite`` took it, and wrote less by itself."""
    data = np.array([call.name.startswith("H5Dwrite") for call in calls])[table["call"]]
    posix = (_is_posix(calls) & (op_of_calls(calls) == _WRITE))[table["call"]]
    cached = table["kind"] == CACHED
    direct = posix & ~cached & (table["kind"] != METADATA)
    files = int(table["file"].max(initial=0)) + 1
    given, written, held = (
        np.bincount(table["file"][rows], table["bytes"][rows], files) for rows in (data, direct, cached)
    )
    found: np.ndarray = cached & (given - written >= held / 2)[table["file"]]
    return found


def share_of_rows(
    case: Case, table: Rows, chosen: np.ndarray, weight: np.ndarray | None = None, of: str = "time_ns"
) -> np.ndarray:
    """Compute which share of the time of each row of a case lies in chosen rows of the table."""
    theirs, mine, size = numbered_together(("phase", "rank", "call"), table, case.rows)
    part = table[of] * (chosen if weight is None else chosen * weight)
    whole = np.bincount(theirs, table[of], size)
    share = np.divide(np.bincount(theirs, part, size), whole, out=np.zeros(size), where=whole > 0)
    found: np.ndarray = np.minimum(share, 1.0)[mine]
    return found


def uses_of_rows(case: Case, table: Rows, chosen: np.ndarray) -> np.ndarray:
    """Find the rows of the table whose calls lie in chosen rows of a case."""
    theirs, mine, size = numbered_together(("phase", "rank", "call"), table, case.rows)
    found: np.ndarray = np.bincount(mine, chosen, size)[theirs] > 0
    return found


def tasks_at_once(table: Rows, chosen: np.ndarray) -> np.ndarray:
    """Compute how many tasks are in calls on a file at once, phase by phase."""
    _, where = distinct_rows(table["file"][chosen], table["phase"][chosen])
    groups = int(where.max(initial=-1)) + 1
    begin, end = extents(where, table["start_ns"][chosen], table["end_ns"][chosen], groups)
    busy_ns = np.bincount(where, table["time_ns"][chosen], groups)
    at_once: np.ndarray = (busy_ns / np.maximum(end - begin, 1))[where]
    return at_once
