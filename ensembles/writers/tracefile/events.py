"""Write the events of a run into a ``trace.h5``: columns sorted by rank and start, and their index.

Several threads compress the columns in the format of HDF5's filters. HDF5 stores the result unchanged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import h5py
import numpy as np

from ensembles.model.events import COLUMN_MEANINGS, COLUMNS, Events
from ensembles.readers.tracefile.chunks import THREADS
from ensembles.readers.tracefile.index import IndexBuilder, TraceIndex
from ensembles.writers.tracefile.columns import describe, put_column, put_text
from ensembles.writers.tracefile.deflater import ColumnDeflater
from ensembles.writers.tracefile.filters import GZIP, Filter
from ensembles.writers.tracefile.sorted_rows import sorted_blocks

CHUNK_ROWS = 1 << 17

INDEX_MEANINGS = {
    "rank": ("", "tasks that made calls, ascending"),
    "row": ("", "first row of each of these tasks in the events"),
    "first_start": ("ns", "start of the first event of each chunk of rows"),
    "last_start": ("ns", "start of the last event of each chunk of rows"),
    "max_end": ("ns", "latest end (start + duration) of the events of each chunk of rows"),
}
"""Unit and meaning of each column of the index."""


def write_events(
    file: h5py.File,
    chunks: Iterator[Events],
    most_events: int,
    compression: Filter,
    folder: str,
) -> int:
    """Write the groups ``events`` and ``index``.

    Parameters
    ----------
    file : h5py.File
    chunks : iterator of Events
        Of at most `CHUNK_ROWS` events, ordered by rank.
    most_events : int
        Upper bound on the number of events.
    compression : Filter
    folder : str
        Folder for a temporary file, if a rank does not fit into memory.

    Returns
    -------
    int
        Number of events.
    """
    group = file.create_group("events")
    rows = min(CHUNK_ROWS, max(1024, most_events))
    datasets = {name: _create_column(group, name, rows, compression) for name in COLUMNS}
    builder, count = IndexBuilder(rows), 0
    store = _deflating if compression is GZIP else _plain
    with ThreadPoolExecutor(THREADS) as pool:
        for columns in store(datasets, sorted_blocks(chunks, rows, folder), pool):
            builder.add(columns)
            count += len(columns["rank"])
    for dataset in datasets.values():
        dataset.resize((count,))
    _write_index(file.create_group("index"), builder.index())
    return count


def _create_column(group: h5py.Group, name: str, rows: int, compression: Filter) -> h5py.Dataset:
    dataset = group.create_dataset(
        name, shape=(0,), maxshape=(None,), dtype=COLUMNS[name], chunks=(rows,), **compression.options()
    )
    describe(dataset, *COLUMN_MEANINGS[name])
    return dataset


def _deflating(
    datasets: Mapping[str, h5py.Dataset], blocks: Iterator[dict[str, np.ndarray]], pool: ThreadPoolExecutor
) -> Iterator[dict[str, np.ndarray]]:
    """Store blocks that the threads of the pool compress; yield each block when its compression has begun."""
    deflaters = {name: ColumnDeflater(dataset.chunks[0]) for name, dataset in datasets.items()}
    waiting: deque[tuple[int, dict[str, Future[bytes]]]] = deque()
    position = 0
    for columns in blocks:
        jobs = {name: pool.submit(deflaters[name].deflate, column) for name, column in columns.items()}
        waiting.append((position, jobs))
        position += len(columns["rank"])
        yield columns
        if len(waiting) > 2:
            _store(datasets, *waiting.popleft())
    while waiting:
        _store(datasets, *waiting.popleft())


def _store(datasets: Mapping[str, h5py.Dataset], position: int, jobs: dict[str, Future[bytes]]) -> None:
    for name, job in jobs.items():
        dataset = datasets[name]
        dataset.resize((position + dataset.chunks[0],))
        dataset.id.write_direct_chunk((position,), job.result())


def _plain(
    datasets: Mapping[str, h5py.Dataset], blocks: Iterator[dict[str, np.ndarray]], pool: ThreadPoolExecutor
) -> Iterator[dict[str, np.ndarray]]:
    """Store blocks with HDF5's filters."""
    position = 0
    for columns in blocks:
        end = position + len(columns["rank"])
        for name, dataset in datasets.items():
            dataset.resize((end,))
            dataset[position:end] = columns[name]
        position = end
        yield columns


def _write_index(group: h5py.Group, index: TraceIndex) -> None:
    group.attrs["rows"] = index.rows
    put_text(group, "meaning", "locations of ranks and times among the events; a chunk has `rows` rows")
    for name, (unit, meaning) in INDEX_MEANINGS.items():
        put_column(group, name, getattr(index, name), unit, meaning)
