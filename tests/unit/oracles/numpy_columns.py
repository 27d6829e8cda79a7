"""Decoding of spooled events, in NumPy: what `ensembles.readers.native.window_decoder.decode` gives."""

from __future__ import annotations

import numpy as np

from ensembles.readers.common.columns import LARGEST_MOVED_BYTES
from ensembles.readers.native.window_decoder import Decoding, Found

_NO_ERRNO = 0x10000
_AS_STORED = ("depth", "offset", "requested", "moved")


def decode(decoding: Decoding, thread: int, raw: np.ndarray, out: dict[str, np.ndarray]) -> Found | None:
    """Decode completed events; None: one of them is damaged."""
    for name, stored in (*zip(_AS_STORED, _AS_STORED, strict=True), ("carried", "flags")):
        if name in out:
            out[name][:] = raw[stored]
    for name, value in (("rank", decoding.rank), ("thread", thread)):
        if name in out:
            out[name][:] = value
    file, site = raw["file"].astype("u8"), raw["site"].astype("u8")
    if decoding.wide_files:
        file, site = file + 65536 * site, 0 * site
    tables = {
        "call": (decoding.call_numbers, raw["call"]),
        "file": (decoding.file_numbers, file),
        "site": (decoding.site_numbers, site),
    }
    for name, (numbers, stored_numbers) in tables.items():
        if name in out:
            np.take(numbers, stored_numbers.astype(np.intp), out=out[name], mode="clip")
    if not _decode_times(decoding, raw, out) or (len(raw) and raw["moved"].max() > LARGEST_MOVED_BYTES):
        return None
    unknown_calls = len(raw) - int(np.count_nonzero(out["call"]))
    unknown_files = 0
    if "file" in out:
        unknown_files = int(np.count_nonzero(file)) - int(np.count_nonzero(out["file"]))
    if "moved" in out:
        _decode_failures(out["moved"], out["error"])
    return Found(unknown_calls, unknown_files)


def _decode_times(decoding: Decoding, raw: np.ndarray, out: dict[str, np.ndarray]) -> bool:
    """Convert ticks to nanoseconds, and return whether all times are possible.

    The first clock reading is subtracted in integers. The difference is below 2**55 ticks: a float64
    represents it exactly in the first weeks of a run, and to a few ticks later.
    """
    start, duration = out["start"], out["duration"]
    if not len(raw):
        return True
    np.subtract(raw["start"], np.uint64(decoding.first_ticks), out=start.view("u8"))
    duration[:] = raw["duration"].view("i8")
    most = decoding.most_ticks
    if start.max() > most or start.min() < -most or duration.max() > most or duration.min() < 0:
        return False
    if decoding.ns_per_tick != 1.0:
        for times in (start, duration):
            times[:] = np.rint(times * decoding.ns_per_tick)
    start += decoding.start_ns
    return True


def _decode_failures(moved: np.ndarray, error: np.ndarray) -> None:
    """Split the recorded `moved`, which is minus the errno of a failed call, into two columns."""
    error[:] = 0
    if len(moved) and moved.min() < 0:
        failed = moved < 0
        error[failed] = np.where(moved[failed] > -_NO_ERRNO, -moved[failed], 0)
        moved[failed] = -1
