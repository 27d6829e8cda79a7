from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.masked_command import mask_command
from ensembles.model.metadata import (
    LEAST_BYTES,
    OPEN_FLAGS,
    OPEN_RANKS,
    KernelBytes,
    Mount,
    Process,
    RunMetadata,
)
from ensembles.model.spans import find_spans, spans_text
from ensembles.model.units import HALF_INT64, few
from ensembles.readers.native.account import (
    CANCELLED,
    CHILDREN,
    COUNTERS,
    EXITED,
    ON_FILES,
    RECORDER_NS,
    TAKEN,
    UNRECORDED,
    numbers_in,
)
from ensembles.readers.native.clock_alignment import Alignment
from ensembles.readers.native.spool import Spool, by_reason

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_VARIABLE = b"env."
_BLOCK = b"block."
_COUNT_DIGITS = 8


def add_facts(metadata: RunMetadata, members: Sequence[Member]) -> None:
    """Add environment, mounts and properties of files to the metadata."""
    spools = [member.spool for member in members]
    every = distinct_properties(spools)
    tables: dict[str, bytes] = {}
    blocks: dict[str, dict[bytes, bytes]] = {}
    for properties in every:
        host = os.fsdecode(properties.get(b"host", b""))
        # The process with the table need not be the one that asked for the block size.
        of_host = blocks.setdefault(host, {})
        for name, size in properties.items():
            if name.startswith(_BLOCK):
                of_host.setdefault(name[len(_BLOCK) :], size)
        if host not in tables and b"mounts" in properties:
            tables[host] = properties[b"mounts"]
        count = properties.get(b"processors", b"")
        if count.isdigit() and len(count) < _COUNT_DIGITS:
            metadata.processors.setdefault(host, int(count))
    for spool in spools:
        for number, name in spool.files if spool.facts else ():
            if number in spool.facts:
                facts = metadata.file_facts.setdefault(os.fsdecode(name), {})
                for key, value in _pairs(spool.facts[number]):
                    facts.setdefault(key, value)
    _add_flagged_ranks(metadata, members)
    metadata.mounts.update({host: _mounts(table, blocks[host]) for host, table in tables.items()})
    metadata.environment = next((found for properties in every if (found := _environment(properties))), {})
    for fact in ("user", "uid", "libc", "mpi"):
        values = (properties.get(fact.encode(), b"") for properties in every)
        # MPICH's version has tabs.
        setattr(metadata, fact, " ".join(os.fsdecode(next(filter(None, values), b"")).split()))


def _add_flagged_ranks(metadata: RunMetadata, members: Sequence[Member]) -> None:
    """Name the tasks that opened a file with flags with which writes wait, where other tasks used it, too."""
    flagged = {os.fsencode(path) for path, facts in metadata.file_facts.items() if OPEN_FLAGS in facts}
    if not flagged:
        return
    key = OPEN_FLAGS.encode() + b"="
    opened: dict[bytes, set[int]] = {}
    used: dict[bytes, set[int]] = {}
    for member in members:
        for number, name in member.spool.files:
            if name in flagged:
                used.setdefault(name, set()).add(member.rank)
                if key in member.spool.facts.get(number, b""):
                    opened.setdefault(name, set()).add(member.rank)
    for name, ranks in opened.items():
        if ranks != used[name]:
            metadata.file_facts[os.fsdecode(name)][OPEN_RANKS] = spans_text(find_spans(sorted(ranks)))


def _pairs(text: bytes) -> Iterable[tuple[str, str]]:
    for line in text.split(b"\0"):
        key, equals, value = line.partition(b"=")
        if equals and key:
            yield os.fsdecode(key), _plain(value) if key == b"mount" else os.fsdecode(value)


def distinct_properties(spools: Iterable[Spool]) -> list[dict[bytes, bytes]]:
    """Return the properties of the processes, each once: many processes share theirs."""
    return list({id(spool.properties): spool.properties for spool in spools}.values())


def _environment(properties: dict[bytes, bytes]) -> dict[str, str]:
    return {
        os.fsdecode(key[len(_VARIABLE) :]): "\x1f".join(mask_command((*os.fsdecode(value).split("\x1f"),)))
        for key, value in sorted(properties.items())
        if key.startswith(_VARIABLE)
    }


def _plain(text: bytes) -> str:
    r"""Decode a text of /proc/self/mountinfo, in which blanks are written as ``\040``."""
    return os.fsdecode(_ESCAPE.sub(lambda escape: bytes([int(escape[1], 8) & 0xFF]), text))


def _mounts(table: bytes, blocks: Mapping[bytes, bytes]) -> tuple[Mount, ...]:
    mounts = []
    for line in table.splitlines():
        point, _, rest = line.partition(b" ")
        kind, _, source = rest.partition(b" ")
        block = blocks.get(point, b"")
        if point.startswith(b"/") and kind:
            block_bytes = int(block) if block.isdigit() and len(block) < 16 else 0
            mounts.append(Mount(_plain(point), _plain(kind), _plain(source), block_bytes))
    return tuple(mounts)


def aligned_ns(spool: Spool, alignment: Alignment, which: str) -> int:
    """Convert a clock reading of a process to the clock of the node of rank 0."""
    time_ns: int = spool.head.first_realtime_ns if which == "first" else spool.head.last_realtime_ns
    return time_ns - alignment.correction(spool).ahead_ns(time_ns)


def describe_processes(members: Sequence[Member], alignment: Alignment) -> list[Process]:
    """Make the `Process` of each spool."""
    texts = {
        id(properties): _process_texts(properties)
        for properties in distinct_properties(member.spool for member in members)
    }
    return [_described(member, alignment, *texts[id(member.spool.properties)]) for member in members]


def _process_texts(properties: dict[bytes, bytes]) -> tuple[str, str, tuple[str, ...], str, str, bool]:
    """Return host, program, command, working directory and user, and whether the mode is ``trace``."""
    host, program, command, cwd, user = (
        os.fsdecode(properties.get(key, b"")) for key in (b"host", b"program", b"command", b"cwd", b"user")
    )
    words = tuple(command.split("\x1f")) if command else ()
    return host, program, words, cwd, user, properties.get(b"mode") == b"trace"


def _described(
    member: Member,
    alignment: Alignment,
    host: str,
    program: str,
    command: tuple[str, ...],
    cwd: str,
    user: str,
    is_trace: bool,
) -> Process:
    spool, head = member.spool, member.spool.head
    return Process(
        rank=member.rank,
        host=host,
        pid=head.pid,
        parent_pid=head.parent_pid,
        program=program,
        command=command,
        cwd=cwd,
        user=user,
        start_unix_ns=aligned_ns(spool, alignment, "first"),
        end_unix_ns=aligned_ns(spool, alignment, "last"),
        ended=member.replaced or spool.ended or left_by_raw_call(spool),
        threads=member.threads,
        first_thread=member.first_thread,
        beside_main=spool.beside_main,
        dropped_events=head.dropped_events + (spool.pending if is_trace else 0),
        lost_calls=head.lost_calls if spool.is_summarised else head.dropped_events,
        excluded_calls=head.excluded_calls,
        source=spool.name,
    )


def described(
    spools: Sequence[Spool], processes: list[Process], origin_ns: int, launchers: Sequence[Spool] = ()
) -> RunMetadata:
    """Make the metadata of a run from its processes."""

    every = distinct_properties(spools)
    threads: Counter[tuple[int, str, int]] = Counter()
    for each in processes:
        threads |= Counter({(each.rank, each.host, each.pid): each.threads})  # an exec makes no other thread

    def first(key: str) -> str:
        values = (properties.get(key.encode(), b"") for properties in every)
        return os.fsdecode(next((value for value in values if value), b""))

    return RunMetadata(
        tasks=0,
        threads=sum(threads.values()),
        origin_unix_ns=origin_ns,
        calls=(),
        files=[],
        processes=processes,
        notes=[],
        mode=first("mode"),
        job=first("job"),
        # Processes know their rank from a launcher or from MPI: tasks that were numbered later have none.
        launcher=first("launcher") or ("ranks" if any(spool.head.rank >= 0 for spool in spools) else ""),
        recorder=first("recorder"),
        exclude=first("exclude"),
        summed=first("summed"),
        hosts=sorted({process.host for process in processes if process.host}),
        dropped_by_reason=by_reason(
            (spool.losses for spool in spools), sum(process.dropped_events for process in processes)
        ),
        calls_on_other_paths=sum(spool.losses.calls_on_other_paths for spool in spools),
        kernel_bytes=kernel_bytes(spools, launchers),
        processor_wait_ns=max(
            (n for each in every for n in numbers_in(each, b"processor_wait_ns")[:1] if n < HALF_INT64),
            default=0,
        ),
        recorder_ns=_recorder_ns(spools),
    )


def _recorder_ns(spools: Sequence[Spool]) -> int:
    """Add up what the recorder took at starts and ends of processes; at the same time, the mean."""
    known = [(s.head, n) for s in spools for n in numbers_in(s.properties, RECORDER_NS)]
    lives = sorted((head.first_realtime_ns, head.last_realtime_ns) for head, _ in known)
    alone_ns, until_ns = 1, 0
    for begin_ns, end_ns in lives:
        alone_ns += max(end_ns - max(begin_ns, until_ns), 0)
        until_ns = max(until_ns, end_ns)
    together_ns = 1 + sum(end_ns - begin_ns for begin_ns, end_ns in lives)
    return int(sum(took_ns for _, took_ns in known) * alone_ns // together_ns)


def count_tasks(spools: Sequence[Spool], members: Sequence[Member]) -> tuple[int, list[str]]:
    """Count the tasks of a run."""
    notes = list(dict.fromkeys(member.note for member in members if member.note))
    ranks = {member.rank for member in members if member.rank >= 0}
    expected = max(spool.head.tasks for spool in spools)
    tasks = max(expected, len(ranks), max(ranks, default=-1) + 1, 1)
    if ranks and len(ranks) < tasks:
        missing = tasks - len(ranks)
        notes.append(
            f"{missing} of {tasks} ranks have no readable spool: their calls are missing, or they made none"
        )
    return tasks, few(notes, "processes without a rank made calls")


_FACTS = {
    "linked": "LINKED",
    "go": "GO",
    "libaio": "AIO",
    "io_uring": "URING",
    "piped-in": "PIPED_IN",
    "piped-out": "PIPED_OUT",
    "inline-stdio": "INLINE",
    "children": "CHILDREN",
}
_REWRITTEN_NS = 30 * 10**9
"""Age at which the kernel writes dirty pages (vm.dirty_expire_centisecs); they can become dirty again."""


def left_by_raw_call(spool: Spool) -> bool:
    """Whether a process exited without a call that the recorder sees, as ``ensio run`` found."""
    return spool.account is not None and bool(spool.account.facts & EXITED)


def kernel_bytes(spools: Sequence[Spool], launchers: Sequence[Spool] = ()) -> KernelBytes | None:
    """Add up what the kernel counted in the processes of a run.

    The kernel adds the counters of a child to those of the process that waits for it. They are taken off
    there if the child is recorded. A child of a process that is not recorded (a shell) may belong to all
    processes that waited for children meanwhile, so that its bytes are taken off there, too: rather too few
    bytes are found than bytes that are recorded elsewhere. What is left of a launcher are the bytes of
    programs that are not recorded, and of pipes: what they wrote counts as far as files became dirty. What
    MPI's launchers make dirty without write calls does not: they map files, and delete them in the end.
    """
    begun = [spool for spool in spools if spool.account is not None]
    known = [spool for spool in begun if spool.account.facts & TAKEN]
    if not begun:
        return None
    reasons = [os.fsdecode(spool.properties[UNRECORDED]) for spool in launchers]
    launchers = [spool for spool in launchers if spool.account.facts & TAKEN]
    known += launchers
    sums = {id(spool): _own(spool) for spool in known}
    for spool, owner in waited_for(known):
        rest, own = sums[id(owner)], spool.head.allocated_bytes
        # The recorder itself reads and writes after it has taken the child's account. What the child wrote
        # before it was recorded, as another program, is not; it read its libraries then.
        for place, name in enumerate(COUNTERS):
            is_other = spool.head.pid == owner.head.pid or place % 2
            begin = getattr(spool.account, f"begin_{name}") if is_other else 0
            rest[place] = max(rest[place] - getattr(spool.account, f"end_{name}") + begin - own, 0)
    has_ranks = any(spool.head.rank >= 0 for spool in begun)
    for spool in launchers:
        rest = sums[id(spool)]
        rest[1] = min(rest[1], rest[3])
        cancelled = rest[3] if has_ranks else int(spool.properties[CANCELLED])
        rest[3] = max(rest[3] - cancelled, rest[1])
    read, written, fetched, dirtied = (
        min(sum(own[place] for own in sums.values()), HALF_INT64) for place in range(4)
    )
    facts = {
        name
        for name, bit in _FACTS.items()
        if any(spool.account.facts & CONSTANTS[f"ENSIO_ACCOUNT_{bit}"] for spool in begun)
    }
    if "go" in facts and not all(spool.ended or left_by_raw_call(spool) for spool in begun):
        facts.add("unchecked")
    if any(sums[id(spool)][0] >= LEAST_BYTES for spool in launchers):
        facts.add("piped-in")  # shells and launchers themselves read from pipes
    libraries: dict[str, None] = {}
    for spool in known:
        names = spool.properties.get(b"libraries", b"").split(b":")
        libraries.update(dict.fromkeys(os.fsdecode(name) for name in names if name))
    accounts = [spool.account for spool in known]
    excluded_written = min(sum(each.excluded_written for each in accounts), HALF_INT64)
    known_on_files = [each for each in accounts if each.facts & ON_FILES]
    elsewhere = sum(max(each.excluded_written - each.excluded_on_files, 0) for each in known_on_files)
    return KernelBytes(
        read,
        max(written - elsewhere, 0),
        fetched,
        dirtied,
        min(sum(each.excluded_read for each in accounts), HALF_INT64),
        max(excluded_written - elsewhere, 0),
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


def waited_for(spools: Sequence[Spool]) -> Iterator[tuple[Spool, Spool]]:
    """Return processes with those that may have waited for them, and whose counters contain theirs."""
    waiting: dict[bytes, list[Spool]] = {}
    heads: dict[bytes, dict[int, Any]] = {}
    for spool in spools:
        host = spool.host
        heads.setdefault(host, {})[spool.head.pid] = spool.head
        if spool.account is not None and spool.account.facts & CHILDREN:
            waiting.setdefault(host, []).append(spool)
    for spool in spools:
        host = spool.host
        for owner in _waiting_processes(spool.head, waiting.get(host, ()), heads[host]):
            yield spool, owner


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
            # The record of a parent may begin after that of its child, which it made before.
            is_late = not is_parent and other.head.first_realtime_ns > head.first_realtime_ns
            is_over = other.head.last_realtime_ns < head.first_realtime_ns
            if may_be and not (is_late or is_over) and other.head is not head:
                found.append(other)
        if found:
            return found
        head = parent
    return []


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
        identity = identity_of(member.spool)
        in_order = member.spool.head.state == CONSTANTS["ENSIO_STATE_ENDED"]
        member.replaced = not in_order and identity in later
        later.add(identity)


def identity_of(spool: Spool) -> tuple[bytes, int]:
    """Return what the programs of a process share: host and number."""
    return spool.host, spool.head.pid


def _number(members: Sequence[Member], first_rank: int, with_notes: bool) -> None:
    rank_of: dict[tuple[bytes, int], int] = {}
    for member in members:
        member.rank = rank_of.setdefault(identity_of(member.spool), first_rank + len(rank_of))
        if with_notes:
            program = os.path.basename(os.fsdecode(member.spool.properties.get(b"program", b"")))
            member.note = (
                f"{program or 'a process'} (pid {member.spool.head.pid}) made calls without having a rank: "
                f"it is listed as rank {member.rank}"
            )


def _number_threads(members: Sequence[Member]) -> None:
    """Give the main thread of a process one number, also after an exec and in destructors after its end."""
    threads: defaultdict[int, int] = defaultdict(int)
    first: dict[tuple[int, tuple[bytes, int]], int] = {}
    for member in members:
        if member.rank >= 0:
            rank = member.rank
            member.first_thread = first.setdefault((rank, identity_of(member.spool)), threads[rank])
            threads[rank] = max(threads[rank], member.first_thread + member.threads)
