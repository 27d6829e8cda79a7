"""Detect the format of a file or folder of another tool by its content."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ensembles.files.untrusted import beginning_of
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.darshan import header
from ensembles.readers.foreign.dftracer.lines import dftracer_files, is_dftracer
from ensembles.readers.foreign.otf2 import source as otf2
from ensembles.readers.foreign.strace.lines import files_of, is_strace


def in_files(
    files_in: Callable[[str], tuple[list[str], list[str]]], is_one: Callable[[bytes], object]
) -> Callable[[str, bytes | None], bool]:
    """Make a test whether a file, or one of the files in a folder, begins as those of a tool."""

    def recognises(path: str, beginning: bytes | None) -> bool:
        if beginning is not None:
            return bool(is_one(beginning))
        with suppress(OSError):
            return bool(files_in(path)[0])
        return False

    return recognises


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
    Format("Darshan", in_files(header.logs_of, header.log_version), read_darshan),
    Format("DFTracer", in_files(dftracer_files, is_dftracer), read_dftracer),
    Format("Recorder", has_recorder, read_recorder),
    Format("OTF2", otf2.recognises, otf2.read),
    Format("strace", in_files(files_of, is_strace), read_strace),
)
"""All formats, in the order in which they are tested."""


def detect_format(path: str, beginning: bytes | None) -> Format | None:
    """Detect the format of a file or folder."""
    return next((known for known in FORMATS if known.recognises(path, beginning)), None)
