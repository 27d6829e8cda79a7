"""Detect the format of a file or folder of another tool by its content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ensembles.files.untrusted import beginning_of
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.darshan import header
from ensembles.readers.foreign.dftracer.lines import dftracer_files, is_dftracer
from ensembles.readers.foreign.otf2 import source as otf2
from ensembles.readers.foreign.strace.lines import files_of

_STRACE = re.compile(
    rb"(?:\[pid +\d+\] +|\d+ +)? *(?:(?:\d+\.\d{3,9}|\d\d:\d\d:\d\d(?:\.\d+)?) )?"
    rb"(?:\(\+ +[\d.]+\) )?(?:\[ *[\da-f?]+\] )*"
    rb"(?:[a-z_]\w*\(.*(?: = (?:-?\d|0x|\?)| <unfinished \.\.\.>$)|<\.\.\. \w+ resumed>|\+\+\+ |--- SIG)"
)


def has_dftracer(path: str, beginning: bytes | None) -> bool:
    """Test whether a file, or a file in a folder, is a trace of DFTracer."""
    if beginning is not None:
        return is_dftracer(beginning)
    with suppress(OSError):
        return any(is_dftracer(beginning_of(file, 4096)) for file in dftracer_files(path))
    return False


def is_strace(beginning: bytes) -> bool:
    """Test whether the first bytes of a file are output of strace, with or without times.

    Examples
    --------
    >>> from ensembles.readers.foreign.detection import is_strace
    >>> is_strace(b'1234 1700000000.000000 close(3) = 0 <0.000010>\\n')
    True
    """
    lines = beginning.split(b"\n")[:-1] or [beginning]
    lines = [line for line in lines if line.strip() and not line.startswith((b"strace: ", b" > "))][:20]
    matching = [line for line in lines if _STRACE.match(line)]
    return bool(matching) and 2 * len(matching) > len(lines)


def has_strace(path: str, beginning: bytes | None) -> bool:
    """Test whether a file is output of strace, or all files in a folder that ``-ff`` may have named."""
    if beginning is not None:
        return is_strace(beginning)
    try:
        files = files_of(path)
    except OSError:
        return False
    return bool(files) and all(is_strace(beginning_of(file, 4096)) for file in files)


def read_strace(path: str) -> ForeignTrace:
    """Open output of strace."""
    from ensembles.readers.foreign.strace.source import StraceImport

    return StraceImport(path)


def read_dftracer(path: str) -> ForeignTrace:
    """Open a trace of DFTracer."""
    from ensembles.readers.foreign.dftracer.source import DFTracerImport

    return DFTracerImport(path)


def has_recorder(path: str, beginning: bytes | None) -> bool:
    """Test whether a folder is a trace of Recorder, whose metadata file lists the traced functions."""
    if beginning is not None:
        return False
    listed = beginning_of(os.path.join(path, "recorder.mt"), 1 << 14)
    return b"\nfopen\n" in listed and b"MPI_File_open" in listed


def read_recorder(path: str) -> ForeignTrace:
    """Open a trace of Recorder."""
    from ensembles.readers.foreign.recorder.source import RecorderImport

    return RecorderImport(path)


def has_darshan(path: str, beginning: bytes | None) -> bool:
    """Test whether a file is a Darshan log, or all files of a folder that are named so."""
    if beginning is not None:
        return header.log_version(beginning) is not None
    with suppress(OSError):
        logs = header.logs_of(path)
        return bool(logs) and all(header.log_version(beginning_of(log, 4096)) for log in logs)
    return False


def read_darshan(path: str) -> ForeignTrace:
    """Open a Darshan log, or those of a job in a folder."""
    from ensembles.readers.foreign.darshan.source import read

    return read(path)


class Format(NamedTuple):
    """A format of another tool."""

    name: str  # Name of the tool
    # Called with a path and the first `BEGINNING_BYTES` of the file (None for a folder). Returns whether the
    # path has this format. It must be fast, import no heavy module, and accept no other format.
    recognises: Callable[[str, bytes | None], bool]
    read: Callable[[str], ForeignTrace]  # Called with the path. Returns a `ForeignTrace`.


FORMATS: tuple[Format, ...] = (
    Format("Darshan", has_darshan, read_darshan),
    Format("DFTracer", has_dftracer, read_dftracer),
    Format("Recorder", has_recorder, read_recorder),
    Format("OTF2", otf2.recognises, otf2.read),
    Format("strace", has_strace, read_strace),
)
"""All formats, in the order in which they are tested."""


def detect_format(path: str, beginning: bytes | None) -> Format | None:
    """Detect the format of a file or folder."""
    return next((known for known in FORMATS if known.recognises(path, beginning)), None)
