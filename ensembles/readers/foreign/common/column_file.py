"""Columns in a temporary file that nobody else sees, and that is gone with the process, however it ends."""

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
    """Tables in a file without a name (its owner's alone, below ``TMPDIR``): one after the other, each with
    its columns one after the other.

    Parameters
    ----------
    trace : str
        What the calls are from, for messages.
    """

    def __init__(self, trace: str) -> None:
        self._trace = trace
        self._end = 0
        with self._failures_told():
            # Linux gives such a file no name at all: even kill -9 leaves nothing behind.
            self._file = tempfile.TemporaryFile(buffering=0, prefix="ensio-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def reserve(self, length: int) -> StoredRows:
        """Room for a table of `length` rows, which are written next.

        Raises
        ------
        EnsioError
            There is no space left.
        """
        places = {}
        begin = self._end
        for name, dtype in COLUMNS.items():
            places[name] = self._end
            self._end += -(-length * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        with self._failures_told():
            os.ftruncate(self._file.fileno(), self._end)
            if self._end > begin:
                # A mapping of a file must never meet a place for which the disk has no room.
                os.posix_fallocate(self._file.fileno(), begin, self._end - begin)
        return StoredRows(self, places, length)

    def write(self, place: int, values: np.ndarray) -> None:
        """Store an array."""
        view = np.ascontiguousarray(values).data.cast("B")
        with self._failures_told():
            while len(view):
                done = os.pwrite(self._file.fileno(), view, place)
                view, place = view[done:], place + done

    def read(self, place: int, length: int, dtype: np.dtype) -> np.ndarray:
        """An array in memory of its own."""
        values = np.empty(length, dtype)
        view = values.data.cast("B") if length else memoryview(b"")
        with self._failures_told():
            while len(view):
                done = os.preadv(self._file.fileno(), [view], place)
                if not done:
                    raise OSError(0, "it has become shorter")
                view, place = view[done:], place + done
        return values

    def map(self, place: int, length: int, dtype: np.dtype) -> np.ndarray:
        """An array in the file's own memory: pages come when they are looked at, and may go again."""
        if not length:
            return np.empty(0, dtype)
        first = place // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        size = place - first + length * dtype.itemsize
        with self._failures_told():
            mapping = mmap.mmap(self._file.fileno(), size, prot=mmap.PROT_READ, offset=first)
        return np.frombuffer(mapping, dtype, length, place - first)

    def close(self) -> None:
        """Give the file back. Arrays that map it stay."""
        self._file.close()

    @contextmanager
    def _failures_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            folder = tempfile.tempdir or os.environ.get("TMPDIR", "/tmp")
            raise EnsioError(
                f"the calls of {self._trace} find no room in {folder} ({error.strerror or error}): "
                f"set TMPDIR to a folder with room for {2 * EVENT_BYTES} bytes a call"
            ) from error


class StoredRows:
    """Rows of all columns in a `ColumnFile`."""

    def __init__(self, file: ColumnFile, places: dict[str, int], length: int) -> None:
        self._file = file
        self._places = places
        self._length = length

    def __len__(self) -> int:
        return self._length

    def write(self, name: str, low: int, values: np.ndarray) -> None:
        """Store a column's rows from `low` on."""
        self._file.write(self._places[name] + low * COLUMNS[name].itemsize, values)

    def read(self, low: int, high: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Rows `low` to `high` of some columns, or of all, in memory of their own."""
        low, high = max(low, 0), min(high, self._length)
        return {
            name: self._file.read(
                self._places[name] + low * COLUMNS[name].itemsize, max(high - low, 0), COLUMNS[name]
            )
            for name in (COLUMNS if names is None else names)
        }

    def mapped(self) -> dict[str, np.ndarray]:
        """All rows of all columns, as arrays that lie in the file."""
        return {
            name: self._file.map(self._places[name], self._length, dtype) for name, dtype in COLUMNS.items()
        }
