"""Compress columns in the format of HDF5's shuffle and gzip filters, which every HDF5 reads.

The shuffle groups bytes by significance into planes. A plane that does not compress is noise (the low bytes
of times) and is stored uncompressed, which is faster to read. ISA-L deflates several times as fast as zlib;
without it, zlib is used.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from ensembles.readers.native.job_file_codec import shuffle

try:
    from isal import isal_zlib as _deflate
except ImportError:  # no wheel for this processor
    import zlib as _deflate  # type: ignore[no-redef]

_HEAD = b"\x78\x01"
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_STORED_BYTES = 0xFFFF
_GAIN = 0.9
"""Planes with a compression ratio above this value are stored uncompressed."""


class ColumnDeflater:
    """Compressor of the chunks of one column.

    Most chunks contain a single value. The result for such a chunk is reused.

    Examples
    --------
    >>> import zlib
    >>> import numpy as np
    >>> from ensembles.writers.tracefile.deflater import ColumnDeflater
    >>> chunk = ColumnDeflater(4).deflate(np.array([1, 2, 259], "<u2"))
    >>> list(zlib.decompress(chunk))  # all low bytes, then all high bytes
    [1, 2, 3, 0, 0, 0, 1, 0]
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._single: tuple[Any, bytes] | None = None

    def deflate(self, column: np.ndarray) -> bytes:
        """Compress a chunk."""
        return self._deflated(np.ascontiguousarray(column), set())

    def deflate_all(self, column: np.ndarray) -> list[bytes]:
        """Compress successive chunks.

        Planes that do not compress in the first chunk are stored uncompressed in all of them.
        """
        column, noise = np.ascontiguousarray(column), set[int]()
        return [
            self._deflated(column[low : low + self._rows], noise) for low in range(0, len(column), self._rows)
        ]

    def _deflated(self, column: np.ndarray, noise: set[int]) -> bytes:
        """Compress a chunk; planes of `noise` are stored, and those that do not compress are added to it."""
        planes = np.empty((column.itemsize, self._rows), "u1")
        if not shuffle(column, planes.reshape(-1)):
            known = self._single
            if known is None or known[0] != column[0]:
                planes[:] = column[:1].view("u1")[:, None]
                # Thread-safe: the pair of value and result is replaced at once.
                known = self._single = (column[0], self._packed(planes, set()))
            return known[1]
        return self._packed(planes, noise)

    def _packed(self, planes: np.ndarray, noise: set[int]) -> bytes:
        machine = _deflate.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
        parts = [_HEAD]
        for number, plane in enumerate(planes):
            if number not in noise:
                # A full flush ends at a byte boundary, and later data do not refer to earlier data.
                shorter = machine.compress(plane) + machine.flush(zlib.Z_FULL_FLUSH)
                if len(shorter) < _GAIN * self._rows:
                    parts.append(shorter)
                    continue
                noise.add(number)
            parts.append(_stored(plane.tobytes()))
        checksum = _deflate.adler32(planes.reshape(-1))
        return b"".join([*parts, _LAST_BLOCK, struct.pack(">I", checksum)])


def _stored(plane: bytes) -> bytes:
    """Encode bytes as uncompressed blocks (RFC 1951, section 3.2.4)."""
    pieces = (plane[low : low + _STORED_BYTES] for low in range(0, len(plane), _STORED_BYTES))
    return b"".join(
        struct.pack("<BHH", 0, len(piece), len(piece) ^ _STORED_BYTES) + piece for piece in pieces
    )
