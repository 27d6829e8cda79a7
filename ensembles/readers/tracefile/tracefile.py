"""Read a ``trace.h5``: a whole run in one HDF5 file, written by `ensembles.writers.tracefile.tracefile`."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import h5py
import numpy as np

from ensembles.model.counters import Counters
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, MISSING, OPS, Call, Events
from ensembles.model.filters import within_ranges
from ensembles.model.flights import Flights
from ensembles.model.metadata import KERNEL_BYTES, KernelBytes, Mount, Process, RunMetadata
from ensembles.model.regions import COLUMNS as REGION_COLUMNS
from ensembles.model.regions import KINDS, RegionTable
from ensembles.model.sites import SiteTable
from ensembles.model.surroundings import COLUMNS as SURROUNDINGS_COLUMNS
from ensembles.model.surroundings import UNKNOWN, SurroundingsTable
from ensembles.model.units import HALF_INT64, MOST_TASKS, ROWS_AT_ONCE, count_text
from ensembles.passes.damage import DamageReport
from ensembles.passes.kept import NotKept, name_of, restore, unseal
from ensembles.passes.reading import Ranges, RankSizes, ReadRequest
from ensembles.readers.common.columns import (
    LIMITS,
    NEEDED,
    CompletionOrder,
    ReusedColumns,
    unsound,
)
from ensembles.readers.tracefile.checked_parts import (
    check_superblock,
    content_identity,
    find_plugins,
    has_part,
    open_column,
    open_group,
    read_attribute,
    read_numbers,
    read_rows,
    read_sealed,
    read_texts,
    whole_column,
)
from ensembles.readers.tracefile.chunks import DAMAGE, THREADS, Limits, TraceColumns
from ensembles.readers.tracefile.index import KEY as CONTENTS_KEY
from ensembles.readers.tracefile.index import MOST_ROWS, ChunkContents, TraceIndex
from ensembles.recorder.site_places import resolve_sites
from ensembles.summaries.cells import ARRAYS, CellSummary
from ensembles.summaries.ranktable import COLUMNS as RANK_COLUMNS
from ensembles.summaries.ranktable import RankTable

_PARTS = (
    *("calls", "environment", "events", "file_facts", "files", "flights", "hosts", "index", "kept", "losses"),
    *(
        "mounts",
        "nodes",
        "notes",
        "processes",
        "ranks",
        "regions",
        "sites",
        "spools",
        "summary",
        "surroundings",
    ),
)

_NOT_KEPT: tuple[type[Exception], ...] = (NotKept, *DAMAGE)
_OLD_COLUMNS = [name for name in COLUMNS if name not in MISSING]

FORMAT = "ensio trace"
VERSION = 5
OLD_VERSION = VERSION - 1
"""The version before, which is read too: it has no sites and no flights."""

TEXT_ATTRIBUTES = ("mode", "job", "launcher", "recorder", "exclude", "user", "uid", "libc", "mpi")


@contextmanager
def _opened(path: str) -> Iterator[h5py.File]:
    """Open a file, and turn errors of HDF5, zlib and the checks into an `EnsioError` of one sentence."""
    try:
        check_superblock(path)
        with h5py.File(path, "r") as file:
            yield file
    except DAMAGE as error:
        told = str(error.args[0] if isinstance(error, KeyError) and error.args else error).strip()
        reason = told.splitlines()[0] if told else type(error).__name__
        raise EnsioError(
            f"{path} is not a complete trace.h5 of ensio ({reason}): make it again with ensio collect"
        ) from error


@dataclass(frozen=True)
class _Open:
    """An open file with its index."""

    columns: TraceColumns
    index: TraceIndex
    pool: ThreadPoolExecutor

    def read(self, chunks: np.ndarray, out: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Read some chunks of the index, and check them."""
        return self.columns.read(chunks, self.pool, out)

    def runs(
        self, wanted: np.ndarray, max_events: int, sorting: CompletionOrder | None
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yield the wanted chunks of the index, about `max_events` rows at a time, or more."""
        index, names = self.index, self.columns.names
        at_once = max(max_events, ROWS_AT_ONCE)
        most_chunks = max(index.chunks if at_once >= index.length else at_once // index.rows, 1)
        reused = ReusedColumns(most_chunks * index.rows, names) if most_chunks < index.chunks else None
        numbers = np.flatnonzero(wanted)
        for place in range(0, len(numbers), most_chunks):
            some, rest = numbers[place : place + most_chunks], numbers[place + most_chunks :]
            rows = sum(high - low for low, high in index.spans_of(some))
            out = None
            if reused is not None:
                memory = reused.taken()
                out = {name: memory[name][:rows] for name in names}
                del memory
            columns = self.read(some, out)
            if sorting is not None:
                # What lies between is not wanted, and calls may go on until the next that is.
                columns = sorting.put(columns, index.order_key(int(rest[0])) if len(rest) else None)
            out = None
            yield columns
            del columns  # ReusedColumns can reuse their memory


class TraceFileSource:
    """A run in a ``trace.h5``; an `EventSource`.

    `complete`: whether every process had ended when the file was written.
    `spools`: by name of each spool that the file was made from: size in bytes and modification time in ns.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with _opened(path) as file:
            if "format" not in file.attrs or read_attribute(file, "format") != FORMAT.encode():
                raise ValueError("it is an HDF5 file of another program")
            version = read_number(file, "version", 1 << 31)
            if version not in (OLD_VERSION, VERSION):
                raise ValueError(f"its version is {version}, and this ensio reads {VERSION}")
            self.is_complete = bool(read_number(file, "complete", 1))
            self.metadata = read_metadata(file)
            self._stored = tuple(COLUMNS) if version == VERSION else tuple(_OLD_COLUMNS)
            unknown = _unknown_parts(file, _PARTS) + _unknown_parts(open_group(file, "events"), COLUMNS)
            if unknown:
                self.metadata.note(
                    f"skipped {count_text(unknown, 'part')} of {path} that this ensio does not know: use the "
                    "ensio that wrote it"
                )
            spools = open_group(file, "spools")
            sizes, changes = (read_numbers(spools, name).tolist() for name in ("bytes", "mtime_ns"))
            identities = zip(sizes, changes, strict=True)
            self.spool_identities = dict(zip(read_texts(spools, "name"), identities, strict=True))

    is_quick_to_open = True
    is_checked = True

    @cached_property
    def _index(self) -> TraceIndex:
        with _opened(self.path) as file:
            return _read_index(file, open_column(open_group(file, "events"), "duration").shape[0])

    @property
    def capacity(self) -> int:
        """Number of events."""
        return self._index.length

    @property
    def row_unit(self) -> int:
        """Rows of a chunk of the file."""
        return self._index.rows

    def rank_sizes(self) -> RankSizes:
        """Return the ranks with events, and their numbers of events."""
        index = self._index
        return RankSizes(index.rank, np.diff(index.row, append=index.length))

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]:
        """Yield the requested events in chunks, ordered by rank.

        Within a thread, events are in the order of completion if the request asks for order and its columns
        include those of `NEEDED`, else in the order of start.
        """
        asked = self._stored if request.columns is None else request.columns
        names = tuple(name for name in asked if name in self._stored) or ("duration",)
        sorting = CompletionOrder() if request.is_ordered and set(names) >= NEEDED else None
        ranks, most = request.ranks, request.max_events
        threads = THREADS if request.rows is None else 1
        with self._opened(names if ranks is None else {*names, "rank"}, threads) as trace:
            wanted = trace.index.chunks_with(ranks, request.times_ns)
            if not request.contents.are_any and self._contents is not None:
                wanted &= self._contents.matching(request.contents)
            if request.rows is not None:
                first, end = (row // trace.index.rows for row in request.rows)
                wanted[:first], wanted[end:] = False, False
            for columns in trace.runs(wanted, most, sorting):
                if ranks is not None:
                    kept = _places_of_ranks(columns["rank"], ranks)
                    columns = {name: columns[name][kept] for name in names}
                for begin in range(0, len(next(iter(columns.values()))), most):
                    yield self._events(
                        {name: column[begin : begin + most] for name, column in columns.items()}
                    )
                del columns  # ReusedColumns can reuse their memory

    def regions(self) -> RegionTable:
        """Read the phases and regions that the program named."""
        with _opened(self.path) as file:
            if not has_part(file, "regions"):  # a file of an older version
                return RegionTable.empty()
            group = open_group(file, "regions")
            columns = {
                name: read_numbers(group, name).astype(dtype) for name, dtype in REGION_COLUMNS.items()
            }
            table = RegionTable(columns, read_texts(group, "names"))
            if len(table) and (table.name.max() >= len(table.names) or table.kind.max() >= len(KINDS)):
                raise ValueError("its regions have numbers without a name")
            if unsound(columns) is not None:
                raise ValueError("its regions have impossible times")
            return table

    def surroundings(self) -> SurroundingsTable:
        """Read the samples of the kernel's counters."""
        with _opened(self.path) as file:
            if not has_part(file, "surroundings"):
                return SurroundingsTable.empty()
            group = open_group(file, "surroundings")
            known = {
                name: read_numbers(group, name).astype(dtype)
                for name, dtype in SURROUNDINGS_COLUMNS.items()
                if has_part(group, name)
            }
            missing = np.full(len(known["time"]), UNKNOWN)
            return SurroundingsTable(dict.fromkeys(SURROUNDINGS_COLUMNS, missing) | known)

    def summary(self) -> CellSummary | None:
        """Read the summary of all calls; None: the recorder kept no summary."""
        with _opened(self.path) as file:
            if not has_part(file, "summary"):
                return None
            group = open_group(file, "summary")
            arrays = {name: whole_column(group, name) for name in ARRAYS}
            return CellSummary.from_arrays(arrays, self.metadata.calls, self.metadata.files)

    def ranks(self) -> RankTable | None:
        """Read the summary by rank and function; None: the recorder kept no summary, or none by rank."""
        with _opened(self.path) as file:
            if not has_part(file, "ranks"):
                return None
            group = open_group(file, "ranks")
            rows = {name: whole_column(group, name).astype(np.int64, casting="safe") for name in RANK_COLUMNS}
            if len({len(column) for column in rows.values()}) != 1:
                raise ValueError("its columns about ranks have different lengths")
            call, rank = rows["call"], rows["rank"]
            if len(call) and not (0 <= call.min() <= call.max() < len(self.metadata.calls)):
                raise ValueError("its ranks made calls without a name")
            if len(rank) and not (0 <= rank.min() <= rank.max() < self.metadata.tasks):
                raise ValueError("its columns about ranks have ranks beyond the number of tasks")
            table = RankTable(self.metadata.calls)
            table.add_rows(self.metadata.calls, rows)
            return table

    def kept(self, key: str) -> bytes | None:
        """Return the result of a pass that was kept in the file; None: there is none, or it is damaged."""
        try:
            with h5py.File(self.path, "r") as file:
                sealed = read_sealed(file, name_of(self._identity, key))
                return None if sealed is None else unseal(self._identity, key, sealed)
        except _NOT_KEPT:
            return None

    @cached_property
    def _identity(self) -> bytes:
        """What identifies the run in the file, for kept results."""
        with h5py.File(self.path, "r") as file:
            return content_identity(file)

    @cached_property
    def _contents(self) -> ChunkContents | None:
        """What the chunks hold; None: it is unknown."""
        found, data = ChunkContents(), self.kept(CONTENTS_KEY)
        if data is None:
            return None
        try:
            restore(found, data, self.metadata)
        except NotKept:
            return None
        index = self._index
        return found if found.fit(index.rows, index.chunks) else None

    @contextmanager
    def _opened(self, names: Iterable[str], threads: int) -> Iterator[_Open]:
        with _opened(self.path) as file, ThreadPoolExecutor(threads) as pool:
            events = open_group(file, "events")
            find_plugins(events, self.path)
            places = {} if self._contents is None else self._contents.places
            columns = TraceColumns(events, tuple(names), self._limits, self._index, places)
            yield _Open(columns, self._index, pool)

    @property
    def _limits(self) -> Limits:
        metadata = self.metadata
        return {
            "rank": (0, metadata.tasks - 1),
            "call": (0, len(metadata.calls) - 1),
            "file": (0, len(metadata.files) - 1),
            "site": (0, len(metadata.sites) - 1),
            **LIMITS,
        }

    def _events(self, columns: dict[str, np.ndarray]) -> Events:
        missing = COLUMNS.keys() - set(self._stored)
        length = len(next(iter(columns.values())))
        columns = {**columns, **{name: np.full(length, MISSING[name], COLUMNS[name]) for name in missing}}
        return Events.partly(columns, self.metadata.calls, self.metadata.files, self.metadata.sites)


def _unknown_parts(group: h5py.Group, known: Iterable[str]) -> int:
    """Count the parts of a group with unknown names."""
    return len(group) - sum(has_part(group, name) for name in known)


def _places_of_ranks(rank: np.ndarray, ranks: Ranges) -> slice | np.ndarray:
    """Return the places of some ranks in an ascending column."""
    if len(ranks) == 1:
        return slice(*np.searchsorted(rank, [ranks[0][0], ranks[0][1] + 1]).tolist())
    return within_ranges(rank, ranks)


def _read_index(file: h5py.File, length: int) -> TraceIndex:
    group = open_group(file, "index")
    rows = read_number(group, "rows", MOST_ROWS)
    names = ("rank", "row", "first_start", "last_start", "max_end")
    return TraceIndex(length, rows, *(read_numbers(group, name).astype(np.int64) for name in names))


def read_number(file: h5py.File, name: str, most: int) -> int:
    """Read an attribute that is an integer from 0 to `most`; raise ValueError for another value."""
    number = operator.index(read_attribute(file, name))
    if not 0 <= number <= most:
        raise ValueError(f"its attribute {name} is {number}")
    return number


def read_metadata(file: h5py.File) -> RunMetadata:
    """Read the metadata that `ensembles.writers.tracefile.tracefile` writes."""
    calls = open_group(file, "calls")
    names, layers, ops = (read_texts(calls, part) for part in ("name", "layer", "op"))
    if not set(ops) <= set(OPS):
        raise ValueError("its calls have unknown kinds of operations")
    text = {name: os.fsdecode(read_attribute(file, name)) for name in TEXT_ATTRIBUTES}
    facts: dict[str, dict[str, str]] = {}
    for path, key, value in read_rows(open_group(file, "file_facts"), "path", "key", "value"):
        facts.setdefault(path, {})[key] = value
    mounts: dict[str, tuple[Mount, ...]] = {}
    group = open_group(file, "mounts")
    table = read_rows(group, "host", "point", "type", "source")
    for (host, point, kind, source), block in zip(
        table, read_numbers(group, "block_bytes").tolist(), strict=True
    ):
        mounts[host] = (*mounts.get(host, ()), Mount(point, kind, source, block))
    dropped, other, kernel = _read_losses(file)
    return RunMetadata(
        tasks=read_number(file, "tasks", MOST_TASKS),
        threads=read_number(file, "threads", HALF_INT64),
        origin_unix_ns=read_number(file, "origin_unix_ns", HALF_INT64),
        calls=tuple(Call(*call) for call in zip(names, layers, ops, strict=True)),
        files=read_texts(file, "files"),
        flights=_read_flights(file),
        sites=SiteTable(read_texts(file, "sites") if has_part(file, "sites") else ("",), resolve_sites),
        processes=_read_processes(open_group(file, "processes")),
        notes=read_texts(file, "notes"),
        hosts=read_texts(file, "hosts"),
        clock_error_s=_read_seconds(file, "clock_error_s"),
        clock_step_s=_read_seconds(file, "clock_step_s"),
        environment={
            name: row[0] for name, *row in read_rows(open_group(file, "environment"), "name", "value")
        },
        mounts=mounts,
        processors=_read_processors(file),
        file_facts=facts,
        dropped_by_reason=dropped,
        calls_on_other_paths=other,
        kernel_bytes=kernel,
        summed=os.fsdecode(read_attribute(file, "summed")) if "summed" in file.attrs else "",
        counters=Counters(),
        left_out=operator.index(read_attribute(file, "left_out")) if "left_out" in file.attrs else 0,
        processor_wait_ns=_read_time(file, "processor_wait_ns"),
        recorder_ns=_read_time(file, "recorder_ns"),
        **text,
    )


def _read_processors(file: h5py.File) -> dict[str, int]:
    if not has_part(file, "nodes"):
        return {}
    nodes = open_group(file, "nodes")
    return dict(zip(read_texts(nodes, "host"), read_numbers(nodes, "processors").tolist(), strict=True))


def _read_time(file: h5py.File, name: str) -> int:
    """Read a time that a run lost; older files lack it."""
    if not has_part(file, "losses") or name not in (group := open_group(file, "losses")).attrs:
        return 0
    return read_number(group, name, HALF_INT64)


def _read_seconds(file: h5py.File, name: str) -> float | None:
    """Read an attribute that is a time, s; None: it is unknown."""
    return float(read_attribute(file, name)) if name in file.attrs else None


def _read_losses(file: h5py.File) -> tuple[dict[str, int], int, KernelBytes | None]:
    """Read dropped events by reason, calls on other paths and bytes of the kernel; older files lack them."""
    if not has_part(file, "losses"):
        return {}, 0, None
    group = open_group(file, "losses")
    counts = read_numbers(group, "events").tolist()
    if min(counts, default=0) < 0:
        raise ValueError("a number of lost calls is negative")
    found = dict(zip(read_texts(group, "reason"), counts, strict=True))
    kernel = None
    if f"kernel_bytes_{KERNEL_BYTES[-1]}" in group.attrs:
        fields: list[Any] = [read_number(group, f"kernel_bytes_{name}", HALF_INT64) for name in KERNEL_BYTES]
        names = ["kernel_facts", "libraries", *(["unrecorded"] if has_part(group, "unrecorded") else [])]
        fields += [tuple(read_texts(group, name)) for name in names]
        kernel = KernelBytes(*fields)
    return found, read_number(group, "calls_on_other_paths", HALF_INT64), kernel


def _read_flights(file: h5py.File) -> dict[str, Flights]:
    """Read the sums of non-blocking requests; older files have none."""
    if not has_part(file, "flights"):
        return {}
    group = open_group(file, "flights")
    columns = [read_numbers(group, name).tolist() for name in Flights._fields]
    if any(min(column, default=0) < 0 for column in columns):
        raise ValueError("a sum of requests is negative")
    rows = [Flights(*row) for row in zip(*columns, strict=True)]
    return dict(zip(read_texts(group, "operation"), rows, strict=True))


def _read_processes(group: h5py.Group) -> list[Process]:
    columns: list[Any] = []
    for field in fields(Process):
        if field.name == "command":
            columns.append(
                [tuple(text.split("\x1f")) if text else () for text in read_texts(group, "command")]
            )
        elif field.type == "str":
            columns.append(read_texts(group, field.name))
        elif field.name == "beside_main" and field.name not in group:  # files of earlier versions
            columns.append([field.default] * len(columns[0]))
        elif field.type == "bool":
            columns.append([bool(value) for value in read_numbers(group, field.name).tolist()])
        else:
            columns.append(read_numbers(group, field.name).tolist())
    return [Process(*row) for row in zip(*columns, strict=True)]
