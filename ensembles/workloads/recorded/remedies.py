"""Remedies: what a program could do otherwise, as functions of the columns of its calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.filters import parse_size
from ensembles.workloads.recorded.accesses import (
    ACCESS_WRITE,
    CLOSE,
    COLUMN_NAMES,
    OPEN,
    READ,
    SEEK,
    SYNC,
    WRITE,
    Accesses,
    sought,
)
from ensembles.workloads.recorded.costs import epochs
from ensembles.workloads.recorded.plan_of_run import flags_of_opens

_SETS_SIZE = ("posix.ftruncate", "posix.truncate", "posix.fallocate", "mpiio.set_size")


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
    of_size = found.is_call(*_SETS_SIZE)
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


_LOOKUPS = ("posix.stat", "posix.lstat", "posix.fstatat", "posix.access", "posix.readlink", "posix.realpath")
_CHANGES_PATH = ("posix.unlink", "posix.unlinkat", "posix.remove", "posix.rename", "posix.truncate")


@dataclass(frozen=True)
class Remedy:
    """A change of the calls of a run."""

    name: str  # As it is asked for, such as ``join=1MiB``
    change: Callable[[Accesses], Accesses]  # Changes the columns

    def apply(self, found: Accesses) -> Accesses:
        """Change the calls, or raise EnsioError: nothing changes, or other bytes would be written."""
        changed = self.change(found)
        if self.name != "none" and np.array_equal(_made(found), _made(changed)):
            raise EnsioError(f"{self.name} changes no call of this run")
        as_before = changed if changed.source is None else replace(changed, offset=changed.source)
        if not np.array_equal(written(found), written(as_before)):
            raise EnsioError(f"{self.name} would write other bytes of this run than its program did")
        return changed


def changed_names(before: Accesses, after: Accesses) -> tuple[str, ...]:
    """Return the names of the calls that a remedy changes; all, if it changes the order only, or nothing."""
    names = before.with_used_names().names
    return tuple(n for n in names if not np.array_equal(_made(before, n), _made(after, n))) or names


def _made(found: Accesses, *names: str) -> np.ndarray:
    which = found.is_call(*(names or found.names))
    return np.array([found.task, found.offset, found.bytes])[:, which]


def remedy_named(text: str) -> Remedy:
    """Return the remedy of a text such as ``join=1MiB``, or raise EnsioError."""
    name, sign, value = text.partition("=")
    name, value = (f"{name}=every", value[6:]) if value.startswith("every:") else (name, value)
    if text in _PLAIN:
        return Remedy(text, _PLAIN[text])
    if not sign or name not in _OF_NUMBER:
        raise EnsioError(f'there is no remedy "{text}": see --with in ensio try --help')
    change, least = _OF_NUMBER[name]
    if name not in _OF_SIZE and not (value.isascii() and value.isdigit() and len(value) < 10):
        raise EnsioError(f'"{text}": "{value[:20]}" is not a number')
    number = parse_size(value)
    if number < least:
        raise EnsioError(f'"{text}": the number must be at least {least}')
    return Remedy(text, lambda found: change(found, number))


def by_file(found: Accesses) -> tuple[np.ndarray, np.ndarray]:
    """Order calls by task, file and start; return the places, and whether one begins the calls on a file."""
    order = np.lexsort((found.slot, found.file, found.task))
    keys = [column[order] for column in (found.task, found.file, found.slot)]
    begins = np.r_[True, np.any([key[1:] != key[:-1] for key in keys], axis=0)]
    return order, begins


def written(found: Accesses) -> np.ndarray:
    """Return the extents of files that are written, joined: rows of file, begin and end."""
    writes = (found.op == WRITE) & (found.moved > 0) & (found.offset >= 0)
    order = np.lexsort((found.offset[writes], found.file[writes]))
    file, begin = found.file[writes][order], found.offset[writes][order]
    end = begin + found.moved[writes][order]
    if not len(file):
        return np.empty((0, 3), np.int64)
    known, place = np.unique(end, return_inverse=True)
    shift = np.searchsorted(np.unique(file), file) * len(known)
    reach = known[np.maximum.accumulate(place + shift) - shift]
    first = np.r_[True, (file[1:] != file[:-1]) | (begin[1:] > reach[:-1])]
    last = np.r_[np.flatnonzero(first)[1:], len(file)] - 1
    return np.column_stack([file[first], begin[first], reach[last]])


def join(found: Accesses, most_bytes: int) -> Accesses:
    """Join successive transfers of adjacent bytes, such as a buffer does, up to a size.

    A write is made when the buffer is full, a read when its first byte is needed; barriers and all other
    calls on the file but seeks end a run of transfers. A stream whose position is not known goes on where it
    was, unless it seeks.
    """
    order, _ = by_file(found)
    places = np.flatnonzero(found.op[order] != SEEK)
    rest = order[places]
    op, epoch = found.op[rest], epochs(found)[rest]
    is_lost = (found.offset[rest] < 0) & _by_stream(found)[rest]
    moves = np.isin(op, [READ, WRITE]) & (found.moved[rest] >= 0) & ((found.offset[rest] >= 0) | is_lost)
    goes_on = moves[1:] & moves[:-1] & (epoch[1:] == epoch[:-1])
    for column in (found.task, found.file, found.slot, found.call):
        goes_on &= column[rest][1:] == column[rest][:-1]
    goes_on &= found.moved[rest][:-1] == found.bytes[rest][:-1]
    is_next = found.offset[rest][1:] == (found.offset + found.moved)[rest][:-1]
    goes_on &= np.where(is_lost[1:], is_lost[:-1] & (np.diff(places) == 1), is_next)
    run = np.cumsum(np.r_[True, ~goes_on]) - 1
    total = np.cumsum(found.bytes[rest])
    first_of_run = np.flatnonzero(np.r_[True, ~goes_on])
    in_run = total - (total - found.bytes[rest])[first_of_run][run]
    part = np.where(moves, np.maximum(in_run - 1, 0) // most_bytes, 0)
    first = np.r_[True, (run[1:] != run[:-1]) | (part[1:] != part[:-1])]
    group = np.cumsum(first) - 1
    last = np.r_[first[1:], True]
    columns = {name: getattr(found, name).copy() for name in ("offset", "bytes", "moved", "duration")}
    columns["duration"][rest] = np.where(np.bincount(group)[group] > 1, -1, found.duration[rest])
    at = np.where(op == WRITE, last, first)
    for name in ("bytes", "moved"):
        sums = np.bincount(group, columns[name][rest]).astype(np.int64)
        columns[name][rest] = np.where(moves, sums[group], columns[name][rest])
    columns["offset"][rest] = np.where(
        moves, found.offset[rest][np.flatnonzero(first)][group], found.offset[rest]
    )
    stays = np.ones(len(found), bool)
    stays[rest] = at | ~moves
    begins_one = np.ones(len(found), bool)
    begins_one[rest] = first | ~moves
    stays &= (found.op != SEEK) | begins_one[_next_on_file(found, order)]
    return found.taken(stays, **columns)


def _by_stream(found: Accesses) -> np.ndarray:
    """Whether calls are of streams."""
    which: np.ndarray = np.array([name.startswith("stdio.") for name in found.names])[found.call]
    return which


def _next_on_file(found: Accesses, order: np.ndarray) -> np.ndarray:
    """Return for each call the next one on its file that does not seek, else itself."""
    places = np.where(found.op[order] != SEEK, np.arange(len(order)), len(order) - 1)
    later = order[np.minimum.accumulate(places[::-1])[::-1]]
    following = np.empty(len(order), np.int64)
    following[order] = later
    same = (found.file[following] == found.file) & (found.task[following] == found.task)
    return np.where(same, following, np.arange(len(order)))


def sync_less(found: Accesses, every: int = 0) -> Accesses:
    """Leave out syncs of a file but the last of each task, and each n-th."""
    order, _ = by_file(found)
    syncs = order[(found.op[order] == SYNC) & (found.file[order] > 0)]
    if not len(syncs):
        return found
    key = found.pair[syncs]
    begins = np.r_[True, key[1:] != key[:-1]]
    number = np.arange(len(syncs)) - np.flatnonzero(begins)[np.cumsum(begins) - 1] + 1
    stays = np.ones(len(found), bool)
    stays[syncs] = np.r_[begins[1:], True] | ((number % every == 0) if every else False)
    return found.taken(stays)


def keep_open(found: Accesses) -> Accesses:
    """Open each file once in each task, and close it after its last call.

    Files that are emptied by a later open, removed or renamed in between, or opened both as a descriptor and
    as a stream, stay as they are. What a program asks about a file right after opening it goes with the open.
    """
    order, _ = by_file(found)
    key = found.pair[order]
    op, succeeds = found.op[order], found.moved[order] >= 0
    begins = np.r_[True, key[1:] != key[:-1]]
    group = np.cumsum(begins) - 1
    opens, closes = (op == OPEN) & succeeds, (op == CLOSE) & succeeds
    opens &= ~found.is_call("stdio.fdopen", "posix.opendir")[order]
    closes &= ~found.is_call("posix.closedir")[order]
    place = np.arange(len(order))
    first_open, last_close = np.full(group[-1] + 1, len(order)), np.full(group[-1] + 1, -1)
    np.minimum.at(first_open, group[opens], place[opens])
    np.maximum.at(last_close, group[closes], place[closes])
    later = opens & (place > first_open[group])
    empties = later & (flags_of_opens(found)[order] & os.O_TRUNC > 0)
    changes = found.is_call(*_CHANGES_PATH)[order] & (place > first_open[group]) & (place < last_close[group])
    changes |= empties | found.is_call("stdio.fdopen")[order] | (found.slot[order] > 0)
    stays_as_is = np.zeros(group[-1] + 1, bool)
    stays_as_is[group[changes]] = True
    streams = np.bincount(group, opens & _by_stream(found)[order])
    stays_as_is |= (streams > 0) & (streams < np.bincount(group, opens))  # a descriptor and a stream
    after_open = np.maximum.accumulate(np.where(later, place, -1))
    after_data = np.maximum.accumulate(np.where(np.isin(op, [READ, WRITE]) | begins, place, -1))
    asks = (after_open > after_data) & found.is_call("posix.fstat", "posix.lseek", "stdio.ftell")[order]
    left_out = later | (closes & (place < last_close[group])) | asks
    left_out &= ~stays_as_is[group] & (found.file[order] > 0)
    access = np.zeros(group[-1] + 1, np.int64)
    np.bitwise_or.at(access, group[opens], found.access[order][opens])
    columns = found.access.copy()
    is_first = opens & (place == first_open[group]) & ~stays_as_is[group]
    columns[order[is_first]] = access[group[is_first]]
    stays = np.ones(len(found), bool)
    stays[order[left_out]] = False
    return found.taken(stays, access=columns)


def once(found: Accesses) -> Accesses:
    """Look each path up once in each task, and read the same bytes once, until the file is changed."""
    changes = (found.op == WRITE) | found.is_call(*_CHANGES_PATH, "posix.mkdir", "posix.rmdir")
    changes |= (found.op == OPEN) & (found.access & ACCESS_WRITE > 0) & (found.moved >= 0)
    by_time = np.lexsort((found.start, found.file))
    version = np.empty(len(found), np.int64)
    version[by_time] = np.cumsum(changes[by_time])
    asks = found.is_call(*_LOOKUPS) | (
        (found.op == READ) & (found.moved > 0) & (found.offset >= 0) & ~_by_stream(found)
    )
    rows = np.column_stack(
        [each[asks] for each in (found.task, found.file, found.call, found.offset, found.bytes)]
    )
    _, first = np.unique(np.column_stack([rows, version[asks]]), axis=0, return_index=True)
    stays = ~asks
    stays[np.flatnonzero(asks)[first]] = True
    return found.taken(stays)


def split(found: Accesses, parts: int) -> Accesses:
    """Make several calls of each transfer, of equal sizes but for the last."""
    moves = np.isin(found.op, [READ, WRITE]) & (found.moved == found.bytes) & (found.offset >= 0)
    moves &= found.bytes >= parts
    times = np.where(moves, parts, 1)
    which = np.repeat(np.arange(len(found)), times)
    number = np.arange(len(which)) - (np.cumsum(times) - times)[which]
    share = (found.bytes // np.maximum(times, 1))[which]
    is_last = number == times[which] - 1
    size = np.where(is_last, found.bytes[which] - share * number, share)
    is_moved = moves[which]
    return replace(
        found.taken(which),
        offset=np.where(is_moved, found.offset[which] + share * number, found.offset[which]),
        duration=np.where(is_moved, -1, found.duration[which]),
        bytes=size,
        moved=np.where(is_moved, size, found.moved[which]),
    )


_PLAIN = {
    "none": lambda found: found,
    "sync=end": sync_less,
    "keep-open": keep_open,
    "once": once,
    "even": even,
}
_OF_SIZE = ("join", "align")
_OF_NUMBER = {
    "join": (join, 1),
    "align": (align, 2),
    "sync=every": (sync_less, 1),
    "split": (split, 2),
    "aggregate": (lambda found, writers: join(gather(found, writers), 16 << 20), 1),
}
"""Changes by name, and their least number."""
