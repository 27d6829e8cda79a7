"""Small requests in counters: files whose calls cost more than the time of their bytes in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.counted.case import counted_case, counted_finding
from ensembles.diagnosis.finding import Check, Finding
from ensembles.model.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from ensembles.run.run import Run

SMALL_BYTES = 128 << 10
JOINED_BYTES = 1 << 20
LEAST_CALLS = 64
_MEMORY_BYTES_PER_S = 1e9
_FLOORS = (0.3, 0.7, 1.0)
"""Part of the mean duration that is a fixed cost: counters do not show the fastest calls."""


def find_counted(run: Run) -> Finding | None:
    """Take off the fixed cost of the calls of files with small requests, as far as they can be joined."""
    case = counted_case(run)
    files = case.files
    calls = files["reads"] + files["writes"]
    moved = files["bytes_read"] + files["bytes_written"]
    chosen = (calls >= LEAST_CALLS * files["records"]) & (moved > 0) & (moved < SMALL_BYTES * calls)
    spent = files["read_s"] + files["write_s"]
    chosen &= spent > 0
    if not chosen.any():
        return None
    whole = np.maximum(spent + files["meta_s"], 1e-12)
    beyond = np.maximum(spent - moved / _MEMORY_BYTES_PER_S, 0) / whole
    joined = np.ceil(moved / JOINED_BYTES)
    left = np.minimum(joined / np.maximum(calls, 1), 1.0)
    saved = np.where(chosen, case.time_s * beyond * (1 - left), 0.0)
    low_s, likely_s, high_s = (case.gain_s(part * saved) for part in _FLOORS)
    count, size = int(calls[chosen].sum()), float(moved[chosen].sum() / calls[chosen].sum())
    each_s = float(spent[chosen].sum() / count)
    checks = (
        Check(
            "many",
            True,
            f"{count:,} calls of {bytes_text(round(size))} on average take {seconds_text(each_s)}",
        ),
        Check(
            "fixed-cost",
            None,
            "counters have no durations of single calls: record them with DXT or ensio to see what a call "
            "costs whatever its size",
        ),
    )
    return counted_finding(
        case,
        "small-requests",
        f"small requests: {count:,} calls of {bytes_text(round(size))} in {chosen.sum():,} "
        f"file{'s' * (int(chosen.sum()) != 1)}, {seconds_text(each_s)} each",
        checks,
        {"mean_bytes": size, "mean_s": each_s, "calls": count},
        (low_s, likely_s, high_s),
        chosen,
    )
