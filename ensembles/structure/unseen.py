"""I/O that is not recorded: what the kernel counted in the processes, less what recorded calls explain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ensembles.model.calls import STORAGE
from ensembles.model.events import Call
from ensembles.model.levels import A_TENTH
from ensembles.model.metadata import LEAST_BYTES, KernelBytes
from ensembles.model.units import MOST_NAMED, STRACE, bytes_text, count_text

_LEAST_SHARE = A_TENTH
_LEAST_FETCHED = 8 << 20
"""Bytes below which loading a program and its libraries may be the reason."""
_MPI = re.compile(r"libmpi|libmca|libopen-")
_OF_IO = re.compile(
    r"lib(hdf5|h5|p?netcdf|adios|sio|gfortran|FortranRuntime|flang_rt|ifcore|nvf|stdc\+\+|c\+\+|sqlite|z\.|bz2)"
)
"""Libraries whose purpose is I/O, and run-time libraries of languages."""
_OTHER_CALLS = "raw system calls or streams of wide characters"
_PAGE_BYTES = 4096
_INODE_BYTES = 512
HIDING = frozenset(("io_uring_enter", "io_submit"))
"""System calls in the text of another tool that does not show what they read and write."""
BEYOND_CALLS = (
    "which no recorded call shows: use read and write calls if the program has such a setting, or record "
    "tracepoints of the kernel (perf record -e 'io_uring:*,block:*')"
)
"""What to do about I/O that goes through no call of its program."""
_CHANGES = re.compile(r"f?chmod|f?truncate|(posix_)?fallocate|(sym|un)?link|re(name|move)|(mk|rm)dir")
"""Calls that change inodes."""
_BUFFER_BYTES = 8192
"""A stream reads up to a buffer beyond what its calls return, after each opening and each seek."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """I/O that the kernel counted and no recorded call explains."""

    # read_bytes, written_bytes: Moved by system calls
    read_bytes: int
    written_bytes: int
    # fetched_bytes, dirtied_bytes: Fetched from storage, and to be sent there, without read and write calls:
    # by mapped files, libaio, io_uring
    fetched_bytes: int
    dirtied_bytes: int
    sentence: str  # What was not seen, why, and what to do
    is_much: bool  # Whether the times of the recorded calls say little about the I/O of the run
    hides_time: bool  # Whether its time is in no recorded call, so that the share of I/O has no upper bound

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes, without the sentence, which is among the notes."""
        return {key: value for key, value in asdict(self).items() if key != "sentence"}


def find_unseen(
    kernel: KernelBytes,
    calls: Mapping[Call, tuple[int, int]],
    nodes: int = 1,
    processes: int = 1,
    files: int = 1 << 62,
) -> Unseen | None:
    """Compare what the kernel counted with what was recorded.

    A recorded write makes the pages dirty that it touches, so that each call explains a page more than
    its bytes; an inode becomes dirty for each file, however often it is opened. Bytes that may have gone
    to a pipe count only if files became dirty; where not even the recorded writes are among what became
    dirty, as in many small processes and on tmpfs, that is not known, and they are not much. Neither are
    those that may have come from a pipe. What is fetched from storage may be read-ahead, or the loading
    of the program: it counts only where something was seen that fetches without calls. Requests of
    io_uring and libaio hide their time, however few bytes they move.

    None: what is not explained is less than 512 KiB. Of bytes read, half of that is what each process may
    read at its start. Of bytes made dirty or fetched, it may also be less than 10 % of what the kernel
    counted. A page that was written by calls, and a tenth of all, counts where the recorder sees all
    libraries: programs write nothing at their start.
    """
    linked = "linked" in kernel.facts
    libraries = [name for name in kernel.libraries if not _MPI.match(name)]
    has_io = any(call.op in ("read", "write") for call in calls)
    comparable = not linked or nodes < 2 or not has_io
    slack = _BUFFER_BYTES * sum(
        count for call, (count, _) in calls.items() if call.layer == "stdio" and call.op in ("open", "seek")
    )
    recorded = {op: _recorded(calls, op, linked) for op in ("read", "write")}
    read = kernel.read - recorded["read"] - kernel.excluded_read - slack
    written = kernel.written - recorded["write"] - kernel.excluded_written
    read = read if comparable and read >= LEAST_BYTES // 2 * (processes + 1) else 0
    least: float = _PAGE_BYTES
    if linked:
        least = 1 if libraries and not has_io else LEAST_BYTES
    least = max(least, min(LEAST_BYTES * processes, _LEAST_SHARE * kernel.written))
    written = written if comparable and written >= least else 0
    inodes = sum(n for call, (n, _) in calls.items() if call.op == "open" or _CHANGES.match(call.name))
    edges = sum(n * _dirty_bytes(call) for call, (n, _) in calls.items()) + min(inodes, files) * _INODE_BYTES
    of_files = kernel.dirtied - recorded["write"] - edges
    perhaps_piped = "piped-out" in kernel.facts and of_files < LEAST_BYTES <= written
    if perhaps_piped and kernel.dirtied >= recorded["write"]:
        written = 0  # on pipes
    maps = sum(count for call, (count, _) in calls.items() if call.name == "mmap")
    ways: list[str] = [name for name in ("libaio", "io_uring") if name in kernel.facts]
    ways += [f"mapped files ({count_text(maps, 'call')} of mmap)"] if maps else []
    explained = max(recorded["write"] + kernel.excluded_written, kernel.written) + edges
    # A small write makes large folios dirty as a whole. Reading ahead makes them.
    dirtied = kernel.dirtied - explained - (0 if ways else kernel.read)
    dirtied = dirtied if _is_considerable(dirtied, kernel.dirtied) else 0
    fetched = kernel.fetched - max(recorded["read"] + kernel.excluded_read, kernel.read)
    fetched = fetched if ways and _is_considerable(fetched, kernel.fetched, _LEAST_FETCHED) else 0
    parts = []
    by_calls = [
        f"{bytes_text(all_bytes)} {word} by calls, and {bytes_text(recorded[op])} are recorded"
        for word, op, missing, all_bytes in (
            ("written", "write", written, kernel.written),
            ("read", "read", read, kernel.read),
        )
        if missing
    ]
    scans = read > 0 and not written and any(call.name == "fscanf" for call in calls)
    if by_calls:
        parts.append(
            f"the kernel counted {', and '.join(by_calls)}: "
            f"{_why(kernel, linked, libraries, scans, perhaps_piped and written > 0)}"
        )
    if dirtied or fetched:
        moved = [f"wrote at least {bytes_text(dirtied)} to files"] if dirtied else []
        moved += [f"fetched {bytes_text(fetched)} from storage"] if fetched else []
        advice = f": {_why(kernel, linked, libraries, False)}" * (not parts)
        how = f"through {' and '.join(ways)}, {BEYOND_CALLS}" if ways else f"which is not recorded{advice}"
        parts.append(f"the processes {' and '.join(moved)} without read and write calls, {how}")
    hidden = {call.name: count for call, (count, _) in calls.items() if call.name in HIDING and count}
    by_kernel = [name for name in ways if name in ("libaio", "io_uring")]
    if hidden or "mapped" in kernel.facts:
        hiding = f"{count_text(sum(hidden.values()), 'call')} of {' and '.join(sorted(hidden))}"
        hiding = hiding if hidden else "accesses to mapped files"
        parts.append(f"{hiding} may have moved bytes of files, {BEYOND_CALLS}")
    elif by_kernel and not (dirtied or fetched):
        parts.append(
            f"requests of {' and '.join(by_kernel)} moved unknown bytes in an unknown time, {BEYOND_CALLS}"
        )
    elif not parts and "unchecked" in kernel.facts:
        parts.append(f"the bytes of a process cannot be checked: {_why(kernel, linked, libraries, False)}")
    elif not parts:
        return None
    read_files = read and not scans and "piped-in" not in kernel.facts
    is_much = bool(
        (written and not perhaps_piped)
        or dirtied
        or read_files
        or (fetched and by_kernel)
        or hidden
        or not {"unchecked", "mapped"}.isdisjoint(kernel.facts)
    )
    hides_time = is_much or fetched > 0 or bool(by_kernel)
    return Unseen(read, written, fetched, dirtied, "; ".join(parts), is_much, hides_time)


def _is_considerable(missing: int, of: int, least: int = LEAST_BYTES) -> bool:
    return missing >= max(least, _LEAST_SHARE * of)


def _recorded(calls: Mapping[Call, tuple[int, int]], op: str, linked: bool) -> int:
    """Return the bytes of the recorded calls on storage, or of all layers where those below are unseen."""
    return sum(
        moved for call, (_, moved) in calls.items() if call.op == op and (linked or call.layer in STORAGE)
    )


def _dirty_bytes(call: Call) -> int:
    """Return what a call may make dirty besides its bytes: the page at the edge of a write."""
    if call.layer == "stdio":  # writes when its buffer is flushed
        return _PAGE_BYTES if call.op in ("close", "sync", "seek") else 0
    return _PAGE_BYTES if call.op == "write" else 0


def _why(
    kernel: KernelBytes, linked: bool, libraries: list[str], scans: bool, piped_out: bool = False
) -> str:
    if linked and libraries:
        # A program loads dozens of libraries; those that may well have moved the bytes come first.
        named = [name for name in libraries if _OF_IO.match(name)] or libraries
        more = len(named) - MOST_NAMED
        names = ", ".join(named[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        return (
            f"the rest went through {_OTHER_CALLS} or shared libraries (loaded: {names}), which a linked "
            "recorder does not see: start it with ensio run, or link these libraries statically"
        )
    if kernel.unrecorded:
        return kernel.unrecorded[0]
    if "go" in kernel.facts:
        return f"the program is written in Go, whose I/O does not go through the C library; {STRACE}"
    if scans:
        return "the bytes of fscanf are not counted"
    piped = "may have come through a pipe, or " if "piped-in" in kernel.facts else ""
    piped = "may have gone through a pipe, or " if piped_out else piped
    ways = "inline stdio (getc_unlocked, putc_unlocked)" if "inline-stdio" in kernel.facts else _OTHER_CALLS
    ways += " or child programs that are not recorded" * ("children" in kernel.facts)
    return f"the rest {piped}went through {ways}; {STRACE}"
