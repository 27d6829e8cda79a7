"""State of open files that follows from strace output: descriptors, file positions, working directories."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

NO_FILE = "\0no file"
"""Path of sockets, pipes and the like."""


class OpenFile:
    """An open file description, which descriptors share after dup and fork.

    `path`: ``""``: unknown.
    `position`: file position in bytes; None: unknown.
    `appends`: whether writes go to the end of the file.
    `under_way`: number of calls that use the position and have not returned.

    Examples
    --------
    >>> from ensembles.readers.foreign.strace.open_files import OpenFile
    >>> file = OpenFile("/scratch/data", position=0)
    >>> file.moved(4096, writes=True), file.moved(4096, writes=True)
    (0, 4096)
    """

    __slots__ = ("appends", "path", "position", "under_way")

    def __init__(self, path: str, position: int | None = None, appends: bool = False) -> None:
        self.path = path
        self.position = position
        self.appends = appends
        self.under_way = 0

    def moved(self, count: int, writes: bool) -> int:
        """Advance the position by a transfer."""
        if self.appends and writes:
            self.position = None
        if self.under_way:
            # A concurrent call used the position; the output does not show which one was first.
            self.position = None
        at = self.position
        if at is None:
            return -1
        self.position = at + count
        return at


@dataclass(slots=True)
class Descriptors:
    """Table of descriptors of a process."""

    files: dict[int, OpenFile] = field(default_factory=dict)
    closed_by_exec: set[int] = field(default_factory=set)  # Descriptors that exec closes

    def copy(self) -> Descriptors:
        """Copy the table for a child process; both refer to the same open files."""
        return Descriptors(dict(self.files), set(self.closed_by_exec))

    def put(self, number: int, file: OpenFile, closed_by_exec: bool = False) -> None:
        """Assign a descriptor."""
        self.files[number] = file
        if closed_by_exec:
            self.closed_by_exec.add(number)
        else:
            self.closed_by_exec.discard(number)

    def close(self, number: int) -> None:
        """Close a descriptor."""
        self.files.pop(number, None)
        self.closed_by_exec.discard(number)

    def close_range(self, low: int, high: int) -> None:
        """Close all descriptors from `low` to `high`, both included."""
        for number in [number for number in self.files if low <= number <= high]:
            self.close(number)

    def get(self, number: int, told: str | None) -> OpenFile:
        """Return the file of a descriptor."""
        file = self.files.get(number)
        if told is not None and (file is None or (file.path != told and file.path != NO_FILE)):
            file = OpenFile(told)
            self.files[number] = file
        if file is None:
            file = self.files[number] = OpenFile("")
        return file


@dataclass(slots=True)
class Folder:
    """A working directory, which threads share. ``""``: unknown."""

    path: str = ""

    def join(self, path: str, base: str | None = None) -> str:
        """Make a path absolute as far as the directory is known.

        Examples
        --------
        >>> from ensembles.readers.foreign.strace.open_files import Folder
        >>> Folder("/home/me").join("../data")
        '/home/data'
        """
        base = self.path if base is None else base
        if not path:
            return base
        joined = path if path.startswith("/") else os.path.join(base, path) if base else path
        return os.path.normpath(joined)
