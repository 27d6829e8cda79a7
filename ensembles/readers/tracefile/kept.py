"""Kept summaries in a ``trace.h5``: the group ``kept``, one column of bytes for each request.

They are sealed (`ensembles.passes.kept.seal`) with the identity of the rest of the file: its attributes, and
types, sizes and samples of all other columns. If any of these has changed, the summaries are not taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b

import h5py
import numpy as np

from ensembles.passes.kept import MOST_BYTES
from ensembles.readers.tracefile.checked_parts import has_part, open_column, open_descriptor, open_group

GROUP = "kept"

MOST_KEPT_BYTES = 10 << 20
"""Size of all kept summaries of a file, bytes."""

_SAMPLE_BYTES = 1 << 12


def content_identity(file: h5py.File, is_own: bool = False) -> bytes:
    """Compute what identifies the run in a file."""
    digest = blake2b(digest_size=16)
    file_bytes = None if is_own else os.fstat(open_descriptor(file)).st_size
    for name in sorted(file.attrs):
        digest.update(f"{name!r} {file.attrs[name]!r}".encode("utf-8", "surrogateescape"))
    for path, column in _columns(file, is_own):
        if is_own:
            column.flush()  # of the file, it would write the beginning, which an unfinished file lacks
        stored_bytes = column.id.get_storage_size()
        if file_bytes is not None and stored_bytes > file_bytes:
            raise ValueError(f"a part of its column {path} is missing")
        digest.update(f"{path} {column.dtype.str} {column.shape} {stored_bytes}".encode())
        if column.chunks is None or not column.shape[0]:
            continue
        last = (column.shape[0] - 1) // column.chunks[0]
        for number in sorted({0, last // 2, last}):
            data = _stored_chunk(column, number * column.chunks[0])
            digest.update(f"{number} {len(data)}".encode() + data[:_SAMPLE_BYTES] + data[-_SAMPLE_BYTES:])
    return digest.digest()


def _stored_chunk(column: h5py.Dataset, row: int) -> bytes:
    """Return the chunk with a row, as it is stored."""
    try:
        data: bytes = column.id.read_direct_chunk((row,))[1]
    except MemoryError as error:  # HDF5 gives a chunk that is missing any length
        raise ValueError(f"a part of its column {column.name} is missing") from error
    return data


def _columns(file: h5py.File, is_own: bool) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the columns of all groups but that of the kept summaries, and those of the file itself.

    Their chunks are not counted, which takes HDF5 long: a column that lacks one has another stored size.
    """
    for name in sorted(file):
        if name == GROUP:
            continue
        if file.get(name, getclass=True) is h5py.Group:
            group = file[name] if is_own else open_group(file, name)
            for each in sorted(group):
                yield f"{name}/{each}", group[each] if is_own else open_column(group, each, is_whole=True)
        else:
            yield name, file[name] if is_own else open_column(file, name, is_whole=True)


def read_sealed(file: h5py.File, name: str) -> bytes | None:
    """Read a sealed summary of a file."""
    if not has_part(file, GROUP):
        return None
    group = open_group(file, GROUP)
    if not has_part(group, name):
        return None
    column = open_column(group, name)
    if column.dtype != np.uint8 or column.shape[0] > 2 * MOST_BYTES:
        raise ValueError(f"its column {name} is not a kept summary")
    return bytes(column[:].tobytes())
