"""A file to which HDF5 can always write: on a full disk, what it writes is let go, and the error is kept.

HDF5 cannot close a file to which its last blocks cannot be written: it keeps it open, tries again at the end
of the process, and ends that with a segmentation fault. So it is told that all went well, and its caller the
truth.
"""

from __future__ import annotations

import io
import os


class FullDiskSafeFile(io.RawIOBase):
    """A new, empty file, for h5py.

    Parameters
    ----------
    descriptor : int
        Open for reading and writing; the caller closes it.

    Attributes
    ----------
    error : OSError or None
        The first one. What was written after it is lost.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._position = 0
        self._length = 0
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As of any file."""
        bases = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}
        self._position = bases[whence] + offset
        return self._position

    def tell(self) -> int:
        """As of any file."""
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """What was written; zeros where it was lost."""
        view = memoryview(buffer).cast("B")
        wanted = max(min(len(view), self._length - self._position), 0)
        got = os.preadv(self._descriptor, [view[:wanted]], self._position) if wanted else 0
        view[got:wanted] = bytes(wanted - got)
        self._position += wanted
        return wanted

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        """Write all of it, or let it go."""
        view = memoryview(data).cast("B")
        rest, place = view, self._position
        try:
            while len(rest) and self.error is None:
                done = os.pwrite(self._descriptor, rest, place)
                rest, place = rest[done:], place + done
        except OSError as error:
            self.error = error
        self._position += len(view)
        self._length = max(self._length, self._position)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """As of any file."""
        size = self._position if size is None else size
        try:
            if self.error is None:
                os.ftruncate(self._descriptor, size)
        except OSError as error:
            self.error = error
        self._length = size
        return size
