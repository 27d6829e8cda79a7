"""Remedies that change where bytes lie, and which task moves them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.workloads.recorded.accesses import (
    COLUMN_NAMES,
    OPEN,
    READ,
    SEEK,
    WRITE,
    Accesses,
    sought,
)
from ensembles.workloads.recorded.costs import epochs

_OF_SIZE = ("posix.ftruncate", "posix.truncate", "posix.fallocate", "mpiio.set_size")


def align(found: Accesses, size: int) -> Accesses:
    """Let each record that is written begin at the next multiple of a size, in the same order.

    Records are the distinct ranges of the writes to a file. Reads of them move along.
    """
    writes = (found.op == WRITE) & (found.moved > 0) & (found.offset >= 0)
    rows = np.column_stack([each[writes] for each in (found.file, found.offset, found.offset + found.moved)])
    if not len(rows):
        return found
    file, begin, end = np.unique(rows, axis=0).T
    same = file[1:] == file[:-1]
    if np.any(same & (begin[1:] < end[:-1])):
        raise EnsioError("align: the run writes ranges that overlap, which cannot be records")
    _, group = np.unique(file, return_inverse=True)
    padded, aligned = (-(-each // size) * size for each in (end - begin, begin))
    room = np.cumsum(padded) - padded
    room -= room[np.searchsorted(group, group)]
    # Each record begins where it did, or where the one before it ends.
    shift = int((aligned - room).max() - (aligned - room).min()) + 1
    placed = room + np.maximum.accumulate(aligned - room + group * shift) - group * shift
    far = int(max(end.max(), found.offset.max())) + 1
    files_from = found.file.astype(np.int64) * far
    moves = np.isin(found.op, [READ, WRITE]) & (found.moved > 0) & np.isin(found.file, file)
    at = np.searchsorted(file * far + begin, files_from + found.offset, side="right") - 1
    at = np.maximum(at, 0)
    inside = (file[at] == found.file) & (found.offset + found.moved <= end[at])
    if np.any(moves & ~inside):
        raise EnsioError("align: the run reads ranges of a file that are not records which it writes")
    by_stream = np.array([name.startswith("stdio.") for name in found.names])[found.call]
    if np.any(moves & by_stream):
        raise EnsioError("align: the buffer of a stream decides where its bytes are written")
    offset = np.where(moves, placed[at] + found.offset - begin[at], found.offset)
    of_size = found.is_call(*_OF_SIZE)
    last = np.searchsorted(file * far + end, files_from + np.minimum(found.bytes, far - 1), "right") - 1
    grows = of_size & (last >= 0) & (file[np.maximum(last, 0)] == found.file)
    bytes_ = np.where(grows, np.maximum((placed + end - begin)[last], found.bytes), found.bytes)
    seeks = (found.op == SEEK) & np.isin(found.file, file)
    moved = replace(found, offset=np.where(seeks, -1, offset), bytes=bytes_, source=found.offset)
    altered = moves & (offset != found.offset)
    return replace(moved, offset=sought(moved), duration=np.where(altered, -1, found.duration))


def gather(found: Accesses, writers: int) -> Accesses:
    """Let a few tasks make the writes to shared files for all."""
    group = np.arange(found.tasks) * writers // found.tasks
    leader = np.searchsorted(group, group)
    which = _on_shared(found) & (found.op == WRITE)
    dealt = _dealt(found, which, leader[found.task])
    note = f"the bytes do not travel to the {writers} writers: messages would take longer"
    return replace(dealt, notes=(*dealt.notes, note))


def even(found: Accesses) -> Accesses:
    """Let all tasks move the same number of bytes of shared files: contiguous parts of whole calls."""
    which = np.flatnonzero(_on_shared(found))
    order = which[np.lexsort((found.offset[which], found.op[which], found.file[which], epochs(found)[which]))]
    keys = [each[order] for each in (epochs(found), found.file, found.op)]
    begins = np.r_[True, np.any([key[1:] != key[:-1] for key in keys], axis=0)][: len(order)]
    group = np.cumsum(begins) - 1
    total = np.bincount(group, found.moved[order])
    passed = np.cumsum(found.moved[order])
    passed -= (passed - found.moved[order])[begins][group]
    owner = found.task.copy()
    middle = passed - found.moved[order] / 2
    owner[order] = np.minimum(middle * found.tasks / total[group], found.tasks - 1).astype(owner.dtype)
    chosen = np.zeros(len(found), bool)
    chosen[which] = True
    return _dealt(found, chosen, owner)


def _on_shared(found: Accesses) -> np.ndarray:
    """Find transfers that any task may make: independent ones, in files that all tasks have open."""
    opens = (found.op == OPEN) & (found.moved >= 0)
    users = found.users(opens)
    is_independent = np.array(
        [name.startswith(("posix.", "mpiio.")) and not name.endswith("_all") for name in found.names]
    )
    moves = np.isin(found.op, [READ, WRITE]) & (found.moved > 0) & (found.offset >= 0)
    chosen: np.ndarray = moves & is_independent[found.call] & (users[found.file] == found.tasks)
    if found.tasks == 1 or not chosen.any():
        raise EnsioError("the run has no file that all of its tasks open and move bytes of independently")
    return chosen


def _dealt(found: Accesses, which: np.ndarray, task: np.ndarray) -> Accesses:
    """Give some transfers to other tasks, in the order of their offsets, once these have opened the file."""
    stays = found.taken(~which)
    moved = {name: getattr(found, name)[which] for name in (*COLUMN_NAMES, "gap")}
    moved["task"], moved["gap"] = task[which].astype(found.task.dtype), np.zeros(int(which.sum()), np.int64)
    both = {name: np.r_[getattr(stays, name), column] for name, column in moved.items()}
    is_moved = np.r_[np.zeros(len(stays), bool), np.ones(int(which.sum()), bool)]
    epoch = np.r_[epochs(stays), epochs(found)[which]]
    is_open = np.isin(both["call"], [n for n, op in enumerate(found.ops) if op == OPEN]) & ~is_moved
    # The last open of the file by the task in this part of the run, else the beginning of the part.
    key = (epoch * found.tasks + both["task"]) * len(found.files) + both["file"]
    known, place = np.unique(key, return_inverse=True)
    latest = np.full(len(known), -1, np.int64)
    np.maximum.at(latest, place[is_open], both["start"][is_open])
    both["start"] = np.where(is_moved, latest[place], both["start"])
    meets = both["call"] == (found.names.index("mpi.barrier") if "mpi.barrier" in found.names else -1)
    order = np.lexsort(
        (np.where(is_moved, both["offset"], 0), is_moved, both["start"], meets, epoch, both["task"])
    )
    return replace(found, **{name: column[order] for name, column in both.items()})
