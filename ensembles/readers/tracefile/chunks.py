"""From chunks of a ``trace.h5`` as they lie in the file to columns.

HDF5 deflates a chunk whose bytes it has shuffled before. Compiled code (with libdeflate) reads, inflates,
puts together and checks several chunks without Python's lock; where there is none, ISA-L or zlib and NumPy do
the same, with equal results. ``NATIVE`` tells which is in use.
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
except ImportError:
    _chunks = None  # type: ignore[assignment]
try:
    from isal import isal_zlib as _inflate
except ImportError:  # no wheel for this processor
    import zlib as _inflate  # type: ignore[no-redef]

NATIVE = _chunks is not None

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
"""What HDF5, zlib and a missing part raise."""

Limits = Mapping[str, tuple[int, int]]

_NUMBERS = {name: number for number, name in enumerate(COLUMNS)}


class ChunkRows(NamedTuple):
    """Some rows of a chunk.

    Attributes
    ----------
    name : str
        Of the column.
    position, stored_bytes : int
        Where the chunk lies in the file.
    rows : int
        Of the whole chunk.
    first : int
        The first row that is wanted.
    out : ndarray, shape (n,), C-contiguous
        Gets the rows; one at least.
    zeroed : bool
        It is all zeros, of memory that was never touched, perhaps: zeros need not be written into it.
    """

    name: str
    position: int
    stored_bytes: int
    rows: int
    first: int
    out: np.ndarray
    zeroed: bool


class ChunkReader:
    """Reads chunks of columns; several threads may at once.

    Most columns hold one value in chunk after chunk. Chunks that are alike to the last bit are inflated once.

    Parameters
    ----------
    limits : dict of str to (int, int)
        Least and largest value of columns; others are damage.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._workspaces: list[Any] = []

    def read(self, descriptor: int, parts: Sequence[ChunkRows]) -> None:
        """Read parts of an open file.

        Raises
        ------
        ValueError, zlib.error
            They are damaged.
        OSError
            The file cannot be read.
        """
        if _chunks is None:
            numpy_read(descriptor, parts, self._limits)
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


def numpy_read(descriptor: int, parts: Sequence[ChunkRows], limits: Limits) -> None:
    """`ChunkReader.read` without compiled code."""
    for part in parts:
        raw = os.pread(descriptor, part.stored_bytes, part.position)
        if len(raw) != part.stored_bytes:
            raise ValueError(f"a part of its column {part.name} lies beyond its end")
        data = _inflated(raw, part.rows * part.out.itemsize)
        unshuffle(data, part.first, part.out)
        check_limits(part.name, part.out, limits.get(part.name))


def _inflated(raw: bytes, length: int) -> bytes:
    # Asked for one byte more than there is, it goes on to the checksum; the limit keeps bombs small.
    decompressor = _inflate.decompressobj()
    data = decompressor.decompress(raw, length + 1)
    if len(data) > length or (decompressor.eof and len(data) < length):
        raise ValueError("its compressed data have another length than they are said to have")
    if not decompressor.eof:
        raise ValueError("its compressed data are damaged")
    return data


def check_limits(name: str, values: np.ndarray, limits: tuple[int, int] | None) -> None:
    """See that the values of a column are within its limits.

    Raises
    ------
    ValueError
        They are not.
    """
    if limits is None or not len(values):
        return
    least, most = limits
    if values.max() > most or values.min() < least:
        raise ValueError(f"its column {name} has values beyond {least} to {most}")
