"""What the kernel counted in the processes of a run, each byte once (``struct ensio_account``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.c_layout import ACCOUNT, CONSTANTS
from ensembles.model.metadata import KernelBytes

if TYPE_CHECKING:
    from ensembles.readers.native.spool import Spool

POSITION = CONSTANTS["ENSIO_SPOOL_ACCOUNT_BYTES"]
PROPERTY = b"account"
"""Property in a job file: the numbers of ``struct ensio_account``, separated by blanks."""

_FACTS = {
    "linked": "LINKED",
    "go": "GO",
    "libaio": "AIO",
    "io_uring": "URING",
    "piped-in": "PIPED_IN",
    "piped-out": "PIPED_OUT",
}
_TAKEN, _CHILDREN, _EXITED = (CONSTANTS[f"ENSIO_ACCOUNT_{fact}"] for fact in ("TAKEN", "CHILDREN", "EXITED"))
_MOST = 1 << 62
_NUMBERS = ACCOUNT.size // 8
_REWRITTEN_NS = 30 * 10**9
"""Age at which the kernel writes dirty pages (vm.dirty_expire_centisecs); they can become dirty again."""


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
    return account if account.facts and max(account) < _MOST else None


def left_by_raw_call(spool: Spool) -> bool:
    """Whether a process exited without a call that the recorder sees, as ``ensio run`` found."""
    return spool.account is not None and bool(spool.account.facts & _EXITED)


def kernel_bytes(spools: Sequence[Spool]) -> KernelBytes | None:
    """Add up what the kernel counted in the processes of a run.

    The kernel adds the counters of a child to those of the process that waits for it. They are taken off
    there if the child is recorded. A child of a process that is not recorded (a shell) may belong to any
    process that waited for children meanwhile, so that its bytes are taken off, too: rather too few bytes
    are found than bytes that are recorded elsewhere.

    Returns
    -------
    KernelBytes or None
        None: no process has an account.
    """
    begun = [spool for spool in spools if spool.account is not None]
    known = [spool for spool in begun if spool.account.facts & _TAKEN]
    if not begun:
        return None
    sums = {id(spool): _own(spool) for spool in known}
    waiting: dict[bytes, list[Spool]] = {}
    heads: dict[bytes, dict[int, Any]] = {}
    for spool in known:
        host = spool.properties.get(b"host", b"")
        heads.setdefault(host, {})[spool.head.pid] = spool.head
        if spool.account.facts & _CHILDREN:
            waiting.setdefault(host, []).append(spool)
    for spool in known:
        host = spool.properties.get(b"host", b"")
        if (owner := _waiting_process(spool.head, waiting.get(host, ()), heads[host])) is not None:
            end, rest, own = spool.account, sums[id(owner)], spool.head.allocated_bytes
            # The recorder itself reads and writes after it has taken the child's account.
            for place, taken in enumerate(
                (end.end_read_by_calls, end.end_written_by_calls, end.end_read_bytes, end.end_write_bytes)
            ):
                rest[place] = max(rest[place] - taken - own, 0)
    read, written, fetched, dirtied = (
        min(sum(own[place] for own in sums.values()), _MOST) for place in range(4)
    )
    facts = {
        name
        for name, bit in _FACTS.items()
        if any(spool.account.facts & CONSTANTS[f"ENSIO_ACCOUNT_{bit}"] for spool in begun)
    }
    if "go" in facts and not all(spool.ended or left_by_raw_call(spool) for spool in begun):
        facts.add("unchecked")
    libraries: dict[str, None] = {}
    for spool in known:
        names = spool.properties.get(b"libraries", b"").split(b":")
        libraries.update(dict.fromkeys(os.fsdecode(name) for name in names if name))
    return KernelBytes(
        read,
        written,
        fetched,
        dirtied,
        min(sum(spool.account.excluded_read for spool in known), _MOST),
        min(sum(spool.account.excluded_written for spool in known), _MOST),
        tuple(sorted(facts)),
        tuple(libraries),
    )


def _own(spool: Spool) -> list[int]:
    """Return bytes read and written by calls, fetched and made dirty, without those of the recorder."""
    account, head = spool.account, spool.head
    lasted_ns = max(head.last_realtime_ns - head.first_realtime_ns, 0)
    dirtied = head.allocated_bytes * (1 + lasted_ns // _REWRITTEN_NS) + account.own_written
    own = (account.own_read, account.own_written, 0, dirtied)
    names = ("read_by_calls", "written_by_calls", "read_bytes", "write_bytes")
    return [
        max(getattr(account, f"end_{name}") - getattr(account, f"begin_{name}") - mine, 0)
        for name, mine in zip(names, own, strict=True)
    ]


def _waiting_process(head: Any, waiting: Sequence[Spool], heads: Mapping[int, Any]) -> Spool | None:
    """Return the process that waited for this one, or for an ancestor, as far as one may have done so.

    Parameters
    ----------
    head : namedtuple
        Head of the spool of this process.
    waiting : sequence of Spool
        Processes of the host that waited for children.
    heads : mapping of int to namedtuple
        Heads of the spools of the host, by process id.
    """
    seen: set[int] = set()
    while head is not None and head.pid not in seen:
        seen.add(head.pid)
        parent = heads.get(head.parent_pid)
        for other in waiting:
            is_parent = other.head.pid == head.parent_pid
            may_be = is_parent if parent is not None else other.head.parent_pid != head.parent_pid
            meanwhile = other.head.first_realtime_ns <= head.first_realtime_ns <= other.head.last_realtime_ns
            if may_be and meanwhile and other.head.pid != head.pid:
                return other
        head = parent
    return None
