"""Rules of small requests, whose time is a fixed cost for each call and not that of their bytes.

Each of them belongs to one cause: where one or two tasks make them and the others wait, it is
``serialised-metadata``; where the reads jump, ``seek-heavy``; where the C library's buffer makes them,
``stdio-buffer``; else ``small-requests``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses, share_of_rows
from ensembles.diagnosis.finding import Check, Finding, NotApplicable, matters
from ensembles.diagnosis.limits import (
    COPIED_BYTES,
    DENSE,
    LEAST_CALLS,
    LEAST_UNITS,
    LOW,
    SHARED_MEMORY_BYTES_PER_NS,
    SMALL_CLASS,
    fixed_costs_ns,
    share_joined,
)
from ensembles.diagnosis.principles import cause_of
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rules.hdf5 import FILTER_NS_PER_BYTE, refill
from ensembles.diagnosis.storage_load import (
    TARGET_BYTES_PER_NS,
    usual_where_shared_ns,
    with_shared_processors,
    within_targets,
)
from ensembles.diagnosis.without_calls import counted_case, counted_finding
from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct_rows, extents, numbered_together
from ensembles.model.levels import A_TENTH, FEW, LITTLE, MOST, NEARLY_ALL
from ensembles.model.units import MOST_NAMED, bytes_text, count_text, seconds_text
from ensembles.structure.libraries import LIBRARIES
from ensembles.summaries.keyed_sums import KeyedSums

if TYPE_CHECKING:
    from ensembles.run.run import Run


EXCHANGE_NS = (10_000, 3_000, 500)
"""What a piece costs that goes to another task first: sorting, a part of a message, and copies."""


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


def emptied_streams(case: Case) -> np.ndarray:
    """Find the rows of streams that a flush or seek empties after each few bytes, so that no buffer helps."""
    found = np.zeros(len(case), bool)
    for emptying, moving in (("sync", "write"), ("seek", "read")):
        rows = (case.layer == "stdio") & np.isin(case.op, (emptying, moving))
        times = case.by_cell(np.where(rows & (case.op == emptying), case.rows["n"], 0))
        moved = case.by_cell(np.where(rows & (case.op == moving), case.rows["bytes"], 0))
        found |= rows & case.of_cells((times >= LEAST_CALLS) & (moved < COPIED_BYTES * times))
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
    buffered = ~(formatted_calls(case) | emptied_streams(case))
    return {
        "stdio-buffer": small & (case.layer == "stdio") & buffered,
        "serialised-metadata": single,
        "seek-heavy": jumping & ~single,
        "small-requests": outermost & ~(single | jumping),  # a buffer fetches what is around each piece
    }


def join_calls(
    case: Case, cause: str, what: str, uses: FileUses, exchanged: np.ndarray | None = None
) -> Remedy | None:
    """Compute what joining the small requests of a cause in pieces of `LARGE_BYTES` saves.

    One request of each file remains, and it is taken to be the slowest: it waits for a disk.
    """
    rows_of = case.rows
    chosen = small_calls(case)[cause]
    left_share, further = further_calls(case, uses, chosen)
    calls = case.by_cell(np.where(chosen, rows_of["n"], 0))
    rows = chosen & case.of_cells(calls >= LEAST_CALLS)
    if not rows.any():
        return None
    mean_bytes, mean_ns = rows_of["bytes"] / rows_of["n"], rows_of["time_ns"] / rows_of["n"]
    part = case.usual_ns(further, np.inf) / case.usual_ns(outlier=np.inf)  # of the mean of all calls
    usual_ns = np.maximum(case.usual_ns(further), part * case.beyond_bytes_ns(rows) / rows_of["n"])
    middle_ns = np.where(mean_bytes < COPIED_BYTES, usual_ns, case.quartile_ns(0.5, further))
    usual_ns, middle_ns = middle_ns, usual_where_shared_ns(case, rows, middle_ns, further)
    floors = [case.quartile_ns(0.25, further), middle_ns, mean_ns]
    # Which call loses the processor is random: the mean of all of them holds for each row.
    caps = [mean_ns, np.where(middle_ns > usual_ns, middle_ns, mean_ns), mean_ns]
    if cause == "stdio-buffer":
        passing_ns = np.minimum(mean_ns, case.habitual_ns(rows) / rows_of["n"])
        floors = [LOW * passing_ns, passing_ns, mean_ns]
    fixed = fixed_costs_ns(
        mean_bytes, [np.minimum(floor, most) for floor, most in zip(floors, caps, strict=True)]
    )
    each_ns = fixed_costs_ns(mean_bytes, [np.minimum(usual_ns, mean_ns)] * 3)[1]
    if exchanged is not None:
        fixed = [np.maximum(each - exchanged * ns, 0) for each, ns in zip(fixed, EXCHANGE_NS, strict=True)]
    joined = share_joined(calls, case.by_cell(np.where(chosen, rows_of["bytes"], 0)))
    fewer = np.where(rows, rows_of["n"] * np.minimum(case.of_cells(joined), left_share), 0.0)
    low, saved, high = (fewer * each for each in fixed)
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
            f"it could cost up to {seconds_text(most_s)} of this run, or nothing: targets need time for "
            "bytes, tasks to exchange pieces. Record larger requests, or one range of the file for each task",
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
            "record a run that "
            + ("reads the same bytes in their order" if cause == "seek-heavy" else "makes larger requests"),
            most_s,
        )
    checks = (
        Check(
            "fixed-cost",
            (
                f"these calls usually take {seconds_text(each_s)} beyond the time of their bytes in memory: "
                "the cost is there whatever the size"
                if each_s > 0
                else "these calls usually take no longer than their bytes in memory: only some are slow"
            ),
        ),
        Check("many", f"{calls_text}{' on average' * is_mean}"),
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
        of_processors=bool((middle_ns > usual_ns).any()),
    )


def further_calls(case: Case, uses: FileUses, chosen: np.ndarray) -> tuple[np.ndarray, KeyedSums]:
    """Leave the slowest call on each file out of the durations; return the share of each row that is left."""
    table, of_sums = uses.table.columns(), case.evidence.durations.columns()
    if len(table["n"]):
        (rank, call, _), of = distinct_rows(*(table[name] for name in ("rank", "call", "file")))
        calls, moved = (np.bincount(of, table[name]) for name in ("n", "bytes"))
        small = (moved > 0) & (moved < calls * 2.0**SMALL_CLASS)
        width = len(case.run.calls)
        small &= np.isin(rank * width + call, (case.rows["rank"] * width + case.rows["call"])[chosen])
        files = np.bincount(call, small, width)
    else:  # of sums: as many as are opened
        opened = min(int(case.rows["n"][case.op == "open"].sum()), len(case.run.files) - 1)
        files = np.full(len(case.run.calls), float(opened))
    theirs, mine, kinds = numbered_together(("call", "size"), of_sums, case.rows)
    count = of_sums["n"] * np.isin(theirs, mine[chosen])
    order = np.lexsort((-of_sums["bin"], of_sums["call"]))
    call, slowest = of_sums["call"][order], np.cumsum(count[order])
    before = slowest - count[order]
    before -= before[np.searchsorted(call, call)]
    left = np.empty_like(count)
    left[order] = count[order] - np.clip(files[call] - before, 0, count[order])
    further = KeyedSums(case.evidence.durations.keys, ("n",))
    further.add_summed(of_sums | {"n": left})
    share = np.bincount(theirs, left, kinds) / np.maximum(np.bincount(theirs, count, kinds), 1)
    return share[mine], further


def first_on_files(case: Case, uses: FileUses) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute which share of each row are the first small calls on a file: of calls, likely and most of time.

    They take at least as long as other calls, and at most as long as the slowest ones.
    """
    rows, chosen = case.rows, np.isin(case.layer, STORAGE) & np.isin(case.op, ("read", "write"))
    chosen &= (rows["size"] <= SMALL_CLASS) & (rows["bytes"] > 0) & (rows["depth"] == 0)
    if not chosen.any() or not len(uses.table.columns()["n"]):
        return np.zeros(len(case)), np.zeros(len(case)), np.zeros(len(case))
    left, further = further_calls(case, uses, chosen)
    mean_ns, further_ns = (np.maximum(case.usual_ns(of, np.inf), 1.0) for of in (None, further))
    first, slowest = 1 - left, 1 - left * further_ns / mean_ns
    copying = first * rows["bytes"] / (rows["n"] * mean_ns)
    likely, most = (
        np.where(chosen, np.clip(share - copying, 0.0, 1.0), 0.0)
        for share in ((first + slowest) / 2, slowest)
    )
    return np.where(chosen, first, 0.0), likely, most


def _calls_by_size(table: Mapping[str, np.ndarray], rows: np.ndarray) -> tuple[str, bool]:
    """Return how many calls of which size there are, and whether that is a mean: not of several sizes."""
    _, of = np.unique(table["size"][rows], return_inverse=True)
    calls, moved = (np.bincount(of, table[name][rows]) for name in ("n", "bytes"))
    total, order = int(calls.sum()), np.argsort(-calls, kind="stable")
    mean_bytes = moved.sum() / total
    if (
        calls[order[0]] > NEARLY_ALL * total
        and abs(moved[order[0]] / calls[order[0]] / mean_bytes - 1) < A_TENTH
    ):
        return f"{total:,} calls of {bytes_text(round(mean_bytes))}", True
    sizes = [f"{int(calls[at]):,} of {bytes_text(round(moved[at] / calls[at]))}" for at in order[:MOST_NAMED]]
    if len(order) > MOST_NAMED:
        sizes.append(f"{int(calls[order[MOST_NAMED:]].sum()):,} of other sizes")
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


def jumps(case: Case, least: int = 1, part: float = MOST) -> np.ndarray:
    """Find the rows of reads most of which do not begin where the one before ended; 2: they lie before it."""
    table = case.evidence.order.columns()
    theirs, mine, size = numbered_together(("phase", "rank", "call", "size"), table, case.rows)
    count = np.bincount(theirs, table["n"], size)
    jumped = np.bincount(theirs, table["n"] * (table["jumps"] >= least), size)
    found: np.ndarray = (jumped >= part * np.maximum(count, 1))[mine] & (count[mine] >= LEAST_CALLS)
    return found


def _of_single_tasks(case: Case, chosen: np.ndarray) -> np.ndarray:
    """Find rows whose function and size class only one or two tasks use in any phase."""
    key = case.rows["call"] * 128 + case.rows["size"]
    pairs, _ = distinct_rows(key[chosen], case.rows["rank"][chosen])
    names, tasks = np.unique(pairs[0], return_counts=True)
    single = names[(tasks <= FEW) & (len(case.ranks) - tasks >= LEAST_UNITS)]
    found: np.ndarray = np.isin(key, single)
    return found


_LAYERS = ("hdf5", "netcdf")
_SLOW_FILTER_NS_PER_BYTE = 4 * FILTER_NS_PER_BYTE

JOIN = (
    "move larger pieces in each call: whole rows, planes or time steps instead of parts of them (a larger "
    "count or selection), or collect them in an array and write it at once"
)


def join_library_calls(case: Case, again: np.ndarray) -> Remedy | None:
    """Compute what joining small calls of libraries saves inside these libraries.

    Their time without the calls inside, beyond what filters take for the bytes, is a cost of each call.
    """
    rows = np.isin(case.layer, _LAYERS) & np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
    data = (case.layer == "netcdf") | np.char.startswith(case.name, "H5D")
    calls = np.maximum(case.rows["n"], 1)
    mean_bytes, mean_ns = (case.rows[name] / calls for name in ("bytes", "time_ns"))
    rows &= data & ~again
    # A call that moves a whole chunk for a few bytes takes what the chunk does.
    below = (case.layer == "posix") & (case.rows["depth"] > 0)
    for op in ("read", "write"):
        moved, count = (
            case.by_cell(np.where(chosen & (case.op == op), case.rows[name], 0))
            for chosen, name in ((below, "bytes"), (rows, "n"))
        )
        each = np.divide(moved, count, out=np.zeros_like(moved), where=count > 0)
        rows &= (case.op != op) | (np.maximum(mean_bytes, case.of_cells(each)) < COPIED_BYTES)
    outermost = rows & (case.rows["depth"] == 0)
    tasks = len(case.ranks)
    count, moved = (
        np.bincount(case.task, np.where(outermost, case.rows[name], 0), tasks) for name in ("n", "bytes")
    )
    left_out = np.where(rows, share_joined(count, moved)[case.task], 0.0)
    if not left_out.any():
        return None
    usual_ns = np.minimum(case.usual_ns(), mean_ns)
    least_ns = np.minimum(case.quartile_ns(0.25), mean_ns)
    in_parallel = tasks > 1 and bool(((case.layer == "mpiio") & (case.rows["depth"] > 0)).any())
    low, saved, high = (
        calls * left_out * np.maximum(each_ns - mean_bytes * ns_per_byte, 0)
        for each_ns, ns_per_byte in (
            (least_ns * (not in_parallel), _SLOW_FILTER_NS_PER_BYTE),
            (usual_ns, FILTER_NS_PER_BYTE),
            (mean_ns, 0.0),
        )
    )
    shown = outermost & (left_out > 0)
    number = int(case.rows["n"][shown].sum())
    size = float(case.rows["bytes"][shown].sum()) / number
    each_s = 1e-9 * float(saved.sum()) / number
    whose = " and ".join(LIBRARIES[layer] for layer in np.unique(case.layer[saved > 0]).tolist())
    if not whose:
        return None
    of_size = f"{number:,} calls of {bytes_text(round(size))}"
    checks = (
        Check(
            "cost-of-calls",
            f"{seconds_text(each_s)} of each call are in {whose} and in no call inside, more than filters "
            "take for its bytes",
        ),
        Check("many", of_size),
    )
    return Remedy(
        shown,
        saved,
        f"small requests: {of_size}, {seconds_text(each_s)} of fixed cost each inside {whose}",
        checks,
        {"mean_bytes": size, "fixed_cost_s": each_s},
        low,
        high,
        advice=JOIN,
    )


IN_AN_ARRAY = (
    "join what is contiguous in an array of the program, and move it in one call; leave the buffers of "
    "libraries as they are: other reads of this run jump, and a buffer fetches what is around each, too"
)
READ_AHEAD = "look at posix_fadvise of these files, too: POSIX_FADV_RANDOM switches off their read-ahead"

_FLOORS = (0.3, 0.7, 1.0)
"""Part of the mean duration that is a fixed cost: counters do not show the fastest calls."""


def find_counted(run: Run) -> Finding | None:
    """Take off the fixed cost of the calls of files with small requests, as far as they can be joined."""
    case = counted_case(run)
    files = case.files
    calls = files["reads"] + files["writes"]
    moved = files["bytes_read"] + files["bytes_written"]
    chosen = (calls >= LEAST_CALLS * files["records"]) & (moved > 0) & (moved < (1 << SMALL_CLASS) * calls)
    spent = files["read_s"] + files["write_s"]
    chosen &= spent > 0
    if not chosen.any():
        return None
    whole = np.maximum(spent + files["meta_s"], 1e-12)
    beyond = np.maximum(spent - 1e-9 * moved / SHARED_MEMORY_BYTES_PER_NS[1], 0) / whole
    saved = np.where(chosen, case.time_s * beyond * share_joined(calls, moved), 0.0)
    low_s, likely_s, high_s = (case.gain_s(part * saved) for part in _FLOORS)
    count, size = int(calls[chosen].sum()), float(moved[chosen].sum() / calls[chosen].sum())
    each_s = float(spent[chosen].sum() / count)
    checks = (
        Check("many", f"{count:,} calls of {bytes_text(round(size))} on average take {seconds_text(each_s)}"),
        Check(
            "fixed-cost",
            "counters have no durations of single calls: record them with DXT or ensio to see what a call "
            "costs whatever its size",
            None,
        ),
    )
    return counted_finding(
        case,
        "small-requests",
        f"small requests: {count:,} calls of {bytes_text(round(size))} in "
        f"{count_text(int(chosen.sum()), 'file')}, {seconds_text(each_s)} each",
        checks,
        {"mean_bytes": size, "mean_s": each_s, "calls": count},
        (low_s, likely_s, high_s),
        chosen,
    )


def _moved_again(case: Case, uses: FileUses) -> np.ndarray:
    """Find the rows of ``hdf5-refill``: bool, shape (n,)."""
    try:
        found = refill.find(case, uses)
    except NotApplicable:
        found = None
    return np.zeros(len(case), bool) if found is None else found.rows


def _find(case: Case, uses: FileUses) -> Remedy | None:
    of_library = join_library_calls(case, _moved_again(case, uses))
    try:
        found = join_calls(case, "small-requests", "small requests", uses, between_others(case, uses))
    except NotApplicable:
        if of_library is None or not matters(case.gain_s(of_library.saved_ns), case.run_s):
            raise
        return of_library
    each = [remedy for remedy in (of_library, found) if remedy is not None]
    best = max(each, key=lambda remedy: case.gain_s(remedy.saved_ns), default=None)
    return _advised(case, uses, found) if found is not None and best is found else best


def _advised(case: Case, uses: FileUses, found: Remedy) -> Remedy:
    """Advise no buffer beside reads that jump; name posix_fadvise, which may switch read-ahead off."""
    table = uses.table.columns()
    reads = np.isin(table["call"], case.rows["call"][found.rows & (case.op == "read")])
    advised = (case.names == "posix_fadvise")[table["call"]] & np.isin(table["file"], table["file"][reads])
    if small_calls(case)["seek-heavy"].any():
        found.advice = IN_AN_ARRAY
    if advised.any():
        found.evidence["posix_fadvise_calls"] = int(table["n"][advised].sum())
        found.advice = f"{found.advice or cause_of('small-requests').advice}; {READ_AHEAD}"
    return found


rule = EvidenceRule(
    "small-requests",
    _find,
    FILE_USES,
    counted=find_counted,
    summed=_find,
)


def _find_jumps(case: Case, uses: FileUses) -> Remedy | None:
    rows = small_calls(case)["seek-heavy"]
    goes_back = bool(rows.any()) and bool(jumps(case, 2, NEARLY_ALL)[rows].all())
    what = "reads go backwards through the file" if goes_back else "reads jump through the file"
    return join_calls(case, "seek-heavy", what, uses)


seek_heavy = EvidenceRule("seek-heavy", _find_jumps, FILE_USES)


def _find_serialised(case: Case, uses: FileUses) -> Remedy | None:
    makers = len(np.unique(case.rows["rank"][small_calls(case)["serialised-metadata"]]))
    verb = "makes" if makers == 1 else "make"
    what = f"{makers:,} of {len(case.ranks):,} tasks {verb} small calls one by one, and the others wait"
    return join_calls(case, "serialised-metadata", what, uses)


serialised_metadata = EvidenceRule("serialised-metadata", _find_serialised, FILE_USES)
