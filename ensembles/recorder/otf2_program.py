"""``ensio-otf2``, the program that writes and reads OTF2 archives: where it is, and how one talks with it.

It is a process of its own, since libotf2 ends its process where an archive is damaged. What goes over the
pipes stands in ``libtrace/otf2/stream.h``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Sequence
from typing import IO

from ensembles.model.errors import EnsioError
from ensembles.recorder.install_paths import install_prefixes

HEAD = struct.Struct("=IIQ")
"""Head of a message: kind, count, bytes."""

SETTINGS = struct.Struct("=QII")
"""Origin of the run in ns since 1970, ranks of a location, 0."""

(
    SETTINGS_KIND,
    RUN_KIND,
    CALLS_KIND,
    FILES_KIND,
    PROPERTIES_KIND,
    HOSTS_KIND,
    PROCESSES_KIND,
    NAMES_KIND,
    REGIONS_KIND,
    EVENTS_KIND,
    END_KIND,
) = range(1, 12)
"""Messages to the program that writes."""

DEFINITION_KIND, ROWS_KIND, ALIVE_KIND, READ_KIND = range(32, 36)
"""Messages from the program that reads."""

_PIPE_BYTES = 1 << 20

PACKAGE = "libopen-trace-format2-dev"


def program() -> str:
    """The path of ``ensio-otf2``.

    Raises
    ------
    EnsioError
        There is none: ensio was built where libotf2 was missing.
    """
    for prefix in install_prefixes():
        path = prefix / "bin" / "ensio-otf2"
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise EnsioError(
        f"OTF2 archives need the program ensio-otf2, which was not built: apt-get install {PACKAGE} pkgconf, "
        "then ./dev setup in the sources (or cmake -S . -B build && cmake --build build, and install again)"
    )


def widen(pipe: IO[bytes]) -> None:
    """Let a pipe hold a MiB in place of 64 KiB, where that is allowed: its ends wait less for each other."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def texts(words: Sequence[str]) -> bytes:
    """Texts as a message has them: each ended by a NUL."""
    return b"".join(os.fsencode(word).replace(b"\0", b"?") + b"\0" for word in words)
