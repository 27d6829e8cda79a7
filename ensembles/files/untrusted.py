"""Read untrusted files: regular ones only, and no more bytes than expected, packed or not."""

from __future__ import annotations

import errno
import os
import stat
import zlib
from contextlib import suppress
from typing import BinaryIO

from ensembles.model.errors import EnsioError

MOST_PART_BYTES, SMALL_PART_BYTES = 1 << 28, 1 << 26
"""Largest part of a file that is read at once, and the largest that is whatever its packed length says."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
"""Modes of folders in which other users can make files."""


class Reading:
    """Context that turns the error of a file that cannot be read into a sentence with its path."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Raise EnsioError in place of OSError."""
        if isinstance(error, OSError):
            raise EnsioError(f"{self._path} cannot be read: {error.strerror or error}") from error


def open_regular(path: str | os.PathLike[str], folder: int | None = None) -> BinaryIO:
    """Open a regular file to read it; never wait for a pipe, and never read a device.

    `folder`: descriptor of a folder: `path` is a name in it, and no link.
    `OSError`: the file cannot be opened, or is not a regular file.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if folder is None else os.O_NOFOLLOW)
    descriptor = os.open(path, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _irregular(path)
    return open(descriptor, "rb")


def check_regular(path: str) -> None:
    """Raise the errors of `open_regular` without opening: closing a file ends its locks of this process."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise _irregular(path)
    if not os.access(path, os.R_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _irregular(path: str | os.PathLike[str]) -> OSError:
    return OSError(errno.EINVAL, "it is not a regular file, name one", os.fspath(path))


def beginning_of(path: str, length: int) -> bytes:
    """Read the first bytes of a regular file; none of what cannot be read."""
    with suppress(OSError), open_regular(path) as file:
        return file.read(length)
    return b""


def read_whole(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Read a regular file; OSError as `open_regular`, and if it is longer than `most_bytes`."""
    with open_regular(path) as file:
        length = os.fstat(file.fileno()).st_size
        if length > most_bytes:
            reason = f"it is longer than {most_bytes >> 10:,} KiB, the limit for such files"
            raise OSError(errno.EFBIG, reason, os.fspath(path))
        return file.read(length)


def inflate(packed: bytes | memoryview, most_bytes: int) -> bytes:
    """Decompress one zlib stream; ValueError: it is damaged, or its result longer than `most_bytes`."""
    decompressor = zlib.decompressobj()
    try:
        data = decompressor.decompress(packed, most_bytes + 1)
    except zlib.error as error:
        raise ValueError("a compressed part is damaged") from error
    if len(data) > most_bytes or not decompressor.eof or decompressor.unused_data:
        raise ValueError(f"a compressed part is cut off, or holds more than {most_bytes:,} bytes")
    return data
