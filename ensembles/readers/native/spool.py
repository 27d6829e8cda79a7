from __future__ import annotations

import errno
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ensembles.files.names import RECORDS
from ensembles.files.untrusted import SMALL_PART_BYTES, Reading, open_regular
from ensembles.model.c_layout import (
    ACCOUNT,
    CELL,
    CONSTANTS,
    EVENT,
    FLIGHT,
    LOSSES,
    SPOOL,
    SURROUNDINGS,
    TEXT,
    WINDOW,
)
from ensembles.model.errors import EnsioError
from ensembles.model.units import HALF_INT64, MOST_TASKS, MOST_THREADS
from ensembles.readers.native.account import (
    ACCOUNT_POSITION,
    account_in_job_file,
    account_of_spool,
    numbers_in,
    sum_words,
)
from ensembles.readers.native.flights import sums_in_job_file, sums_of_spool
from ensembles.readers.native.spool_bytes import OTHER_VERSION, Contents, JobSummary, KnownTexts, Piece

if TYPE_CHECKING:
    import numpy as np


LOSSES_POSITION = CONSTANTS["ENSIO_SPOOL_LOSSES_BYTES"]

LOSSES_PROPERTY = b"losses"
"""Property in a job file: calls on other paths, then dropped events by reason, separated by blanks."""

_NAMES = {
    CONSTANTS["ENSIO_DROPPED_BUDGET"]: "budget",
    CONSTANTS["ENSIO_DROPPED_FLOOR"]: "free_space",
    CONSTANTS["ENSIO_DROPPED_FULL"]: "file_system_full",
    CONSTANTS["ENSIO_DROPPED_FILE_SIZE"]: "file_size_limit",
    CONSTANTS["ENSIO_DROPPED_UNREACHABLE"]: "run_directory",
    CONSTANTS["ENSIO_DROPPED_MEMORY"]: "memory",
}
"""Name of each reason by its number in ``event.h``; other numbers are unknown reasons."""

_REASONS = CONSTANTS["ENSIO_DROP_REASONS"]


class Losses(NamedTuple):
    """Counts of calls that a process did not keep as events."""

    # Dropped events by number of the reason. Empty or all 0 if the reasons are unknown.
    dropped_for: tuple[int, ...] = ()
    calls_on_other_paths: int = 0  # Calls on paths beyond the number of paths that a process keeps


NOTHING_KNOWN = Losses()
_NOTHING_LOST, _NO_BYTES = Losses((0,) * _REASONS), bytes(LOSSES.size)


def _losses_of_spool(beginning: bytes) -> Losses:
    """Read the losses from the first bytes of a spool; `NOTHING_KNOWN`: missing or implausible."""
    if len(beginning) < LOSSES_POSITION + LOSSES.size:
        return NOTHING_KNOWN
    if beginning.startswith(_NO_BYTES, LOSSES_POSITION):
        return _NOTHING_LOST
    losses = LOSSES.unpack(beginning, LOSSES_POSITION)
    dropped_for = tuple(getattr(losses, f"dropped_for{number}") for number in range(_REASONS))
    return _sound_losses(dropped_for, losses.calls_on_other_paths)


def losses_in_job_file(properties: Mapping[bytes, bytes]) -> Losses:
    """Read the losses of a process from its properties in a job file, as `_losses_of_spool`."""
    other, *dropped_for = numbers_in(properties, LOSSES_PROPERTY) or (HALF_INT64,)
    return _sound_losses(tuple(dropped_for[:_REASONS]), other)


def by_reason(losses: Iterable[Losses], dropped_events: int) -> dict[str, int]:
    """Count dropped events by reason.

    Examples
    --------
    >>> by_reason([Losses((0, 5, 0)), Losses((0, 1, 9))], 16)
    {'free_space': 9, 'budget': 6, 'unknown': 1}
    """
    known: Counter[str] = Counter()
    for one in losses:
        if one is _NOTHING_LOST:
            continue
        for number, count in enumerate(one.dropped_for):
            if number in _NAMES and count:
                known[_NAMES[number]] += count
    found = dict(known.most_common())
    unknown = dropped_events - known.total()
    return found | ({"unknown": unknown} if unknown > 0 else {})


def _sound_losses(dropped_for: tuple[int, ...], other: int) -> Losses:
    return Losses(dropped_for, other) if max((*dropped_for, other)) < HALF_INT64 else NOTHING_KNOWN


UNIT_BYTES = CONSTANTS["ENSIO_WINDOW_UNIT_BYTES"]
HEAD_BYTES = CONSTANTS["ENSIO_SPOOL_BYTES"]
HEADER_BYTES = CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]
TEXT_BYTES = CONSTANTS["ENSIO_SPOOL_TEXT_BYTES"]
BLOCK_BYTES = 8 * CONSTANTS["ENSIO_BLOCK_BINS"]
MAGIC = CONSTANTS["ENSIO_SPOOL_MAGIC"].to_bytes(8, "little")

READABLE = (
    "name a run directory of ensio run, a trace.h5, or a trace of another tool (ensio help importing), "
    "such as a Darshan log (.darshan), an OTF2 archive (.otf2) or a folder of Recorder"
)
"""What can be opened, for errors."""

NAMED = (*RECORDS, ".h5", ".darshan", ".otf2", ".pfw", ".pfw.gz", ".strace")
"""Endings of the names of traces."""

VERSIONS = (3, CONSTANTS["ENSIO_SPOOL_VERSION"])
"""Versions that are read. In events of version 3, the number of the file has the bits of the site too."""

_READING = ("ticks", "monotonic_ns", "realtime_ns")
_POSSIBLE = {
    "allocated_bytes": range(HEAD_BYTES, HALF_INT64, UNIT_BYTES),
    "text_bytes": range(HEAD_BYTES - TEXT_BYTES + 1),
    "state": range(CONSTANTS["ENSIO_STATE_REPLACED"] + 1),
    "clock": (CONSTANTS["ENSIO_CLOCK_TSC"], CONSTANTS["ENSIO_CLOCK_MONOTONIC"]),
    "rank": range(-1, MOST_TASKS),
    "tasks": range(MOST_TASKS + 1),
    "threads": range(MOST_THREADS + 2),
    "last_is_spare": range(2),
    **{f"{which}_{name}": range(HALF_INT64) for which in ("first", "last") for name in _READING[1:]},
}
"""Values of the members of the head without which a spool cannot be read."""

_POSSIBLE_COUNTS = {
    "folding": range(2),
    **dict.fromkeys(("pid", "parent_pid", "unrecorded_children"), range((1 << 22) + 1)),
    **dict.fromkeys(("dropped_events", "excluded_calls", "lost_calls"), range(HALF_INT64)),
}
"""Values of the others, which are 0 if they are impossible; Linux has no process ids above 2**22."""

_MAGIC_OF_WINDOW, _OF_TEXT, _CODED, _EVENTS = (
    CONSTANTS[f"ENSIO_WINDOW_{what}"] for what in ("MAGIC", "TEXT", "CODED", "EVENTS")
)
OF_EVENTS = (_EVENTS, _CODED)
CODED_SLOTS = CONSTANTS["ENSIO_CODED_SLOTS"]
PART_BYTES = CONSTANTS["ENSIO_PART_EVENTS"] * EVENT.size
LEAST_EVENT_BYTES = 3
"""A coded event takes a byte for its template, its start and its duration each, at least."""
_LARGE_BYTES = CONSTANTS["ENSIO_WINDOW_LARGE_BYTES"]
_NO_CALL = bytes(2)
_CALL_OFFSET = EVENT.field_offset("call")
_FEW_SLOTS = HEAD_BYTES // EVENT.size
_MOST_SCRATCH_SLOTS = (1 << 20) // EVENT.size
_FIRST_READ_BYTES = TEXT_BYTES + 4096


class Window(NamedTuple):
    """Location of the events of a thread."""

    position: int  # Offset of the first slot in the spool, bytes
    slots: int  # Number of slots; a slot has room for one event
    thread: int  # Thread, numbered from 0 within the process
    summarised: int = 0  # Number of leading slots that the summary of the process includes
    # Tick length of these in the summary, ns per tick times 2**32; 0: no slot is in the summary
    rate: int = 0
    # Whether slots are coded as they fill, and emptied. Then `slots` and `summarised` count coded events too,
    # which come first, and `first` events are left out.
    is_coded: bool = False
    first: int = 0

    @property
    def rest(self) -> Window:
        """The slots that the summary does not include."""
        if self.is_coded:
            return self.from_slot(self.summarised)
        position = self.position + self.summarised * EVENT.size
        return Window(position, self.slots - self.summarised, self.thread, 0, self.rate)

    def from_slot(self, first: int, until: int | None = None) -> Window:
        """The slots from a number on, and before another."""
        first, until = min(first, self.slots), self.slots if until is None else until
        if self.is_coded:
            return self._replace(first=first, slots=until)
        position = self.position + first * EVENT.size
        return Window(position, until - first, self.thread, max(self.summarised - first, 0), self.rate)


class SummaryPart(NamedTuple):
    """Location of `length` cells, blocks of bins, or samples of counters from byte `position` on."""

    position: int
    length: int


class Coded(NamedTuple):
    """Location of a block of coded events of a thread in a job file."""

    # position, length: Offset in the job file and length, bytes
    position: int
    length: int
    events: int  # Number of events
    thread: int  # Thread, numbered from 0 within the process


@dataclass(slots=True)
class Spool:
    """The record of one process without its events, from a spool or from a job file."""

    path: str  # Path of the spool. It may not exist any more if there is a job file.
    head: Any  # The members of ``struct ensio_spool``
    status: os.stat_result  # Status of the file that was read
    # Properties of the process, such as ``host``
    properties: dict[bytes, bytes] = field(default_factory=dict)
    calls_text: bytes = b""  # Lines ``number name layer op``, one per traced function
    files: list[tuple[int, bytes]] = field(default_factory=list)  # Number and path of each file
    # By file number: ``key=value`` strings about the file, each ended by a NUL
    facts: dict[int, bytes] = field(default_factory=dict)
    sites: list[tuple[int, bytes]] = field(default_factory=list)  # Number and text of each call site
    region_names: dict[int, bytes] = field(default_factory=dict)  # By number: names of phases and regions
    marks: list[Window] = field(default_factory=list)  # Locations of the marks of phases and regions
    # Locations of samples of the kernel's counters
    surroundings: list[SummaryPart] = field(default_factory=list)
    # windows, scratch: Locations of events, and of events that are kept only until the summary includes them
    windows: list[Window] = field(default_factory=list)
    scratch: list[Window] = field(default_factory=list)
    # cells, blocks: Locations of the summary
    cells: list[SummaryPart] = field(default_factory=list)
    blocks: list[SummaryPart] = field(default_factory=list)
    head_bytes: bytes = b""  # The same as it is stored, with all clock readings
    pending: int = 0  # Number of events in `scratch` that the summary does not include yet
    has_events: bool = False  # Whether the record contains calls
    notes: list[str] = field(default_factory=list)  # Sentences about damage
    unknown: int = 0  # Number of windows and texts of unknown kinds
    job_path: str = ""  # Path of the job file that was read; "": the spool was read
    coded: list[Coded] = field(default_factory=list)  # Locations of events in the job file
    # Path of the job file that holds the first events of a spool that was read; "": none does
    coded_path: str = ""
    # By location in the spool: number of slots of a window whose events are in the job file
    taken: dict[int, int] = field(default_factory=dict)
    rest_in_spool: bool = False  # Whether the spool holds events that the job file lacks
    # Whether there was a file of its process, readable or not, when the spool was read
    is_collected: bool = False
    pieces: list[Piece] = field(default_factory=list)  # Locations of other contents in the job file
    # Summary of a job file that includes the calls of this process, except those in `cells`
    job_summary: JobSummary | None = None
    call_rows: np.ndarray | None = None  # Sums of the calls in `job_summary` by function
    own_losses: Losses = NOTHING_KNOWN  # Losses recorded in the first window of a spool
    has_sums: bool = False  # Whether its recorder sums what it keeps in a spool
    own_account: Any = None  # Account of bytes in the first window of a spool (``struct ensio_account``)
    # Locations of the flights of requests: offset in the spool and number
    flights: list[tuple[int, int]] = field(default_factory=list)
    own_flight_sums: tuple[int, ...] = ()  # Sums of flights recorded in the first window of a spool

    @property
    def losses(self) -> Losses:
        """Counts of calls that the process did not keep, and the reasons."""
        return losses_in_job_file(self.properties) if self.job_path else self.own_losses

    @property
    def account(self) -> Any:
        """What the kernel counted (``struct ensio_account``); None: unknown."""
        return account_in_job_file(self.properties) if self.job_path else self.own_account

    @property
    def flight_sums(self) -> tuple[int, ...]:
        """Sums of the flights of requests, in ticks (`ensembles.readers.native.flights`)."""
        return sums_in_job_file(self.properties) if self.job_path else self.own_flight_sums

    @property
    def name(self) -> str:
        """File name of the spool."""
        return os.path.basename(self.path)

    @property
    def host(self) -> bytes:
        """Node of the process; ``b""``: unknown."""
        return self.properties.get(b"host", b"")

    @property
    def launch(self) -> bytes:
        """Key of what a launcher started together; ``b""``: unknown."""
        return self.properties.get(b"launch", b"")

    @property
    def ended(self) -> bool:
        """Whether the process ended in order or was replaced by exec, so that the spool is final."""
        state: int = self.head.state
        return state != CONSTANTS["ENSIO_STATE_RUNNING"]

    @property
    def slots(self) -> int:
        """Number of slots: an upper bound on the number of events."""
        return sum(window.slots for window in self.windows) + sum(block.events for block in self.coded)

    @property
    def threads(self) -> int:
        """Number of threads: the main one, and those that recorded."""
        parts: list[Window | Coded] = [*self.windows, *self.scratch, *self.coded]
        with_events = max((part.thread + 1 for part in parts), default=0)
        return max(with_events, self.head.threads) if self.marks else with_events

    @property
    def beside_main(self) -> bool:
        """Whether the events of threads other than the main one are all that there are."""
        parts: list[Window | Coded] = [*self.windows, *self.coded]
        return min((part.thread for part in parts), default=0) > 0

    @property
    def has_wide_files(self) -> bool:
        """Whether numbers of files have 32 bits, in events without sites."""
        version: int = self.head.version
        return version < CONSTANTS["ENSIO_SPOOL_VERSION"]

    @property
    def is_summarised(self) -> bool:
        """Whether the recorder kept a readable summary of the process."""
        return bool(self.cells) or self.job_summary is not None

    def leave_to(self, collected: Spool) -> None:
        """Leave to a job file what only it holds, or what it summarised.

        If a process coded a part of its spool, the events of that part come from the job file. Else the
        summary of the job file is used for the calls that it includes, and only the cells of later calls
        remain in this record; they are in windows that were added later.
        """
        self.is_collected = True
        if collected.rest_in_spool:
            self.coded, self.coded_path = collected.coded, collected.job_path
            self.windows = [
                window.from_slot(collected.taken.get(window.position, 0)) for window in self.windows
            ]
            self.has_events |= collected.has_events
            return
        if collected.job_summary is None:
            return
        self.job_summary, self.call_rows = collected.job_summary, collected.call_rows
        self.cells = [part for part in self.cells if part.position >= collected.head.allocated_bytes]

    @property
    def contents(self) -> Contents:
        """Reader of the contents of the windows."""
        return Contents(self.path, self.job_path, self.pieces)


def read_spool(path: str, known: KnownTexts | None = None) -> Spool:
    """Read the head and the texts of a spool, and locate its windows."""
    with Reading(path), open_regular(path) as file:
        return _read(path, file.fileno(), known)


def _read(path: str, descriptor: int, known: KnownTexts | None) -> Spool:
    beginning = os.pread(descriptor, _FIRST_READ_BYTES, 0)
    spool = Spool(path, checked_head(path, beginning), os.fstat(descriptor))
    spool.head_bytes = beginning[: SPOOL.size]
    _check_counts(spool, beginning)
    spool.own_flight_sums = sums_of_spool(beginning)
    _read_window(spool, descriptor, (TEXT_BYTES, HEAD_BYTES), spool.head.text_bytes, beginning, known)
    _find_windows(spool, descriptor)
    return spool


def checked_head(path: str, beginning: bytes) -> Any:
    """Unpack and check the head of a spool."""
    if beginning[:8] == MAGIC[::-1]:
        raise EnsioError(f"{path} was recorded with another byte order: read it on a machine of that order")
    if beginning[:8] == bytes(8):
        raise EnsioError(
            f"{path} has lost its head, without which its calls cannot be read: the machine stopped before "
            "it was on the disk, or the file is damaged"
            if any(beginning)
            else f"{path} is damaged, or its process was killed at its start: it begins with zeros"
        )
    if beginning[:8] != MAGIC:
        if path.endswith(NAMED):
            raise EnsioError(
                f"{path} does not begin as its name says: it is damaged or something else, copy it again"
            )
        raise EnsioError(
            f"{path} is not a trace that ensio reads (no export to CSV or the like is): {READABLE}"
        )
    if len(beginning) < SPOOL.size:
        raise EnsioError(f"{path} is cut short: it ends within its head, nothing can be read from it")
    head = SPOOL.unpack(beginning)
    if head.last_is_spare:
        head = head._replace(
            **{f"last_{name}": getattr(head, f"spare_{name}") for name in _READING},
            **{f"spare_{name}": getattr(head, f"last_{name}") for name in _READING},
        )
    if head.version not in VERSIONS or head.event_bytes != EVENT.size:
        raise EnsioError(
            f"{path} has layout version {head.version} and events of {head.event_bytes} bytes, not "
            f"{VERSIONS[-1]} and {EVENT.size}: {OTHER_VERSION}"
        )
    wrong = [name for name, possible in _POSSIBLE.items() if getattr(head, name) not in possible]
    if not wrong and head.identity_sum not in (0, sum_of_identity(beginning)):
        wrong = ["their sum"]
    if wrong:
        raise EnsioError(f"{path} is damaged: the numbers in its head are implausible ({', '.join(wrong)})")
    return head


def sum_of_identity(head: bytes) -> int:
    """Sum what a head says of its process, as the recorder does."""
    import numpy as np

    clock, threads, first, last = map(SPOOL.field_offset, ("clock", "threads", "first", "last"))
    return int(sum_words(np.frombuffer(head[clock:threads] + bytes(4) + head[first:last], "u8")))


def _check_counts(spool: Spool, beginning: bytes) -> None:
    """Read what a process counted beside its calls; leave out, and name, what cannot be so."""
    head = spool.head
    wrong = {name: 0 for name, possible in _POSSIBLE_COUNTS.items() if getattr(head, name) not in possible}
    spool.own_losses, spool.own_account = _losses_of_spool(beginning), account_of_spool(beginning)
    at = ACCOUNT_POSITION + ACCOUNT.field_offset("facts")
    facts = int.from_bytes(beginning[at : at + 8], sys.byteorder)
    spool.has_sums = facts >> 32 > 0
    if facts and spool.own_account is None:
        wrong["account"] = 0
    # A kill may come between the counts of a dropped call. Older recorders know no reasons.
    known = sum(spool.own_losses.dropped_for)
    without = head.dropped_events - known
    if without < 0 or (without > head.threads and known) or head.lost_calls > head.dropped_events:
        spool.own_losses = NOTHING_KNOWN
        wrong.update(dropped_events=0, lost_calls=0)
    if wrong:
        spool.head = head._replace(**{name: 0 for name in wrong if name in _POSSIBLE_COUNTS})
        spool.notes.append(
            f"{spool.name} is damaged: numbers in its head are left out, because they are impossible or "
            f"contradict others ({', '.join(wrong)})"
        )


def _read_window(
    spool: Spool,
    descriptor: int,
    place: tuple[int, int],
    used: int,
    beginning: bytes = b"",
    known: KnownTexts | None = None,
) -> None:
    """Read the texts between two bytes of a spool; behind the used ones there is none."""
    position, end = place
    end = min(position + min(used, SMALL_PART_BYTES) + TEXT.size, end)
    text = beginning[position:end]
    if end > len(beginning):
        text = os.pread(descriptor, end - position, position)
    read_texts(spool, text[:used], known, any(text[used:]))


def read_texts(spool: Spool, text: bytes, known: KnownTexts | None = None, is_cut: bool = False) -> None:
    """Parse the text entries of one window into a spool; `is_cut`: there are more."""
    texts = (known or KnownTexts()).parsed(text)
    # Texts are shared: more of them make new objects.
    spool.properties = spool.properties | texts.properties if spool.properties else texts.properties
    spool.calls_text = texts.calls_text or spool.calls_text
    spool.files = spool.files + texts.files if spool.files else texts.files
    spool.sites = spool.sites + texts.sites if spool.sites else texts.sites
    spool.region_names = spool.region_names | texts.region_names if spool.region_names else texts.region_names
    spool.facts = _facts_of(spool.facts, texts.facts) if spool.facts else texts.facts
    spool.unknown += texts.unknown
    if is_cut or not texts.is_whole:
        spool.notes.append(f"{spool.name} is damaged: a text in it is incomplete, names may be missing")


def _facts_of(before: dict[int, bytes], more: dict[int, bytes]) -> dict[int, bytes]:
    return before | {number: before.get(number, b"") + facts for number, facts in more.items()}


def _find_windows(spool: Spool, descriptor: int) -> None:
    size, told = spool.status.st_size, spool.head.allocated_bytes
    end = size if spool.ended else min(told, size)  # an ended process's file has no more than its windows
    position, gap, damaged_at, is_hole, last = HEAD_BYTES, -1, -1, False, HEAD_BYTES
    while position + HEADER_BYTES <= end:
        beginning = os.pread(descriptor, HEADER_BYTES + EVENT.size, position)
        window = WINDOW.unpack(beginning.ljust(WINDOW.size, b"\0"))
        length = window.bytes
        sound = window.magic == _MAGIC_OF_WINDOW and length > 0 and length % UNIT_BYTES == 0
        sound &= window.kind == _OF_TEXT or not window.text_bytes
        if not sound or position + length > max(told, end):
            is_hole = not window.magic and (is_hole or gap < 0)
            gap = position if gap < 0 else gap
            position += UNIT_BYTES
            position = position if window.magic else _next_data(descriptor, position)
            continue
        is_aligned = length >= _LARGE_BYTES and position % _LARGE_BYTES == 0
        if gap >= 0 and not (is_hole and is_aligned and position - gap < _LARGE_BYTES):
            damaged_at = gap if damaged_at < 0 else damaged_at
        gap = -1
        present = min(length, end - position)
        first, room = position + HEADER_BYTES, max(present - HEADER_BYTES, 0)
        if window.kind in OF_EVENTS:
            spool.windows.append(_window(window, first, room))
            call = beginning[HEADER_BYTES + _CALL_OFFSET : HEADER_BYTES + _CALL_OFFSET + 2]
            spool.has_events |= window.coded > 0 or call not in (_NO_CALL, b"", b"\0")
        elif add_window(spool, window, first, room):
            pass
        elif window.kind == _OF_TEXT:
            _read_window(spool, descriptor, (first, position + present), window.text_bytes)
        else:
            spool.unknown += 1
        position += length
        last = position
    if 0 <= gap < told and damaged_at < 0 and not (is_hole and size < told):
        damaged_at = gap
    if last > told or last == size < told:
        spool.notes.append(
            f"{spool.name} is damaged{' or cut short' * (last < told)}: its head says {told} bytes, and its "
            f"windows end at byte {last}"
        )
    elif size < told:
        spool.notes.append(
            f"{spool.name} is cut short: it has {size} of {told} bytes, calls recorded in the missing bytes "
            "are lost"
        )
    if damaged_at >= 0:
        spool.notes.append(
            f"{spool.name} is damaged: no valid window begins at byte {damaged_at}, calls there are missing"
        )
    if spool.scratch:
        spool.pending = sum(_count_events(descriptor, window.rest) for window in spool.scratch)
        spool.has_events |= spool.pending > 0
    if not spool.has_events:
        beginnings = (window._replace(slots=min(window.slots, _FEW_SLOTS)) for window in spool.windows)
        spool.has_events = any(_count_events(descriptor, window) for window in beginnings)


def add_window(spool: Spool, window: Any, first: int, room: int) -> bool:
    """Add the location of a window that contains neither events nor texts."""
    if window.kind == CONSTANTS["ENSIO_WINDOW_SCRATCH"]:
        spool.scratch.append(_window(window, first, room))
    elif window.kind == CONSTANTS["ENSIO_WINDOW_CELLS"]:
        spool.cells.append(SummaryPart(first, min(window.summarised, room // CELL.size)))
        spool.has_events |= window.summarised > 0
    elif window.kind == CONSTANTS["ENSIO_WINDOW_BINS"]:
        spool.blocks.append(SummaryPart(first, room // BLOCK_BYTES))
    elif window.kind == CONSTANTS["ENSIO_WINDOW_MARKS"]:
        spool.marks.append(Window(first, room // EVENT.size, 0))
        spool.has_events = True
    elif window.kind == CONSTANTS["ENSIO_WINDOW_FLIGHTS"]:
        spool.flights.append((first, room // FLIGHT.size))
        spool.has_events = True
    elif window.kind == CONSTANTS["ENSIO_WINDOW_SURROUNDINGS"]:
        spool.surroundings.append(SummaryPart(first, room // SURROUNDINGS.size))
    else:
        return False
    return True


def _window(window: Any, first: int, room: int) -> Window:
    slots = room // EVENT.size
    if window.kind != _CODED:
        return Window(first, slots, window.thread, min(window.summarised, slots), window.rate)
    # Of a file that is cut, the slots hold what follows the blocks that are missing.
    coded = min(window.coded, max(min(window.bytes, _LARGE_BYTES) - PART_BYTES, 0) // LEAST_EVENT_BYTES)
    slots = 0 if window.summarised == CODED_SLOTS else min(slots, PART_BYTES // EVENT.size)
    summarised = coded + min(window.summarised, slots)
    return Window(first, coded + slots, window.thread, summarised, window.rate, True)


def _next_data(descriptor: int, position: int) -> int:
    """Return the first unit from `position` on that may contain data; holes in the file are skipped."""
    try:
        found = os.lseek(descriptor, position, os.SEEK_DATA)
    except OSError as error:
        return 1 << 63 if error.errno == errno.ENXIO else position
    return max(position, found // UNIT_BYTES * UNIT_BYTES)


def _count_events(descriptor: int, window: Window) -> int:
    """Count the completed events of a window; a call that did not return leaves its slot empty."""
    import numpy as np

    raw = os.pread(descriptor, min(window.slots, _MOST_SCRATCH_SLOTS) * EVENT.size, window.position)
    return int(np.count_nonzero(np.frombuffer(raw, EVENT.dtype, len(raw) // EVENT.size)["call"]))
