"""Find and talk to ``ensio-otf2``, the program that writes and reads OTF2 archives.

It runs as a separate process, because libotf2 aborts its process when an archive is damaged.
``libtrace/otf2/stream.h`` describes the messages on the pipes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Sequence
from typing import IO

import numpy as np

from ensembles.model.units import BYTES_AT_ONCE
from ensembles.recorder.install_paths import installed

HEAD = struct.Struct("=IIQ")
"""Head of a message: kind, count, length in bytes."""

SETTINGS = struct.Struct("=QII")
"""Origin of the run in ns since 1970, ranks per location, 0."""

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
    COUNTERS_KIND,
    SAMPLES_KIND,
) = range(1, 14)
"""Kinds of messages to the writing program."""

DEFINITION_KIND, ROWS_KIND, ALIVE_KIND, READ_KIND, SAMPLE_ROWS_KIND = range(32, 37)
"""Kinds of messages from the reading program."""

SAMPLE = np.dtype([("time", "i8"), ("value", "i8"), ("metric", "u4"), ("reserved", "u4")])
"""``struct ensio_otf2_sample`` of ``libtrace/otf2/stream.h``."""


def program() -> str:
    """Find ``ensio-otf2``; `MissingLibrary`: ensio was built without libotf2."""
    return str(installed("bin/ensio-otf2"))


def widen(pipe: IO[bytes]) -> None:
    """Enlarge a pipe from 64 KiB to 1 MiB if permitted, so that its ends wait less for each other."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, BYTES_AT_ONCE)


def texts(words: Sequence[str]) -> bytes:
    """Encode texts for a message: each ends with a NUL.

    Examples
    --------
    >>> texts(["read", "write"])
    b'read\\x00write\\x00'
    """
    return b"".join(os.fsencode(word).replace(b"\0", b"?") + b"\0" for word in words)
