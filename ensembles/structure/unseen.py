"""I/O that is not recorded: inside shared libraries of a relinked program, or without calls."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ensembles.model.metadata import UnseenIo
from ensembles.model.units import bytes_text

_LEAST_BYTES = 1 << 20
_LEAST_SHARE = 0.1
_EXCLUDED_CALL_BYTES = 1 << 16
_MPI = re.compile(r"libmpi|libmca|libopen-")
_OF_IO = re.compile(
    r"lib(hdf5|h5|p?netcdf|adios|sio|gfortran|FortranRuntime|flang_rt|ifcore|nvf|stdc\+\+|c\+\+|sqlite|z\.|bz2)"
)
"""Libraries whose purpose is I/O, and run-time libraries of languages."""
_MOST_NAMED = 8
_LEAST_OUTSIDE = 8 << 20
"""Bytes without calls below which loading a program and libraries may be the reason."""
_RECORD_BYTES = 48
"""Size of a call in the recorder's mapped file (``struct ensio_event``)."""
_PREPARED_BYTES = 2 << 20
"""Pages of that file that are prepared ahead, for each process."""


def unseen_sentence(
    unseen: UnseenIo | None, *, calls: int, read: int, written: int, excluded_calls: int, nodes: int
) -> str:
    """Describe the bytes that a relinked program moved inside shared libraries, and the remedy.

    The kernel counts more than file I/O: what goes through pipes and sockets, and calls on excluded files.
    The sentence therefore needs a large difference, and libraries other than MPI's; on several nodes, where
    MPI may use sockets, it needs a run without any recorded I/O call.

    Parameters
    ----------
    unseen : UnseenIo or None
    calls : int
        Recorded I/O calls, without those that wait in MPI.
    read, written : int
        Recorded bytes.
    excluded_calls : int
        Calls on excluded files, each taken as 64 KiB.
    nodes : int
        Number of nodes.

    Returns
    -------
    str
        Empty if nothing, or little, is missing.

    Examples
    --------
    >>> from ensembles.model.metadata import UnseenIo
    >>> from ensembles.structure.unseen import unseen_sentence
    >>> unseen = UnseenIo(4_000, 80 << 20, ("libgfortran.so.5",))
    >>> unseen_sentence(unseen, calls=16, read=0, written=16 << 20, excluded_calls=0, nodes=1).split(":")[0]
    'the program wrote 80.0 MiB, and 16.0 MiB of them are recorded'
    """
    libraries = [name for name in unseen.libraries if not _MPI.match(name)] if unseen else []
    if unseen is None or not libraries:
        return ""
    slack = excluded_calls * _EXCLUDED_CALL_BYTES
    found = []
    for word, all_bytes, recorded in (
        ("wrote", unseen.bytes_written, written),
        ("read", unseen.bytes_read, read),
    ):
        missing = all_bytes - recorded - slack
        enough = max(_LEAST_BYTES, _LEAST_SHARE * all_bytes) if calls or word == "read" else 0
        if missing > enough and (nodes < 2 or not calls):
            found.append(f"{word} {bytes_text(all_bytes)}, and {bytes_text(recorded)} of them are recorded")
    if not found:
        return ""
    # A program loads dozens of libraries; those that may well have moved the bytes come first.
    named = [name for name in libraries if _OF_IO.match(name)] or libraries
    more = len(named) - _MOST_NAMED
    names = ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return (
        f"the program {'; it '.join(found)}: the recorder is linked into it and does not see what shared "
        f"libraries do (loaded: {names}); start it with ensio run, or link these libraries "
        "statically"
    )


def outside_of_calls_sentence(process: Mapping[str, int], calls: int = 0, processes: int = 0) -> str:
    """Describe what the processes moved from and to storage without calls of the kind of read and write.

    The kernel counts what it fetches from storage for a process, and what the process makes dirty, apart from
    what its calls return and take. Data of libaio and io_uring, and pages of mapped files, are in the former
    only. Read calls on cached files are in the latter only, so that the rest may be larger.

    Parameters
    ----------
    process : mapping of str to int
        Increases of the kernel's counters (`SurroundingsTotals.process`).
    calls, processes : int
        Calls that the recorder kept, and processes: its own mapped files are among the dirty pages.

    Returns
    -------
    str
        Empty unless 8 MiB or more were moved so, and no less than by calls.

    Examples
    --------
    >>> from ensembles.structure.unseen import outside_of_calls_sentence
    >>> process = {"read_by_calls": 4096, "read_bytes": 64 << 20, "written_by_calls": 4096, "write_bytes": 0}
    >>> outside_of_calls_sentence(process).split(",")[0]
    'the processes fetched 64.0 MiB from storage'
    """
    found = []
    own = calls * _RECORD_BYTES + processes * _PREPARED_BYTES
    for words, moved, by_calls in (
        (
            "fetched {} from storage, and read calls returned {} in all",
            process.get("read_bytes", 0),
            process.get("read_by_calls", 0),
        ),
        (
            "made {} of files dirty, and write calls took {} in all",
            process.get("write_bytes", 0) - process.get("cancelled_write_bytes", 0) - own,
            process.get("written_by_calls", 0),
        ),
    ):
        if moved - by_calls >= max(_LEAST_OUTSIDE, by_calls):
            found.append(words.format(bytes_text(moved), bytes_text(by_calls)))
    if not found:
        return ""
    return (
        f"the processes {'; they '.join(found)}: the rest went through asynchronous I/O of the kernel "
        "(libaio, io_uring), mapped files or read-ahead, which are not recorded"
    )
