"""Writes ``trace.h5``: a whole run in one HDF5 file that every HDF5 from 1.10 on reads without a plugin.

Columns are compressed as HDF5's own shuffle and gzip filters do it, but by several threads at once, and the
result is handed to HDF5 as it is.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Protocol

import h5py
import numpy as np

from ensembles.events import COLUMN_MEANINGS, COLUMNS, Events
from ensembles.metadata import Process, RunMetadata
from ensembles.readers.tracefile import FORMAT, TEXT_ATTRIBUTES, THREADS, VERSION
from ensembles.regiontable import COLUMN_MEANINGS as REGION_MEANINGS
from ensembles.regiontable import RegionTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable
from ensembles.writers.wholefile import whole_file

CHUNK_ROWS = 1 << 17
_LEVEL = 1
_TEXT = h5py.string_dtype("utf-8")
_PROCESS_UNITS = {"start_unix_ns": "ns since 1970-01-01 UTC", "end_unix_ns": "ns since 1970-01-01 UTC"}


class Collectable(Protocol):
    """What can be written: a run read from spools."""

    metadata: RunMetadata
    complete: bool
    slots: int
    spools: dict[str, tuple[int, int]]

    def chunks(self, max_events: int) -> Iterator[Events]: ...

    def regions(self) -> RegionTable: ...

    def summary(self) -> CellSummary | None: ...

    def ranks(self) -> RankTable | None: ...


def write_trace_file(source: Collectable, path: str, private: bool = False) -> int:
    """Write a run, under a temporary name that becomes `path` when the file is whole.

    Events keep the order in which the reader gives them: by rank, and a thread's in the order of their
    completion. A `private` file is its owner's alone to read, as spools are.

    Returns
    -------
    int
        Number of events.

    Raises
    ------
    OSError
        The file cannot be written.
    EnsioError
        A spool cannot be read any more.
    """
    with whole_file(path, private) as temporary, _failures_as_os_errors():
        with h5py.File(temporary, "w", libver=("earliest", "v110")) as file:
            count = _write_events(file.create_group("events"), source)
            summary = source.summary()
            if summary is not None:
                _write_arrays(file.create_group("summary"), summary.to_arrays())
            ranks = source.ranks()
            if ranks is not None:
                _write_arrays(file.create_group("ranks"), ranks.to_arrays())
            _write_metadata(file, source)
            _write_regions(file.create_group("regions"), source.regions())
        return count


@contextmanager
def _failures_as_os_errors() -> Iterator[None]:
    """Make one plain OSError of what HDF5 raises when it cannot write.

    HDF5 tells the reason within a long text. When the file is closed after a failure, it fails once more,
    with a RuntimeError that takes the place of the first error.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        number = _errno_of(error)
        raise OSError(number, os.strerror(number)) from error


def _errno_of(error: BaseException | None) -> int:
    while error is not None:
        told = re.search(r"\berrno = (\d+)", str(error))
        if told:
            return int(told[1])
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__context__
    return errno.EIO


def _write_events(group: h5py.Group, source: Collectable) -> int:
    rows = min(CHUNK_ROWS, max(1024, source.slots))
    datasets = {name: _create_column(group, name, rows) for name in COLUMNS}
    count = 0
    waiting: deque[tuple[int, dict[str, Future[bytes]]]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        for chunk in source.chunks(rows):
            jobs = {name: pool.submit(_compress, column, rows) for name, column in chunk.columns.items()}
            waiting.append((count, jobs))
            count += len(chunk)
            if len(waiting) > 2:
                _store(datasets, *waiting.popleft())
        while waiting:
            _store(datasets, *waiting.popleft())
    for dataset in datasets.values():
        dataset.resize((count,))
    return count


def _create_column(group: h5py.Group, name: str, rows: int) -> h5py.Dataset:
    dataset = group.create_dataset(
        name,
        shape=(0,),
        maxshape=(None,),
        dtype=COLUMNS[name],
        chunks=(rows,),
        compression="gzip",
        compression_opts=_LEVEL,
        shuffle=True,
    )
    dataset.attrs["unit"], dataset.attrs["meaning"] = COLUMN_MEANINGS[name]
    return dataset


def _compress(column: np.ndarray, rows: int) -> bytes:
    """A chunk as HDF5 stores it: of full length, bytes sorted by significance (shuffle), then deflated."""
    shuffled = np.zeros((column.itemsize, rows), "u1")
    shuffled[:, : len(column)] = column.view("u1").reshape(len(column), column.itemsize).T
    return zlib.compress(shuffled, _LEVEL)


def _store(datasets: dict[str, h5py.Dataset], position: int, jobs: dict[str, Future[bytes]]) -> None:
    for name, job in jobs.items():
        dataset = datasets[name]
        dataset.resize((position + dataset.chunks[0],))
        dataset.id.write_direct_chunk((position,), job.result())


def _write_arrays(group: h5py.Group, arrays: dict[str, np.ndarray]) -> None:
    for name, column in arrays.items():
        group.create_dataset(name, data=column, chunks=(len(column),) if len(column) else None)


def _write_metadata(file: h5py.File, source: Collectable) -> None:
    metadata = source.metadata
    file.attrs["format"] = FORMAT
    file.attrs["version"] = VERSION
    file.attrs["complete"] = np.uint8(source.complete)
    file.attrs["tasks"] = metadata.tasks
    file.attrs["threads"] = metadata.threads
    file.attrs["origin_unix_ns"] = metadata.origin_unix_ns
    if metadata.clock_error_s is not None:
        file.attrs["clock_error_s"] = metadata.clock_error_s
    for name in TEXT_ATTRIBUTES:
        file.attrs.create(name, os.fsencode(getattr(metadata, name)), dtype=_TEXT)
    calls = file.create_group("calls")
    for part in ("name", "layer", "op"):
        _write_texts(calls, part, [getattr(call, part) for call in metadata.calls], f"{part} of each call")
    _write_texts(file, "files", metadata.files, "absolute paths; the first: none or unknown")
    _write_texts(file, "hosts", metadata.hosts, "nodes")
    _write_texts(file, "notes", metadata.notes, "what is partial or doubtful about this run")
    _write_processes(file.create_group("processes"), metadata.processes)
    _write_facts(file, metadata)
    spools = file.create_group("spools")
    identities = list(source.spools.values())
    _write_texts(spools, "name", list(source.spools), "files that this one was made from")
    _write_numbers(spools, "bytes", [size for size, _ in identities], "bytes")
    _write_numbers(spools, "mtime_ns", [changed for _, changed in identities], "ns since 1970-01-01 UTC")


def _write_facts(file: h5py.File, metadata: RunMetadata) -> None:
    facts = [(path, *fact) for path, known in metadata.file_facts.items() for fact in known.items()]
    mounts = [(host, mount) for host, table in metadata.mounts.items() for mount in table]
    texts = [(host, mount.point, mount.type, mount.source) for host, mount in mounts]
    _write_rows(file.create_group("file_facts"), ("path", "key", "value"), facts)
    _write_rows(file.create_group("environment"), ("name", "value"), list(metadata.environment.items()))
    table = file.create_group("mounts")
    _write_rows(table, ("host", "point", "type", "source"), texts)
    _write_numbers(table, "block_bytes", [mount.block_bytes for _, mount in mounts], "bytes")


def _write_rows(group: h5py.Group, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for place, name in enumerate(names):
        _write_texts(group, name, [row[place] for row in rows], f"{name} in each row")


def _write_regions(group: h5py.Group, regions: RegionTable) -> None:
    _write_texts(group, "names", regions.names, "names of phases and regions")
    for name, column in regions.columns.items():
        dataset = group.create_dataset(name, data=column)
        dataset.attrs["unit"], dataset.attrs["meaning"] = REGION_MEANINGS[name]


def _write_processes(group: h5py.Group, processes: Sequence[Process]) -> None:
    for field in fields(Process):
        values: list[Any] = [getattr(process, field.name) for process in processes]
        if field.name == "command":
            commands = ["\x1f".join(words) for words in values]
            _write_texts(group, "command", commands, "words parted by the byte 0x1f")
        elif field.type == "str":
            _write_texts(group, field.name, values, f"{field.name} of each process")
        else:
            _write_numbers(group, field.name, values, _PROCESS_UNITS.get(field.name, ""))


def _write_texts(group: h5py.Group, name: str, texts: Sequence[str], meaning: str) -> None:
    data = np.array([os.fsencode(text) for text in texts], dtype=object)
    group.create_dataset(name, data=data, dtype=_TEXT).attrs["meaning"] = meaning


def _write_numbers(group: h5py.Group, name: str, values: Sequence[int], unit: str) -> None:
    group.create_dataset(name, data=np.array(values, dtype=np.int64)).attrs["unit"] = unit
