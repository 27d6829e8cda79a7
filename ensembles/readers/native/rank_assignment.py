"""Assign processes to tasks."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ensembles.model.c_layout import CONSTANTS
from ensembles.readers.native.spool import Spool


@dataclass(slots=True)
class Member:
    """A process and its place in the run."""

    spool: Spool
    rank: int  # Task of the process; -1: it belongs to no task
    threads: int  # Number of threads that recorded
    first_thread: int = 0  # Number of its first thread within the task
    replaced: bool = False  # Whether another program with a later spool replaced it (exec)
    note: str = ""  # Sentence about a doubtful rank, or ""


def assign_ranks(spools: Sequence[Spool]) -> list[Member]:
    """Assign a rank to every process, and distinct numbers to the threads of each rank.

    A process keeps its recorded rank. If no process has a rank, tasks are numbered in the order of their
    start. A chain of programs that replaced each other by exec is one task, and processes without calls are
    not tasks. If only some processes have a rank, the others with calls get numbers after the largest rank,
    each with a note.
    """
    members = [Member(spool, spool.head.rank, spool.threads) for spool in spools]
    members.sort(key=lambda member: (member.spool.head.first_realtime_ns, member.spool.path))
    _mark_replaced(members)
    ranks = [member.rank for member in members]
    without = [member for member in members if member.rank < 0 and member.spool.has_events]
    if max(ranks) < 0 and not without:
        without = members[:1]
    _number(without, max(ranks) + 1, with_notes=max(ranks) >= 0)
    _number_threads(members)
    return members


def _mark_replaced(members: Sequence[Member]) -> None:
    later: set[tuple[bytes, int]] = set()
    for member in reversed(members):
        identity = _identity(member)
        in_order = member.spool.head.state == CONSTANTS["ENSIO_STATE_ENDED"]
        member.replaced = not in_order and identity in later
        later.add(identity)


def _identity(member: Member) -> tuple[bytes, int]:
    return member.spool.properties.get(b"host", b""), member.spool.head.pid


def _number(members: Sequence[Member], first_rank: int, with_notes: bool) -> None:
    rank_of: dict[tuple[bytes, int], int] = {}
    for member in members:
        member.rank = rank_of.setdefault(_identity(member), first_rank + len(rank_of))
        if with_notes:
            program = os.path.basename(os.fsdecode(member.spool.properties.get(b"program", b"")))
            member.note = (
                f"{program or 'a process'} (pid {member.spool.head.pid}) made calls without having a rank: "
                f"it is listed as rank {member.rank}"
            )


def _number_threads(members: Sequence[Member]) -> None:
    threads: defaultdict[int, int] = defaultdict(int)
    for member in members:
        if member.rank >= 0:
            member.first_thread = threads[member.rank]
            threads[member.rank] += member.threads
