"""Cut spools that are longer than their content after their processes have ended."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ensembles.model.errors import EnsioError
from ensembles.readers.native.spool import read_spool


def cut_spools(directory: Path) -> None:
    """Cut the spools of ended processes to their content.

    A process that has given up its privileges cannot shorten its spool, nor remove the space counter of its
    node. Spools of processes that are still running or were killed are not changed.

    Parameters
    ----------
    directory : Path
        A run directory. Files that cannot be read or changed are skipped.
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
