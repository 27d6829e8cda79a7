"""The account of a process (``struct ensio_account``): what the kernel counted of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ensembles.model.c_layout import ACCOUNT, CONSTANTS

POSITION = CONSTANTS["ENSIO_SPOOL_ACCOUNT_BYTES"]
PROPERTY = b"account"
"""Property in a job file: the numbers of ``struct ensio_account``, separated by blanks."""

CANCELLED = b"cancelled"
"""Property of a launcher: bytes made dirty that were deleted again."""

UNRECORDED = b"unrecorded"
"""Property of a launcher: why a program among those that it started could not be recorded."""

COUNTERS = ("read_by_calls", "written_by_calls", "read_bytes", "write_bytes")
MOST = 1 << 62
_NUMBERS = ACCOUNT.size // 8


def account_of_spool(beginning: bytes) -> Any | None:
    """Read the account from the first window of a spool; None: it is missing or implausible."""
    if len(beginning) < POSITION + ACCOUNT.size:
        return None
    return _sound(ACCOUNT.unpack(beginning, POSITION))


def account_in_job_file(properties: Mapping[bytes, bytes]) -> Any | None:
    """Read the account of a process from its properties in a job file; None: as for `account_of_spool`."""
    words = properties.get(PROPERTY, b"").split()
    if len(words) != _NUMBERS or not all(word.isdigit() and len(word) < 20 for word in words):
        return None
    return _sound(ACCOUNT.unpack(b"".join((int(word) % 2**64).to_bytes(8, sys.byteorder) for word in words)))


def _sound(account: Any) -> Any | None:
    return account if account.facts and max(account) < MOST else None


def io_counters(text: bytes) -> tuple[dict[str, int], int]:
    """Parse /proc/PID/io into members of the account, and bytes made dirty that were deleted again."""
    io = dict(line.partition(b": ")[::2] for line in text.splitlines())
    names = (b"rchar", b"wchar", b"read_bytes", b"write_bytes", b"cancelled_write_bytes")
    *counts, cancelled = (int(io.get(name, b"")) for name in names)
    return {f"end_{name}": count for name, count in zip(COUNTERS, counts, strict=True)}, cancelled
