"""Who has which file open where, as strace's lines tell it: descriptors, positions, folders, births."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

NO_FILE = "\0no file"
"""The path of what is a socket, a pipe, or the like."""


class OpenFile:
    """What descriptors share after dup and fork.

    Attributes
    ----------
    path : str
        ``""``: not known.
    position : int or None
    appends : bool
        Writes go to the end, wherever that is.
    under_way : int
        Calls that use the position and have not returned.
    """

    __slots__ = ("appends", "path", "position", "under_way")

    def __init__(self, path: str, position: int | None = None, appends: bool = False) -> None:
        self.path = path
        self.position = position
        self.appends = appends
        self.under_way = 0

    def moved(self, count: int, writes: bool) -> int:
        """`count` bytes were moved at the position: where that was; -1: not known."""
        if self.appends and writes:
            self.position = None
        if self.under_way:
            # Another call used the position at the same time: who was first, the text does not tell.
            self.position = None
        at = self.position
        if at is None:
            return -1
        self.position = at + count
        return at


@dataclass(slots=True)
class Descriptors:
    """Open files by number; `closed_by_exec` are those that a new program does not get."""

    files: dict[int, OpenFile] = field(default_factory=dict)
    closed_by_exec: set[int] = field(default_factory=set)

    def copy(self) -> Descriptors:
        """As a child gets them: its own numbers for the same open files."""
        return Descriptors(dict(self.files), set(self.closed_by_exec))

    def put(self, number: int, file: OpenFile, closed_by_exec: bool = False) -> None:
        """A number stands for a file from now on."""
        self.files[number] = file
        if closed_by_exec:
            self.closed_by_exec.add(number)
        else:
            self.closed_by_exec.discard(number)

    def close(self, number: int) -> None:
        """A number stands for nothing from now on."""
        self.files.pop(number, None)
        self.closed_by_exec.discard(number)

    def close_range(self, low: int, high: int) -> None:
        """So do all of a range."""
        for number in [number for number in self.files if low <= number <= high]:
            self.close(number)

    def get(self, number: int, told: str | None) -> OpenFile:
        """The file of a number; `told` is what strace says of it, if it was asked to (``-y``)."""
        file = self.files.get(number)
        if told is not None and (file is None or (file.path != told and file.path != NO_FILE)):
            file = OpenFile(told)
            self.files[number] = file
        if file is None:
            file = self.files[number] = OpenFile("")
        return file


@dataclass(slots=True)
class Folder:
    """A working directory; threads share it. ``""``: not known."""

    path: str = ""

    def join(self, path: str, base: str | None = None) -> str:
        """A path as absolute as can be told."""
        base = self.path if base is None else base
        if not path:
            return base
        joined = path if path.startswith("/") else os.path.join(base, path) if base else path
        return os.path.normpath(joined)
