"""The files that a run found: which there were, and how long they have to be."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ensembles.workloads.recorded.accesses import (
    ACCESS_WRITE,
    OPEN,
    READ,
    SEEK,
    WRITE,
    Accesses,
    running_maximum,
)

_OF_STREAMS = ("stdio.fwrite", "stdio.fprintf", "stdio.fputc", "stdio.__overflow")
_AT_POSITION = ("posix.write", "posix.writev", *_OF_STREAMS)


@dataclass(frozen=True)
class FilesBefore:
    """What has to be there before a run is made again."""

    sizes: Mapping[int, int]  # Bytes of each file that was there, by its number
    folders: tuple[str, ...]  # Absolute paths of the folders that were there
    ends: Mapping[int, int]  # Largest end of each file

    @property
    def needed_bytes(self) -> int:
        """Space that all files take at most."""
        return sum(self.ends.values())


def files_before(found: Accesses) -> FilesBefore:
    """Find what the calls need: files that are read before they are written, appended to, or looked up."""
    found = found.taken(found.file > 0)
    order = np.lexsort((found.start, found.file))
    file, op, moved, offset = (each[order] for each in (found.file, found.op, found.moved, found.offset))
    numbers = np.unique(file)
    group = np.searchsorted(numbers, file)
    succeeds = moved >= 0
    end = np.where((op == WRITE) & succeeds & (offset >= 0), offset + moved, 0)
    before = np.r_[0, running_maximum(group, end)[:-1]]
    before[np.searchsorted(group, np.arange(len(numbers)))] = 0
    is_read = (op == READ) & (moved > 0) & (offset >= 0) & (offset + moved > before)
    is_appended = first_after_open(found)[order] & (offset > before)
    needed = np.where(is_read, offset + moved, np.where(is_appended, offset, 0))
    most, ends = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    np.maximum.at(most, group, needed)
    np.maximum.at(ends, group, np.maximum(end, needed))
    seen, at = np.unique(group[succeeds], return_index=True)
    was_there = np.zeros(len(numbers), bool)
    was_there[seen] = ~_makes(found)[order][succeeds][at]
    paths = [found.files[number] for number in numbers.tolist()]
    folders = _folders(found, paths)
    made = {found.files[n] for n in np.unique(found.file[found.is_call("posix.mkdir") & (found.moved >= 0)])}
    rows = zip(numbers.tolist(), paths, was_there.tolist(), most.tolist(), strict=True)
    return FilesBefore(
        sizes={n: size for n, path, was, size in rows if (was or size) and path not in folders | made},
        folders=tuple(sorted(folders - made)),
        ends=dict(zip(numbers.tolist(), ends.tolist(), strict=True)),
    )


def _makes(found: Accesses) -> np.ndarray:
    """Whether calls may make their file: a run that makes it need not have found it."""
    writes = (found.op == OPEN) & (found.access & ACCESS_WRITE > 0)
    makes: np.ndarray = writes | found.is_call("posix.creat", "posix.mkdir", "mpiio.open")
    return makes


def first_after_open(found: Accesses) -> np.ndarray:
    """Whether calls write at the position of a file that was opened and not sought in since."""
    order = np.lexsort((found.slot, found.file, found.task))
    op = found.op[order]
    places = np.arange(len(order))
    last_open = np.maximum.accumulate(np.where(op == OPEN, places, -1))
    last_other = np.maximum.accumulate(np.where(np.isin(op, [READ, WRITE, SEEK]), places, -1))
    before = np.r_[-1, last_other[:-1]]
    same = found.file[order] == found.file[order][last_open]
    first = np.zeros(len(order), bool)
    first[order] = (last_open >= 0) & same & (before < last_open)
    first &= found.is_call(*_AT_POSITION)
    return first


def _folders(found: Accesses, paths: Iterable[str]) -> set[str]:
    """Return the folders of all paths, and those whose names are read."""
    read = np.unique(found.file[found.is_call("posix.opendir", "posix.rmdir") & (found.moved >= 0)])
    left = {os.path.dirname(path) for path in paths} | {found.files[number] for number in read.tolist()}
    folders: set[str] = set()
    while left:
        folders |= left
        left = {os.path.dirname(path) for path in left} - folders
    return folders - {""}
