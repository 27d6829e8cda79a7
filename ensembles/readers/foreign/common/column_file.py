"""Columns in an unnamed temporary file, which disappears with the process however it ends."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS

EVENT_BYTES = sum(dtype.itemsize for dtype in COLUMNS.values())

_ALIGNMENT = 8


class ColumnFile:
    """Tables of events in an unnamed file below ``TMPDIR``.

    Tables are stored one after another, and so are the columns of each table.
    """

    def __init__(self, trace: str) -> None:
        self._trace = trace
        self._end = 0
        with self._failures_told():
            # On Linux such a file has no name: even kill -9 leaves nothing behind.
            self._file = tempfile.TemporaryFile(buffering=0, prefix="ensio-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def reserve(self, length: int) -> StoredRows:
        """Reserve space for a table."""
        places = {}
        begin = self._end
        for name, dtype in COLUMNS.items():
            places[name] = self._end
            self._end += -(-length * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        with self._failures_told():
            os.ftruncate(self._file.fileno(), self._end)
            if self._end > begin:
                # Access to a mapped page that the disk has no space for would raise SIGBUS.
                os.posix_fallocate(self._file.fileno(), begin, self._end - begin)
        return StoredRows(self, places, length)

    def write(self, place: int, values: np.ndarray) -> None:
        """Write an array at an offset in bytes."""
        view = np.ascontiguousarray(values).data.cast("B")
        with self._failures_told():
            while len(view):
                done = os.pwrite(self._file.fileno(), view, place)
                view, place = view[done:], place + done

    def read(self, place: int, length: int, dtype: np.dtype) -> np.ndarray:
        """Read an array at an offset in bytes into new memory."""
        values = np.empty(length, dtype)
        view = values.data.cast("B") if length else memoryview(b"")
        with self._failures_told():
            while len(view):
                done = os.preadv(self._file.fileno(), [view], place)
                if not done:
                    raise OSError(0, "the file was truncated")
                view, place = view[done:], place + done
        return values

    def map(self, place: int, length: int, dtype: np.dtype) -> np.ndarray:
        """Map an array at an offset in bytes: the kernel loads pages on access and may drop them again."""
        if not length:
            return np.empty(0, dtype)
        first = place // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        size = place - first + length * dtype.itemsize
        with self._failures_told():
            mapping = mmap.mmap(self._file.fileno(), size, prot=mmap.PROT_READ, offset=first)
        return np.frombuffer(mapping, dtype, length, place - first)

    def close(self) -> None:
        """Close the file. Mapped arrays remain valid."""
        self._file.close()

    @contextmanager
    def _failures_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            folder = tempfile.tempdir or os.environ.get("TMPDIR", "/tmp")
            raise EnsioError(
                f"the calls of {self._trace} do not fit into {folder} ({error.strerror or error}): "
                f"set TMPDIR to a folder with space for {2 * EVENT_BYTES} bytes per call"
            ) from error


class StoredRows:
    """A table of events in a `ColumnFile`, made by `ColumnFile.reserve`."""

    def __init__(self, file: ColumnFile, places: dict[str, int], length: int) -> None:
        self._file = file
        self._places = places
        self._length = length

    def __len__(self) -> int:
        return self._length

    def write(self, name: str, low: int, values: np.ndarray) -> None:
        """Write rows of a column, from row `low` on."""
        self._file.write(self._places[name] + low * COLUMNS[name].itemsize, values)

    def read(self, low: int, high: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Read rows into new memory; if they are all rows, map them from the file."""
        low, high = max(low, 0), min(high, self._length)
        get = self._file.map if high - low == self._length else self._file.read
        return {
            name: get(self._places[name] + low * COLUMNS[name].itemsize, max(high - low, 0), COLUMNS[name])
            for name in (COLUMNS if names is None else names)
        }
