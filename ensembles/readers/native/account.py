"""The account of bytes of a process: what its calls and the kernel counted, and the sum of these numbers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ensembles.model.c_layout import ACCOUNT, CONSTANTS
from ensembles.model.units import HALF_INT64

if TYPE_CHECKING:
    import numpy as np

ACCOUNT_POSITION = CONSTANTS["ENSIO_SPOOL_ACCOUNT_BYTES"]
ACCOUNT_PROPERTY = b"account"
"""Property in a job file: the numbers of ``struct ensio_account``, separated by blanks."""

CANCELLED = b"cancelled"
"""Property of a launcher: bytes made dirty that were deleted again."""

UNRECORDED = b"unrecorded"
"""Property of a launcher: why a program among those that it started could not be recorded."""

RECORDER_NS = b"recorder_ns"
"""Property of a process with a job file: how long the recorder took at its start and end."""

HIDDEN = b"hidden"
"""Property of a launcher: which layers inside such a program the preload library does not see."""

TAKEN, CHILDREN, EXITED, ON_FILES = (
    CONSTANTS[f"ENSIO_ACCOUNT_{fact}"] for fact in ("TAKEN", "CHILDREN", "EXITED", "ON_FILES")
)

COUNTERS = ("read_by_calls", "written_by_calls", "read_bytes", "write_bytes")
_NUMBERS = ACCOUNT.field_offset("excluded_on_files") // 8


def account_of_spool(beginning: bytes) -> Any | None:
    """Read the account from the first window of a spool; None: it is missing or implausible."""
    if len(beginning) < ACCOUNT_POSITION + ACCOUNT.size:
        return None
    return _sound_account(ACCOUNT.unpack(beginning, ACCOUNT_POSITION))


def account_in_job_file(properties: Mapping[bytes, bytes]) -> Any | None:
    """Read the account of a process from its properties in a job file; None: as for `account_of_spool`."""
    numbers = numbers_in(properties, ACCOUNT_PROPERTY)[:_NUMBERS]
    if len(numbers) != _NUMBERS:
        return None
    numbers += (numbers_in(properties, b"excluded_on_files") or (0,))[:1]
    return _sound_account(
        ACCOUNT.unpack(b"".join((number % 2**64).to_bytes(8, sys.byteorder) for number in numbers))
    )


def numbers_in(properties: Mapping[bytes, bytes], name: bytes) -> tuple[int, ...]:
    """Return the numbers of a property, which blanks separate; none if it has anything else."""
    words = properties.get(name, b"").split()
    is_sound = all(word.isdigit() and len(word) <= 20 for word in words)
    return tuple(map(int, words)) if is_sound else ()


def _sound_account(account: Any) -> Any | None:
    if account.facts >> 32 not in (0, sum_of_account(account)):
        return None
    account = account._replace(facts=account.facts & 0xFFFFFFFF)
    return account if account.facts and max(account) < HALF_INT64 else None


def sum_of_account(account: Any) -> int:
    """Sum the members of an account but the excluded bytes and the facts, as the recorder does."""
    import numpy as np

    numbers = np.array(account, "u8")
    excluded, own, facts = (
        ACCOUNT.field_offset(name) // numbers.itemsize for name in ("excluded", "own_read", "facts")
    )
    return int(sum_words(numbers[:excluded]) ^ sum_words(numbers[own:facts]))


def sum_words(numbers: np.ndarray) -> Any:
    """Sum numbers (u8, shape (..., n)) as the recorder does (``ensio_sum_words``): u4, shape (...)."""
    import numpy as np

    total = (numbers * np.arange(3, 2 * numbers.shape[-1] + 3, 2, dtype="u8")).sum(axis=-1, dtype="u8")
    return (total ^ total >> np.uint64(32)).astype("u4") | np.uint32(1)


def io_counters(text: bytes) -> tuple[dict[str, int], int]:
    """Parse /proc/PID/io into members of the account, and bytes made dirty that were deleted again."""
    io = dict(line.partition(b": ")[::2] for line in text.splitlines())
    names = (b"rchar", b"wchar", b"read_bytes", b"write_bytes", b"cancelled_write_bytes")
    *counts, cancelled = (int(io.get(name, b"")) for name in names)
    return {f"end_{name}": count for name, count in zip(COUNTERS, counts, strict=True)}, cancelled
