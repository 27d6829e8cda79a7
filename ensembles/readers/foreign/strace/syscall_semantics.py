"""Semantics of system calls: their effect on the state of a process, and the resulting event.

The state of open files follows from strace output: descriptors, file positions, working directories.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache
from typing import Literal

from ensembles.model.c_layout import EXCLUDED
from ensembles.readers.foreign.common.id_tables import TracedProcess
from ensembles.readers.foreign.strace.call_arguments import (
    AT_POSITION,
    BY_DESCRIPTOR,
    BY_FOLDER,
    BY_PATH,
    LARGEST,
    MAPPING,
    MOVING,
    NO_FILES,
    OPENS,
    RECORDED,
    TWO_DESCRIPTORS,
    WRITING,
    SyscallResult,
    bounded_number,
    descriptor,
    number_at,
    size_and_offset,
    submitted,
    texts,
    unescaped,
)

Declared = tuple[str, int, int, int]
"""Path, offset, requested bytes, moved bytes."""

Halves = list[tuple[str, Declared]]
"""The halves of a copy that are on files: name of each, and what it did."""

_PAIR = re.compile(r"\[(\d+)(?:<[^\]]*?>)?, (\d+)(?:<[^\]]*?>)?\]", re.ASCII)
_RANGE = re.compile(r"(\d+), (\d+|~0U)", re.ASCII)
_COMMAND = re.compile(r'\[((?:"(?:[^"\\]|\\.)*"(?:\.\.\.)?(?:, )?)*)')
_ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_REQUESTS = {"PREAD": "aio_read", "PWRITE": "aio_write", "FSYNC": "aio_fsync", "FDSYNC": "aio_fsync"}


@dataclass(slots=True)
class Syscall:
    """A system call, possibly incomplete: name, text after the bracket, start in ns since 1970."""

    name: str
    text: str
    start: int
    file: OpenFile | None = None


class Thread:
    """A thread and its state, part of which is shared with other threads.

    `folder`: working directory.
    `unfinished`: the call that has not returned yet.
    `number`: thread number within the task, after the first call.
    `busy_until`: least end of its last call, ns since 1970.
    """

    __slots__ = ("busy_until", "descriptors", "folder", "number", "process", "tid", "unfinished")

    def __init__(self, tid: int, process: TracedProcess, descriptors: Descriptors, folder: Folder) -> None:
        self.tid = tid
        self.process = process
        self.descriptors = descriptors
        self.folder = folder
        self.unfinished: Syscall | None = None
        self.number: int | None = None
        self.busy_until = 0

    def begin(self, call: Syscall) -> None:
        """Begin a call that has not returned yet."""
        self.unfinished = call
        if call.name in AT_POSITION or call.name == "lseek":
            told = descriptor(call.text)
            if told is not None and told[0] is not None:
                call.file = self.descriptors.get(told[0], _path(told[1]))
                call.file.under_way += 1

    def end(self) -> None:
        """End the unfinished call, if there is one."""
        call, self.unfinished = self.unfinished, None
        if call is not None and call.file is not None:
            call.file.under_way -= 1


def apply_syscall(
    thread: Thread, name: str, arguments: str, result: SyscallResult
) -> Declared | Halves | Literal["no file"] | None:
    """Apply the effects of a system call to the state of its thread.

    The event of the call. "no file": the call used a pipe, a socket or the like. None: it is not I/O.
    """
    value = result.value if result.value is not None else -1
    failed = value < 0
    if name in BY_DESCRIPTOR:
        return _by_descriptor(thread, name, arguments, value, result)
    if name in BY_PATH or name in BY_FOLDER:
        path = _of_data(_path_of(thread, name, arguments))
        if name in OPENS and not failed:
            told = _path(result.path)
            file = OpenFile(path if told is None else told, 0, "O_APPEND" in arguments)
            thread.descriptors.put(value, file, "O_CLOEXEC" in arguments)
            path = file.path
        return "no file" if path == NO_FILE else (path, -1, 0, -1 if failed else 0)
    if name in TWO_DESCRIPTORS:
        return _copied(thread, name, arguments, value)
    if name == "io_submit":
        return _submitted(thread, arguments, value)
    if name in MAPPING:
        return _mapping(thread, arguments, failed)
    if name in NO_FILES:
        if not failed:
            _no_files(thread, arguments, value)
    elif not failed:
        _life(thread, name, arguments, result)
    return ("", -1, 0, -1 if failed else 0) if name in RECORDED else None


def _path(told: str | None) -> str | None:
    """Return the path that strace printed for a descriptor; `NO_FILE` for pipes, sockets and the like."""
    if told is None:
        return None
    # -yy adds the type of devices: </dev/null<char 1:3>>
    told = told.partition("<")[0]
    return _of_data(unescaped(told)) if told.startswith("/") else NO_FILE


_GLOBS = [(re.compile(translate(glob.removeprefix("!"))), glob[0] == "!") for glob in EXCLUDED]


@cache
def _of_data(path: str) -> str:
    """Return a path, or `NO_FILE` for one that the recorder leaves out, too."""
    is_kept = next((exception for glob, exception in _GLOBS if glob.match(path)), True)
    return path if is_kept else NO_FILE


def _by_descriptor(
    thread: Thread, name: str, arguments: str, value: int, result: SyscallResult
) -> Declared | Halves | Literal["no file"] | None:
    number, path, _ = descriptor(arguments) or (None, None, 0)
    if number is None:
        return None
    table, failed = thread.descriptors, value < 0
    file = table.get(number, _path(path))
    offset, requested, moved = -1, 0, -1 if failed else 0
    if name in MOVING:
        requested, offset = size_and_offset(name, arguments)
        moved = value
        requested = max(requested, moved, 0)
        if name in AT_POSITION:
            offset = file.moved(max(value, 0), name in WRITING)
    elif name in ("lseek", "_llseek") and not failed:
        offset = file.position = value
        if name == "_llseek":
            offset = -1
            file.position = None
    elif name == "ftruncate":
        offset = number_at(arguments, -1)
    elif name == "close":
        # Linux frees the descriptor even if close fails, unless it was not open.
        table.close(number)
    elif name in ("dup", "dup2", "dup3") and not failed:
        table.put(value, file, "O_CLOEXEC" in arguments)
    elif name in ("fcntl", "fcntl64") and "SETLK" in arguments:
        return "no file" if file.path == NO_FILE else [("fcntl_lock", (file.path, -1, 0, moved))]
    elif name in ("fcntl", "fcntl64"):
        if "F_SETFD" in arguments and not failed:
            table.put(number, file, "FD_CLOEXEC" in arguments)
        if "F_DUPFD" not in arguments:
            return None
        if not failed:
            table.put(value, file, "F_DUPFD_CLOEXEC" in arguments)
    return "no file" if file.path == NO_FILE else (file.path, offset, requested, moved)


def _path_of(thread: Thread, name: str, arguments: str) -> str:
    """Return the path that a call uses."""
    found = texts(arguments)
    if name in ("symlink", "symlinkat"):
        found = found[1:]
    path = found[0] if found else ""
    base = None
    if name in BY_FOLDER:
        begin = 0
        if name == "symlinkat":
            begin = arguments.find('", ') + 3
        told = descriptor(arguments, begin)
        if told is not None:
            number, shown, _ = told
            if number is not None:
                base = thread.descriptors.get(number, _path(shown)).path
            elif shown is not None and shown.startswith("/"):
                base = thread.folder.path = unescaped(shown)
    if not path and base is None:
        return ""
    if base == NO_FILE:
        return path if path.startswith("/") else NO_FILE
    return thread.folder.join(path, base)


def _copied(thread: Thread, name: str, arguments: str, value: int) -> Halves | Literal["no file"] | None:
    """Interpret a copy as the recorder does, the outer half first (docs/reference/calls.md)."""
    name = name.removesuffix("64")
    one, one_path, behind = descriptor(arguments) or (None, None, 0)
    sends = name == "sendfile"  # its target comes first, and has no offset
    place = behind if sends else arguments.find(", ", behind) + 2
    other, other_path, after = descriptor(arguments, place) or (None, None, 0)
    if one is None or other is None:
        return None
    of, moved = thread.descriptors.get, max(value, 0)
    source, target = of(one, _path(one_path)), of(other, _path(other_path))
    own_source, own_target = (arguments[at:].startswith("NULL") for at in (behind, after))
    if sends:
        source, target, own_source, own_target = target, source, own_target, True
    read, written = (
        (file.path, file.moved(moved, writes) if own else -1, moved, value)
        for file, writes, own in ((source, False, own_source), (target, True, own_target))
    )
    halves = [(name, read), (f"{name}_write", written)]
    if name == "copy_file_range":
        halves = [(f"{name}_read", read), (name, written)]
    halves = [half for half in halves if half[1][0] != NO_FILE]
    if len(halves) == 2 and not moved:
        halves = [half for half in halves if half[0] == name]
    return halves or "no file"


def _submitted(thread: Thread, arguments: str, value: int) -> Halves | None:
    """Interpret requests, with the bytes that they asked for; ``io_submit``: strace did not show them all."""
    told = submitted(arguments)
    halves = []
    for kind, number, path, size, offset in told[: max(value, 1)]:
        file, name = thread.descriptors.get(number, _path(path)).path, _REQUESTS.get(kind.removesuffix("V"))
        if name and file != NO_FILE:
            halves.append((name, (file, offset, size, size if value > 0 else -1)))
    return halves if len(told) >= value else [*halves, ("io_submit", ("", -1, 0, 0))]


def _mapping(thread: Thread, arguments: str, failed: bool) -> Declared | Literal["no file"] | None:
    if "MAP_ANON" in arguments:
        return None
    words = arguments.split(", ")
    if len(words) < 6:
        return None
    told = descriptor(", ".join(words[4:]))
    if told is None or told[0] is None or told[0] < 0:
        return None
    path = thread.descriptors.get(told[0], _path(told[1])).path
    if path == NO_FILE:
        return "no file"
    try:
        offset = max(min(bounded_number(words[-1]), LARGEST), -1)
    except ValueError:
        offset = -1
    return path, offset, number_at(arguments, 1), -1 if failed else 0


def _no_files(thread: Thread, arguments: str, value: int) -> None:
    closed_by_exec = "CLOEXEC" in arguments
    pair = _PAIR.search(arguments)
    numbers = [bounded_number(pair[1]), bounded_number(pair[2])] if pair else [value]
    for number in numbers:
        thread.descriptors.put(number, OpenFile(NO_FILE), closed_by_exec)


def _life(thread: Thread, name: str, arguments: str, result: SyscallResult) -> None:
    """Apply calls that change the process itself."""
    table = thread.descriptors
    if name in ("execve", "execveat"):
        found = texts(arguments)
        command = _COMMAND.search(arguments)
        program = thread.folder.join(found[0]) if found else ""
        thread.process.program = program if program.startswith("/") else ""
        if command:
            thread.process.command = tuple(map(unescaped, _ARGUMENT.findall(command[1])))
        thread.descriptors = table.copy()
        for number in thread.descriptors.closed_by_exec.copy():
            thread.descriptors.close(number)
    elif name == "chdir":
        found = texts(arguments)
        thread.folder.path = thread.folder.join(found[0]) if found else ""
        if not thread.folder.path.startswith("/"):
            thread.folder.path = ""
    elif name == "fchdir":
        told = descriptor(arguments)
        if told is not None and told[0] is not None:
            path = table.get(told[0], _path(told[1])).path
            thread.folder.path = path if path.startswith("/") else ""
    elif name == "getcwd":
        found = texts(arguments)
        if found:
            thread.folder.path = found[0]
    elif name == "ioctl" and "CLEX" in arguments:
        told = descriptor(arguments)
        if told is not None and told[0] is not None:
            table.put(told[0], table.get(told[0], _path(told[1])), "FIOCLEX" in arguments)
    elif name == "close_range":
        match = _RANGE.match(arguments)
        if match and "CLOSE_RANGE_CLOEXEC" not in arguments:
            last = 1 << 32 if match[2] == "~0U" else bounded_number(match[2])
            table.close_range(bounded_number(match[1]), last)
    elif name == "unshare" and "CLONE_FILES" in arguments:
        thread.descriptors = table.copy()


NO_FILE = "\0no file"
"""Path of sockets, pipes, devices and the like."""


class OpenFile:
    """An open file description, which descriptors share after dup and fork.

    `path`: ``""``: unknown.
    `position`: file position in bytes; None: unknown.
    `appends`: whether writes go to the end of the file.
    `under_way`: number of calls that use the position and have not returned.

    Examples
    --------
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
        """Make a path absolute as far as the directory is known."""
        base = self.path if base is None else base
        if not path:
            return base
        joined = path if path.startswith("/") else os.path.join(base, path) if base else path
        return os.path.normpath(joined)
