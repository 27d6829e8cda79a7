"""Read a ``trace.h5``: a whole run in one HDF5 file, written by `ensembles.writers.tracefile.tracefile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import h5py
import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Events
from ensembles.model.regions import COLUMNS as REGION_COLUMNS
from ensembles.model.regions import KINDS, RegionTable
from ensembles.model.units import count_text
from ensembles.passes.damage import DamageReport
from ensembles.readers.common.column_buffers import ReusedColumns
from ensembles.readers.common.completion_order import NEEDED, CompletionOrder
from ensembles.readers.common.value_ranges import LIMITS, unsound
from ensembles.readers.tracefile.checked_parts import (
    check_superblock,
    find_plugins,
    has_part,
    open_group,
    read_attribute,
    read_numbers,
    read_texts,
    whole_column,
)
from ensembles.readers.tracefile.chunks import DAMAGE, Limits
from ensembles.readers.tracefile.columns import THREADS, TraceColumns
from ensembles.readers.tracefile.index import Ranges, TraceIndex
from ensembles.readers.tracefile.stored_metadata import FORMAT, VERSION, read_metadata, read_number
from ensembles.summaries.cells import ARRAYS, CellSummary
from ensembles.summaries.ranktable import COLUMNS as RANK_COLUMNS
from ensembles.summaries.ranktable import RankTable

_PARTS = (
    *("calls", "environment", "events", "file_facts", "files", "hosts", "index", "losses", "mounts", "notes"),
    *("processes", "ranks", "regions", "spools", "summary"),
)

_MOST_CHUNK_ROWS = 1 << 24


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


class _Open(NamedTuple):
    """An open file with its index."""

    columns: TraceColumns
    ranks: TraceIndex
    pool: ThreadPoolExecutor

    def read(self, low: int, high: int, out: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Read rows of whole chunks of the index, and check them."""
        return self.columns.read(low, high, self.pool, self.ranks, out)

    def runs(
        self, wanted: np.ndarray, max_events: int, sorting: CompletionOrder | None
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yield the wanted chunks of the index, about `max_events` rows at a time."""
        index, names = self.ranks, self.columns.names
        most_chunks = max(max_events // index.rows, 1)
        reused = ReusedColumns(min(most_chunks * index.rows, index.length), names)
        for low, high, goes_on in index.runs_of_ranks(wanted, most_chunks):
            taken = reused.taken()
            columns = self.read(low, high, {name: taken[name][: high - low] for name in names})
            if sorting is not None:
                columns = sorting.put(columns, index.order_key(high // index.rows) if goes_on else None)
            yield columns
            del columns  # ReusedColumns can reuse their memory


class TraceFileSource:
    """A run in a ``trace.h5``; an `EventSource`.

    Parameters
    ----------
    path : str

    Attributes
    ----------
    path : str
    metadata : RunMetadata
    complete : bool
        Whether every process had ended when the file was written.
    spools : dict of str to (int, int)
        By name of each spool that the file was made from: size in bytes and modification time in ns.

    Raises
    ------
    EnsioError
        The file cannot be read, is truncated, or is of another kind.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with _opened(path) as file:
            if "format" not in file.attrs or read_attribute(file, "format") != FORMAT.encode():
                raise ValueError("it is an HDF5 file of another program")
            version = read_number(file, "version", 1 << 31)
            if version != VERSION:
                raise ValueError(f"its version is {version}, and this ensio reads {VERSION}")
            self.is_complete = bool(read_number(file, "complete", 1))
            self.metadata = read_metadata(file)
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

    @property
    def capacity(self) -> int:
        """Number of events."""
        with _opened(self.path) as file:
            return TraceColumns(open_group(file, "events"), ("duration",), {}).length

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]:
        """Yield all events in chunks, ordered by rank.

        Within a thread, events are in the order of completion if the columns include those of `NEEDED`, else
        in the order of start.

        Parameters
        ----------
        max_events : int
            Maximum length of a chunk.
        names : sequence of str, optional
            Names of the wanted columns (`Events.partly`). Default: all columns.

        Returns
        -------
        iterator of Events
        """
        return self.chunks_within(None, None, max_events, names)

    def chunks_within(
        self,
        ranks: Ranges | None,
        times_ns: Ranges | None,
        max_events: int,
        names: Sequence[str] | None = None,
    ) -> Iterator[Events]:
        """Yield the chunks of the file that may contain calls of some ranks in some ranges of time.

        The chunks include other calls too.

        Parameters
        ----------
        ranks : sequence of (int, int) or None
            First and last rank of each range; None: all ranks.
        times_ns : sequence of (int, int) or None
            First and last start of each range, ns; None: all times.
        max_events, names
            As for `chunks`.

        Yields
        ------
        Events
        """
        with self._opened(names) as trace:
            wanted = trace.ranks.chunks_with(ranks, times_ns)
            sorting = CompletionOrder() if _tell_order(names) else None
            yield from self._cut_all(trace.runs(wanted, max_events, sorting), max_events)

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """Split the events into parts of about equal length that threads can read concurrently.

        There is only one part if the events are in the order of completion, which depends on earlier chunks.

        Parameters
        ----------
        most_parts : int
            Maximum number of parts.
        max_events, names
            As for `chunks`.

        Returns
        -------
        list of iterator of Events
        """
        if _tell_order(names):
            return [self.chunks(max_events, names)]
        with self._opened(("duration",)) as trace:
            edges = np.linspace(0, trace.ranks.chunks, max(most_parts, 1) + 1).astype(int)
        spans = pairwise(np.unique(edges).tolist())
        return [self._part(low, high, max_events, names) for low, high in spans]

    def _part(self, low: int, high: int, max_events: int, names: Sequence[str] | None) -> Iterator[Events]:
        with self._opened(names, threads=1) as trace:
            wanted = np.zeros(trace.ranks.chunks, bool)
            wanted[low:high] = True
            yield from self._cut_all(trace.runs(wanted, max_events, None), max_events)

    def _cut_all(self, runs: Iterator[dict[str, np.ndarray]], max_events: int) -> Iterator[Events]:
        for columns in runs:
            yield from self._cut(columns, max_events)
            del columns  # ReusedColumns can reuse their memory

    def _cut(self, columns: dict[str, np.ndarray], max_events: int) -> Iterator[Events]:
        length = len(next(iter(columns.values())))
        for begin in range(0, length, max_events):
            yield self._events({name: column[begin : begin + max_events] for name, column in columns.items()})

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]:
        """Split the ranks into contiguous spans with about equal numbers of events.

        Parameters
        ----------
        most_parts : int
            Maximum number of spans.

        Returns
        -------
        list of (int, int)
            First and last rank of each span.
        """
        with self._opened(("duration",)) as trace:
            length = trace.ranks.length
            rows = np.linspace(0, length, most_parts, endpoint=False).astype(int)[:length]
            first = np.unique(trace.ranks.rank_of_row(rows)).tolist() if length else []
        behind = [*first[1:], self.metadata.tasks][: len(first)]
        return [(low, high - 1) for low, high in zip(first, behind, strict=True)]

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, names: Sequence[str] | None, flaws: DamageReport
    ) -> Iterator[Events]:
        """Yield the events of a span of ranks in chunks, as `chunks`.

        Parameters
        ----------
        span : (int, int)
            First and last rank.
        max_events, names
            As for `chunks`.
        flaws : DamageReport
            Not used: damage raises an error.

        Yields
        ------
        Events
        """
        asked = tuple(COLUMNS) if names is None else tuple(names)
        sorting = CompletionOrder() if _tell_order(asked) else None
        with self._opened({*asked, "rank"}) as trace:
            for columns in trace.runs(trace.ranks.chunks_with([span], None), max_events, sorting):
                begin, end = np.searchsorted(columns["rank"], [span[0], span[1] + 1]).tolist()
                yield from self._cut({name: columns[name][begin:end] for name in asked}, max_events)
                del columns

    def note_damage(self, flaws: DamageReport) -> None:
        """Do nothing: damaged events were left out, with a note, when the file was written."""

    def some_ranks(self, most_events: int, least_ranks: int) -> Events:
        """Return all events of evenly spaced ranks, sorted by rank and start.

        Parameters
        ----------
        most_events : int
            Approximate number of events.
        least_ranks : int
            Minimum number of ranks.

        Returns
        -------
        Events
        """
        tasks = self.metadata.tasks
        wanted = max(least_ranks, int(tasks * most_events / max(self.capacity, 1)))
        ranks = np.unique(np.linspace(0, tasks - 1, min(wanted, tasks)).astype(int))
        parts = [Events.empty(self.metadata.calls, self.metadata.files)]
        for chunk in self.chunks_within([(rank, rank) for rank in ranks.tolist()], None, 1 << 20):
            parts.append(chunk[np.isin(chunk.rank, ranks)])
        return Events.concatenate(parts).sorted()

    def events(self) -> Events:
        """Return all events, sorted by rank and start.

        Raises
        ------
        EnsioError
            They do not fit into memory, or the file is damaged.
        """
        with self._opened() as trace:
            try:
                return self._events(trace.read(0, trace.columns.length))
            except MemoryError as error:
                raise EnsioError(
                    f"{trace.columns.length:,} events do not fit into memory: "
                    "use Run.chunks() instead of Run.events"
                ) from error

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
            rows = {name: whole_column(group, name) for name in RANK_COLUMNS}
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

    @contextmanager
    def _opened(self, names: Iterable[str] | None = None, threads: int = THREADS) -> Iterator[_Open]:
        with _opened(self.path) as file, ThreadPoolExecutor(threads) as pool:
            events = open_group(file, "events")
            find_plugins(events, self.path)
            columns = TraceColumns(events, tuple(COLUMNS) if names is None else tuple(names), self._limits)
            yield _Open(columns, _read_index(file, columns.length), pool)

    @property
    def _limits(self) -> Limits:
        metadata = self.metadata
        return {
            "rank": (0, metadata.tasks - 1),
            "call": (0, len(metadata.calls) - 1),
            "file": (0, len(metadata.files) - 1),
            **LIMITS,
        }

    def _events(self, columns: dict[str, np.ndarray]) -> Events:
        make = Events if len(columns) == len(COLUMNS) else Events.partly
        return make(columns, self.metadata.calls, self.metadata.files)


def _unknown_parts(group: h5py.Group, known: Iterable[str]) -> int:
    """Count the parts of a group with unknown names."""
    return len(group) - sum(has_part(group, name) for name in known)


def _tell_order(names: Iterable[str] | None) -> bool:
    """Test whether these columns determine the order of completion."""
    return names is None or set(names) >= NEEDED


def _read_index(file: h5py.File, length: int) -> TraceIndex:
    group = open_group(file, "index")
    rows = read_number(group, "rows", _MOST_CHUNK_ROWS)
    names = ("rank", "row", "first_start", "last_start", "max_end")
    return TraceIndex(length, rows, *(read_numbers(group, name).astype(np.int64) for name in names))
