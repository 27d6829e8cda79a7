"""Reads ``trace.h5``: a whole run in one HDF5 file, as `ensembles.writers.tracefile` writes it."""

from __future__ import annotations

import itertools
import operator
import os
import zlib as standard_zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import h5py
import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import COLUMNS, OPS, Call, Events
from ensembles.metadata import Mount, Process, RunMetadata
from ensembles.readers.coding import unshuffle
from ensembles.readers.columns import LARGEST_MOVED_BYTES, LARGEST_NS
from ensembles.readers.decode import sort_by_rank_and_start
from ensembles.regiontable import COLUMNS as REGION_COLUMNS
from ensembles.regiontable import KINDS, RegionTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import COLUMNS as RANK_COLUMNS
from ensembles.summaries.ranktable import RankTable

try:  # the same, about four times as fast
    from isal import isal_zlib as zlib
except ImportError:
    zlib = standard_zlib  # type: ignore[misc]

FORMAT = "ensio trace"
VERSION = 2
TEXT_ATTRIBUTES = ("mode", "job", "launcher", "recorder", "exclude", "user", "uid", "libc", "mpi")
THREADS = min(4, len(os.sched_getaffinity(0)))
"""Threads that compress and decompress; zlib lets them run side by side."""


_FEW_RANKS = 24
"""Where the events of so few ranks lie is found by bisection; of more, by a look at all ranks."""

_DEFLATE_RATIO = 1032
"""No deflated data become longer than this many times their length."""

_MOST_TASKS = 1 << 25
_MOST_THREADS = 1 << 40
_LATEST_NS = 1 << 62
_VALUES = {
    "moved": (-1, LARGEST_MOVED_BYTES),
    "start": (-LARGEST_NS, _LATEST_NS + LARGEST_NS),
    "duration": (0, LARGEST_NS),
}
"""Least and largest value that the spool reader gives; others are damage."""


@contextmanager
def damage_told(path: str) -> Iterator[None]:
    """Tell whatever HDF5, zlib or a missing part complains about in one sentence."""
    try:
        yield
    except (
        *(OSError, KeyError, ValueError, TypeError, RuntimeError, IndexError),
        *(standard_zlib.error, zlib.error),
    ) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise EnsioError(
            f"{path} is not a whole trace.h5 of ensio ({reason}): make it again with ensio collect"
        ) from error


class TraceFileSource:
    """A run in a ``trace.h5``.

    Attributes
    ----------
    path : str
    metadata : RunMetadata
    complete : bool
        Every process had ended when it was written.
    spools : dict of str to (int, int)
        What it was made from: name of each spool → its size in bytes and time of change in ns.

    Raises
    ------
    EnsioError
        The file cannot be read, is cut short, or is another kind of file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with damage_told(path), h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise ValueError("it is an HDF5 file of something else")
            version = _number(file, "version", 1 << 31)
            if version != VERSION:
                raise ValueError(f"its version is {version}, and this ensio reads {VERSION}")
            self.complete = bool(_number(file, "complete", 1))
            self.metadata = _read_metadata(file)
            spools = file["spools"]
            identities = zip(_numbers(spools, "bytes"), _numbers(spools, "mtime_ns"), strict=True)
            self.spools = dict(zip(_strings(spools, "name"), identities, strict=True))

    @property
    def slots(self) -> int:
        """Number of events."""
        with damage_told(self.path), h5py.File(self.path, "r") as file:
            return _Columns(file["events"], ("duration",)).length

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]:
        """At most `max_events` at a time, in the order of ranks, those of a thread in order of completion;
        with these columns (`Events.partly`), or with all."""
        with self._columns(names) as (columns, pool):
            for low in range(0, columns.length, max_events):
                yield self._read(columns, low, min(low + max_events, columns.length), pool)

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """The same in up to `most_parts` parts, about equally long, which threads may read side by side."""
        with damage_told(self.path), h5py.File(self.path, "r") as file:
            columns = _Columns(file["events"], ("duration",))
        pieces = -(-columns.length // columns.rows)
        edges = np.unique(np.linspace(0, pieces, max(most_parts, 1) + 1).astype(int)) * columns.rows
        edges = np.minimum(edges, columns.length).tolist()
        return [self._part(low, high, max_events, names) for low, high in itertools.pairwise(edges)]

    def _part(self, low: int, high: int, max_events: int, names: Sequence[str] | None) -> Iterator[Events]:
        with self._columns(names, threads=1) as (columns, pool):
            # What is compressed together is read at once.
            for begin in range(low, high, columns.rows):
                whole = self._read(columns, begin, min(begin + columns.rows, high), pool)
                for first in range(0, len(whole), max_events):
                    yield whole.part(first, first + max_events)

    def some_ranks(self, most_events: int, least_ranks: int) -> Events:
        """All events of some ranks, evenly spaced among all, by rank and start: about `most_events`, of
        `least_ranks` ranks at least."""
        tasks = self.metadata.tasks
        with self._columns(("rank",)) as (column, pool):
            length = column.length
            wanted = max(least_ranks, int(tasks * most_events / max(length, 1)))
            ranks = np.unique(np.linspace(0, tasks - 1, min(wanted, tasks)).astype(int)).tolist()
            if len(ranks) <= _FEW_RANKS:

                def rank_of(row: int) -> int:
                    return int(column.read(row, row + 1, pool)["rank"][0])

                ends = [rank + more for rank in ranks for more in (0, 1)]
                rows = [bisect_left(range(length), end, key=rank_of) for end in ends]
                spans = list(zip(rows[::2], rows[1::2], strict=True))
            else:
                begin = np.zeros(tasks + 1, np.int64)
                for low in range(0, length, 1 << 20):
                    chunk = column.read(low, min(low + (1 << 20), length), pool)["rank"]
                    begin[1:] += np.bincount(chunk, minlength=tasks)[:tasks]
                begin = np.cumsum(begin)
                spans = [(int(begin[rank]), int(begin[rank + 1])) for rank in ranks]
        with self._columns() as (columns, pool):
            parts = [self._read(columns, low, high, pool) for low, high in spans if high > low]
        parts = parts or [Events.empty(self.metadata.calls, self.metadata.files)]
        return Events.concatenate(parts).sorted()

    def events(self) -> Events:
        """All events, by rank and start."""
        with self._columns() as (columns, pool):
            try:
                events = self._read(columns, 0, columns.length, pool)
            except MemoryError as error:
                raise EnsioError(
                    f"{columns.length:,} events do not fit into memory: "
                    "use Run.chunks() instead of Run.events"
                ) from error
        sort_by_rank_and_start(events.columns)
        return events

    def regions(self) -> RegionTable:
        """The phases and regions that the program named."""
        with damage_told(self.path), h5py.File(self.path, "r") as file:
            if "regions" not in file:  # written before there were any
                return RegionTable.empty()
            group = file["regions"]
            columns = {name: np.array(_numbers(group, name), dtype) for name, dtype in REGION_COLUMNS.items()}
            table = RegionTable(columns, _strings(group, "names"))
            if len(table) and (table.name.max() >= len(table.names) or table.kind.max() >= len(KINDS)):
                raise ValueError("its regions have numbers without a name")
            return table

    def summary(self) -> CellSummary | None:
        """What all calls add up to; None: the recorder kept no summary."""
        with damage_told(self.path), h5py.File(self.path, "r") as file:
            if "summary" not in file:
                return None
            group = file["summary"]
            arrays = {name: _column(group, name)[:] for name in group}
            return CellSummary.from_arrays(arrays, self.metadata.calls, self.metadata.files)

    def ranks(self) -> RankTable | None:
        """What the calls of each rank add up to; None: the recorder kept no summary, or none by ranks."""
        with damage_told(self.path), h5py.File(self.path, "r") as file:
            if "ranks" not in file:
                return None
            rows = {name: _column(file["ranks"], name)[:] for name in RANK_COLUMNS}
            if len({len(column) for column in rows.values()}) != 1:
                raise ValueError("its columns about ranks have different lengths")
            call, rank = rows["call"], rows["rank"]
            if len(call) and not (0 <= call.min() <= call.max() < len(self.metadata.calls)):
                raise ValueError("its ranks made calls without a name")
            if len(rank) and not (0 <= rank.min() <= rank.max() < self.metadata.tasks):
                raise ValueError("it tells of ranks that are none")
            table = RankTable(self.metadata.calls)
            table.add_rows(self.metadata.calls, rows)
            return table

    @contextmanager
    def _columns(
        self, names: Sequence[str] | None = None, threads: int = THREADS
    ) -> Iterator[tuple[_Columns, ThreadPoolExecutor]]:
        with damage_told(self.path), h5py.File(self.path, "r") as file, ThreadPoolExecutor(threads) as pool:
            yield _Columns(file["events"], tuple(COLUMNS) if names is None else names), pool

    def _read(self, columns: _Columns, low: int, high: int, pool: ThreadPoolExecutor) -> Events:
        out = columns.read(low, high, pool)
        metadata = self.metadata
        limits = {
            "rank": (0, metadata.tasks - 1),
            "call": (0, len(metadata.calls) - 1),
            "file": (0, len(metadata.files) - 1),
            **_VALUES,
        }
        for name, (least, most) in limits.items():
            if name in out and high > low and (out[name].max() > most or out[name].min() < least):
                raise ValueError(f"its column {name} has values beyond {least} to {most}")
        make = Events if len(out) == len(COLUMNS) else Events.partly
        return make(out, metadata.calls, metadata.files)


class _Columns:
    """The columns in the file, chunks of which several threads decompress."""

    def __init__(self, group: h5py.Group, names: Sequence[str]) -> None:
        self._datasets = {name: _column(group, name) for name in names}
        lengths = {dataset.shape[0] for dataset in self._datasets.values()}
        if len(lengths) != 1:
            raise ValueError("its columns have different lengths")
        self.length = lengths.pop()
        self.rows = max((dataset.chunks or (1,))[0] for dataset in self._datasets.values())
        for name, dataset in self._datasets.items():
            if dataset.dtype != COLUMNS[name]:
                raise ValueError(f"its column {name} has the type {dataset.dtype}")

    def read(self, low: int, high: int, pool: ThreadPoolExecutor) -> dict[str, np.ndarray]:
        """Rows `low` to `high` of the columns."""
        out = {name: np.empty(high - low, COLUMNS[name]) for name in self._datasets}
        jobs = []
        for name, dataset in self._datasets.items():
            if not _is_plain_gzip(dataset):
                dataset.read_direct(out[name], np.s_[low:high])
                continue
            rows = dataset.chunks[0]
            for first in range(low // rows * rows, high, rows):
                mask, raw = dataset.id.read_direct_chunk((first,))
                if mask:
                    raise ValueError(f"a part of its column {name} is stored without compression")
                begin, end = max(first, low), min(first + rows, high)
                place = out[name][begin - low : end - low]
                jobs.append(pool.submit(_decompress, raw, rows, begin - first, place))
        for job in jobs:
            job.result()
        return out


def _is_plain_gzip(dataset: h5py.Dataset) -> bool:
    """Whether a column is stored as ours are; another program may have repacked it."""
    return (
        dataset.chunks is not None
        and dataset.compression == "gzip"
        and dataset.shuffle
        and not dataset.fletcher32
        and dataset.scaleoffset is None
    )


def _decompress(raw: bytes, rows: int, first: int, place: np.ndarray) -> None:
    """Decompress a chunk, and put its rows from `first` on into `place`, undoing HDF5's shuffle of bytes."""
    width = place.itemsize
    # Asked for one byte more than there is, zlib goes on to the checksum; the limit keeps bombs small.
    decompressor = zlib.decompressobj()
    data = decompressor.decompress(raw, rows * width + 1)
    if not decompressor.eof:
        raise ValueError("its compressed data are damaged")
    if len(data) != rows * width:
        raise ValueError("its compressed data have another length than they are said to have")
    unshuffle(data, first, place)


def _column(group: h5py.Group, name: str) -> h5py.Dataset:
    """A column that is there in full: HDF5 gives zeros for what was never written, at any length."""
    dataset = group[name]
    if not isinstance(dataset, h5py.Dataset) or len(dataset.shape or ()) != 1:
        raise ValueError(f"{name} in it is no column")
    (length,), stored_bytes = dataset.shape, dataset.id.get_storage_size()
    if dataset.chunks is None:
        whole = stored_bytes >= length * dataset.dtype.itemsize
    else:
        whole = dataset.id.get_num_chunks() == -(-length // dataset.chunks[0])
        if dataset.compression == "gzip":
            whole &= _DEFLATE_RATIO * stored_bytes >= length * dataset.dtype.itemsize
    if not whole:
        raise ValueError(f"a part of its column {name} is missing")
    return dataset


def _strings(group: h5py.Group, name: str) -> list[str]:
    return [os.fsdecode(text) for text in _column(group, name)[:]]


def _rows(group: h5py.Group, *names: str) -> list[tuple[str, ...]]:
    return list(zip(*(_strings(group, name) for name in names), strict=True))


def _numbers(group: h5py.Group, name: str) -> list[int]:
    dataset = _column(group, name)
    if dataset.dtype.kind not in "iu":
        raise ValueError(f"its column {name} has the type {dataset.dtype}")
    return dataset[:].tolist()


def _number(file: h5py.File, name: str, most: int) -> int:
    """An attribute that is a whole number from 0 to `most`."""
    number = operator.index(file.attrs[name])
    if not 0 <= number <= most:
        raise ValueError(f"its attribute {name} is {number}")
    return number


def _read_metadata(file: h5py.File) -> RunMetadata:
    calls = file["calls"]
    names, layers, ops = (_strings(calls, part) for part in ("name", "layer", "op"))
    if not set(ops) <= set(OPS):
        raise ValueError("its calls have unknown kinds of operations")
    text = {name: os.fsdecode(file.attrs[name]) for name in TEXT_ATTRIBUTES}
    facts: dict[str, dict[str, str]] = {}
    for path, key, value in _rows(file["file_facts"], "path", "key", "value"):
        facts.setdefault(path, {})[key] = value
    mounts: dict[str, tuple[Mount, ...]] = {}
    table = _rows(file["mounts"], "host", "point", "type", "source")
    for (host, *mount), block in zip(table, _numbers(file["mounts"], "block_bytes"), strict=True):
        mounts[host] = (*mounts.get(host, ()), Mount(*mount, block))
    return RunMetadata(
        tasks=_number(file, "tasks", _MOST_TASKS),
        threads=_number(file, "threads", _MOST_THREADS),
        origin_unix_ns=_number(file, "origin_unix_ns", _LATEST_NS),
        calls=tuple(Call(*call) for call in zip(names, layers, ops, strict=True)),
        files=_strings(file, "files"),
        processes=_read_processes(file["processes"]),
        notes=_strings(file, "notes"),
        hosts=_strings(file, "hosts"),
        clock_error_s=float(file.attrs["clock_error_s"]) if "clock_error_s" in file.attrs else None,
        environment=dict(_rows(file["environment"], "name", "value")),
        mounts=mounts,
        file_facts=facts,
        **text,
    )


def _read_processes(group: h5py.Group) -> list[Process]:
    columns: list[Any] = []
    for field in fields(Process):
        if field.name == "command":
            columns.append([tuple(text.split("\x1f")) if text else () for text in _strings(group, "command")])
        elif field.type == "str":
            columns.append(_strings(group, field.name))
        elif field.type == "bool":
            columns.append([bool(value) for value in _numbers(group, field.name)])
        else:
            columns.append(_numbers(group, field.name))
    return [Process(*row) for row in zip(*columns, strict=True)]
