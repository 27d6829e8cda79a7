"""Finish spools after their processes have ended: their length, and what only others could read."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

from ensembles.model.c_layout import ACCOUNT, CONSTANTS, SPOOL
from ensembles.model.errors import EnsioError
from ensembles.readers.native.spool import ACCOUNT_POSITION, io_counters, read_spool

_TAKEN, _CHILDREN, _EXITED = (CONSTANTS[f"ENSIO_ACCOUNT_{fact}"] for fact in ("TAKEN", "CHILDREN", "EXITED"))
_CHILDREN_FAULTS = 8
"""Place of `cminflt` behind the name of the process in /proc/PID/stat; its exit code is the last."""


def cut_spools(directory: Path) -> None:
    """Cut the spools of ended processes to their content.

    A process that has given up its privileges cannot shorten its spool, nor remove the space counter of its
    node. Spools of processes that are still running or were killed are not changed. Files that cannot be read
    or changed are skipped.
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


def complete_account(path: Path, pid: int, end: tuple[int, int, int]) -> None:
    """Complete the spool of a process that waits to be reaped, if its recording has no end.

    The reading of the clock goes to where the recorder's next one would: `end` holds the processor's counter,
    CLOCK_MONOTONIC and CLOCK_REALTIME at the end of the process.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "r+b", buffering=0) as file:
        spool = read_spool(os.fspath(path))
        if spool.ended:
            return
        is_spare = not spool.head.last_is_spare
        ticks = end[spool.head.clock == CONSTANTS["ENSIO_CLOCK_MONOTONIC"]]
        file.seek(SPOOL.field_offset("spare" if is_spare else "last"))
        file.write(struct.pack("=3Q", ticks, *end[1:]))
        file.seek(SPOOL.field_offset("last_is_spare"))
        file.write(struct.pack("=I", is_spare))
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        facts = _TAKEN | (_CHILDREN if int(stat[_CHILDREN_FAULTS]) else 0)
        facts |= 0 if os.WIFSIGNALED(int(stat[-1])) else _EXITED
        file.seek(ACCOUNT_POSITION)
        account = ACCOUNT.unpack(file.read(ACCOUNT.size))
        counters, cancelled = io_counters(Path(f"/proc/{pid}/io").read_bytes())
        counters["end_write_bytes"] = max(counters["end_write_bytes"] - cancelled, 0)
        account = account._replace(**counters, facts=account.facts | facts)
        file.seek(ACCOUNT_POSITION)
        file.write(struct.pack(f"={len(account)}Q", *account))
