"""A file for HDF5 that survives a full disk.

If HDF5 cannot write the last blocks of a file, it cannot close the file. It tries again at the end of the
process and ends it with a segmentation fault. Therefore this file reports success to HDF5, discards the data
and keeps the error for the caller.
"""

from __future__ import annotations

import io
import os

from ensembles.model.units import BYTES_AT_ONCE


class FullDiskSafeFile(io.RawIOBase):
    """A new, empty file object for h5py.

    `error`: the first error. All data written after it are lost.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._position = 0
        self._length = 0
        self._memory = memoryview(bytearray(BYTES_AT_ONCE))
        self._held = self._held_from = 0
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position."""
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}
        self._position = bases[whence] + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read written data; lost data read as zeros."""
        self._write_held()
        view = memoryview(buffer).cast("B")
        wanted = max(min(len(view), self._length - self._position), 0)
        got = os.preadv(self._descriptor, [view[:wanted]], self._position) if wanted else 0
        view[got:wanted] = bytes(wanted - got)
        self._position += wanted
        return wanted

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        """Write all data, or discard them after an error.

        Pieces that continue each other are written together.
        """
        view = memoryview(data).cast("B")
        count = len(view)
        if self._position != self._held_from + self._held or self._held + count > BYTES_AT_ONCE:
            self._write_held()
        if count > BYTES_AT_ONCE:
            self._write(view, self._position)
        else:
            if not self._held:
                self._held_from = self._position
            self._memory[self._held : self._held + count] = view
            self._held += count
        self._position += count
        self._length = max(self._length, self._position)
        return count

    def flush(self) -> None:
        """Write what is held."""
        super().flush()
        self._write_held()

    def close(self) -> None:
        """Write what is held; the descriptor stays open."""
        if not self.closed:
            self._write_held()
        super().close()

    def _write_held(self) -> None:
        if self._held:
            self._write(self._memory[: self._held], self._held_from)
            self._held = 0

    def _write(self, rest: memoryview, place: int) -> None:
        try:
            while len(rest) and self.error is None:
                done = os.pwrite(self._descriptor, rest, place)
                rest, place = rest[done:], place + done
        except OSError as error:
            self.error = error

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        self._write_held()
        size = self._position if size is None else size
        try:
            if self.error is None:
                os.ftruncate(self._descriptor, size)
        except OSError as error:
            self.error = error
        self._length = size
        return size
