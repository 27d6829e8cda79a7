"""Write a ``trace.h5``: a whole run in one HDF5 file.

HDF5 1.10 and later read it without a plugin, unless another filter is chosen.

An `Extract` is a part of a run that is written as a separate run.
"""

from __future__ import annotations

import errno
import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import h5py
import numpy as np

from ensembles.files.atomic_write import atomic_write, temporary_file
from ensembles.files.readership import OWNER, Readership
from ensembles.model.events import Events
from ensembles.model.flights import Flights
from ensembles.model.metadata import KERNEL_BYTES, Process, RunMetadata
from ensembles.model.regions import COLUMN_MEANINGS as REGION_MEANINGS
from ensembles.model.regions import RegionTable
from ensembles.model.surroundings import COLUMN_MEANINGS as SURROUNDINGS_MEANINGS
from ensembles.model.surroundings import COUNTERS, NOT_SAMPLED, UNKNOWN, SurroundingsTable, surroundings_of
from ensembles.model.units import BYTES_AT_ONCE, ROWS_AT_ONCE
from ensembles.passes.damage import DamageReport
from ensembles.passes.kept import MOST_BYTES, name_of, seal, to_bytes
from ensembles.passes.progress import announced, counted
from ensembles.passes.reading import ReadRequest
from ensembles.readers.tracefile.checked_parts import GROUP, content_identity
from ensembles.readers.tracefile.index import KEY, ChunkContents
from ensembles.readers.tracefile.tracefile import FORMAT, TEXT_ATTRIBUTES, VERSION
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable
from ensembles.writers.tracefile.events import put_column, put_text, put_texts, write_events
from ensembles.writers.tracefile.filters import GZIP, Filter

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun
    from ensembles.summaries.bysite import Selects


class Collectable(Protocol):
    """A run that can be written; every `EventSource` is one."""

    is_complete: bool
    spool_identities: dict[str, tuple[int, int]]

    @property
    def metadata(self) -> RunMetadata: ...

    @property
    def capacity(self) -> int: ...

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]: ...

    def regions(self) -> RegionTable: ...

    def summary(self) -> CellSummary | None: ...

    def ranks(self) -> RankTable | None: ...


def write_trace_file(
    source: Collectable,
    path: str,
    readers: Readership = OWNER,
    compression: Filter = GZIP,
    follow: bool = True,
    summaries: FilledOnTheWay | None = None,
) -> int:
    """Write a run to a file that appears as `path` when it is complete.

    Events are sorted by rank and start.

    `follow`: whether to follow a symbolic link at `path`, which is safe only if a user chose the name.
    """
    target = atomic_write(path, readers) if follow else temporary_file(path, readers)
    capacity = source.capacity
    with target as descriptor, _created(descriptor) as file, announced("writing", path, capacity):
        damage = DamageReport()
        chunks = counted(source.chunks(ReadRequest(ROWS_AT_ONCE), damage))
        if summaries is not None:
            chunks = summaries.watch(chunks)
        count, contents = write_events(file, chunks, capacity, compression, _scratch_folder(path))
        source.metadata.note_damage(damage.sentences, damage.left_out.values())
        summary = source.summary()
        if summary is not None:
            _write_arrays(file.create_group("summary"), summary.to_arrays())
        ranks = source.ranks()
        if ranks is not None:
            _write_arrays(file.create_group("ranks"), ranks.to_arrays())
        _write_regions(file.create_group("regions"), source.regions())
        _write_surroundings(file, surroundings_of(source))
        write_metadata(file, source.metadata, source.is_complete, source.spool_identities)
        write_kept(file, source.metadata, contents, summaries)
        return count


def _scratch_folder(path: str) -> str:
    """Choose the folder for unnamed temporary files: that of the file, which has space for it."""
    folder = os.path.dirname(os.path.realpath(path))
    return folder if os.access(folder, os.W_OK) else tempfile.gettempdir()


@contextmanager
def _created(descriptor: int) -> Iterator[h5py.File]:
    """Create an HDF5 file; raise a single OSError if it could not be written completely."""
    written = FullDiskSafeFile(descriptor)
    try:
        with written, h5py.File(written, "w", libver=("v110", "v110")) as file:
            yield file
    except (OSError, RuntimeError) as error:
        # After lost data, HDF5 may fail later with an unrelated error.
        number = _errno_of(written.error or error)
        raise OSError(number, os.strerror(number)) from error
    if written.error is not None:
        raise written.error


def _errno_of(error: BaseException | None) -> int:
    while error is not None:
        told = re.search(r"\berrno = (\d+)", str(error))
        if told:
            return int(told[1])
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__context__
    return errno.EIO


def _write_arrays(group: h5py.Group, arrays: dict[str, np.ndarray]) -> None:
    for name, column in arrays.items():
        put_column(group, name, column)


def _write_regions(group: h5py.Group, regions: RegionTable) -> None:
    put_texts(group, "names", regions.names, "names of phases and regions")
    for name, column in regions.columns.items():
        put_column(group, name, column, *REGION_MEANINGS[name])


def _write_surroundings(file: h5py.File, table: SurroundingsTable) -> None:
    if not len(table):
        return
    group = file.create_group("surroundings")
    for name, column in table.columns.items():
        if (column != UNKNOWN).any():
            unit, meaning = SURROUNDINGS_MEANINGS[name]
            meaning += f"; {UNKNOWN}: {NOT_SAMPLED}" if name in COUNTERS else ""
            put_column(group, name, column, unit, meaning)


_PYRAMID_PART = 20
_LEAST_PYRAMID_BYTES = 1 << 15
"""The levels of the pyramid take at most this part of the file, or these bytes."""


class FilledOnTheWay(Protocol):
    """Summaries that are filled with the events which a file gets, and kept in it."""

    def watch(self, chunks: Iterator[Events]) -> Iterator[Events]:
        """Yield the chunks unchanged, and add them to the summaries."""
        ...

    def sealed(self, identity: bytes, most_bytes: int, pyramid_bytes: int) -> Mapping[str, bytes]:
        """Return the summaries of all chunks by name, sealed for a run of this identity.

        They have at most `most_bytes`, of which `pyramid_bytes` are for the pyramid.
        """
        ...


def write_kept(
    file: h5py.File, metadata: RunMetadata, contents: ChunkContents, summaries: FilledOnTheWay | None
) -> None:
    """Write what is kept of a file that is complete but for that."""
    identity = content_identity(file, is_own=True)
    own = seal(identity, KEY, to_bytes(contents, metadata))
    sealed = {name_of(identity, KEY): own}
    if summaries is not None:
        pyramid_bytes = max(file.id.get_filesize() // _PYRAMID_PART, _LEAST_PYRAMID_BYTES)
        sealed |= summaries.sealed(identity, MOST_BYTES - len(own), pyramid_bytes)
    group = file.create_group(GROUP)
    put_text(group, "meaning", "results of passes over the events, with checksums; they may be removed")
    for name, content in sealed.items():
        put_column(group, name, np.frombuffer(content, np.uint8))


_PROCESS_UNITS = {"start_unix_ns": "ns since 1970-01-01 UTC", "end_unix_ns": "ns since 1970-01-01 UTC"}


def write_metadata(
    file: h5py.File, metadata: RunMetadata, complete: bool, made_from: Mapping[str, tuple[int, int]]
) -> None:
    """Write the metadata of a run."""
    put_text(file, "format", FORMAT)
    file.attrs["version"] = VERSION
    file.attrs["complete"] = np.uint8(complete)
    file.attrs["tasks"] = metadata.tasks
    file.attrs["threads"] = metadata.threads
    file.attrs["left_out"] = metadata.left_out
    file.attrs["origin_unix_ns"] = metadata.origin_unix_ns
    if metadata.clock_error_s is not None:
        file.attrs["clock_error_s"] = metadata.clock_error_s
    put_text(file, "summed", metadata.summed)
    if metadata.clock_step_s is not None:
        file.attrs["clock_step_s"] = metadata.clock_step_s
    for name in TEXT_ATTRIBUTES:
        put_text(file, name, getattr(metadata, name))
    calls = file.create_group("calls")
    for part in ("name", "layer", "op"):
        put_texts(calls, part, [getattr(call, part) for call in metadata.calls], f"{part} of each call")
    put_texts(file, "files", metadata.files, "absolute paths; the first: none or unknown")
    put_texts(file, "sites", metadata.sites.texts, "call sites; the first: unknown")
    put_texts(file, "hosts", metadata.hosts, "nodes")
    put_texts(file, "notes", metadata.notes, "data-quality warnings")
    _write_processes(file.create_group("processes"), metadata.processes)
    _write_facts(file, metadata)
    _write_losses(file.create_group("losses"), metadata)
    if metadata.flights:
        _write_flights(file.create_group("flights"), metadata)
    spools = file.create_group("spools")
    identities = list(made_from.values())
    put_texts(spools, "name", list(made_from), "files that this one was made from")
    _put_numbers(spools, "bytes", [size for size, _ in identities], "bytes")
    _put_numbers(spools, "mtime_ns", [changed for _, changed in identities], "ns since 1970-01-01 UTC")


def _write_facts(file: h5py.File, metadata: RunMetadata) -> None:
    facts = [(path, *fact) for path, known in metadata.file_facts.items() for fact in known.items()]
    mounts = [(host, mount) for host, table in metadata.mounts.items() for mount in table]
    texts = [(host, mount.point, mount.type, mount.source) for host, mount in mounts]
    _write_rows(file.create_group("file_facts"), ("path", "key", "value"), facts)
    _write_rows(file.create_group("environment"), ("name", "value"), list(metadata.environment.items()))
    nodes = file.create_group("nodes")
    put_texts(nodes, "host", list(metadata.processors), "node")
    _put_numbers(nodes, "processors", list(metadata.processors.values()), "")
    table = file.create_group("mounts")
    _write_rows(table, ("host", "point", "type", "source"), texts)
    _put_numbers(table, "block_bytes", [mount.block_bytes for _, mount in mounts], "bytes")


def _write_losses(group: h5py.Group, metadata: RunMetadata) -> None:
    put_texts(group, "reason", list(metadata.dropped_by_reason), "why events were dropped")
    _put_numbers(group, "events", list(metadata.dropped_by_reason.values()), "")
    group.attrs["calls_on_other_paths"] = metadata.calls_on_other_paths
    group.attrs["processor_wait_ns"] = metadata.processor_wait_ns
    group.attrs["recorder_ns"] = metadata.recorder_ns
    if (kernel := metadata.kernel_bytes) is not None:
        for name in KERNEL_BYTES:
            group.attrs[f"kernel_bytes_{name}"] = getattr(kernel, name)
        put_texts(group, "kernel_facts", kernel.facts, "facts of the account of bytes")
        put_texts(group, "libraries", kernel.libraries, "shared libraries that are not recorded")
        put_texts(group, "unrecorded", kernel.unrecorded, "why a program could not be recorded")


def _write_flights(group: h5py.Group, metadata: RunMetadata) -> None:
    put_texts(group, "operation", list(metadata.flights), "operation of the requests")
    for name in Flights._fields:
        unit = "ns" if name.endswith("_ns") else ""
        _put_numbers(group, name, [getattr(sums, name) for sums in metadata.flights.values()], unit)


def _write_rows(group: h5py.Group, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for place, name in enumerate(names):
        put_texts(group, name, [row[place] for row in rows], f"{name} in each row")


def _write_processes(group: h5py.Group, processes: Sequence[Process]) -> None:
    for field in fields(Process):
        values: list[Any] = [getattr(process, field.name) for process in processes]
        if field.name == "command":
            commands = ["\x1f".join(words) for words in values]
            put_texts(group, "command", commands, "words separated by the byte 0x1f")
        elif field.type == "str":
            put_texts(group, field.name, values, f"{field.name} of each process")
        else:
            _put_numbers(group, field.name, values, _PROCESS_UNITS.get(field.name, ""))


def _put_numbers(group: h5py.Group, name: str, values: Sequence[int], unit: str) -> None:
    put_column(group, name, np.array(values, dtype=np.int64), unit)


class Extract:
    """The selected calls of a run, as input for `write_trace_file`. A note describes the selection."""

    is_complete = True

    def __init__(self, run: RecordedRun, selection: Selects, words: str) -> None:
        self._run = run
        self._selection = selection
        self._words = words
        self.capacity = run.reading.most_events
        self.spool_identities: dict[str, tuple[int, int]] = {}

    @property
    def metadata(self) -> RunMetadata:
        """Metadata of the run, with a note on the selection."""
        metadata = self._run.reading.source.metadata
        return replace(
            metadata, notes=[*metadata.notes, f"this is an extract: only the calls of {self._words}"]
        )

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]:
        """Yield the selected events, ordered by rank; the notes of the run describe damage."""
        return self._run.reading.chunks_for(self._selection, request.max_events)

    def regions(self) -> RegionTable:
        """Return all regions of the run."""
        return self._run.regions

    def surroundings(self) -> SurroundingsTable:
        """Return all samples of the kernel's counters."""
        return self._run.surroundings()

    def summary(self) -> None:
        """Return None: the summary is computed from the events."""

    def ranks(self) -> None:
        """Return None: the sums by rank are computed from the events."""


class FullDiskSafeFile(io.RawIOBase):
    """A new, empty file object for h5py, which survives a full disk.

    If HDF5 cannot write the last blocks of a file, it cannot close the file. It tries again at the end of the
    process and ends it with a segmentation fault. Therefore this file reports success to HDF5, discards the
    data and keeps the error for the caller.

    `error`: the first error. All data written after it are lost.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._position = 0
        self._length = 0
        self._memory = memoryview(bytearray(BYTES_AT_ONCE))
        self._held = self._held_from = 0
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}
        self._position = bases[whence] + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read written data; lost data read as zeros."""
        self._write_held()
        view = memoryview(buffer).cast("B")
        wanted = max(min(len(view), self._length - self._position), 0)
        got = os.preadv(self._descriptor, [view[:wanted]], self._position) if wanted else 0
        view[got:wanted] = bytes(wanted - got)
        self._position += wanted
        return wanted

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        """Write all data, or discard them after an error.

        Pieces that continue each other are written together.
        """
        view = memoryview(data).cast("B")
        count = len(view)
        if self._position != self._held_from + self._held or self._held + count > BYTES_AT_ONCE:
            self._write_held()
        if count > BYTES_AT_ONCE:
            self._write(view, self._position)
        else:
            if not self._held:
                self._held_from = self._position
            self._memory[self._held : self._held + count] = view
            self._held += count
        self._position += count
        self._length = max(self._length, self._position)
        return count

    def flush(self) -> None:
        """Write what is held."""
        super().flush()
        self._write_held()

    def close(self) -> None:
        """Write what is held; the descriptor stays open."""
        if not self.closed:
            self._write_held()
        super().close()

    def _write_held(self) -> None:
        if self._held:
            self._write(self._memory[: self._held], self._held_from)
            self._held = 0

    def _write(self, rest: memoryview, place: int) -> None:
        try:
            while len(rest) and self.error is None:
                done = os.pwrite(self._descriptor, rest, place)
                rest, place = rest[done:], place + done
        except OSError as error:
            self.error = error

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        self._write_held()
        size = self._position if size is None else size
        try:
            if self.error is None:
                os.ftruncate(self._descriptor, size)
        except OSError as error:
            self.error = error
        self._length = size
        return size
