"""Detect which reader takes a file or folder that ensio did not write, by its content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ensembles.model.errors import EnsioError
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.darshan import header
from ensembles.readers.foreign.dftracer.files import dftracer_files, is_dftracer
from ensembles.readers.foreign.otf2 import source as otf2

_STRACE = re.compile(
    rb"(?:\[pid +\d+\] +|\d+ +)?(?:(?:\d+\.\d{3,9}|\d\d:\d\d:\d\d(?:\.\d+)?) )?"
    rb"(?:[a-z_]\w*\(.*(?: = (?:-?\d|0x|\?)| <unfinished \.\.\.>$)|<\.\.\. \w+ resumed>|\+\+\+ |--- SIG)"
)


def has_dftracer(path: str, beginning: bytes | None) -> bool:
    """Whether a file, or one of those in a folder, is DFTracer's."""
    if beginning is not None:
        return is_dftracer(beginning)
    try:
        for file in dftracer_files(path):
            with open(file, "rb") as opened:
                if is_dftracer(opened.read(4096)):
                    return True
    except OSError:
        pass
    return False


def is_strace(beginning: bytes) -> bool:
    """Whether the first bytes of a file are strace's, with times or without."""
    lines = beginning.split(b"\n")[:-1] or [beginning]
    lines = [line for line in lines[:20] if line.strip() and not line.startswith(b"strace: ")]
    matching = [line for line in lines if _STRACE.match(line)]
    return bool(matching) and 2 * len(matching) > len(lines)


def has_strace(path: str, beginning: bytes | None) -> bool:
    """Whether a file is strace's."""
    return beginning is not None and is_strace(beginning)


def read_strace(path: str) -> ForeignTrace:
    """The text of strace."""
    from ensembles.readers.foreign.strace.source import StraceImport

    return StraceImport(path)


def read_dftracer(path: str) -> ForeignTrace:
    """A trace of DFTracer."""
    from ensembles.readers.foreign.dftracer.source import DFTracerImport

    return DFTracerImport(path)


def _beginning_of(path: str, length: int) -> bytes:
    """The first bytes of a file; of a pipe, which may never come, and of what cannot be read: none."""
    try:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return file.read(length)
    except OSError:
        pass
    return b""


def has_recorder(path: str, beginning: bytes | None) -> bool:
    """Whether a folder is a trace of Recorder: its file of metadata lists the functions that it traces."""
    if beginning is not None:
        return False
    listed = _beginning_of(os.path.join(path, "recorder.mt"), 1 << 14)
    return b"\nfopen\n" in listed and b"MPI_File_open" in listed


def read_recorder(path: str) -> ForeignTrace:
    """A trace of Recorder, which cannot be read.

    Raises
    ------
    EnsioError
        Always.
    """
    match = re.match(rb"\d+\.\d+(\.\d+)?", _beginning_of(os.path.join(path, "VERSION"), 32))
    version = f" {match[0].decode()}" if match else ""
    raise EnsioError(
        f"{path} is a trace of Recorder{version}, whose packed form only its own tools read: look at it with "
        "recorder2text, or trace the program again with ensio run"
    )


def has_darshan(path: str, beginning: bytes | None) -> bool:
    """Whether a file is a log of Darshan."""
    return beginning is not None and header.log_version(beginning) is not None


def read_darshan(path: str) -> ForeignTrace:
    """What is in a log of Darshan."""
    from ensembles.readers.foreign.darshan.source import read

    return read(path)


class Format(NamedTuple):
    """A format of another tool.

    Attributes
    ----------
    name : str
        As people call it.
    recognises : callable
        Takes a path and, of a file, its first 4,096 bytes (of a folder: None). Reads no more than it
        needs, imports nothing heavy, and takes no file of another format for its own.
    read : callable
        Takes the path, gives an `ForeignTrace`.
    """

    name: str
    recognises: Callable[[str, bytes | None], bool]
    read: Callable[[str], ForeignTrace]


FORMATS: tuple[Format, ...] = (
    Format("Darshan", has_darshan, read_darshan),
    Format("DFTracer", has_dftracer, read_dftracer),
    Format("Recorder", has_recorder, read_recorder),
    Format("OTF2", otf2.recognises, otf2.read),
    Format("strace", has_strace, read_strace),
)
"""In the order in which they are asked."""


def detect_format(path: str, beginning: bytes | None) -> Format | None:
    """The format of a file (its first bytes) or folder (None); None: none of them."""
    return next((known for known in FORMATS if known.recognises(path, beginning)), None)
