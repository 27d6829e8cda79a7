"""Deflates columns as HDF5's own shuffle and gzip filters do it, so that every HDF5 reads them.

Bytes are sorted by significance first. A plane of bytes that does not become shorter is noise (the low bytes
of times), and is stored as it is: that costs nothing to read. ISA-L deflates several times as fast as zlib;
without it zlib does the same work.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

try:
    from isal import isal_zlib as _deflate
except ImportError:  # no wheel for this processor
    import zlib as _deflate  # type: ignore[no-redef]

_HEAD = b"\x78\x01"
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_STORED_BYTES = 0xFFFF
_GAIN = 0.9
"""A plane that stays above this share of its length is stored."""


class ColumnDeflater:
    """Deflates the chunks of one column; those of a single value, which are most, only once.

    Parameters
    ----------
    rows : int
        Items of a chunk; shorter ones are filled up with zeros, as HDF5 does.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._single: tuple[Any, bytes] | None = None

    def deflate(self, column: np.ndarray) -> bytes:
        """A chunk as HDF5 stores it; `column` has at most as many items as a chunk."""
        whole = len(column) == self._rows
        if whole and (column == column[0]).all():
            known = self._single
            if known is None or known[0] != column[0]:
                # Several threads may come here at once: each leaves a pair that belongs together.
                known = self._single = (column[0], self._deflated(column))
            return known[1]
        return self._deflated(column)

    def _deflated(self, column: np.ndarray) -> bytes:
        width = column.itemsize
        planes = np.zeros((width, self._rows), "u1")
        planes[:, : len(column)] = column.view("u1").reshape(len(column), width).T
        machine = _deflate.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
        parts = [_HEAD]
        for plane in planes:
            # A full flush ends at a byte, and what follows does not lean on what came before.
            shorter = machine.compress(plane) + machine.flush(zlib.Z_FULL_FLUSH)
            parts.append(shorter if len(shorter) < _GAIN * self._rows else _stored(plane.tobytes()))
        checksum = _deflate.adler32(planes.reshape(-1))
        return b"".join([*parts, _LAST_BLOCK, struct.pack(">I", checksum)])


def _stored(plane: bytes) -> bytes:
    """Blocks that hold bytes as they are (RFC 1951, 3.2.4)."""
    pieces = (plane[low : low + _STORED_BYTES] for low in range(0, len(plane), _STORED_BYTES))
    return b"".join(
        struct.pack("<BHH", 0, len(piece), len(piece) ^ _STORED_BYTES) + piece for piece in pieces
    )
