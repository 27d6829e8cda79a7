"""Rules ``stdio-buffer`` and ``formatted-io``: calls on streams, by what the C library does inside them.

It passes a stream on in pieces of its small buffer, and it makes text of numbers, or numbers of text.
"""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case, how_long
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.limits import (
    COPIED_BYTES_PER_NS,
    LARGE_BYTES,
    LEAST_CALLS,
    SHARED_MEMORY_BYTES_PER_NS,
)
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.small_requests import emptied_streams, formatted_calls, join_calls
from ensembles.model.levels import LONGER, NEARLY_ALL, SMALL_BYTES
from ensembles.model.surroundings import SurroundingsTable
from ensembles.model.units import bytes_text, seconds_text

COUNTERS = {"write": ("write_calls", "written_by_calls"), "read": ("read_calls", "read_by_calls")}
"""Counters of the calls and of the bytes, by operation."""


def pieces_below(
    case: Case, samples: SurroundingsTable, op: str, chosen: np.ndarray
) -> tuple[float, float] | None:
    """Compute the mean size and number of system calls below streams."""
    count, moved = (float(samples.rises(name).rise.sum()) for name in COUNTERS[op])
    recorded = (case.layer == "posix") & (case.op == op)
    below = moved - float(case.rows["bytes"][recorded].sum())
    expected = float(case.rows["bytes"][chosen].sum())
    # Transfers of other files, which are not recorded, may be among them.
    if not NEARLY_ALL * expected <= below <= LONGER * expected:
        return None
    count -= float(case.rows["n"][recorded].sum())
    return (below / count, count) if count > 0 else None


def _find(case: Case, uses: FileUses) -> Remedy | None:
    stdio = (case.layer == "stdio") & (case.rows["bytes"] > 0) & np.isin(case.op, tuple(COUNTERS))
    stdio &= ~emptied_streams(case)
    if not stdio.any():
        return None
    rows, (low, saved, high) = np.zeros(len(case), bool), np.zeros((3, len(case)))
    said: dict[str, tuple[float, float]] = {}
    known, samples = False, case.run.surroundings()
    for op in COUNTERS:
        chosen = stdio & (case.op == op)
        pieces = pieces_below(case, samples, op, chosen) if chosen.any() else None
        known |= pieces is not None
        if pieces is None or pieces[1] < LEAST_CALLS or pieces[0] > SMALL_BYTES:
            continue
        size, count = pieces
        mine = np.minimum(case.rows["bytes"] / size, case.rows["n"])
        by_size = case.rows["bytes"] / case.rows["n"] < size / 2
        passing_ns = case.habitual_ns(chosen, mine)
        for target, time_ns, calls, rate in (
            (low, passing_ns, mine, COPIED_BYTES_PER_NS[0]),
            (saved, passing_ns, mine, COPIED_BYTES_PER_NS[1]),
            (high, case.rows["time_ns"], case.rows["n"], COPIED_BYTES_PER_NS[1]),
        ):
            # A call that only fills the buffer takes what most calls take; the rest is that of the pieces.
            passing = time_ns - np.where(by_size, calls * case.quartile_ns(), 0.0)
            beyond = np.maximum(passing - case.rows["bytes"] / rate, 0) * (1 - size / LARGE_BYTES)
            target += np.where(chosen, beyond, 0.0)
        rows |= chosen
        said[op] = size, count
    if not said:
        ops = " and ".join(f"{op}s" for op in COUNTERS if (stdio & (case.op == op)).any())
        what = f"small {ops} through the C library's buffer"
        return None if known else join_calls(case, "stdio-buffer", what, uses)
    text = " and ".join(
        f"{count:,.0f} {op}s of {bytes_text(round(size))}" for op, (size, count) in said.items()
    )
    each_s = float(saved[rows].sum()) * 1e-9 / sum(count for _, count in said.values())
    checks = (
        Check("small-pieces", f"the kernel counted about {text} below the streams"),
        Check(
            "time-of-the-pieces",
            f"beyond copying the bytes, each of them usually takes {seconds_text(each_s)}",
            bool(saved.sum() > 0),
        ),
    )
    evidence = {
        f"{op}_{name}": value
        for op, pair in said.items()
        for name, value in zip(("bytes", "calls"), pair, strict=True)
    }
    # Pages of the cache cost the same in pieces of any size, and nothing here says how much that is.
    return Remedy(
        rows,
        saved,
        f"streams with a small buffer: {text}",
        checks,
        evidence,
        0.25 * low,
        high,
    )


def _unformatted_ns(case: Case, rows: np.ndarray, bytes_per_ns: float) -> np.ndarray:
    """Compute what unformatted calls on streams take for the bytes of rows, else copies at a rate: (n,)."""
    each_ns = case.rows["bytes"] / np.maximum(case.rows["n"], 1) / bytes_per_ns
    key = case.rows["size"] * 2 + (case.op == "read")
    plain = (case.layer == "stdio") & np.isin(case.op, tuple(COUNTERS)) & ~rows
    usual_ns, count = (np.bincount(key, case.rows["n"] * plain * each) for each in (case.usual_ns(), 1))
    known = count[key] >= LEAST_CALLS
    found: np.ndarray = np.where(known, usual_ns[key] / np.maximum(count[key], 1), each_ns)
    return found


def _find_formatted(case: Case) -> Remedy | None:
    rows = formatted_calls(case)
    for op in COUNTERS:
        mine = (case.layer == "stdio") & (case.op == op) & (case.rows["bytes"] > 0)
        pieces = pieces_below(case, case.run.surroundings(), op, mine) if (rows & mine).any() else None
        if pieces is not None and 2 * pieces[1] > case.rows["n"][mine].sum():
            rows &= (
                case.op != op
            )  # most of them make a system call: no buffer, and what it costs is not known
    rows &= case.of_cells(case.by_cell(np.where(rows, case.rows["n"], 0)) >= LEAST_CALLS)
    if not rows.any():
        return None
    count, whole_ns = case.rows["n"], case.rows["time_ns"]
    # Formatting is work of a processor: many long calls lost it, and work that goes does not lose it.
    lost = case.effective_count(rows) >= LEAST_CALLS * len(np.unique(case.task[rows]))
    likely_ns = whole_ns if lost else case.habitual_ns(rows)
    times_ns = np.minimum(count * case.quartile_ns(), whole_ns), likely_ns, whole_ns
    low, saved, high = (
        np.where(rows, np.maximum(time_ns - count * _unformatted_ns(case, rows, rate), 0), 0.0)
        for time_ns, rate in zip(times_ns, SHARED_MEMORY_BYTES_PER_NS, strict=True)
    )
    calls, moved = (int(case.rows[name][rows].sum()) for name in ("n", "bytes"))
    each_s = 1e-9 * float(saved.sum()) / calls
    names = " and ".join(np.unique(case.name[rows]).tolist())
    sized = bool((case.rows["bytes"][rows] > 0).all())  # the bytes of fscanf are not known
    of_size = f" of {bytes_text(round(moved / calls))}" * sized
    took = f"{seconds_text(each_s)} of it in formatting"
    sentence = f"calls that move as many bytes unformatted take {seconds_text(each_s)} less"
    return Remedy(
        rows,
        saved,
        f"{calls:,} calls of {names}{of_size} {how_long(case, rows)}, {took}",
        (Check("beyond-bytes", sentence, bool(saved.any())),),
        {"mean_bytes": moved / calls, "formatting_s": each_s},
        low,
        high,
    )


rule = EvidenceRule("stdio-buffer", _find, FILE_USES)
formatted = EvidenceRule("formatted-io", _find_formatted)
