"""Find the files of a DFTracer trace, and recognise them by their first record."""

from __future__ import annotations

import os
import zlib

import msgspec

_GZIP = b"\x1f\x8b"


class _First(msgspec.Struct, gc=False):
    """What every record has; a trace in Chrome's format may lack the category."""

    name: str
    cat: str
    pid: int
    ph: str | int


_RECORD = msgspec.json.Decoder(_First, strict=False)


def bare(line: bytes) -> bytes:
    """Return the record in a line of JSON, whose commas and brackets may be those of an array."""
    return line.strip().removeprefix(b"[").removesuffix(b"]").strip().rstrip(b",").rstrip()


def is_dftracer(beginning: bytes) -> bool:
    """Test whether the first bytes of a file, compressed or not, are records of DFTracer."""
    if beginning.startswith(_GZIP):
        try:
            beginning = zlib.decompressobj(wbits=31).decompress(beginning, 1 << 16)
        except zlib.error:
            return False
    first = next(filter(None, map(bare, beginning.split(b"\n", 64))), b"")
    try:
        _RECORD.decode(first)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False
    return True


def dftracer_files(path: str) -> list[str]:
    """List the files of a trace.

    Parameters
    ----------
    path : str
        File or folder.

    Returns
    -------
    list of str
        The path itself, or all files ``*.pfw`` and ``*.pfw.gz`` in the folder, sorted.

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
