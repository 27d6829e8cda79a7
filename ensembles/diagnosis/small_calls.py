"""Small requests, whose time is a fixed cost for each call and not that of their bytes: shared by four rules.

Each of them belongs to one cause: where one or two tasks make them and the others wait, it is
``serialised-metadata``; where the reads jump, ``seek-heavy``; where the C library's buffer makes them,
``stdio-buffer``; else ``small-requests``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, NotApplicable, matters
from ensembles.diagnosis.fixed_cost import COPIED_BYTES, fixed_costs_ns
from ensembles.diagnosis.limits import (
    FEW,
    LARGE_BYTES,
    LEAST_CALLS,
    LEAST_UNITS,
    LITTLE,
    MARGIN,
    NEARLY_ALL,
    SMALL_CLASS,
)
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.shared_processors import usual_where_shared_ns, with_shared_processors
from ensembles.diagnosis.target_load import TARGET_BYTES_PER_NS, within_targets
from ensembles.model.distinct import distinct_rows, extents, numbered_together
from ensembles.model.units import bytes_text, seconds_text

EXCHANGE_NS = (10_000, 3_000, 500)
"""What a piece costs that goes to another task first: sorting, a part of a message, and copies."""

_OTHER_WAY = {"seek-heavy": "reads the same bytes in their order"}

_MOST_SIZES = 3

DENSE = 0.7
"""Share of the bytes of a range from which a task reads the range, not pieces of it."""

_JUMPS = 0.8
_FILLING = 0.4
"""Part of the mean cost of a call on a stream at the lower end: most calls only fill the buffer."""


def small_calls(case: Case) -> dict[str, np.ndarray]:
    """Divide the rows of small requests by cause."""
    if small_calls not in case.shared:
        case.shared[small_calls] = _divided(case)
    found: dict[str, np.ndarray] = case.shared[small_calls]
    return found


def formatted_calls(case: Case) -> np.ndarray:
    """Find the rows of calls that make text of numbers, or numbers of text: bool, shape (n,)."""
    by_name = np.char.endswith(case.name, "printf") | np.char.endswith(case.name, "scanf")
    found: np.ndarray = by_name & (case.layer == "stdio")
    return found


def flushed_records(case: Case) -> np.ndarray:
    """Find the rows of streams that are flushed after each few bytes, so that no buffer helps: (n,)."""
    streams = case.layer == "stdio"
    flushes, moved = (
        case.by_cell(np.where(streams & (case.op == op), case.rows[name], 0))
        for op, name in (("sync", "n"), ("write", "bytes"))
    )
    found: np.ndarray = streams & case.of_cells((flushes >= LEAST_CALLS) & (moved < COPIED_BYTES * flushes))
    return found


def _divided(case: Case) -> dict[str, np.ndarray]:
    small = (
        np.isin(case.op, ("read", "write")) & (case.rows["size"] <= SMALL_CLASS) & (case.rows["bytes"] > 0)
    )
    outermost = small & ((case.layer == "posix") | _without_inner_calls(case))
    few = np.unique(case.rows["rank"][outermost])
    is_few = len(few) <= FEW and len(case.ranks) - len(few) >= LEAST_UNITS
    jumping = outermost & (case.op == "read") & jumps(case) if outermost.any() else outermost
    single = outermost if is_few else outermost & _of_single_tasks(case, outermost)
    if not case.model.shows_waiting:
        single = np.zeros(len(case), bool)  # nothing shows that others wait for the tasks that make them
    buffered = ~(formatted_calls(case) | flushed_records(case) & (case.op == "write"))
    return {
        "stdio-buffer": small & (case.layer == "stdio") & buffered,
        "serialised-metadata": single,
        "seek-heavy": jumping & ~single,
        "small-requests": outermost & ~single,
    }


def join_calls(case: Case, cause: str, what: str, exchanged: np.ndarray | None = None) -> Remedy | None:
    """Compute what joining the small requests of a cause in pieces of `LARGE_BYTES` saves."""
    rows_of = case.rows
    chosen = small_calls(case)[cause]
    calls = case.by_cell(np.where(chosen, rows_of["n"], 0))
    rows = chosen & case.of_cells(calls >= LEAST_CALLS)
    if not rows.any():
        return None
    mean_bytes, mean_ns = rows_of["bytes"] / rows_of["n"], rows_of["time_ns"] / rows_of["n"]
    usual_ns = np.maximum(case.usual_ns(), case.beyond_bytes_ns(rows) / rows_of["n"])
    middle_ns = np.where(mean_bytes < COPIED_BYTES, usual_ns, case.quartile_ns(0.5))
    usual_ns, middle_ns = middle_ns, usual_where_shared_ns(case, rows, middle_ns)
    floors = [case.quartile_ns(0.25), middle_ns, mean_ns]
    # Which call loses the processor is random: the mean of all of them holds for each row.
    caps = [mean_ns, np.where(middle_ns > usual_ns, middle_ns, mean_ns), mean_ns]
    if cause == "stdio-buffer":
        passing_ns = np.minimum(mean_ns, case.habitual_ns(rows) / rows_of["n"])
        floors = [_FILLING * passing_ns, passing_ns, mean_ns]
    fixed = fixed_costs_ns(
        mean_bytes, [np.minimum(floor, most) for floor, most in zip(floors, caps, strict=True)]
    )
    each_ns = fixed_costs_ns(mean_bytes, [np.minimum(usual_ns, mean_ns)] * 3)[1]
    if exchanged is not None:
        fixed = [np.maximum(each - exchanged * ns, 0) for each, ns in zip(fixed, EXCHANGE_NS, strict=True)]
    joined = np.ceil(case.by_cell(np.where(chosen, rows_of["bytes"], 0)) / LARGE_BYTES)
    kept = np.divide(np.minimum(joined, calls), calls, out=np.ones_like(calls), where=calls >= LEAST_CALLS)
    low, saved, high = (
        np.where(rows, rows_of["n"] * each * (1 - case.of_cells(kept)), 0.0) for each in fixed
    )
    low, saved = (with_shared_processors(case, each) for each in (low, saved))
    if cause != "serialised-metadata":
        low, saved = (
            within_targets(case, each, rate)
            for each, rate in zip((low, saved), TARGET_BYTES_PER_NS, strict=True)
        )
    most_s, likely_s = case.gain_s(high), case.gain_s(saved)
    # Calls that take no longer than their bytes are not what is slow, whatever their size.
    rows = rows & (high > 0) if high.any() else rows
    if likely_s <= 0 and matters(most_s, case.run_s):
        raise NotApplicable(
            f"it could cost up to {seconds_text(most_s)} of this run, or nothing, as the targets may need "
            "all the time for the bytes, or tasks for exchanging pieces: record a run with larger requests",
            most_s,
        )
    weights = rows_of["n"][rows]
    size = float(np.average(mean_bytes[rows], weights=weights))
    calls_text, is_mean = _calls_by_size(rows_of, rows)
    each_s, mean_s, usual_s = (
        float(np.average(values[rows], weights=weights)) * 1e-9 for values in (each_ns, mean_ns, usual_ns)
    )
    if likely_s <= LITTLE * most_s and matters(most_s, case.run_s) and not matters(likely_s, case.run_s):
        raise NotApplicable(
            f"it could cost up to {seconds_text(most_s)} of this run, or next to nothing: {calls_text} take "
            f"{seconds_text(mean_s)} each; {seconds_text(each_s)} of it is "
            "a cost of each call, and the rest may be the disk's for the same bytes in any order or size: "
            f"record a run that {_OTHER_WAY.get(cause, 'makes larger requests')}",
            most_s,
        )
    checks = (
        Check(
            "fixed-cost",
            True,
            f"these calls usually take {seconds_text(each_s)} beyond the time of their bytes in memory: the "
            "cost is there whatever the size"
            if each_s > 0
            else "these calls usually take no longer than their bytes in memory: only some of them are slow",
        ),
        Check("many", True, f"{calls_text}{' on average' * is_mean}"),
    )
    return Remedy(
        rows,
        saved,
        f"{what}: {calls_text}, "
        + (
            f"{seconds_text(each_s)} of fixed cost each"
            if each_s > 0
            else f"{seconds_text(mean_s)} each on average; most of this size take {seconds_text(usual_s)}, "
            "as long as their bytes in memory"
        ),
        checks,
        {"mean_bytes": size, "fixed_cost_s": each_s},
        low,
        high,
        fewer=np.where(rows, rows_of["n"] * (1 - case.of_cells(kept)), 0.0),
        of_processors=bool((middle_ns > usual_ns).any()),
    )


def _calls_by_size(table: Mapping[str, np.ndarray], rows: np.ndarray) -> tuple[str, bool]:
    """Return how many calls of which size there are, and whether that is a mean: not of several sizes."""
    _, of = np.unique(table["size"][rows], return_inverse=True)
    calls, moved = (np.bincount(of, table[name][rows]) for name in ("n", "bytes"))
    total, order = int(calls.sum()), np.argsort(-calls, kind="stable")
    mean_bytes = moved.sum() / total
    if (
        calls[order[0]] > NEARLY_ALL * total
        and abs(moved[order[0]] / calls[order[0]] / mean_bytes - 1) < MARGIN
    ):
        return f"{total:,} calls of {bytes_text(round(mean_bytes))}", True
    sizes = [
        f"{int(calls[at]):,} of {bytes_text(round(moved[at] / calls[at]))}" for at in order[:_MOST_SIZES]
    ]
    if len(order) > _MOST_SIZES:
        sizes.append(f"{int(calls[order[_MOST_SIZES:]].sum()):,} of other sizes")
    if len(sizes) == 1:
        return f"{total:,} calls of {sizes[0]}", True
    return f"{total:,} calls ({', '.join(sizes)})", False


def between_others(case: Case, uses: FileUses) -> np.ndarray:
    """Compute which share of each row's transfers lies between those of other tasks in a shared file.

    A task whose bytes fill less than most of its range leaves room for others.
    """
    table = uses.table.columns()
    moved = np.flatnonzero((table["bytes"] > 0) & (table["high"] > table["low"]))
    if not len(moved):
        return np.zeros(len(case))
    # Parts of a task may follow those of others from step to step; a step of one call does not show that.
    step = np.where(table["n"][moved] > 1, table["phase"][moved], -1)
    names, group = distinct_rows(*(table[name][moved] for name in ("file", "rank", "call")), step)
    bytes_ = np.bincount(group, table["bytes"][moved])
    low, high = extents(group, table["low"][moved], table["high"][moved], len(bytes_))
    users = np.bincount(distinct_rows(names[0], names[1])[0][0])
    apart = (bytes_ < DENSE * (high - low)) & (users[names[0]] > 1)
    chosen = np.zeros(len(table["n"]), bool)
    chosen[moved] = apart[group]
    return share_of_rows(case, table, chosen)


def _without_inner_calls(case: Case) -> np.ndarray:
    """Find independent MPI-IO calls of a run that recorded no POSIX calls inside: they are the requests."""
    inside = (case.layer == "posix") & (case.rows["depth"] > 0) & np.isin(case.op, ("read", "write"))
    alone = (case.layer == "mpiio") & ~np.char.endswith(case.name, "_all")
    return np.zeros(len(case), bool) if inside.any() else alone


def jumps(case: Case, least: int = 1) -> np.ndarray:
    """Find the rows of reads most of which do not begin where the one before ended; 2: they lie before it."""
    table = case.evidence.order.columns()
    theirs, mine, size = numbered_together(("phase", "rank", "call", "size"), table, case.rows)
    count = np.bincount(theirs, table["n"], size)
    jumped = np.bincount(theirs, table["n"] * (table["jumps"] >= least), size)
    found: np.ndarray = (jumped >= _JUMPS * np.maximum(count, 1))[mine] & (count[mine] >= LEAST_CALLS)
    return found


def _of_single_tasks(case: Case, chosen: np.ndarray) -> np.ndarray:
    """Find rows whose function and size class only one or two tasks use in any phase."""
    key = case.rows["call"] * 128 + case.rows["size"]
    pairs, _ = distinct_rows(key[chosen], case.rows["rank"][chosen])
    names, tasks = np.unique(pairs[0], return_counts=True)
    single = names[(tasks <= FEW) & (len(case.ranks) - tasks >= LEAST_UNITS)]
    found: np.ndarray = np.isin(key, single)
    return found
