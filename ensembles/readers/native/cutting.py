"""Spools that are longer than their content, cut when their processes have ended."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ensembles.model.errors import EnsioError
from ensembles.readers.native.spool import read_spool


def cut_spools(directory: Path) -> None:
    """Cut the spools of ended processes to their content.

    A process that has lost its rights leaves its spool longer than what is in it, and the counter of its node
    behind. Spools of processes that still run, or were killed, stay as they are.

    Parameters
    ----------
    directory : Path
        A run directory. What cannot be read or changed is passed over.
    """
    all_ended = True
    for path in directory.glob("*.spool"):
        try:
            spool = read_spool(os.fspath(path))
            all_ended &= spool.ended
            if spool.ended and spool.status.st_size > spool.head.allocated_bytes:
                descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    os.ftruncate(descriptor, spool.head.allocated_bytes)
                finally:
                    os.close(descriptor)
        except (OSError, EnsioError):
            all_ended = False
    if all_ended:
        for path in directory.glob(".*.taken"):
            with suppress(OSError):
                path.unlink()
