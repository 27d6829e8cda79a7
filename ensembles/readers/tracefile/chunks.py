"""Decode chunks of columns of a ``trace.h5``.

HDF5 shuffles the bytes of a chunk and then deflates them. The module `_chunks` (C, with libdeflate) reads,
inflates, unshuffles and checks several chunks without the GIL. It is the only compiled module that may be
missing, because libdeflate may be: then ISA-L or zlib inflates one chunk at a time, with equal results.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensembles.model.events import COLUMNS
from ensembles.readers.native.job_file_codec import unshuffle

try:
    from ensembles.readers.tracefile import _chunks
except ImportError:  # no libdeflate
    _chunks = None  # type: ignore[assignment]
try:
    from isal import isal_zlib as _inflate
except ImportError:  # no wheel for this processor
    import zlib as _inflate  # type: ignore[no-redef]

DAMAGE: tuple[type[Exception], ...] = (  # type: ignore[assignment] # isal declares its error as an instance
    OSError,
    KeyError,
    ValueError,
    TypeError,
    RuntimeError,
    IndexError,
    zlib.error,
    _inflate.error,
)
"""Exceptions of HDF5, zlib and the checks for damaged and missing parts."""

Limits = Mapping[str, tuple[int, int]]

_NUMBERS = {name: number for number, name in enumerate(COLUMNS)}


class ChunkRows(NamedTuple):
    """Wanted rows of a chunk, and their destination.

    Attributes
    ----------
    name : str
        Name of the column.
    position, stored_bytes : int
        Offset and length of the chunk in the file, bytes.
    rows : int
        Number of rows of the whole chunk.
    first : int
        First wanted row within the chunk.
    out : ndarray, shape (n,), C-contiguous
        Receives n rows; n is at least 1.
    zeroed : bool
        Whether `out` is all zeros. Zeros are not written then, so that untouched pages stay untouched.
    """

    name: str
    position: int
    stored_bytes: int
    rows: int
    first: int
    out: np.ndarray
    zeroed: bool


class ChunkReader:
    """A thread-safe reader of chunks of columns.

    Many columns have the same value in successive chunks. Identical compressed chunks are inflated once.

    Parameters
    ----------
    limits : dict of str to (int, int)
        Smallest and largest plausible value of each column; other values are damage.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._workspaces: list[Any] = []

    def read(self, descriptor: int, parts: Sequence[ChunkRows]) -> None:
        """Read chunks of an open file.

        Parameters
        ----------
        descriptor : int
            Descriptor of the file.
        parts : sequence of ChunkRows

        Raises
        ------
        ValueError, zlib.error
            A chunk is damaged.
        OSError
            The file cannot be read.
        """
        if _chunks is None:
            read_without_libdeflate(descriptor, parts, self._limits)
            return
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            workspace = _chunks.workspace()
        try:
            _chunks.read_parts(workspace, descriptor, tuple(self._told(part) for part in parts))
        finally:
            self._workspaces.append(workspace)

    def _told(self, part: ChunkRows) -> tuple[object, ...]:
        name, position, stored_bytes, rows, first, out, zeroed = part
        is_signed = out.dtype.kind == "i"
        where = (position, stored_bytes, rows, first)
        return (_NUMBERS[name], name, is_signed, zeroed, *where, out, self._limits.get(name))


def read_without_libdeflate(descriptor: int, parts: Sequence[ChunkRows], limits: Limits) -> None:
    """Read chunks as `ChunkReader.read`, one at a time."""
    for part in parts:
        raw = os.pread(descriptor, part.stored_bytes, part.position)
        if len(raw) != part.stored_bytes:
            raise ValueError(f"a part of its column {part.name} lies beyond its end")
        data = _inflated(raw, part.rows * part.out.itemsize)
        unshuffle(data, part.first, part.out)
        check_limits(part.name, part.out, limits.get(part.name))


def _inflated(raw: bytes, length: int) -> bytes:
    # One byte more than expected makes zlib check the checksum; the limit stops decompression bombs.
    decompressor = _inflate.decompressobj()
    data = decompressor.decompress(raw, length + 1)
    if len(data) > length or (decompressor.eof and len(data) < length):
        raise ValueError("the length of its compressed data differs from the number of rows")
    if not decompressor.eof:
        raise ValueError("its compressed data are damaged")
    return data


def check_limits(name: str, values: np.ndarray, limits: tuple[int, int] | None) -> None:
    """Check that the values of a column are plausible.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    values : ndarray, shape (n,)
    limits : (int, int) or None
        Smallest and largest plausible value; None: all values are plausible.

    Raises
    ------
    ValueError
        A value is outside of the limits.
    """
    if limits is None or not len(values):
        return
    least, most = limits
    if values.max() > most or values.min() < least:
        raise ValueError(f"its column {name} has values outside of {least} to {most}")
