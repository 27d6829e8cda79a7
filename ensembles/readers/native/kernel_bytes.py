"""What the kernel counted in the processes of a run, each byte once (``struct ensio_account``)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.metadata import KernelBytes
from ensembles.readers.native.process_account import CANCELLED, COUNTERS, MOST, UNRECORDED

if TYPE_CHECKING:
    from ensembles.readers.native.spool import Spool


_FACTS = {
    "linked": "LINKED",
    "go": "GO",
    "libaio": "AIO",
    "io_uring": "URING",
    "piped-in": "PIPED_IN",
    "piped-out": "PIPED_OUT",
}
_TAKEN, _CHILDREN, _EXITED = (CONSTANTS[f"ENSIO_ACCOUNT_{fact}"] for fact in ("TAKEN", "CHILDREN", "EXITED"))
_REWRITTEN_NS = 30 * 10**9
"""Age at which the kernel writes dirty pages (vm.dirty_expire_centisecs); they can become dirty again."""


def left_by_raw_call(spool: Spool) -> bool:
    """Whether a process exited without a call that the recorder sees, as ``ensio run`` found."""
    return spool.account is not None and bool(spool.account.facts & _EXITED)


def kernel_bytes(spools: Sequence[Spool], launchers: Sequence[Spool] = ()) -> KernelBytes | None:
    """Add up what the kernel counted in the processes of a run.

    The kernel adds the counters of a child to those of the process that waits for it. They are taken off
    there if the child is recorded. A child of a process that is not recorded (a shell) may belong to all
    processes that waited for children meanwhile, so that its bytes are taken off there, too: rather too few
    bytes are found than bytes that are recorded elsewhere. What is left of a launcher are the bytes of
    programs that are not recorded, and of pipes: what they wrote counts as far as files became dirty.
    """
    begun = [spool for spool in spools if spool.account is not None]
    known = [spool for spool in begun if spool.account.facts & _TAKEN]
    if not begun:
        return None
    reasons = [os.fsdecode(spool.properties[UNRECORDED]) for spool in launchers]
    launchers = [spool for spool in launchers if spool.account.facts & _TAKEN]
    known += launchers
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
        for owner in _waiting_processes(spool.head, waiting.get(host, ()), heads[host]):
            rest, own = sums[id(owner)], spool.head.allocated_bytes
            # The recorder itself reads and writes after it has taken the child's account. What the child
            # wrote before it was recorded, as another program, is not; it read its libraries then.
            for place, name in enumerate(COUNTERS):
                is_other = spool.head.pid == owner.head.pid or place % 2
                begin = getattr(spool.account, f"begin_{name}") if is_other else 0
                rest[place] = max(rest[place] - getattr(spool.account, f"end_{name}") + begin - own, 0)
    for spool in launchers:
        rest = sums[id(spool)]
        rest[1] = min(rest[1], rest[3])
        rest[3] = max(rest[3] - int(spool.properties[CANCELLED]), rest[1])
    read, written, fetched, dirtied = (
        min(sum(own[place] for own in sums.values()), MOST) for place in range(4)
    )
    facts = {
        name
        for name, bit in _FACTS.items()
        if any(spool.account.facts & CONSTANTS[f"ENSIO_ACCOUNT_{bit}"] for spool in begun)
    }
    if "go" in facts and not all(spool.ended or left_by_raw_call(spool) for spool in begun):
        facts.add("unchecked")
    if any(sums[id(spool)][0] >= 1 << 19 for spool in launchers):
        facts.add("piped-in")  # shells and launchers themselves read from pipes
    libraries: dict[str, None] = {}
    for spool in known:
        names = spool.properties.get(b"libraries", b"").split(b":")
        libraries.update(dict.fromkeys(os.fsdecode(name) for name in names if name))
    return KernelBytes(
        read,
        written,
        fetched,
        dirtied,
        min(sum(spool.account.excluded_read for spool in known), MOST),
        min(sum(spool.account.excluded_written for spool in known), MOST),
        tuple(sorted(facts)),
        tuple(libraries),
        tuple(filter(None, reasons)),
    )


def _own(spool: Spool) -> list[int]:
    """Return bytes read and written by calls, fetched and made dirty, without those of the recorder."""
    account, head = spool.account, spool.head
    lasted_ns = max(head.last_realtime_ns - head.first_realtime_ns, 0)
    dirtied = head.allocated_bytes * (1 + lasted_ns // _REWRITTEN_NS) + account.own_written
    own = (account.own_read, account.own_written, 0, dirtied)
    return [
        max(getattr(account, f"end_{name}") - getattr(account, f"begin_{name}") - mine, 0)
        for name, mine in zip(COUNTERS, own, strict=True)
    ]


def _waiting_processes(head: Any, waiting: Sequence[Spool], heads: Mapping[int, Any]) -> list[Spool]:
    """Return the processes that may have waited for this one, or for an ancestor, or became this one."""
    seen: set[int] = set()
    while head is not None and head.pid not in seen:
        seen.add(head.pid)
        parent = heads.get(head.parent_pid)
        found = []
        for other in waiting:
            is_parent = other.head.pid == head.parent_pid
            may_be = is_parent if parent is not None else other.head.parent_pid != head.parent_pid
            meanwhile = other.head.first_realtime_ns <= head.first_realtime_ns <= other.head.last_realtime_ns
            if may_be and meanwhile and other.head is not head:
                found.append(other)
        if found:
            return found
        head = parent
    return []
