"""Writes ``trace.h5``: a whole run in one HDF5 file. Every HDF5 from 1.10 on reads it without a plugin,
unless another filter is asked for."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
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
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable
from ensembles.writers.tracefile.columns import put_column, put_texts
from ensembles.writers.tracefile.events import write_events
from ensembles.writers.tracefile.filters import GZIP, Filter
from ensembles.writers.tracefile.run_metadata import write_metadata


class Collectable(Protocol):
    """What can be written: what a reader gives of a run."""

    is_complete: bool
    spool_identities: dict[str, tuple[int, int]]

    @property
    def metadata(self) -> RunMetadata: ...

    @property
    def capacity(self) -> int: ...

    def chunks(self, max_events: int) -> Iterator[Events]: ...

    def regions(self) -> RegionTable: ...

    def summary(self) -> CellSummary | None: ...

    def ranks(self) -> RankTable | None: ...


def write_trace_file(
    source: Collectable,
    path: str,
    readers: Readership = OWNER,
    compression: Filter = GZIP,
    follow: bool = True,
) -> int:
    """Write a run, under a temporary name that becomes `path` when the file is whole.

    Events are sorted by rank and start.

    Parameters
    ----------
    source : Collectable
    path : str
    readers : Readership
        Who may read the file beside its owner.
    compression : Filter
    follow : bool
        A user chose the name: if it is a link, the file that it leads to is written.

    Returns
    -------
    int
        Number of events.

    Raises
    ------
    OSError
        The file cannot be written.
    EnsioError
        A spool cannot be read any more, or another process interfered (`ensembles.files.atomic_write`).
    """
    target = atomic_write(path, readers) if follow else temporary_file(path, readers)
    with target as descriptor, _created(descriptor) as file:
        count = write_events(file, source.chunks, source.capacity, compression, _scratch_folder(path))
        summary = source.summary()
        if summary is not None:
            _write_arrays(file.create_group("summary"), summary.to_arrays())
        ranks = source.ranks()
        if ranks is not None:
            _write_arrays(file.create_group("ranks"), ranks.to_arrays())
        write_metadata(file, source.metadata, source.is_complete, source.spool_identities)
        _write_regions(file.create_group("regions"), source.regions())
        return count


def _scratch_folder(path: str) -> str:
    """Where temporary files without a name go: beside the file, for there is room for it."""
    folder = os.path.dirname(os.path.realpath(path))
    return folder if os.access(folder, os.W_OK) else tempfile.gettempdir()


@contextmanager
def _created(descriptor: int) -> Iterator[h5py.File]:
    """A new HDF5 file; one plain OSError if not all of it could be written."""
    written = FullDiskSafeFile(descriptor)
    try:
        with written, h5py.File(written, "w", libver=("v110", "v110")) as file:
            yield file
    except (OSError, RuntimeError) as error:
        # Where something was lost, HDF5 may stumble over it later, with reasons of its own.
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
