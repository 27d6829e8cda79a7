"""Decode the events of spools into columns.

A C extension decodes; without it, NumPy does, with equal results. ``NATIVE`` is true if the extension is in
use.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ensembles.model.c_layout import EVENT
from ensembles.model.events import COLUMNS
from ensembles.readers.common.columns import LARGEST_MOVED_BYTES, LARGEST_NS
from ensembles.readers.native.spool import Coded, Window

try:
    from ensembles.readers.native import _columns
except ImportError:
    _columns = None  # type: ignore[assignment]

if not hasattr(_columns, "read_window"):  # built from older sources
    _columns = None  # type: ignore[assignment]

NATIVE = _columns is not None

LARGEST_TICKS = 1 << 55
"""Largest plausible time since the start of a process, ticks (more than 100 days)."""

_MOST_ERRNO = 0xFFFF

_AS_STORED = ("depth", "offset", "requested", "moved")


@dataclass(frozen=True, slots=True)
class Decoding:
    """Locations of the events of one spool, and their translation to columns of the run.

    Attributes
    ----------
    path : str
        Path of the spool.
    job_path : str
        Path of the job file that is read in its place, or "".
    windows : list of Window
        Locations of events in the spool.
    coded : list of Coded
        Locations of events in the job file.
    rank : int
        Task of the process.
    first_thread : int
        Offset added to the thread numbers.
    call_numbers, file_numbers : ndarray of int
        Index: number in the spool. Value: number in the run. The last entry is for all larger numbers.
    first_ticks : int
        First clock reading, ticks.
    ns_per_tick : float
        Length of a tick, ns.
    start_ns : int
        Time of `first_ticks`, ns since the origin of the run.
    """

    path: str
    job_path: str
    windows: Sequence[Window]
    coded: Sequence[Coded]
    rank: int
    first_thread: int
    call_numbers: np.ndarray
    file_numbers: np.ndarray
    first_ticks: int
    ns_per_tick: float
    start_ns: int

    @property
    def most_ticks(self) -> int:
        """Largest plausible duration, and time since `first_ticks`, ticks."""
        return min(LARGEST_TICKS, int(LARGEST_NS / self.ns_per_tick))


class Found(NamedTuple):
    """Damage among decoded events.

    Attributes
    ----------
    unknown_calls, unknown_files : int
        Number of events whose function or file has no name.
    damaged : bool
        Whether a time or a number of bytes is impossible.
    """

    unknown_calls: int
    unknown_files: int
    damaged: bool


class Read(NamedTuple):
    """Result of `read_window`.

    Attributes
    ----------
    slots : int
        Number of slots that were read; 0: end of the file.
    events : int
        Number of events that were decoded.
    left : int
        Number of events in the buffer that were not decoded, because one of them is damaged.
    unknown_calls, unknown_files : int
        As for `Found`.
    """

    slots: int
    events: int
    left: int
    unknown_calls: int
    unknown_files: int


def decode(decoding: Decoding, thread: int, raw: np.ndarray, out: dict[str, np.ndarray]) -> Found:
    """Decode completed events.

    Parameters
    ----------
    decoding : Decoding
    thread : int
        Thread that made the calls.
    raw : ndarray of EVENT.dtype, shape (n,), C-contiguous
    out : dict of str to ndarray, shape (n,)
        Receives the events; ``call``, ``start`` and ``duration`` are required.

    Returns
    -------
    Found
        If an event is damaged, times are clipped to plausible values.
    """
    if _columns is None:
        return numpy_decode(decoding, thread, raw, out)
    found = _columns.decode(raw.view("u1"), *_told(decoding, thread, out))
    if found is None:
        return numpy_decode(decoding, thread, raw, out)
    unknown_calls, unknown_files = found
    return Found(unknown_calls, unknown_files, False)


def read_window(
    descriptor: int,
    decoding: Decoding,
    thread: int,
    window: Window,
    raw: np.ndarray,
    out: dict[str, np.ndarray],
    place: range,
) -> Read:
    """Read and decode events of a window until the columns are full.

    Parameters
    ----------
    descriptor : int
        Descriptor of the spool.
    decoding, thread
        As for `decode`.
    window : Window
        The slots to read.
    raw : ndarray of EVENT.dtype, shape (n,), C-contiguous
        Buffer.
    out : dict of str to ndarray
        As for `decode`.
    place : range
        Rows of the columns to fill; at least one.

    Returns
    -------
    Read
        It may return early after empty or damaged slots.

    Raises
    ------
    OSError
        The spool cannot be read.
    """
    if _columns is None:
        return numpy_read_window(descriptor, decoding, thread, window, raw, out, place)
    where = (descriptor, window.position, window.slots, place.start, len(place))
    return Read(*_columns.read_window(*where, raw.view("u1"), *_told(decoding, thread, out)))


_Told = tuple[np.ndarray, np.ndarray, tuple[np.ndarray | None, ...], tuple[int | float, ...]]


def _told(decoding: Decoding, thread: int, out: dict[str, np.ndarray]) -> _Told:
    """Make the arguments that the compiled functions share."""
    return (
        decoding.call_numbers,
        decoding.file_numbers,
        tuple(out.get(name) for name in COLUMNS),
        (
            decoding.first_ticks,
            decoding.ns_per_tick,
            decoding.start_ns,
            decoding.most_ticks,
            LARGEST_MOVED_BYTES,
            decoding.rank,
            thread,
        ),
    )


def numpy_read_window(
    descriptor: int,
    decoding: Decoding,
    thread: int,
    window: Window,
    raw: np.ndarray,
    out: dict[str, np.ndarray],
    place: range,
) -> Read:
    """Read and decode events as `read_window`, in NumPy, one buffer at a time."""
    wanted = min(len(raw), window.slots, len(place))
    present = os.preadv(descriptor, [raw[:wanted].view("u1").data], window.position) // EVENT.size
    events = compact(raw[:present])
    columns = {name: column[place.start : place.start + events] for name, column in out.items()}
    found = numpy_decode(decoding, thread, raw[:events], columns)
    if found.damaged:
        return Read(present, 0, events, 0, 0)
    return Read(present, events, 0, found.unknown_calls, found.unknown_files)


def numpy_decode(decoding: Decoding, thread: int, raw: np.ndarray, out: dict[str, np.ndarray]) -> Found:
    """Decode completed events as `decode`, in NumPy."""
    for name, stored in (*zip(_AS_STORED, _AS_STORED, strict=True), ("carried", "flags")):
        if name in out:
            out[name][:] = raw[stored]
    for name, value in (("rank", decoding.rank), ("thread", thread)):
        if name in out:
            out[name][:] = value
    for name, numbers in (("call", decoding.call_numbers), ("file", decoding.file_numbers)):
        if name in out:
            np.take(numbers, raw[name], out=out[name], mode="clip")
    damaged = _decode_times(decoding, raw, out)
    damaged |= bool(len(raw)) and bool(raw["moved"].max() > LARGEST_MOVED_BYTES)
    unknown_calls = len(raw) - int(np.count_nonzero(out["call"]))
    unknown_files = 0
    if "file" in out:
        unknown_files = int(np.count_nonzero(raw["file"])) - int(np.count_nonzero(out["file"]))
    if "moved" in out:
        _decode_failures(out["moved"], out["error"])
    return Found(unknown_calls, unknown_files, damaged)


def _decode_times(decoding: Decoding, raw: np.ndarray, out: dict[str, np.ndarray]) -> bool:
    """Convert ticks to nanoseconds, and return whether a time is impossible.

    The first clock reading is subtracted in integers. The difference is below 2**55 ticks: a float64
    represents it exactly in the first weeks of a run, and to a few ticks later.
    """
    start, duration = out["start"], out["duration"]
    if not len(raw):
        return False
    np.subtract(raw["start"], np.uint64(decoding.first_ticks), out=start.view("u8"))
    duration[:] = raw["duration"].view("i8")
    most = decoding.most_ticks
    damaged = start.max() > most or start.min() < -most or duration.max() > most or duration.min() < 0
    if damaged:
        # Damaged events are left out later; here they must not overflow.
        for times in (start, duration):
            np.clip(times, -most, most, out=times)
    if decoding.ns_per_tick != 1.0:
        for times in (start, duration):
            times[:] = np.rint(times * decoding.ns_per_tick)
    start += decoding.start_ns
    return bool(damaged)


def _decode_failures(moved: np.ndarray, error: np.ndarray) -> None:
    """Split the recorded `moved`, which is minus the errno of a failed call, into two columns."""
    error[:] = 0
    if len(moved) and moved.min() < 0:
        failed = moved < 0
        error[failed] = -np.maximum(moved[failed], -_MOST_ERRNO)
        moved[failed] = -1


def sound(decoding: Decoding, raw: np.ndarray) -> np.ndarray:
    """Test which events have possible times and numbers of bytes.

    Parameters
    ----------
    decoding : Decoding
    raw : ndarray of EVENT.dtype, shape (n,)

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    since_first = (raw["start"] - np.uint64(decoding.first_ticks)).view("i8")
    most = decoding.most_ticks
    kept = (since_first >= -most) & (since_first <= most)
    kept &= raw["duration"] <= most
    kept &= raw["moved"] <= LARGEST_MOVED_BYTES
    return kept


def compact(raw: np.ndarray) -> int:
    """Move completed events to the front of an array, in their order.

    Parameters
    ----------
    raw : ndarray of EVENT.dtype, shape (n,), C-contiguous
        Slots of a window; calls that did not return left empty slots.

    Returns
    -------
    int
        Number of completed events.
    """
    return numpy_compact(raw) if _columns is None else _columns.compact(raw.view("u1"))


def numpy_compact(raw: np.ndarray) -> int:
    """Move completed events to the front as `compact`, in NumPy."""
    call = raw["call"]
    completed = int(np.count_nonzero(call))
    if completed < len(raw) and np.count_nonzero(call[:completed]) < completed:
        raw[:completed] = raw[call != 0]
    return completed
