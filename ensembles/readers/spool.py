"""Reads one spool: its head, its texts, and where its events are.

Nothing in a spool is trusted: a process may have been killed while it wrote, and the file may be cut short,
or no spool at all.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ensembles.errors import EnsioError
from ensembles.readers.layout import CONSTANTS, EVENT, SPOOL, TEXT, WINDOW

UNIT_BYTES = CONSTANTS["ENSIO_WINDOW_UNIT_BYTES"]
HEAD_BYTES = CONSTANTS["ENSIO_SPOOL_BYTES"]
HEADER_BYTES = CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]
TEXT_BYTES = CONSTANTS["ENSIO_SPOOL_TEXT_BYTES"]
MAGIC = CONSTANTS["ENSIO_SPOOL_MAGIC"].to_bytes(8, "little")

_MOST_RANKS = 1 << 24
_MOST_TEXT_BYTES = 1 << 26
_CALL_OFFSET = EVENT.dtype.fields["call"][1]
_FIRST_READ_BYTES = TEXT_BYTES + 4096


class Window(NamedTuple):
    """Where events of a thread lie: `slots` places for events from byte `position` on."""

    position: int
    slots: int
    thread: int


@dataclass(slots=True)
class Spool:
    """What one process left, without its events.

    Attributes
    ----------
    path : str
    head : named tuple
        The members of ``struct ensio_spool``.
    status : os.stat_result
        Of the file.
    properties : dict of bytes to bytes
    calls_text : bytes
        Lines ``number name layer op``.
    files : list of (int, bytes)
        Number and path.
    windows : list of Window
    has_events : bool
    notes : list of str
        What is damaged, in plain sentences.
    """

    path: str
    head: Any
    status: os.stat_result
    properties: dict[bytes, bytes] = field(default_factory=dict)
    calls_text: bytes = b""
    files: list[tuple[int, bytes]] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    has_events: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the file."""
        return os.path.basename(self.path)


def read_spool(path: str) -> Spool:
    """Read a spool's head and texts, and find its windows.

    Raises
    ------
    EnsioError
        The file cannot be read, is no spool, or its head makes no sense.
    """
    try:
        # A pipe in place of a spool must not keep us waiting.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return _read(path, descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise EnsioError(f"{path} cannot be read: {error.strerror}") from error


def _read(path: str, descriptor: int) -> Spool:
    beginning = os.pread(descriptor, _FIRST_READ_BYTES, 0)
    spool = Spool(path, _checked_head(path, beginning), os.fstat(descriptor))
    wanted = TEXT_BYTES + spool.head.text_bytes
    if wanted > len(beginning) == _FIRST_READ_BYTES:
        beginning += os.pread(descriptor, wanted - _FIRST_READ_BYTES, _FIRST_READ_BYTES)
    _read_texts(spool, beginning[TEXT_BYTES:wanted])
    _find_windows(spool, descriptor)
    return spool


def _checked_head(path: str, beginning: bytes) -> Any:
    if beginning[:8] == MAGIC[::-1]:
        raise EnsioError(f"{path} was recorded on a machine of another byte order: read it on such a machine")
    if beginning[:8] == bytes(8):
        raise EnsioError(f"{path} holds no calls: its process was killed before it began to record")
    if beginning[:8] != MAGIC:
        raise EnsioError(f"{path} is not a spool of ensio: its first bytes are others")
    if len(beginning) < SPOOL.size:
        raise EnsioError(f"{path} is cut short: it ends within its head, nothing can be read from it")
    head = SPOOL.unpack(beginning)
    if head.last_is_spare:
        head = head._replace(
            last_ticks=head.spare_ticks,
            last_monotonic_ns=head.spare_monotonic_ns,
            last_realtime_ns=head.spare_realtime_ns,
        )
    if head.version != CONSTANTS["ENSIO_SPOOL_VERSION"] or head.event_bytes != EVENT.size:
        raise EnsioError(
            f"{path} has layout version {head.version} and events of {head.event_bytes} bytes, not "
            f"{CONSTANTS['ENSIO_SPOOL_VERSION']} and {EVENT.size}: use the ensio that recorded it"
        )
    plausible = (
        head.allocated_bytes >= HEAD_BYTES
        and head.text_bytes <= HEAD_BYTES - TEXT_BYTES
        and head.state in (CONSTANTS["ENSIO_STATE_RUNNING"], CONSTANTS["ENSIO_STATE_ENDED"])
        and head.clock in (CONSTANTS["ENSIO_CLOCK_TSC"], CONSTANTS["ENSIO_CLOCK_MONOTONIC"])
        and -1 <= head.rank < _MOST_RANKS
        and head.tasks <= _MOST_RANKS
        and head.threads <= 1 << 16
        and max(head.first_realtime_ns, head.last_realtime_ns) < 1 << 62
        and max(head.first_monotonic_ns, head.last_monotonic_ns) < 1 << 62
        and max(head.dropped_events, head.excluded_calls) < 1 << 62
    )
    if not plausible:
        raise EnsioError(f"{path} is damaged: the numbers in its head make no sense")
    return head


def _read_texts(spool: Spool, text: bytes) -> None:
    position = 0
    while position + TEXT.size <= len(text):
        entry = TEXT.unpack(text, position)
        end = position + TEXT.size + entry.length
        if entry.kind == 0 or end > len(text):
            spool.notes.append(f"{spool.name} is damaged: a text in it is not whole, names may be missing")
            return
        body = text[position + TEXT.size : end]
        if entry.kind == CONSTANTS["ENSIO_TEXT_FILE"]:
            spool.files.append((entry.id, body))
        elif entry.kind == CONSTANTS["ENSIO_TEXT_CALLS"]:
            spool.calls_text = body
        elif entry.kind == CONSTANTS["ENSIO_TEXT_PROPERTIES"]:
            pairs = (line.partition(b"=") for line in body.split(b"\0") if line)
            spool.properties.update((key, value) for key, _, value in pairs)
        position = end + -end % 8


def _find_windows(spool: Spool, descriptor: int) -> None:
    size = spool.status.st_size
    end = min(spool.head.allocated_bytes, size)
    if size < spool.head.allocated_bytes:
        spool.notes.append(
            f"{spool.name} is cut short: it has {size} of {spool.head.allocated_bytes} bytes, "
            "calls recorded in the others are missing"
        )
    position, damaged_at = HEAD_BYTES, -1
    while position + HEADER_BYTES <= end:
        beginning = os.pread(descriptor, HEADER_BYTES + EVENT.size, position)
        window = WINDOW.unpack(beginning.ljust(WINDOW.size, b"\0"))
        if window.magic == 0:
            position = _next_data(descriptor, position + UNIT_BYTES)
            continue
        length = window.bytes
        sound = window.magic == CONSTANTS["ENSIO_WINDOW_MAGIC"] and length > 0 and length % UNIT_BYTES == 0
        if not sound or position + length > spool.head.allocated_bytes:
            damaged_at = position if damaged_at < 0 else damaged_at
            position += UNIT_BYTES
            continue
        present = min(length, end - position)
        if window.kind == CONSTANTS["ENSIO_WINDOW_EVENTS"]:
            slots = (present - HEADER_BYTES) // EVENT.size
            spool.windows.append(Window(position + HEADER_BYTES, slots, window.thread))
            spool.has_events |= any(beginning[HEADER_BYTES + _CALL_OFFSET : HEADER_BYTES + _CALL_OFFSET + 2])
        elif window.kind == CONSTANTS["ENSIO_WINDOW_TEXT"]:
            used = min(window.text_bytes, present - HEADER_BYTES, _MOST_TEXT_BYTES)
            _read_texts(spool, os.pread(descriptor, used, position + HEADER_BYTES))
        else:
            damaged_at = position if damaged_at < 0 else damaged_at
        position += length
    if damaged_at >= 0:
        spool.notes.append(
            f"{spool.name} is damaged: no sound window begins at byte {damaged_at}, calls there are missing"
        )
    if spool.windows and not spool.has_events:
        spool.has_events = any(_holds_events(descriptor, window) for window in spool.windows)


def _next_data(descriptor: int, position: int) -> int:
    """The first unit from `position` on that may hold data: holes are not worth a walk through them."""
    try:
        found = os.lseek(descriptor, position, os.SEEK_DATA)
    except OSError as error:
        return 1 << 63 if error.errno == errno.ENXIO else position
    return max(position, found // UNIT_BYTES * UNIT_BYTES)


def _holds_events(descriptor: int, window: Window) -> bool:
    """Whether a window whose first place is empty (that call was never completed) has an event elsewhere."""
    import numpy as np

    slots = min(window.slots, HEAD_BYTES // EVENT.size)
    raw = os.pread(descriptor, slots * EVENT.size, window.position)
    return bool(np.frombuffer(raw, EVENT.dtype, len(raw) // EVENT.size)["call"].any())
