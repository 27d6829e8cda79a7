"""Compress columns in the format of HDF5's shuffle and gzip filters, which every HDF5 reads.

The shuffle groups bytes by significance into planes. A plane that does not compress is noise (the low bytes
of times) and is stored uncompressed, which is faster to read. ISA-L deflates several times as fast as zlib;
without it, zlib is used.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
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

    Parameters
    ----------
    rows : int
        Items per chunk. The last chunk is padded with zeros, as HDF5 requires.

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
        """Compress a chunk.

        Parameters
        ----------
        column : ndarray, shape (n,)
            At most `rows` items.
        """
        return self._deflated(np.ascontiguousarray(column), set())

    def deflate_all(self, column: np.ndarray) -> list[bytes]:
        """Compress successive chunks.

        Planes that do not compress in the first chunk are stored uncompressed in all of them.

        Parameters
        ----------
        column : ndarray, shape (n,)
            Only the last chunk may be shorter than the others.
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


@dataclass(frozen=True)
class Filter:
    """A compression filter.

    Attributes
    ----------
    name : str
    needs : str
        What a reader of such files needs in addition to HDF5; "": nothing.

    Examples
    --------
    >>> from ensembles.writers.tracefile.deflater import FILTERS
    >>> FILTERS["gzip"].options()
    {'compression': 'gzip', 'compression_opts': 1, 'shuffle': True}
    """

    name: str
    needs: str

    def options(self) -> dict[str, Any]:
        """Return the arguments of `h5py.Group.create_dataset` for this filter.

        Raises
        ------
        EnsioError
            The filter is not installed, or one of another package is in its place.
        """
        if self.name == "none":
            return {}
        if self.name == "gzip":
            return {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        if self.name == "lzf":
            return {"compression": "lzf", "shuffle": True}
        try:
            import hdf5plugin
        except ImportError as error:
            raise EnsioError(
                f"the filter {self.name} needs hdf5plugin, which is not installed: pip install hdf5plugin, "
                "or choose gzip"
            ) from error
        if self.name == "zstd":
            return {"shuffle": True, **hdf5plugin.Zstd(clevel=1)}
        _replace_filter_of_others(hdf5plugin)
        return dict(hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=hdf5plugin.Blosc.SHUFFLE))


def _replace_filter_of_others(hdf5plugin: ModuleType) -> None:
    """Put hdf5plugin's Blosc in the place of another one with the same number.

    netCDF4 adds its folder of plugins to those that HDF5 searches. If it was imported first, HDF5 has found
    its Blosc there, which makes no datasets for h5py, and hdf5plugin leaves it in place.
    """
    if hdf5plugin.get_config().registered_filters.get("blosc") != "unknown":
        return
    from h5py import h5pl

    folders = [h5pl.get(place) for place in range(h5pl.size())]
    for place in reversed(range(len(folders))):
        h5pl.remove(place)
    try:
        is_replaced = hdf5plugin.register(("blosc",), force=True)
    except (OSError, RuntimeError):  # a dataset that is open uses it
        is_replaced = False
    finally:
        for folder in folders:
            h5pl.append(folder)
    if not is_replaced:
        raise EnsioError(
            "HDF5 uses a filter blosc of another package in this process, such as netCDF4's: import "
            "hdf5plugin before it, or choose gzip or zstd"
        )


_PLUGIN = "HDF5's registered plugin for it (in Python: pip install hdf5plugin)"

GZIP = Filter("gzip", "")
FILTERS = {
    entry.name: entry
    for entry in (
        GZIP,
        Filter("none", ""),
        Filter("lzf", "h5py, or its filter lzf as a plugin"),
        Filter("zstd", _PLUGIN),
        Filter("blosc", _PLUGIN),
    )
}
"""Filters by name. Every HDF5 reads the first two."""
