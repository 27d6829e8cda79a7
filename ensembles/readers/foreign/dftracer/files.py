"""Find the files of a DFTracer trace, and recognise them by their first record."""

from __future__ import annotations

import os
import re
import zlib

_GZIP = b"\x1f\x8b"
_DFTRACER = re.compile(
    rb'\s*\{(?:"id":"?\d+"?,)?"name":"[^"]*","cat":"[^"]*",(?:"type":\d+,)?"(?:pid|ts)":"?\d'
)


def is_dftracer(beginning: bytes) -> bool:
    """Test whether the first bytes of a file, compressed or not, are records of DFTracer."""
    if beginning.startswith(_GZIP):
        try:
            beginning = zlib.decompressobj(wbits=31).decompress(beginning, 1 << 16)
        except zlib.error:
            return False
    lines = [line for line in beginning.split(b"\n", 64) if line.strip() not in (b"", b"[")]
    return bool(lines) and _DFTRACER.match(lines[0]) is not None


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
