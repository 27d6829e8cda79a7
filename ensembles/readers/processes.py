"""What the spools of a run say about its processes and about the job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from ensembles.metadata import Process, RunMetadata
from ensembles.readers.alignment import Alignment
from ensembles.readers.losses import by_reason
from ensembles.readers.ranks import Member
from ensembles.readers.spool import Spool
from ensembles.units import few


@lru_cache(maxsize=4096)
def _text(value: bytes) -> str:
    """The same few texts come from every process."""
    return os.fsdecode(value)


def aligned_ns(spool: Spool, alignment: Alignment, which: str) -> int:
    """The first or the last reading of a process's clock, by the clock of rank 0's node."""
    time_ns: int = getattr(spool.head, f"{which}_realtime_ns")
    return time_ns - alignment.correction(spool).ahead_ns(time_ns)


def process_of(member: Member, alignment: Alignment) -> Process:
    """The process of a spool."""
    spool, head = member.spool, member.spool.head
    command = spool.properties.get(b"command", b"")
    return Process(
        rank=member.rank,
        host=_text(spool.properties.get(b"host", b"")),
        pid=head.pid,
        parent_pid=head.parent_pid,
        program=_text(spool.properties.get(b"program", b"")),
        command=tuple(_text(command).split("\x1f")) if command else (),
        cwd=_text(spool.properties.get(b"cwd", b"")),
        user=_text(spool.properties.get(b"user", b"")),
        start_unix_ns=aligned_ns(spool, alignment, "first"),
        end_unix_ns=aligned_ns(spool, alignment, "last"),
        ended=member.replaced or spool.ended,
        threads=member.threads,
        first_thread=member.first_thread,
        dropped_events=head.dropped_events
        + (spool.pending if spool.properties.get(b"mode") == b"trace" else 0),
        lost_calls=head.lost_calls if spool.is_summarised else head.dropped_events,
        excluded_calls=head.excluded_calls,
        source=spool.name,
    )


def described(spools: Sequence[Spool], processes: list[Process], origin_ns: int) -> RunMetadata:
    """What the processes of a job say alike; the number of tasks, calls, files and notes are left empty."""

    def first(key: str) -> str:
        values = (spool.properties.get(key.encode(), b"") for spool in spools)
        return os.fsdecode(next((value for value in values if value), b""))

    return RunMetadata(
        tasks=0,
        threads=sum(process.threads for process in processes),
        origin_unix_ns=origin_ns,
        calls=(),
        files=[],
        processes=processes,
        notes=[],
        mode=first("mode"),
        job=first("job"),
        launcher=first("launcher"),
        recorder=first("recorder"),
        exclude=first("exclude"),
        hosts=sorted({process.host for process in processes if process.host}),
        dropped_by_reason=by_reason(
            (spool.losses for spool in spools), sum(process.dropped_events for process in processes)
        ),
        calls_on_other_paths=sum(spool.losses.calls_on_other_paths for spool in spools),
    )


def count_tasks(spools: Sequence[Spool], members: Sequence[Member]) -> tuple[int, list[str]]:
    """The number of tasks, and what is to be said about ranks."""
    notes = list(dict.fromkeys(member.note for member in members if member.note))
    ranks = {member.rank for member in members if member.rank >= 0}
    expected = max(spool.head.tasks for spool in spools)
    tasks = max(expected, len(ranks), max(ranks, default=-1) + 1, 1)
    if ranks and len(ranks) < tasks:
        missing = tasks - len(ranks)
        notes.append(f"{missing} of {tasks} ranks left no spool: their calls are missing, or they made none")
    return tasks, few(notes, "processes without a rank made calls")
