"""How traces of other tools are told from other files: by what is in them, and without what reads them."""

from __future__ import annotations

import os
import re
import zlib

from ensembles.errors import EnsioError
from ensembles.readers.foreign import darshan_header
from ensembles.readers.foreign.importing import Import

_GZIP = b"\x1f\x8b"
_DFTRACER = re.compile(
    rb'\s*\{(?:"id":"?\d+"?,)?"name":"[^"]*","cat":"[^"]*",(?:"type":\d+,)?"(?:pid|ts)":"?\d'
)
_STRACE = re.compile(
    rb"(?:\[pid +\d+\] +|\d+ +)?(?:(?:\d+\.\d{3,9}|\d\d:\d\d:\d\d(?:\.\d+)?) )?"
    rb"(?:[a-z_]\w*\(.*(?: = (?:-?\d|0x|\?)| <unfinished \.\.\.>$)|<\.\.\. \w+ resumed>|\+\+\+ |--- SIG)"
)


def is_dftracer(beginning: bytes) -> bool:
    """Whether the first bytes of a file, packed or not, are DFTracer's."""
    if beginning.startswith(_GZIP):
        try:
            beginning = zlib.decompressobj(wbits=31).decompress(beginning, 1 << 16)
        except zlib.error:
            return False
    lines = [line for line in beginning.split(b"\n", 64) if line.strip() not in (b"", b"[")]
    return bool(lines) and _DFTRACER.match(lines[0]) is not None


def dftracer_files(path: str) -> list[str]:
    """The files of a trace: the path itself, or in a folder all that are called ``*.pfw`` or ``*.pfw.gz``.

    Raises
    ------
    OSError
        The folder cannot be read.
    """
    if not os.path.isdir(path):
        return [path]
    with os.scandir(path) as entries:
        return sorted(
            entry.path
            for entry in entries
            if entry.name.endswith((".pfw", ".pfw.gz")) and entry.is_file() and entry.stat().st_size
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


def read_strace(path: str) -> Import:
    """The text of strace."""
    from ensembles.readers.foreign.strace import StraceImport

    return StraceImport(path)


def read_dftracer(path: str) -> Import:
    """A trace of DFTracer."""
    from ensembles.readers.foreign.dftracer import DFTracerImport

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


def read_recorder(path: str) -> Import:
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
    return beginning is not None and darshan_header.version_of(beginning) is not None


def read_darshan(path: str) -> Import:
    """What is in a log of Darshan."""
    from ensembles.readers.foreign.darshan import read

    return read(path)
