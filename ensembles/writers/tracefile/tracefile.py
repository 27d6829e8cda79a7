"""Write a ``trace.h5``: a whole run in one HDF5 file.

HDF5 1.10 and later read it without a plugin, unless another filter is chosen.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import h5py
import numpy as np

from ensembles.files.atomic_write import atomic_write, temporary_file
from ensembles.files.full_disk_file import FullDiskSafeFile
from ensembles.files.readership import OWNER, Readership
from ensembles.model.events import Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import COLUMN_MEANINGS as REGION_MEANINGS
from ensembles.model.regions import RegionTable
from ensembles.model.surroundings import COLUMN_MEANINGS as SURROUNDINGS_MEANINGS
from ensembles.model.surroundings import UNKNOWN, SurroundingsTable, surroundings_of
from ensembles.passes.damage import DamageReport
from ensembles.passes.kept import name_of, seal, to_bytes
from ensembles.passes.progress import announced, counted
from ensembles.passes.reading import ReadRequest
from ensembles.readers.tracefile.contents import KEY, ChunkContents
from ensembles.readers.tracefile.kept import GROUP, MOST_KEPT_BYTES, content_identity
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable
from ensembles.writers.tracefile.events import put_column, put_text, put_texts, write_events
from ensembles.writers.tracefile.filters import GZIP, Filter
from ensembles.writers.tracefile.run_metadata import write_metadata

_ROWS_AT_ONCE = 1 << 17
"""Events that are read at a time."""


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
        chunks = counted(source.chunks(ReadRequest(_ROWS_AT_ONCE), damage))
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
            put_column(group, name, column, *SURROUNDINGS_MEANINGS[name])


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
        sealed |= summaries.sealed(identity, MOST_KEPT_BYTES - len(own), pyramid_bytes)
    group = file.create_group(GROUP)
    put_text(group, "meaning", "results of passes over the events, with checksums; they may be removed")
    for name, content in sealed.items():
        put_column(group, name, np.frombuffer(content, np.uint8))
