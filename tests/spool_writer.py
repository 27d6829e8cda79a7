"""Write spools with given events, for tests and benchmarks. The recorder writes real spools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ensembles.model.c_layout import CONSTANTS, EVENT, LOSSES, SPOOL, TEXT, WINDOW
from ensembles.model.events import Call

HEAD_BYTES = CONSTANTS["ENSIO_SPOOL_BYTES"]
LARGEST_WINDOW_BYTES = 1 << 20

POSIX_CALLS = {
    1: Call("open", "posix", "open"),
    2: Call("close", "posix", "close"),
    3: Call("read", "posix", "read"),
    4: Call("write", "posix", "write"),
    5: Call("pread", "posix", "read"),
    6: Call("pwrite", "posix", "write"),
    7: Call("lseek", "posix", "seek"),
    8: Call("fsync", "posix", "sync"),
}
"""A table of calls by number, as the recorder writes it."""


@dataclass
class SpoolContent:
    """The record of one process."""

    threads: Sequence[np.ndarray]  # Events of each thread in the order of completion, times in ticks
    files: Mapping[int, str | bytes] = field(default_factory=dict)  # Paths by file number
    calls: Mapping[int, Call] = field(default_factory=lambda: POSIX_CALLS)  # Traced functions by call number
    # Keys as in docs/reference/formats/spool.md: ``host``, ``program``,
    properties: Mapping[str, str] = field(default_factory=dict)
    # Members of ``struct ensio_spool``, for example ``rank``, ``pid``, ``first_ticks``. The writer sets those
    # that describe the layout of the file, and lets the process live until its last call ends.
    head: Mapping[str, int] = field(default_factory=dict)
    # Further properties of files by file number
    file_facts: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    region_names: Mapping[int, str] = field(default_factory=dict)  # Names of phases and regions by number
    marks: np.ndarray | None = None  # Marks of phases and regions
    surroundings: np.ndarray | None = None  # Samples of the kernel's counters
    # Members of ``struct ensio_losses``; entries of arrays as ``dropped_for3``
    losses: Mapping[str, int] = field(default_factory=dict)


def write_spool(path: str | os.PathLike[str], content: SpoolContent) -> None:
    """Write one spool.

    Windows grow from 64 KiB to 1 MiB. Windows of different threads alternate.
    """
    text = _text_entries(content)
    room = HEAD_BYTES - CONSTANTS["ENSIO_SPOOL_TEXT_BYTES"]
    in_head, beyond = _split_entries(text, room)
    ends = (int((events["start"] + events["duration"]).max()) for events in content.threads if len(events))
    last = max(ends, default=0)
    head = {
        "magic": CONSTANTS["ENSIO_SPOOL_MAGIC"],
        "version": CONSTANTS["ENSIO_SPOOL_VERSION"],
        "event_bytes": EVENT.size,
        "text_bytes": len(in_head),
        "state": CONSTANTS["ENSIO_STATE_ENDED"],
        "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
        "rank": -1,
        "threads": len(content.threads),
        "last_ticks": last,
        "last_monotonic_ns": last,
        **content.head,
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        end = HEAD_BYTES
        os.pwrite(descriptor, LOSSES.pack(**content.losses), CONSTANTS["ENSIO_SPOOL_LOSSES_BYTES"])
        os.pwrite(descriptor, in_head, CONSTANTS["ENSIO_SPOOL_TEXT_BYTES"])
        if beyond:
            end += _write_text_window(descriptor, end, beyond)
        if content.marks is not None:
            end += _write_event_window(descriptor, end, 0, content.marks, "ENSIO_WINDOW_MARKS")
        if content.surroundings is not None:
            rows = content.surroundings
            end += _write_event_window(descriptor, end, 0, rows, "ENSIO_WINDOW_SURROUNDINGS")
        for thread, events in _in_turns(content.threads):
            end += _write_event_window(descriptor, end, thread, events)
        os.ftruncate(descriptor, end)
        os.pwrite(descriptor, SPOOL.pack(**{"allocated_bytes": end, **head}), 0)
    finally:
        os.close(descriptor)


def _text_entries(content: SpoolContent) -> list[bytes]:
    calls = "".join(f"{number} {' '.join(call)}\n" for number, call in content.calls.items())
    properties = "".join(f"{key}={value}\0" for key, value in content.properties.items())
    entries = [
        _text_entry(CONSTANTS["ENSIO_TEXT_CALLS"], 0, calls.encode()),
        _text_entry(CONSTANTS["ENSIO_TEXT_PROPERTIES"], 0, os.fsencode(properties)),
    ]
    for number, path in content.files.items():
        entries.append(_text_entry(CONSTANTS["ENSIO_TEXT_FILE"], number, os.fsencode(path)))
    for number, facts in content.file_facts.items():
        text = "".join(f"{key}={value}\0" for key, value in facts.items())
        entries.append(_text_entry(CONSTANTS["ENSIO_TEXT_FILE_FACTS"], number, os.fsencode(text)))
    for number, name in content.region_names.items():
        entries.append(_text_entry(CONSTANTS["ENSIO_TEXT_REGION"], number, os.fsencode(name)))
    return entries


def _text_entry(kind: int, number: int, text: bytes) -> bytes:
    entry = TEXT.pack(kind=kind, id=number, length=len(text)) + text
    return entry + bytes(-len(entry) % 8)


def _split_entries(entries: Iterable[bytes], room: int) -> tuple[bytes, bytes]:
    """Split entries into those that fit into `room` bytes, and the others."""
    first, others = bytearray(), bytearray()
    for entry in entries:
        if not others and len(first) + len(entry) <= room:
            first += entry
        else:
            others += entry
    return bytes(first), bytes(others)


def _write_text_window(descriptor: int, position: int, text: bytes) -> int:
    header_bytes = CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]
    length = -(-(header_bytes + len(text)) // HEAD_BYTES) * HEAD_BYTES
    head = WINDOW.pack(
        magic=CONSTANTS["ENSIO_WINDOW_MAGIC"],
        kind=CONSTANTS["ENSIO_WINDOW_TEXT"],
        bytes=length,
        text_bytes=len(text),
    )
    os.pwrite(descriptor, head, position)
    os.pwrite(descriptor, text, position + header_bytes)
    return length


def _write_event_window(
    descriptor: int, position: int, thread: int, events: np.ndarray, kind: str = "ENSIO_WINDOW_EVENTS"
) -> int:
    header_bytes = CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]
    length = -(-(header_bytes + events.nbytes) // HEAD_BYTES) * HEAD_BYTES
    head = WINDOW.pack(
        magic=CONSTANTS["ENSIO_WINDOW_MAGIC"],
        kind=CONSTANTS[kind],
        thread=thread,
        bytes=length,
        tid=1000 + thread,
    )
    os.pwritev(descriptor, [head.ljust(header_bytes, b"\0"), np.ascontiguousarray(events).data], position)
    return length


def _in_turns(threads: Sequence[np.ndarray]) -> Iterable[tuple[int, np.ndarray]]:
    """Cut the events of each thread into windows of 64 KiB, 128 KiB, ... 1 MiB; threads alternate."""
    window_bytes, position = HEAD_BYTES, [0] * len(threads)
    while any(start < len(events) for start, events in zip(position, threads, strict=True)):
        capacity = (window_bytes - CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]) // EVENT.size
        for thread, events in enumerate(threads):
            if position[thread] < len(events):
                yield thread, events[position[thread] : position[thread] + capacity]
                position[thread] += capacity
        window_bytes = min(2 * window_bytes, LARGEST_WINDOW_BYTES)
