"""Turns events as they lie in spools into columns: by compiled code where there is some, else by NumPy, with
equal results. ``NATIVE`` tells whether the compiled version is in use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ensembles.model.c_layout import EVENT
from ensembles.model.events import COLUMNS
from ensembles.readers.common.value_ranges import LARGEST_MOVED_BYTES, LARGEST_NS
from ensembles.readers.native.spool import Coded, Window

try:
    from ensembles.readers.native import _columns
except ImportError:
    _columns = None  # type: ignore[assignment]

if not hasattr(_columns, "read_window"):  # built from older sources
    _columns = None  # type: ignore[assignment]

NATIVE = _columns is not None

LARGEST_TICKS = 1 << 55
"""Times beyond this many ticks from a process's start (more than 100 days) are damage."""

_MOST_ERRNO = 0xFFFF

_AS_STORED = ("depth", "offset", "requested", "moved")


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the events of one spool become columns.

    Attributes
    ----------
    path : str
        Of the spool.
    job_path : str
        Of the job file that is read in its place, or "".
    windows : list of Window
        In a spool.
    coded : list of Coded
        In a job file.
    rank : int
    first_thread : int
        Added to the thread numbers of the windows.
    call_numbers, file_numbers : ndarray
        Number in the spool → number in the run's dictionaries. The last entry stands for all larger numbers.
    first_ticks : int
    ns_per_tick : float
    start_ns : int
        Since the origin of the run, when the clock stood at `first_ticks`.
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
        """Times from `first_ticks` and durations beyond this are damage."""
        return min(LARGEST_TICKS, int(LARGEST_NS / self.ns_per_tick))


class Found(NamedTuple):
    """What was odd about events: how many calls and files have no name, and whether a time or an amount of
    data is impossible."""

    unknown_calls: int
    unknown_files: int
    damaged: bool


class Read(NamedTuple):
    """What `read_window` did: how many slots were read, and how many events came from them; how many that
    were not decoded, as one of them is damaged, are in the buffer; and as `Found` has it."""

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
        That made them.
    raw : ndarray of EVENT.dtype, shape (n,), C-contiguous
    out : dict of str to ndarray, shape (n,)
        The columns that are wanted, ``call``, ``start`` and ``duration`` among them.

    Returns
    -------
    Found
        Where something is damaged, times are cut to what 64 bits hold.
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
    """Read events of a window and decode them, as far as there is room for them.

    Parameters
    ----------
    descriptor : int
        Of the spool.
    decoding, thread
        As for `decode`.
    window : Window
        The slots that are to be read.
    raw : ndarray of EVENT.dtype, shape (n,), C-contiguous
        A buffer.
    out : dict of str to ndarray
        As for `decode`.
    place : range
        Where in these columns the events go; one at least.

    Returns
    -------
    Read
        No slots: the file has no more. It ends early behind slots that are empty, or damaged.

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
    """What the compiled functions have to know."""
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
    """`read_window` without compiled code: a buffer at a time."""
    wanted = min(len(raw), window.slots, len(place))
    present = os.preadv(descriptor, [raw[:wanted].view("u1").data], window.position) // EVENT.size
    events = compact(raw[:present])
    columns = {name: column[place.start : place.start + events] for name, column in out.items()}
    found = numpy_decode(decoding, thread, raw[:events], columns)
    if found.damaged:
        return Read(present, 0, events, 0, 0)
    return Read(present, events, 0, found.unknown_calls, found.unknown_files)


def numpy_decode(decoding: Decoding, thread: int, raw: np.ndarray, out: dict[str, np.ndarray]) -> Found:
    """`decode` without compiled code."""
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
    """Ticks to nanoseconds; whether any of them is impossible.

    The base is subtracted in integers: what is left is below 2**55 ticks, so that a float64 holds it exactly
    within the first weeks of a run, and to a few ticks ever after.
    """
    start, duration = out["start"], out["duration"]
    if not len(raw):
        return False
    np.subtract(raw["start"], np.uint64(decoding.first_ticks), out=start.view("u8"))
    duration[:] = raw["duration"].view("i8")
    most = decoding.most_ticks
    damaged = start.max() > most or start.min() < -most or duration.max() > most or duration.min() < 0
    if damaged:
        # They are left out later, but must not leave the range of integers here.
        for times in (start, duration):
            np.clip(times, -most, most, out=times)
    if decoding.ns_per_tick != 1.0:
        for times in (start, duration):
            times[:] = np.rint(times * decoding.ns_per_tick)
    start += decoding.start_ns
    return bool(damaged)


def _decode_failures(moved: np.ndarray, error: np.ndarray) -> None:
    """Split the record's `moved`, which is minus the errno of a failed call, into the two columns."""
    error[:] = 0
    if len(moved) and moved.min() < 0:
        failed = moved < 0
        error[failed] = -np.maximum(moved[failed], -_MOST_ERRNO)
        moved[failed] = -1


def sound(decoding: Decoding, raw: np.ndarray) -> np.ndarray:
    """Which events have possible times and amounts of data: bool, shape (n,)."""
    since_first = (raw["start"] - np.uint64(decoding.first_ticks)).view("i8")
    most = decoding.most_ticks
    kept = (since_first >= -most) & (since_first <= most)
    kept &= raw["duration"] <= most
    kept &= raw["moved"] <= LARGEST_MOVED_BYTES
    return kept


def compact(raw: np.ndarray) -> int:
    """Move completed events to the front, in their order.

    Parameters
    ----------
    raw : ndarray of EVENT.dtype, shape (n,), C-contiguous
        Slots of a window, those of calls that were never completed among them.

    Returns
    -------
    int
        How many there are.
    """
    return numpy_compact(raw) if _columns is None else _columns.compact(raw.view("u1"))


def numpy_compact(raw: np.ndarray) -> int:
    """`compact` without compiled code."""
    call = raw["call"]
    completed = int(np.count_nonzero(call))
    if completed < len(raw) and np.count_nonzero(call[:completed]) < completed:
        raw[:completed] = raw[call != 0]
    return completed
